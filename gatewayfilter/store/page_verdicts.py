"""What the classifier said of each URL, with its evidence."""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import bindparam, delete, insert, select

from gatewayfilter.model import Classification, Evidence
from gatewayfilter.store.database import Area, Database
from gatewayfilter.store.schema import PAGE_VERDICTS
from gatewayfilter.urls import digest_of

KEEP_S: Final = 180 * 86_400.0
"""Longer than any learned entry lives by default: a judgement that nobody renewed speaks for no list any more."""
_SWEEP_AFTER = 1000
_SWEEP_MOST = 2 * _SWEEP_AFTER

_COLUMNS = PAGE_VERDICTS.c
_FIND = select(_COLUMNS.judged_at, _COLUMNS.classification).where(_COLUMNS.digest == bindparam("of"))
_FORGET = delete(PAGE_VERDICTS).where(_COLUMNS.digest == bindparam("of"), _COLUMNS.judged_at <= bindparam("at"))
_IS_THERE = select(_COLUMNS.digest).where(_COLUMNS.digest == bindparam("of"))
_TOO_OLD = (
    select(_COLUMNS.digest).where(_COLUMNS.judged_at < bindparam("before")).order_by(_COLUMNS.judged_at).limit(bindparam("most"))
)
_SWEEP = delete(PAGE_VERDICTS).where(_COLUMNS.digest.in_(_TOO_OLD))


class SqlVerdictStore:
    """Implements `interfaces.VerdictStore`. Judgements older than `KEEP_S` are forgotten, now and then."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sweep_in = 0

    def record(self, url: str, classification: Classification, judged_at: float) -> None:
        """Keeps the newest judgement of a URL (canonical text); one that is older than what is known is passed over."""
        digest = digest_of(url)
        row = {
            "digest": digest,
            "url": url,
            "category": classification.category,
            "judged_at": judged_at,
            "classification": _document(classification),
        }
        with self._database.write(Area.VERDICTS) as connection:
            if self._sweep_in <= 0:
                connection.execute(_SWEEP, {"before": judged_at - KEEP_S, "most": _SWEEP_MOST})
                self._sweep_in = _SWEEP_AFTER
            self._sweep_in -= 1
            connection.execute(_FORGET, {"of": digest, "at": judged_at})
            if connection.scalar(_IS_THERE, {"of": digest}) is None:
                connection.execute(insert(PAGE_VERDICTS), row)

    def find(self, url: str) -> tuple[Classification, float] | None:
        """Returns the judgement and when it was made (Unix seconds)."""
        with self._database.read() as connection:
            row = connection.execute(_FIND, {"of": digest_of(url)}).one_or_none()
        return None if row is None else (_classification(row.classification), row.judged_at)


def _document(classification: Classification) -> dict[str, object]:
    return {
        "category": classification.category,
        "score": classification.score,
        "limit": classification.limit,
        "scores": classification.scores,
        "evidence": [[hit.word, hit.category, hit.weight, hit.zone, hit.position] for hit in classification.evidence],
        "title": classification.title,
        "charset": classification.charset,
        "text_digest": classification.text_digest.hex(),
    }


def _classification(document: Mapping[str, Any]) -> Classification:
    evidence = tuple(Evidence(*hit) for hit in document["evidence"])
    return Classification(**{**document, "evidence": evidence, "text_digest": bytes.fromhex(document["text_digest"])})
