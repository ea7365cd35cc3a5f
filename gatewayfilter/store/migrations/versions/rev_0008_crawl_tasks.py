"""Crawl tasks and lease holders in the queue; validators for conditional requests."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds columns and tables. URLs that are waiting belong to no task."""
    op.add_column("frontier", sa.Column("task", sa.Text, nullable=False, server_default=""))
    op.add_column("frontier", sa.Column("depth", sa.Integer, nullable=False, server_default="0"))
    op.add_column("frontier", sa.Column("holder", sa.Text, nullable=False, server_default=""))
    op.create_table(
        "task_sites",
        sa.Column("digest", sa.LargeBinary(16), nullable=False),
        sa.Column("task", sa.Text, nullable=False),
        sa.Column("site", sa.Text, nullable=False),
        sa.Column("pages", sa.Integer, nullable=False),
        sa.Column("since", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_task_sites"),
    )
    op.create_index("ix_task_sites_since", "task_sites", ["since"])
    op.create_table(
        "page_validators",
        sa.Column("digest", sa.LargeBinary(16), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("etag", sa.Text, nullable=False),
        sa.Column("last_modified", sa.Text, nullable=False),
        sa.Column("judged_by", sa.Text, nullable=False),
        sa.Column("fetched_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_page_validators"),
    )
    op.create_index("ix_page_validators_fetched_at", "page_validators", ["fetched_at"])


def downgrade() -> None:
    """Forgets tasks, holders and validators."""
    op.drop_table("page_validators")
    op.drop_table("task_sites")
    for name in ("holder", "depth", "task"):
        op.drop_column("frontier", name)
