"""Tasks know the page that answered, after redirects: a person's word is about both addresses."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds a column. Tasks that are there already are about the address that was asked for alone."""
    op.add_column("review_tasks", sa.Column("final_url", sa.Text, nullable=False, server_default=""))


def downgrade() -> None:
    """Forgets it."""
    op.drop_column("review_tasks", "final_url")
