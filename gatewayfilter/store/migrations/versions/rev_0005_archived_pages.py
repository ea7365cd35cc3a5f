"""Verdicts refer to their page in the archive."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column."""
    op.add_column("page_verdicts", sa.Column("archived", sa.Text, nullable=False, server_default=""))


def downgrade() -> None:
    """Removes the column."""
    op.drop_column("page_verdicts", "archived")
