"""What a page was when its origin's validators were noted: a person may have judged the same content since."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds a column. Of pages whose content is not known, the validators are forgotten: they are fetched whole once."""
    op.add_column("page_validators", sa.Column("contents", sa.LargeBinary, nullable=False, server_default=""))
    op.execute("DELETE FROM page_validators")


def downgrade() -> None:
    """Forgets it."""
    op.drop_column("page_validators", "contents")
