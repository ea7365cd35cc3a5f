"""The queue can be paused."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes the table."""
    op.create_table(
        "frontier_pauses",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("since", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_frontier_pauses"),
    )


def downgrade() -> None:
    """Lets the queue go on."""
    op.drop_table("frontier_pauses")
