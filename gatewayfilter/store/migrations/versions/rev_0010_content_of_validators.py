"""Content fingerprints beside validators: the same content may have been reviewed since."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds a column. Validators without content fingerprints are deleted: these pages are fetched in full once."""
    op.add_column("page_validators", sa.Column("contents", sa.LargeBinary, nullable=False, server_default=""))
    op.execute("DELETE FROM page_validators")


def downgrade() -> None:
    """Forgets it."""
    op.drop_column("page_validators", "contents")
