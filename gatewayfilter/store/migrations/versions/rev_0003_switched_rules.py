"""Manual rules can be switched off."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rules of a group, which were stored but not applied so far, start switched off, so that behaviour does not change."""
    op.add_column("person_rules", sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.true()))
    rules = sa.table("person_rules", sa.column("group_name", sa.Text), sa.column("enabled", sa.Boolean))
    op.execute(sa.update(rules).where(rules.c.group_name != "").values(enabled=False))


def downgrade() -> None:
    """Forgets what is switched off."""
    op.drop_column("person_rules", "enabled")
