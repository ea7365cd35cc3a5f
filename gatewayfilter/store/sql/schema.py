"""The database schema of this version; `migrations/` brings any older database to it.

URLs and list keys have no length limit, so rows are identified by the MD5 of their text: indexes stay small and no
PostgreSQL index row grows too long. Times are Unix seconds.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    false,
    text,
    true,
)

from gatewayfilter.store.sql.access_schema import ACCOUNTS, API_TOKENS, AUDIT, IDEMPOTENCY, WEB_SESSIONS
from gatewayfilter.store.sql.schema_metadata import METADATA, SERIAL

__all__ = ["ACCOUNTS", "API_TOKENS", "AUDIT", "HEAD", "IDEMPOTENCY", "METADATA", "WEB_SESSIONS"]

HEAD = "0024"
"""The migration that makes this schema."""

MANUAL_RULES = Table(
    "manual_rules",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    Column("identity", LargeBinary(16), nullable=False),  # MD5 of kind, group, pattern and scope
    Column("action", String(8), nullable=False),
    Column("kind", String(8), nullable=False),
    Column("pattern", Text, nullable=False),
    Column("group_name", Text, nullable=False),
    Column("comment", Text, nullable=False),
    Column("expires_at", Double),
    Column("enabled", Boolean, nullable=False, server_default=true()),
    Column("scope", Text, nullable=False, server_default=""),  # "" for everybody
    Index("ix_manual_rules_identity", "identity", unique=True),
    sqlite_autoincrement=True,  # a rule's number is never reused for another rule
)

POLICY_ITEMS = Table(
    "policy_items",
    METADATA,
    Column("kind", String(8), primary_key=True),  # client, group, policy, schedule, pause, quota, spent
    Column("name", Text, primary_key=True),
    Column("record", JSON, nullable=False),
)

QUOTA_USAGE = Table(
    "quota_usage",
    METADATA,
    Column("client", Text, primary_key=True),  # client:NAME or address:ADDRESS
    Column("quota", Text, primary_key=True),
    Column("day", Integer, primary_key=True, autoincrement=False),  # proleptic ordinal in the time zone of the quota
    Column("minutes", LargeBinary, nullable=False),  # bit n of byte m: minute 8 m + n of the day
)

DEVICES = Table(
    "devices",
    METADATA,
    Column("address", Text, primary_key=True),
    Column("mac", Text, nullable=False),  # "" when it is not known
    Column("name", Text, nullable=False),  # host name, "" when none is known
    Column("first_at", Double, nullable=False),
    Column("last_at", Double, nullable=False),
    Column("asked_at", Double, nullable=False),  # when its host name was looked up, 0 for never
    Index("ix_devices_last_at", "last_at"),
)

LEARNED_ENTRIES = Table(
    "learned_entries",
    METADATA,
    Column("digest", LargeBinary(16), primary_key=True),  # MD5 of key, as the snapshot's tables hold it
    Column("key", Text, nullable=False),
    Column("action", String(8), nullable=False),
    Column("category", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("certainty", Double),  # that the page is harmful; none for hosts, and where none was estimated
    Index("ix_learned_entries_expires_at", "expires_at"),
)

LIST_CHANGES = Table(
    "list_changes",
    METADATA,
    Column("seq", SERIAL, primary_key=True, autoincrement=True),
    Column("kind", String(16), nullable=False),
    Column("payload", JSON, nullable=False),
    sqlite_autoincrement=True,  # a sequence number is never used twice
)

FRONTIER = Table(
    "frontier",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),  # in order of arrival
    Column("digest", LargeBinary(16), nullable=False),  # MD5 of url
    Column("url", Text, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("state", String(8), nullable=False),
    Column("not_before", Double, nullable=False),  # as it was offered or put back
    Column("due_at", Double, nullable=False),  # waiting: lease from then on; leased, done: until then; dead: since then
    Column("attempts", Integer, nullable=False),
    Column("token", String(32), nullable=False),
    Column("error", Text, nullable=False),
    Index("ix_frontier_digest", "digest", unique=True),
    Column("slot", Integer, nullable=False, server_default="-1"),  # of its site on the ring; -1: not assigned
    Column("task", Text, nullable=False, server_default=""),  # of `crawl.tasks`, "" for none
    Column("depth", Integer, nullable=False, server_default="0"),  # links away from where the task began
    Column("holder", Text, nullable=False, server_default=""),  # leased: the crawler that has it, "" for one without a name
    Index("ix_frontier_state_priority_due_at", "state", "priority", "due_at"),
)

FRONTIER_PAUSES = Table(
    "frontier_pauses",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),  # 1: the whole queue
    Column("since", Double, nullable=False),
)

FRONTIER_HOLDS = Table(
    "frontier_holds",
    METADATA,
    Column("kind", String(8), primary_key=True),  # task or host
    Column("name", Text, primary_key=True),
    Column("since", Double, nullable=False),
)

RULE_MATCHES = Table(
    "rule_matches",
    METADATA,
    Column("name", String(100), primary_key=True),  # of an extraction rule
    Column("pages", BigInteger, nullable=False),
    Column("empty", BigInteger, nullable=False),  # of them, those in which it found nothing
    Column("last_at", Double, nullable=False),
)

CRAWLERS = Table(
    "crawlers",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("seen_at", Double, nullable=False),
)

TASK_SITES = Table(
    "task_sites",
    METADATA,
    Column("digest", LargeBinary(16), primary_key=True),  # MD5 of task and site
    Column("task", Text, nullable=False),
    Column("site", Text, nullable=False),
    Column("pages", Integer, nullable=False),  # queued since then
    Column("since", Double, nullable=False),
    Index("ix_task_sites_since", "since"),
)

PAGE_VALIDATORS = Table(
    "page_validators",
    METADATA,
    Column("digest", LargeBinary(16), primary_key=True),  # MD5 of the requested URL
    Column("url", Text, nullable=False),  # after redirects
    Column("etag", Text, nullable=False),
    Column("last_modified", Text, nullable=False),
    Column("judged_by", Text, nullable=False),  # version of the words
    Column("fetched_at", Double, nullable=False),  # whole; not when it was last unchanged
    Column("contents", LargeBinary, nullable=False, server_default=""),  # identities of the page's content
    Index("ix_page_validators_fetched_at", "fetched_at"),
)

DECISIONS = Table(
    "decisions",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    Column("at", Double, nullable=False),
    Column("client", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("resource_type", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("source_list", Text, nullable=False),
    Column("rule", Text, nullable=False),
    Column("category", Text, nullable=False),
    Column("elapsed_us", Integer, nullable=False),
    Column("user_name", Text, nullable=False, server_default=""),  # of the proxy login
    Index("ix_decisions_at", "at"),
    sqlite_autoincrement=True,  # `log tail` goes on after the last id it saw
)

LOG_COUNTS = Table(
    "log_counts",
    METADATA,
    Column("period_s", Integer, primary_key=True, autoincrement=False),  # 3,600 or 86,400
    Column("dimension", Integer, primary_key=True, autoincrement=False),  # `model.LogDimension`
    Column("start", BigInteger, primary_key=True, autoincrement=False),  # of the hour or day, in UTC
    Column("client", Text, primary_key=True),  # "" for everybody
    Column("name", Text, primary_key=True),  # "" for names beyond the bound
    Column("action", Text, primary_key=True),
    Column("decisions", BigInteger, nullable=False),
    Index(  # charts of everybody read no other rows; of the reasons only, as each batch changes what the index holds
        "ix_log_counts_everybody",
        "period_s",
        "start",
        "name",
        "action",
        "decisions",
        sqlite_where=text("dimension = 5 AND client = ''"),  # in PostgreSQL, too: named here, it would load that dialect
    ),
    sqlite_with_rowid=False,
)

LOG_HOURS = Table(
    "log_hours",
    METADATA,
    Column("start", BigInteger, primary_key=True, autoincrement=False),
    Column("first_id", BigInteger, nullable=False),  # of the decisions of this hour: clocks jump, so hours may overlap
    Column("last_id", BigInteger, nullable=False),
)

LOG_PROGRESS = Table(
    "log_progress",
    METADATA,
    Column("name", String(16), primary_key=True),
    Column("up_to", BigInteger, nullable=False),  # id of the newest decision that is counted, or indexed
)

LOG_DEVICES = Table(
    "log_devices",
    METADATA,
    Column("client", Text, primary_key=True),
    Column("first_at", Double, nullable=False),
    Column("last_at", Double, nullable=False),
    sqlite_with_rowid=False,
)

PAGE_VERDICTS = Table(
    "page_verdicts",
    METADATA,
    Column("digest", LargeBinary(16), primary_key=True),  # MD5 of url
    Column("url", Text, nullable=False),
    Column("category", Text, nullable=False),
    Column("judged_at", Double, nullable=False),
    Column("classification", JSON, nullable=False),
    Column("host", Text, nullable=False, server_default=""),  # "" for what was judged before this column was there
    Column("text_digest", LargeBinary(16)),  # MD5 of the visible text
    Column("archived", Text, nullable=False, server_default=""),  # reference into the archive, "" for none
    Column("path_digest", LargeBinary(16)),  # MD5 of the path where the page counts for its host
    Index("ix_page_verdicts_judged_at", "judged_at"),
    Index("ix_page_verdicts_host", "host"),
)

FINGERPRINTS = Table(
    "fingerprints",
    METADATA,
    Column("kind", String(8), primary_key=True),
    Column("digest", LargeBinary(16), primary_key=True),  # of a page the proof, of others an MD5
    Column("proof", LargeBinary(16), nullable=False),  # 128 bits of a keyed BLAKE3 of the content
    Column("category", Text, nullable=False),
    Column("judge", Text, nullable=False),
    Column("words", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("classification", JSON, nullable=False),
    Column("judged_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("hits", Integer, nullable=False),
    Index("ix_fingerprints_expires_at", "expires_at"),
)

REVIEW_TASKS = Table(
    "review_tasks",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    Column("digest", LargeBinary(16), nullable=False),  # MD5 of key
    Column("kind", String(8), nullable=False),
    Column("url", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("category", Text, nullable=False),
    Column("state", String(8), nullable=False),
    Column("group_id", BigInteger, nullable=False),  # the first task of those alike; its own number when it is the first
    Column("blocked", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("decided_at", Double),
    Column("decided_by", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("simhash", LargeBinary(8), nullable=False),
    Column("page_digest", LargeBinary(16), nullable=False),
    Column("page_proof", LargeBinary(16), nullable=False),
    Column("text_digest", LargeBinary(16), nullable=False),
    Column("text_proof", LargeBinary(16), nullable=False),
    Column("classification", JSON, nullable=False),
    Column("text", LargeBinary, nullable=False),  # the displayed text, compressed by zlib
    Column("final_url", Text, nullable=False, server_default=""),  # what answered, where it was another than url
    Column("score_breakdown", JSON(none_as_null=True)),  # of the score; none for hosts and tasks of before this column was there
    Column("doubtful", Boolean, nullable=False, server_default=false()),  # allowed by the classifier, in doubt
    Index("ix_review_tasks_digest", "digest"),
    Index("ix_review_tasks_state_created_at", "state", "created_at"),
    sqlite_autoincrement=True,  # a task's number is never reused for another task
)

REVIEW_STEPS = Table(
    "review_steps",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    Column("task_id", BigInteger, nullable=False),
    Column("at", Double, nullable=False),
    Column("who", Text, nullable=False),
    Column("action", String(16), nullable=False),
    Column("undone", Boolean, nullable=False),
    Column("detail", JSON, nullable=False),
    Index("ix_review_steps_task_id", "task_id"),
    sqlite_autoincrement=True,
)

UNBLOCK_REQUESTS = Table(
    "unblock_requests",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    Column("digest", LargeBinary(16), nullable=False),  # MD5 of the client's name or address, and of url
    Column("url", Text, nullable=False),
    Column("client", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("source_list", Text, nullable=False),
    Column("rule", Text, nullable=False),
    Column("category", Text, nullable=False),
    Column("comment", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("times", Integer, nullable=False),
    Column("client_name", Text, nullable=False, server_default=""),
    Column("state", String(8), nullable=False, server_default="open"),
    Column("decided_at", Double),
    Column("word", Text, nullable=False, server_default=""),
    Column("until", Double),
    Column("scope", Text, nullable=False, server_default=""),
    Column("rule_ids", JSON(none_as_null=True)),
    Column("version", BigInteger, nullable=False, server_default="0"),  # of the newest change, shared with bypass_links
    Index("ix_unblock_requests_digest", "digest"),
    Index("ix_unblock_requests_at", "at"),
    Index("ix_unblock_requests_version", "version"),
    sqlite_autoincrement=True,  # a request's number is never reused for another request
)

BYPASS_LINKS = Table(
    "bypass_links",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    Column("url", Text, nullable=False),
    Column("kind", String(8), nullable=False),
    Column("pattern", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("until", Double, nullable=False),
    Column("once", Boolean, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("request_id", BigInteger, nullable=False),
    Column("used_at", Double),
    Column("revoked_at", Double),
    Column("rule_ids", JSON(none_as_null=True)),
    Column("version", BigInteger, nullable=False),
    Index("ix_bypass_links_version", "version"),
    sqlite_autoincrement=True,  # a link's number is signed, and never reused for another link
)

NOTIFICATIONS = Table(
    "notifications",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    Column("event", String(16), nullable=False),
    Column("identity", LargeBinary(16), nullable=False),  # MD5 of what is told once
    Column("at", Double, nullable=False),
    Column("facts", JSON, nullable=False),
    Index("ix_notifications_identity", "identity", unique=True),
    sqlite_autoincrement=True,  # channels go on after the last id that they sent
)

NOTIFY_CHANNELS = Table(
    "notify_channels",
    METADATA,
    Column("name", String(16), primary_key=True),
    Column("last_id", BigInteger, nullable=False),  # the newest notification that was sent
    Column("sent_at", Double, nullable=False),
    Column("failures", Integer, nullable=False),  # in a row
    Column("retry_at", Double, nullable=False),
    Column("failing_since", Double, nullable=False, server_default="0"),
    Column("error", Text, nullable=False, server_default=""),  # of the last try, "" when it arrived
)
