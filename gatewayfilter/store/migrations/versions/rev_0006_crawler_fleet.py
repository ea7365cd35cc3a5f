"""Several crawlers share the frontier, each with its own sites."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column and the table. URLs that are waiting are assigned to no slot."""
    op.add_column("frontier", sa.Column("slot", sa.Integer, nullable=False, server_default="-1"))
    op.create_table(
        "crawlers",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("seen_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_crawlers"),
    )


def downgrade() -> None:
    """Lets every crawler take every site."""
    op.drop_table("crawlers")
    op.drop_column("frontier", "slot")
