"""Single crawl tasks and hosts of the queue can be paused."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes the table."""
    op.create_table(
        "frontier_holds",
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("since", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("kind", "name", name="pk_frontier_holds"),
    )


def downgrade() -> None:
    """Lets all of them go on."""
    op.execute("UPDATE frontier SET state = 'waiting' WHERE state = 'held'")
    op.drop_table("frontier_holds")
