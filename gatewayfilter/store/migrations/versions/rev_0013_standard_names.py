"""Tables, columns and queue states get standard names: manual rules, score breakdowns, URLs that are done."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_FRONTIER = sa.table("frontier", sa.column("state", sa.String))


def upgrade() -> None:
    """Renames in place: no row is copied, and numbers are not reused.

    Reasons in `decisions` and kinds in `list_changes` stay as they are: they are translated when they are read
    (`renamed_codes.py`). The state of a URL is part of an index, so states are rewritten.
    """
    _rename_rules("person_rules", "manual_rules")
    op.execute("ALTER TABLE review_tasks RENAME COLUMN arithmetic TO score_breakdown")
    op.execute(sa.update(_FRONTIER).where(_FRONTIER.c.state == "resting").values(state="done"))


def downgrade() -> None:
    """Restores the old names."""
    op.execute(sa.update(_FRONTIER).where(_FRONTIER.c.state == "done").values(state="resting"))
    op.execute("ALTER TABLE review_tasks RENAME COLUMN score_breakdown TO arithmetic")
    _rename_rules("manual_rules", "person_rules")


def _rename_rules(old: str, new: str) -> None:
    op.rename_table(old, new)
    if op.get_context().dialect.name == "postgresql":
        for kind, name in (("INDEX", "pk_{}"), ("INDEX", "ix_{}_identity"), ("SEQUENCE", "{}_id_seq")):
            op.execute(f"ALTER {kind} {name.format(old)} RENAME TO {name.format(new)}")
    else:  # SQLite cannot rename an index, and has no names for the others
        op.drop_index(f"ix_{old}_identity", new)
        op.create_index(f"ix_{new}_identity", new, ["identity"], unique=True)
