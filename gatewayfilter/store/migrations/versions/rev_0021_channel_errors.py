"""Why a channel of notifications fails, and since when."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds two columns."""
    op.add_column("notify_channels", sa.Column("failing_since", sa.Double, nullable=False, server_default="0"))
    op.add_column("notify_channels", sa.Column("error", sa.Text, nullable=False, server_default=""))


def downgrade() -> None:
    """Forgets both."""
    with op.batch_alter_table("notify_channels") as table:
        table.drop_column("error")
        table.drop_column("failing_since")
