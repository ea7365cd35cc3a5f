"""Clients, groups, policies, schedules and pauses; manual rules for some clients only."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds a table and a column. Existing rules apply to everybody."""
    op.create_table(
        "policy_items",
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("record", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("kind", "name", name="pk_policy_items"),
    )
    op.add_column("manual_rules", sa.Column("scope", sa.Text, nullable=False, server_default=""))


def downgrade() -> None:
    """Forgets policies, and the rules for some clients only."""
    op.execute("DELETE FROM manual_rules WHERE scope <> ''")
    op.drop_column("manual_rules", "scope")
    op.drop_table("policy_items")
