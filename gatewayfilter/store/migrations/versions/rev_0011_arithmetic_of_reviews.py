"""Review tasks store the breakdown of their score: words change, and a reviewed breakdown must not."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds a column. Existing tasks have none."""
    op.add_column("review_tasks", sa.Column("arithmetic", sa.JSON))


def downgrade() -> None:
    """Forgets it."""
    op.drop_column("review_tasks", "arithmetic")
