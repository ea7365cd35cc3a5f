"""The tables that a backup holds, and the reason for each one that it does not.

Each table of the schema is in one of the two; a test compares them with `METADATA`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from sqlalchemy import Table

from gatewayfilter.store.sql.database import Area
from gatewayfilter.store.sql.schema import (
    ACCOUNTS,
    API_TOKENS,
    BYPASS_LINKS,
    DECISIONS,
    FINGERPRINTS,
    LEARNED_ENTRIES,
    MANUAL_RULES,
    PAGE_VERDICTS,
    POLICY_ITEMS,
    REVIEW_STEPS,
    REVIEW_TASKS,
    UNBLOCK_REQUESTS,
)


class Part(Enum):
    """What a backup may hold of the database."""

    STATE = "state"
    """What people decided, and what was learned: in every backup."""
    FINGERPRINTS = "fingerprints"
    """What the classifier judged: on request, for its size."""
    LOG = "log"
    """The decision log: on request, for its size, and because it tells who visited what."""


@dataclass(frozen=True, slots=True)
class BackedUpTable:
    """A table in backups.

    Attributes:
        table: its schema.
        title: what its rows are, for people.
        part: when it is backed up.
        area: the lock under which its rows are written.
    """

    table: Table
    title: str
    part: Part
    area: Area


BACKED_UP: Final = (
    BackedUpTable(POLICY_ITEMS, "clients, groups, policies, schedules, quotas, pauses", Part.STATE, Area.LISTS),
    BackedUpTable(MANUAL_RULES, "manual rules", Part.STATE, Area.LISTS),
    BackedUpTable(LEARNED_ENTRIES, "learned entries", Part.STATE, Area.LISTS),
    BackedUpTable(REVIEW_TASKS, "review tasks", Part.STATE, Area.REVIEWS),
    BackedUpTable(REVIEW_STEPS, "decisions on review tasks", Part.STATE, Area.REVIEWS),
    BackedUpTable(UNBLOCK_REQUESTS, "unblock requests", Part.STATE, Area.UNBLOCK),
    BackedUpTable(BYPASS_LINKS, "bypass links", Part.STATE, Area.UNBLOCK),
    BackedUpTable(ACCOUNTS, "accounts of the dashboard", Part.STATE, Area.ACCESS),
    BackedUpTable(API_TOKENS, "tokens of the API", Part.STATE, Area.ACCESS),
    BackedUpTable(PAGE_VERDICTS, "verdicts on pages", Part.FINGERPRINTS, Area.VERDICTS),
    BackedUpTable(FINGERPRINTS, "fingerprints", Part.FINGERPRINTS, Area.FINGERPRINTS),
    BackedUpTable(DECISIONS, "decisions in the log", Part.LOG, Area.LOG),
)
"""In the order in which they stand in a backup."""

LEFT_OUT: Final[Mapping[str, str]] = {
    "list_changes": "the change feed: its numbers belong to one database; a restore appends what it changes",
    "frontier": "the crawler's queue: unknown URLs are queued again at their next visit",
    "frontier_pauses": "the switch of the crawler's queue, which is not restored either",
    "frontier_holds": "the pauses of tasks and hosts in the crawler's queue, likewise",
    "rule_matches": "how often extraction rules were used on this machine: counted again from zero",
    "crawlers": "heartbeats of running processes",
    "task_sites": "how far crawl tasks are: they start again",
    "quota_usage": "minutes of the last days: they count on from zero, so a restore never takes time away",
    "devices": "what was seen on the links: devices are seen again",
    "web_sessions": "sessions of browsers: people log in again",
    "idempotency": "answers to requests of the last day, which are not repeated after a restore",
    "audit": "what was changed on this machine: a restore must not remove what is held about it",
    "notifications": "messages that are being sent: a second machine would send them twice",
    "notify_channels": "how far each channel is with them",
    "log_counts": "derived from the decisions: counted again in the background",
    "log_hours": "derived from the decisions",
    "log_devices": "derived from the decisions",
    "log_progress": "how far counting and indexing are; a restored log begins at zero",
    "page_validators": "a cache: pages are fetched whole once more",
}
"""Table → reason."""
