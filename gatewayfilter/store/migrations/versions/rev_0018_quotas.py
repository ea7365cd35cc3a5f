"""Use of quotas, and devices that were seen on the network."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds two tables."""
    op.create_table(
        "quota_usage",
        sa.Column("client", sa.Text, nullable=False),
        sa.Column("quota", sa.Text, nullable=False),
        sa.Column("day", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("minutes", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("client", "quota", "day", name="pk_quota_usage"),
    )
    op.create_table(
        "devices",
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("mac", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("first_at", sa.Double, nullable=False),
        sa.Column("last_at", sa.Double, nullable=False),
        sa.Column("asked_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("address", name="pk_devices"),
    )
    op.create_index("ix_devices_last_at", "devices", ["last_at"])


def downgrade() -> None:
    """Forgets both, and the quotas."""
    op.drop_table("devices")
    op.drop_table("quota_usage")
    op.execute("DELETE FROM policy_items WHERE kind IN ('quota', 'spent')")
