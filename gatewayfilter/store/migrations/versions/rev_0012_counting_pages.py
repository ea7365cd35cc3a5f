"""Verdicts store whether they count for their hosts: those of pages fetched by the crawler, by URLs without a query."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds a column. The origin of older pages is not known: they do not count."""
    op.add_column("page_verdicts", sa.Column("path_digest", sa.LargeBinary(16)))


def downgrade() -> None:
    """Forgets it."""
    op.drop_column("page_verdicts", "path_digest")
