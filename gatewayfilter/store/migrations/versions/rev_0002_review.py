"""Fingerprints of classified content, review tasks and their steps; page verdicts with host and text."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Makes the tables. Older verdicts have no host and count for no domain."""
    op.create_table(
        "fingerprints",
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("digest", sa.LargeBinary(16), nullable=False),
        sa.Column("proof", sa.LargeBinary(16), nullable=False),
        sa.Column("category", sa.Text, nullable=False),
        sa.Column("judge", sa.Text, nullable=False),
        sa.Column("words", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("classification", sa.JSON, nullable=False),
        sa.Column("judged_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.Column("hits", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("kind", "digest", name="pk_fingerprints"),
    )
    op.create_index("ix_fingerprints_expires_at", "fingerprints", ["expires_at"])
    op.create_table(
        "review_tasks",
        sa.Column("id", _SERIAL, autoincrement=True, nullable=False),
        sa.Column("digest", sa.LargeBinary(16), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("category", sa.Text, nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("group_id", sa.BigInteger, nullable=False),
        sa.Column("blocked", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("decided_at", sa.Double),
        sa.Column("decided_by", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("simhash", sa.LargeBinary(8), nullable=False),
        sa.Column("page_digest", sa.LargeBinary(16), nullable=False),
        sa.Column("page_proof", sa.LargeBinary(16), nullable=False),
        sa.Column("text_digest", sa.LargeBinary(16), nullable=False),
        sa.Column("text_proof", sa.LargeBinary(16), nullable=False),
        sa.Column("classification", sa.JSON, nullable=False),
        sa.Column("text", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_review_tasks"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_review_tasks_digest", "review_tasks", ["digest"])
    op.create_index("ix_review_tasks_state_created_at", "review_tasks", ["state", "created_at"])
    op.create_table(
        "review_steps",
        sa.Column("id", _SERIAL, autoincrement=True, nullable=False),
        sa.Column("task_id", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("action", sa.String(16), nullable=False),
        sa.Column("undone", sa.Boolean, nullable=False),
        sa.Column("detail", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_review_steps"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_review_steps_task_id", "review_steps", ["task_id"])
    with op.batch_alter_table("page_verdicts") as table:
        table.add_column(sa.Column("host", sa.Text, nullable=False, server_default=""))
        table.add_column(sa.Column("text_digest", sa.LargeBinary(16)))
    op.create_index("ix_page_verdicts_host", "page_verdicts", ["host"])


def downgrade() -> None:
    """Removes them, and with them the decisions of reviews; the resulting rules stay."""
    op.drop_index("ix_page_verdicts_host", "page_verdicts")
    with op.batch_alter_table("page_verdicts") as table:
        table.drop_column("text_digest")
        table.drop_column("host")
    for table_name in ("review_steps", "review_tasks", "fingerprints"):
        op.drop_table(table_name)
