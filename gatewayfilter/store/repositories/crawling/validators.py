"""The validators of classified pages: ETag and Last-Modified."""

from collections.abc import Sequence
from itertools import batched
from typing import Final

from sqlalchemy import bindparam, delete, insert, select

from gatewayfilter.interfaces import Validators
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.row_bound import trim
from gatewayfilter.store.sql.schema import PAGE_VALIDATORS
from gatewayfilter.urls import digest_of

KEEP_S: Final = 200 * 86_400.0
"""Lifetime of validators: longer than they are used."""
MOST_KEPT: Final = 200_000
_SWEEP_AFTER: Final = 1000
_CHUNK: Final = 500

_COLUMNS = PAGE_VALIDATORS.c
_FIND = select(_COLUMNS.digest, _COLUMNS.url, _COLUMNS.etag, _COLUMNS.last_modified, _COLUMNS.contents).where(
    _COLUMNS.digest.in_(bindparam("digests", expanding=True)),
    _COLUMNS.judged_by == bindparam("by"),
    _COLUMNS.fetched_at >= bindparam("since"),
)
_FORGET = delete(PAGE_VALIDATORS).where(_COLUMNS.digest == bindparam("of"))
_SWEEP = delete(PAGE_VALIDATORS).where(_COLUMNS.fetched_at < bindparam("before"))


class SqlValidators:
    """Implements `interfaces.ValidatorStore`.

    Rows fetched longer than `KEEP_S` ago, and the oldest beyond `MOST_KEPT`, are deleted from time to time.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sweep_in = 0

    def note(self, url: str, validators: Validators | None, judged_by: str, fetched_at: float) -> None:
        """Stores those of a page (by the requested URL) that was fetched in full; `None` deletes them."""
        digest = digest_of(url)
        with self._database.write(Area.FRONTIER) as connection:
            connection.execute(_FORGET, {"of": digest})
            if validators is None:
                return
            row = {
                "digest": digest,
                "url": validators.url,
                "etag": validators.etag,
                "last_modified": validators.last_modified,
                "contents": validators.contents,
                "judged_by": judged_by,
                "fetched_at": fetched_at,
            }
            connection.execute(insert(PAGE_VALIDATORS), row)
            if self._sweep_in <= 0:
                connection.execute(_SWEEP, {"before": fetched_at - KEEP_S})
                trim(connection, PAGE_VALIDATORS, _COLUMNS.fetched_at, MOST_KEPT)
                self._sweep_in = _SWEEP_AFTER
            self._sweep_in -= 1

    def find(self, urls: Sequence[str], judged_by: str, since: float) -> dict[str, Validators]:
        """Returns those of pages classified with this version of the words and fetched in full since then (Unix seconds)."""
        by_digest = {digest_of(url): url for url in urls}
        found: dict[str, Validators] = {}
        with self._database.read() as connection:
            for chunk in batched(by_digest, _CHUNK):
                for row in connection.execute(_FIND, {"digests": list(chunk), "by": judged_by, "since": since}):
                    known = Validators(row.url, row.etag, row.last_modified, bytes(row.contents))
                    found[by_digest[row.digest]] = known
        return found
