"""The first schema: manual rules, learned entries, the change feed, the frontier, the decision log, page verdicts."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Makes all tables."""
    op.create_table(
        "person_rules",
        sa.Column("id", _SERIAL, autoincrement=True, nullable=False),
        sa.Column("identity", sa.LargeBinary(16), nullable=False),
        sa.Column("action", sa.String(8), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("pattern", sa.Text, nullable=False),
        sa.Column("group_name", sa.Text, nullable=False),
        sa.Column("comment", sa.Text, nullable=False),
        sa.Column("expires_at", sa.Double),
        sa.PrimaryKeyConstraint("id", name="pk_person_rules"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_person_rules_identity", "person_rules", ["identity"], unique=True)
    op.create_table(
        "learned_entries",
        sa.Column("digest", sa.LargeBinary(16), nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("action", sa.String(8), nullable=False),
        sa.Column("category", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_learned_entries"),
    )
    op.create_index("ix_learned_entries_expires_at", "learned_entries", ["expires_at"])
    op.create_table(
        "list_changes",
        sa.Column("seq", _SERIAL, autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("payload", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_list_changes"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "frontier",
        sa.Column("id", _SERIAL, autoincrement=True, nullable=False),
        sa.Column("digest", sa.LargeBinary(16), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("not_before", sa.Double, nullable=False),
        sa.Column("due_at", sa.Double, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("token", sa.String(32), nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_frontier"),
    )
    op.create_index("ix_frontier_digest", "frontier", ["digest"], unique=True)
    op.create_index("ix_frontier_state_priority_due_at", "frontier", ["state", "priority", "due_at"])
    op.create_table(
        "decisions",
        sa.Column("id", _SERIAL, autoincrement=True, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("client", sa.Text, nullable=False),
        sa.Column("method", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("resource_type", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("source_list", sa.Text, nullable=False),
        sa.Column("rule", sa.Text, nullable=False),
        sa.Column("category", sa.Text, nullable=False),
        sa.Column("elapsed_us", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_decisions"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_decisions_at", "decisions", ["at"])
    op.create_table(
        "page_verdicts",
        sa.Column("digest", sa.LargeBinary(16), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("category", sa.Text, nullable=False),
        sa.Column("judged_at", sa.Double, nullable=False),
        sa.Column("classification", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_page_verdicts"),
    )
    op.create_index("ix_page_verdicts_judged_at", "page_verdicts", ["judged_at"])


def downgrade() -> None:
    """Removes all tables, and with them everything learned."""
    for table in ("page_verdicts", "decisions", "frontier", "list_changes", "learned_entries", "person_rules"):
        op.drop_table(table)
