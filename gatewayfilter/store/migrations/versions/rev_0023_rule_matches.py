"""Pages that extraction rules have read are counted."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes the table."""
    op.create_table(
        "rule_matches",
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("pages", sa.BigInteger, nullable=False),
        sa.Column("empty", sa.BigInteger, nullable=False),
        sa.Column("last_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_rule_matches"),
    )


def downgrade() -> None:
    """Forgets the counts."""
    op.drop_table("rule_matches")
