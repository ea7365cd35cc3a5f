"""Requests to unblock pages are kept with their decision; bypass links, notifications and what was sent of them."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Adds columns and tables. Existing requests are open; a page may be requested again after a decision."""
    op.drop_index("ix_unblock_requests_digest", "unblock_requests")
    for column in (
        sa.Column("client_name", sa.Text, nullable=False, server_default=""),
        sa.Column("state", sa.String(8), nullable=False, server_default="open"),
        sa.Column("decided_at", sa.Double),
        sa.Column("word", sa.Text, nullable=False, server_default=""),
        sa.Column("until", sa.Double),
        sa.Column("scope", sa.Text, nullable=False, server_default=""),
        sa.Column("rule_ids", sa.JSON),
        sa.Column("version", sa.BigInteger, nullable=False, server_default="0"),
    ):
        op.add_column("unblock_requests", column)
    op.create_index("ix_unblock_requests_digest", "unblock_requests", ["digest"])
    op.create_index("ix_unblock_requests_version", "unblock_requests", ["version"])
    _create_links()
    _create_notifications()


def _create_links() -> None:
    op.create_table(
        "bypass_links",
        sa.Column("id", _SERIAL, primary_key=True, autoincrement=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("pattern", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
        sa.Column("once", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("request_id", sa.BigInteger, nullable=False),
        sa.Column("used_at", sa.Double),
        sa.Column("revoked_at", sa.Double),
        sa.Column("rule_ids", sa.JSON),
        sa.Column("version", sa.BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_bypass_links_version", "bypass_links", ["version"])


def _create_notifications() -> None:
    op.create_table(
        "notifications",
        sa.Column("id", _SERIAL, primary_key=True, autoincrement=True),
        sa.Column("event", sa.String(16), nullable=False),
        sa.Column("identity", sa.LargeBinary(16), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("facts", sa.JSON, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_notifications_identity", "notifications", ["identity"], unique=True)
    op.create_table(
        "notify_channels",
        sa.Column("name", sa.String(16), primary_key=True),
        sa.Column("last_id", sa.BigInteger, nullable=False),
        sa.Column("sent_at", sa.Double, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("retry_at", sa.Double, nullable=False),
    )


def downgrade() -> None:
    """Forgets decisions, links and notifications."""
    op.drop_table("notify_channels")
    op.drop_table("notifications")
    op.drop_table("bypass_links")
    op.execute(sa.text("DELETE FROM unblock_requests WHERE state <> 'open'"))
    op.drop_index("ix_unblock_requests_version", "unblock_requests")
    op.drop_index("ix_unblock_requests_digest", "unblock_requests")
    for name in ("version", "rule_ids", "scope", "until", "word", "decided_at", "state", "client_name"):
        op.drop_column("unblock_requests", name)
    op.create_index("ix_unblock_requests_digest", "unblock_requests", ["digest"], unique=True)
