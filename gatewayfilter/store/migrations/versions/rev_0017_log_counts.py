"""The log holds the proxy user of a decision, and has counts per hour and day, which are made in the background."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds a column and empty tables: a large log is counted and indexed later, in chunks. Earlier decisions have no user."""
    op.add_column("decisions", sa.Column("user_name", sa.Text, nullable=False, server_default=""))
    op.create_table(
        "log_counts",
        sa.Column("period_s", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("dimension", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("start", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("client", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("decisions", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("period_s", "dimension", "start", "client", "name", "action", name="pk_log_counts"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "log_hours",
        sa.Column("start", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("first_id", sa.BigInteger, nullable=False),
        sa.Column("last_id", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("start", name="pk_log_hours"),
    )
    op.create_table(
        "log_progress",
        sa.Column("name", sa.String(16), nullable=False),
        sa.Column("up_to", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_log_progress"),
    )
    op.create_table(
        "log_devices",
        sa.Column("client", sa.Text, nullable=False),
        sa.Column("first_at", sa.Double, nullable=False),
        sa.Column("last_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("client", name="pk_log_devices"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Forgets counts, search index and users."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TABLE IF EXISTS log_terms")
    else:
        for column in ("url", "client", "user", "category", "list", "reason"):
            op.execute(f"DROP INDEX IF EXISTS ix_decisions_search_{column}")
    for table in ("log_devices", "log_progress", "log_hours", "log_counts"):
        op.drop_table(table)
    op.drop_column("decisions", "user_name")
