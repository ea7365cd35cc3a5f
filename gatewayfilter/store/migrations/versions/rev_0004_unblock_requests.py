"""Requests of users to unblock a page."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Makes the table."""
    op.create_table(
        "unblock_requests",
        sa.Column("id", _SERIAL, autoincrement=True, nullable=False),
        sa.Column("digest", sa.LargeBinary(16), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("client", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("source_list", sa.Text, nullable=False),
        sa.Column("rule", sa.Text, nullable=False),
        sa.Column("category", sa.Text, nullable=False),
        sa.Column("comment", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("times", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_unblock_requests"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_unblock_requests_digest", "unblock_requests", ["digest"], unique=True)
    op.create_index("ix_unblock_requests_at", "unblock_requests", ["at"])


def downgrade() -> None:
    """Forgets all requests."""
    op.drop_table("unblock_requests")
