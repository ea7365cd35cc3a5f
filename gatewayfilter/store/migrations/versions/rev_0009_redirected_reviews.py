"""Review tasks store the URL after redirects: a decision covers both URLs."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds a column. Existing tasks cover the requested URL only."""
    op.add_column("review_tasks", sa.Column("final_url", sa.Text, nullable=False, server_default=""))


def downgrade() -> None:
    """Forgets it."""
    op.drop_column("review_tasks", "final_url")
