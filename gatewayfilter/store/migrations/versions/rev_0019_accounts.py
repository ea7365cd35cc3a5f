"""Accounts of the dashboard with their sessions and tokens, the audit log, and answers to repeated requests."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Adds five tables."""
    _create_accounts()
    _create_sessions()
    _create_tokens()
    _create_audit()
    _create_idempotency()


def _create_accounts() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", _SERIAL, primary_key=True, autoincrement=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("folded", sa.Text, nullable=False),
        sa.Column("role", sa.String(8), nullable=False),
        sa.Column("password_hash", sa.Text, nullable=False),
        sa.Column("totp_secret", sa.Text, nullable=False),
        sa.Column("totp_step", sa.BigInteger, nullable=False),
        sa.Column("recovery", sa.JSON, nullable=False),
        sa.Column("language", sa.String(16), nullable=False),
        sa.Column("external_id", sa.Text, nullable=False),
        sa.Column("networks", sa.JSON, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
        sa.Column("logged_in_at", sa.Double),
        sa.Column("disabled", sa.Boolean, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_accounts_folded", "accounts", ["folded"], unique=True)


def _create_sessions() -> None:
    op.create_table(
        "web_sessions",
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("account_id", sa.BigInteger, nullable=False),
        sa.Column("csrf", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("seen_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("network", sa.Text, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_web_sessions"),
    )
    op.create_index("ix_web_sessions_account_id", "web_sessions", ["account_id"])
    op.create_index("ix_web_sessions_seen_at", "web_sessions", ["seen_at"])


def _create_tokens() -> None:
    op.create_table(
        "api_tokens",
        sa.Column("id", _SERIAL, primary_key=True, autoincrement=True),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("account_id", sa.BigInteger, nullable=False),
        sa.Column("scope", sa.String(8), nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double),
        sa.Column("used_at", sa.Double),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_api_tokens_digest", "api_tokens", ["digest"], unique=True)


def _create_audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", _SERIAL, primary_key=True, autoincrement=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("via", sa.String(8), nullable=False),
        sa.Column("via_detail", sa.Text, nullable=False),
        sa.Column("action", sa.String(48), nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("undo", sa.JSON),
        sa.Column("undone_at", sa.Double),
        sa.Column("undone_by", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )


def _create_idempotency() -> None:
    op.create_table(
        "idempotency",
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("request_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("headers", sa.JSON, nullable=False),
        sa.Column("body", sa.LargeBinary),
        sa.Column("at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_idempotency"),
    )
    op.create_index("ix_idempotency_at", "idempotency", ["at"])


def downgrade() -> None:
    """Forgets accounts, sessions, tokens, the audit log and kept answers."""
    for name in ("idempotency", "audit", "api_tokens", "web_sessions", "accounts"):
        op.drop_table(name)
