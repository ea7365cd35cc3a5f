"""Fingerprints of classified content, each with its verdict and a validity.

Source: [page-dedup] MD5 fingerprints with verdict and validity; a hit refreshes it, expired ones are removed.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import batched
from typing import Any, Final

from sqlalchemy import Insert, bindparam, case, delete, func, select, update

from gatewayfilter.model import ContentId, ContentKind, Fingerprint
from gatewayfilter.store.sql.classification_json import as_document, from_document
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.prepared_query import PreparedQuery
from gatewayfilter.store.sql.row_bound import trim
from gatewayfilter.store.sql.schema import FINGERPRINTS
from gatewayfilter.store.sql.upsert import upsert

MOST_KEPT: Final = 500_000
"""Maximum of fingerprints, those that expire last: reviewers' decisions outlive fingerprints of pages."""
_SWEEP_AFTER: Final = 1000
_CHUNK: Final = 500
_PREPARED_AFTER: Final = 8
"""Look-ups of single contents after which a process opens a connection for them: a command that looks at one page does not."""

_COLUMNS = FINGERPRINTS.c
_ROW = (
    _COLUMNS.kind,
    _COLUMNS.digest,
    _COLUMNS.proof,
    _COLUMNS.classification,
    _COLUMNS.judge,
    _COLUMNS.words,
    _COLUMNS.url,
    _COLUMNS.judged_at,
    _COLUMNS.expires_at,
    _COLUMNS.hits,
)
_IS_THIS = (_COLUMNS.kind == bindparam("of_kind")) & (_COLUMNS.digest == bindparam("of"))
_FIND = select(*_ROW).where(_IS_THIS, _COLUMNS.expires_at > bindparam("now"))
_PREPARED: Final = (
    f"SELECT {', '.join(column.name for column in _ROW)} FROM {FINGERPRINTS.name} "  # noqa: S608  names of the schema
    f"WHERE {_COLUMNS.kind.name} = ? AND {_COLUMNS.digest.name} = ? AND {_COLUMNS.expires_at.name} > ?"
)
_FIND_ALL = select(*_ROW).where(_COLUMNS.digest.in_(bindparam("digests", expanding=True)), _COLUMNS.expires_at > bindparam("now"))
_NEWEST = (
    select(*_ROW).where(_COLUMNS.expires_at > bindparam("now")).order_by(_COLUMNS.expires_at.desc()).limit(bindparam("most"))
)
_ANY = select(_COLUMNS.kind).where(_COLUMNS.kind == bindparam("of_kind")).limit(1)
_REMOVE = delete(FINGERPRINTS).where(_IS_THIS)
_TOUCH = (
    update(FINGERPRINTS)
    .where(_IS_THIS)
    .values(
        hits=_COLUMNS.hits + bindparam("more"),
        expires_at=case((_COLUMNS.expires_at < bindparam("until"), bindparam("until")), else_=_COLUMNS.expires_at),
    )
)
_SWEEP = delete(FINGERPRINTS).where(_COLUMNS.expires_at <= bindparam("now"))
_COUNTS = select(
    _COLUMNS.kind,
    func.count(),
    func.sum(case((_COLUMNS.category != "", 1), else_=0)),
    func.sum(case((_COLUMNS.judge != "", 1), else_=0)),
    func.sum(_COLUMNS.hits),
).group_by(_COLUMNS.kind)


class SqlFingerprintStore:
    """Implements `interfaces.FingerprintStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._trim_in = 0
        self._one = PreparedQuery(database, _PREPARED)
        self._found_alone = 0

    @cached_property
    def _put(self) -> Insert:
        """Made when it is needed: that takes a millisecond, and most programs that open the database put nothing."""
        return upsert(self._database, FINGERPRINTS, lambda new: (_COLUMNS.judge == "") | (new.judge != ""))

    def find(self, content: ContentId, now: float) -> Fingerprint | None:
        """Returns the fingerprint with this key and this proof, unless expired."""
        self._found_alone += 1
        rows = self._one.rows(content.kind.value, content.digest, now) if self._found_alone > _PREPARED_AFTER else None
        if rows is None:
            with self._database.read() as connection:
                rows = connection.execute(_FIND, {**_key(content), "now": now}).all()
        found = _fingerprint(rows[0]) if rows else None
        return found if found is not None and found.content == content else None

    def find_all(self, contents: Sequence[ContentId], now: float) -> dict[ContentId, Fingerprint]:
        """Returns those of these contents that `find` returns, in one query for each 500."""
        found: dict[ContentId, Fingerprint] = {}
        with self._database.read() as connection:
            for part in batched(contents, _CHUNK):
                values = {"digests": [content.digest for content in part], "now": now}
                wanted = {(content.kind.value, content.digest, content.proof) for content in part}
                for row in connection.execute(_FIND_ALL, values):
                    if (row.kind, bytes(row.digest), bytes(row.proof)) in wanted:
                        fingerprint = _fingerprint(row)
                        found[fingerprint.content] = fingerprint
        return found

    def newest(self, limit: int, now: float) -> list[Fingerprint]:
        """Returns those with the latest hits, the latest first."""
        with self._database.read() as connection:
            return [_fingerprint(row) for row in connection.execute(_NEWEST, {"most": limit, "now": now})]

    def holds(self, kind: ContentKind) -> bool:
        """Returns whether there is any fingerprint of this kind."""
        with self._database.read() as connection:
            return connection.scalar(_ANY, {"of_kind": kind.value}) is not None

    def put(self, fingerprint: Fingerprint) -> None:
        """Adds a fingerprint, or replaces the one with the same kind and key; a reviewer's is replaced by a reviewer's only."""
        self.put_all((fingerprint,))

    def put_all(self, fingerprints: Sequence[Fingerprint]) -> None:
        """Adds or replaces several, in one transaction."""
        if fingerprints:
            with self._database.write(Area.FINGERPRINTS) as connection:
                if self._trim_in <= 0:
                    trim(connection, FINGERPRINTS, _COLUMNS.expires_at, MOST_KEPT)
                    self._trim_in = _SWEEP_AFTER
                self._trim_in -= len(fingerprints)
                connection.execute(self._put, [_as_row(fingerprint) for fingerprint in fingerprints])

    def touch(self, hits: Mapping[ContentId, int], expires_at: float) -> None:
        """Counts hits and extends the expiry to at least this time (Unix seconds)."""
        if not hits:
            return
        rows = [{**_key(content), "more": more, "until": expires_at} for content, more in hits.items()]
        with self._database.write(Area.FINGERPRINTS) as connection:
            connection.execute(_TOUCH, rows)

    def remove(self, content: ContentId) -> bool:
        """Deletes one. Returns False when there was none."""
        with self._database.write(Area.FINGERPRINTS) as connection:
            return connection.execute(_REMOVE, _key(content)).rowcount > 0

    def sweep(self, now: float) -> int:
        """Removes expired ones. Returns their number."""
        with self._database.write(Area.FINGERPRINTS) as connection:
            return connection.execute(_SWEEP, {"now": now}).rowcount

    def stats(self) -> dict[str, int]:
        """Returns counts: each kind, `harmful`, `by_people`, `hits` in all, and `image_hits` of them."""
        counts = {kind.value: 0 for kind in ContentKind} | {"harmful": 0, "by_people": 0, "hits": 0, "image_hits": 0}
        with self._database.read() as connection:
            for kind, count, harmful, by_people, hits in connection.execute(_COUNTS):
                counts[kind] = count
                counts["harmful"] += int(harmful)
                counts["by_people"] += int(by_people)
                counts["hits"] += int(hits)
                counts["image_hits"] += int(hits) if kind == ContentKind.IMAGE else 0
        return counts


def _key(content: ContentId) -> dict[str, object]:
    return {"of_kind": content.kind.value, "of": content.digest}


def _as_row(fingerprint: Fingerprint) -> dict[str, object]:
    content = fingerprint.content
    return {
        "kind": content.kind.value,
        "digest": content.digest,
        "proof": content.proof,
        "category": fingerprint.classification.category,
        "judge": fingerprint.judge,
        "words": fingerprint.words,
        "url": fingerprint.url,
        "classification": as_document(fingerprint.classification),
        "judged_at": fingerprint.judged_at,
        "expires_at": fingerprint.expires_at,
        "hits": fingerprint.hits,
    }


def _fingerprint(row: Sequence[Any]) -> Fingerprint:
    kind, digest, proof, classification, judge, words, url, judged_at, expires_at, hits = row
    content = ContentId(ContentKind(kind), bytes(digest), bytes(proof))
    document = json.loads(classification) if isinstance(classification, str) else classification  # text: of SQLite's driver
    return Fingerprint(content, from_document(document), judge, words, url, judged_at, expires_at, hits)
