"""Tasks keep how their scores came about: words change, and what was shown to a person shall stay."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds a column. Of tasks that are there already it is not known any more."""
    op.add_column("review_tasks", sa.Column("arithmetic", sa.JSON))


def downgrade() -> None:
    """Forgets it."""
    op.drop_column("review_tasks", "arithmetic")
