"""Learned entries store the certainty of their classification, and review tasks whether the classifier was in doubt."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds columns. The certainty of existing entries is unknown; existing tasks are about pages that were judged harmful."""
    op.add_column("learned_entries", sa.Column("certainty", sa.Double))
    op.add_column("review_tasks", sa.Column("doubtful", sa.Boolean, nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Forgets them."""
    op.drop_column("review_tasks", "doubtful")
    op.drop_column("learned_entries", "certainty")
