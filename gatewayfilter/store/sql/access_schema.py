"""The tables of the dashboard's accounts: part of `schema`."""

from sqlalchemy import JSON, BigInteger, Boolean, Column, Double, Index, Integer, LargeBinary, String, Table, Text

from gatewayfilter.store.sql.schema_metadata import METADATA, SERIAL

ACCOUNTS = Table(
    "accounts",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False),
    Column("folded", Text, nullable=False),  # the name without regard to case
    Column("role", String(8), nullable=False),
    Column("password_hash", Text, nullable=False),  # argon2id in the PHC format, "" for none
    Column("totp_secret", Text, nullable=False),
    Column("totp_step", BigInteger, nullable=False),
    Column("recovery", JSON, nullable=False),  # digests of recovery codes
    Column("language", String(16), nullable=False),
    Column("external_id", Text, nullable=False),  # of single sign-on
    Column("networks", JSON, nullable=False),  # of the last log-ins
    Column("created_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("logged_in_at", Double),
    Column("disabled", Boolean, nullable=False),
    Index("ix_accounts_folded", "folded", unique=True),
    sqlite_autoincrement=True,  # the number of a removed account is never that of another one
)

WEB_SESSIONS = Table(
    "web_sessions",
    METADATA,
    Column("digest", LargeBinary(32), primary_key=True),  # SHA-256 of the token
    Column("account_id", BigInteger, nullable=False),
    Column("csrf", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("network", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Index("ix_web_sessions_account_id", "account_id"),
    Index("ix_web_sessions_seen_at", "seen_at"),
)

API_TOKENS = Table(
    "api_tokens",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    Column("digest", LargeBinary(32), nullable=False),  # SHA-256 of the token
    Column("name", Text, nullable=False),
    Column("account_id", BigInteger, nullable=False),
    Column("scope", String(8), nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("used_at", Double),
    Index("ix_api_tokens_digest", "digest", unique=True),
    sqlite_autoincrement=True,
)

AUDIT = Table(
    "audit",
    METADATA,
    Column("id", SERIAL, primary_key=True, autoincrement=True),
    Column("at", Double, nullable=False),
    Column("who", Text, nullable=False),
    Column("via", String(8), nullable=False),
    Column("via_detail", Text, nullable=False),
    Column("action", String(48), nullable=False),
    Column("subject", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("undo", JSON(none_as_null=True)),
    Column("undone_at", Double),
    Column("undone_by", Text, nullable=False),
    sqlite_autoincrement=True,
)

IDEMPOTENCY = Table(
    "idempotency",
    METADATA,
    Column("digest", LargeBinary(32), primary_key=True),  # SHA-256 of identity and key
    Column("request_digest", LargeBinary(32), nullable=False),
    Column("status", Integer, nullable=False),  # 0 while the first request is being answered
    Column("headers", JSON, nullable=False),
    Column("body", LargeBinary),  # NULL when it was too large to keep
    Column("at", Double, nullable=False),
    Index("ix_idempotency_at", "at"),
)
