"""Page verdicts: the classification of each URL, with its evidence."""

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any, Final

from sqlalchemy import ColumnElement, Insert, bindparam, case, delete, func, select, update

from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import HostPages
from gatewayfilter.model import Classification
from gatewayfilter.store.sql.classification_json import as_document, from_document
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.row_bound import trim
from gatewayfilter.store.sql.schema import PAGE_VERDICTS
from gatewayfilter.store.sql.upsert import upsert
from gatewayfilter.urls import digest_of, parse_url

KEEP_S: Final = 180 * 86_400.0
"""Longer than the default lifetime of learned entries: an older verdict supports no entry."""
MOST_KEPT: Final = 500_000
"""Maximum of verdicts, the newest ones: the owner of a public site can cause any number of them."""
_SWEEP_AFTER = 1000
_SWEEP_MOST = 2 * _SWEEP_AFTER

_COLUMNS = PAGE_VERDICTS.c
_FIND = select(_COLUMNS.judged_at, _COLUMNS.classification).where(_COLUMNS.digest == bindparam("of"))
_NOTE_ARCHIVED = update(PAGE_VERDICTS).where(_COLUMNS.digest == bindparam("of")).values(archived=bindparam("reference"))
_ARCHIVED = select(_COLUMNS.archived).where(_COLUMNS.digest == bindparam("of"))
_TOO_OLD = (
    select(_COLUMNS.digest).where(_COLUMNS.judged_at < bindparam("before")).order_by(_COLUMNS.judged_at).limit(bindparam("most"))
)
_HOST_PAGES = (
    select(_COLUMNS.category, func.count(_COLUMNS.text_digest.distinct()), func.count(_COLUMNS.path_digest.distinct()))
    .where(_COLUMNS.host == bindparam("host"), _COLUMNS.text_digest.is_not(None), _COLUMNS.path_digest.is_not(None))
    .group_by(_COLUMNS.category)
)
_SWEEP = delete(PAGE_VERDICTS).where(_COLUMNS.digest.in_(_TOO_OLD))


class SqlVerdictStore:
    """Implements `interfaces.VerdictStore` and `interfaces.EvidenceStore`.

    Verdicts older than `KEEP_S`, and the oldest beyond `MOST_KEPT`, are deleted from time to time.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sweep_in = 0

    @cached_property
    def _record(self) -> Insert:
        """Made when it is needed: that takes a millisecond, and most programs that open the database record nothing."""
        return upsert(
            self._database,
            PAGE_VERDICTS,
            lambda new: _COLUMNS.judged_at <= new.judged_at,
            archived=_still_archived,
            path_digest=_still_counting,
        )

    def record(self, url: str, classification: Classification, judged_at: float, *, counts: bool = False) -> None:
        """Stores the newest classification of a URL (canonical text); an older one than the stored is ignored."""
        self.record_all({url: classification}, judged_at, {url} if counts else frozenset())

    def record_all(self, judged: Mapping[str, Classification], judged_at: float, counting: Collection[str] = frozenset()) -> None:
        """Stores the newest classifications of several URLs in one transaction; `counting` ones count for their hosts."""
        rows = [_row(url, classification, judged_at, counts=url in counting) for url, classification in judged.items()]
        if not rows:
            return
        with self._database.write(Area.VERDICTS) as connection:
            if self._sweep_in <= 0:
                connection.execute(_SWEEP, {"before": judged_at - KEEP_S, "most": _SWEEP_MOST})
                trim(connection, PAGE_VERDICTS, _COLUMNS.judged_at, MOST_KEPT)
                self._sweep_in = _SWEEP_AFTER
            self._sweep_in -= len(rows)
            connection.execute(self._record, rows)

    def find(self, url: str) -> tuple[Classification, float] | None:
        """Returns the classification and its time (Unix seconds)."""
        with self._database.read() as connection:
            row = connection.execute(_FIND, {"of": digest_of(url)}).one_or_none()
        return None if row is None else (from_document(row.classification), row.judged_at)

    def note_archived(self, url: str, reference: str) -> bool:
        """Stores the reference of a verdict's page. Returns False when there is no verdict of this URL (canonical text)."""
        with self._database.write(Area.VERDICTS) as connection:
            return bool(connection.execute(_NOTE_ARCHIVED, {"of": digest_of(url), "reference": reference}).rowcount)

    def archived(self, url: str) -> str:
        """Returns the reference of the page behind a verdict, `""` for none."""
        with self._database.read() as connection:
            return connection.scalar(_ARCHIVED, {"of": digest_of(url)}) or ""

    def host_pages(self, host: str) -> HostPages:
        """Returns the counts of a host's counting pages; URLs with the same text, or the same path, are one page."""
        with self._database.read() as connection:
            counts = {row[0]: min(row[1], row[2]) for row in connection.execute(_HOST_PAGES, {"host": host})}
        return HostPages(sum(counts.values()), {category: count for category, count in counts.items() if category})


def _still_archived(new: Any) -> ColumnElement[str]:
    """Returns the page's reference: the old one while the text is unchanged, so that a review keeps its evidence."""
    return case((_COLUMNS.text_digest == new.text_digest, _COLUMNS.archived), else_="")


def _still_counting(new: Any) -> ColumnElement[bytes | None]:
    """Returns the path of a page that counts, or that counted with the same text."""
    return func.coalesce(new.path_digest, case((_COLUMNS.text_digest == new.text_digest, _COLUMNS.path_digest)))


def _row(url: str, classification: Classification, judged_at: float, *, counts: bool) -> dict[str, object]:
    host, path = _place_of(url)
    return {
        "digest": digest_of(url),
        "url": url,
        "category": classification.category,
        "judged_at": judged_at,
        "classification": as_document(classification),
        "host": host,
        "text_digest": classification.text_digest or None,
        "path_digest": digest_of(path) if counts else None,
    }


def _place_of(url: str) -> tuple[str, str]:
    try:
        found = parse_url(url)
    except UrlError:
        return "", ""
    return found.host, found.path
