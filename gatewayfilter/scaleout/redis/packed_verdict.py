"""The binary form of a classifier's verdict in the shared cache: numbers first, then all texts in one, separated by NUL.

It is read in a third of the time of the same as JSON, which was most of what a hit cost. What does not fit has no such form, and
is written as JSON: a text with a NUL, more than 255 scores, a number that is none of 64 bits.
"""

import json
import math
import struct
from functools import lru_cache
from typing import Final

from gatewayfilter.compiled import load
from gatewayfilter.model import Classification, Evidence
from gatewayfilter.model.values.frozen import made
from gatewayfilter.store.sql.classification_json import CLASSIFICATION_ROW, EVIDENCE_ROW

_compiled = load("gatewayfilter.scaleout.redis._packed_verdict")

_HEAD: Final = struct.Struct("<BHB4d")
"""Number of scores, of evidence, bytes of the text's digest; score, limit, certainty (NaN for none), time of the verdict."""
_SEPARATOR: Final = "\0"
_FIXED: Final = 7
"""Texts that every verdict has: category, title, charset, doubt, fields, version of the words, URL."""
_read_json: Final = json.JSONDecoder().decode


@lru_cache(maxsize=256)
def _numbers(scores: int, evidence: int) -> struct.Struct:
    """Returns the format of the scores, then of weights and positions of the evidence."""
    return struct.Struct(f"<{scores}d{evidence}d{evidence}i")


def pack(classification: Classification, words: str, url: str, judged_at: float) -> bytes | None:
    """Returns the binary form, `None` where there is none."""
    scores, evidence = classification.scores, classification.evidence
    fields = json.dumps(classification.fields, ensure_ascii=False, separators=(",", ":")) if classification.fields else ""
    texts = [classification.category, classification.title, classification.charset, classification.doubt, fields, words, url]
    texts += scores
    texts += [hit.word for hit in evidence] + [hit.category for hit in evidence] + [hit.zone for hit in evidence]
    text = _SEPARATOR.join(texts)
    if text.count(_SEPARATOR) != len(texts) - 1:
        return None
    digest = classification.text_digest
    certainty = math.nan if classification.certainty is None else classification.certainty
    numbers = (*scores.values(), *(hit.weight for hit in evidence), *(hit.position for hit in evidence))
    try:
        head = _HEAD.pack(
            len(scores), len(evidence), len(digest), classification.score, classification.limit, certainty, judged_at
        )
        return b"".join((head, digest, _numbers(len(scores), len(evidence)).pack(*numbers), text.encode(errors="replace")))
    except (struct.error, OverflowError):
        return None


def unpack(value: bytes, start: int) -> tuple[Classification, str, str, float]:
    """Returns classification, version of the words, URL and time of the verdict (Unix seconds).

    Args:
        value: ends with what `pack` returned.
        start: where that begins in it.

    Raises:
        ValueError, struct.error: `pack` did not return that.
    """
    score, limit, certainty, judged_at, digest, texts, scores, evidence = _columns_of(
        value, start, _FIXED, Evidence, EVIDENCE_ROW
    )
    category, title, charset, doubt, fields, words, url = texts
    row = (
        category,
        score,
        limit,
        scores,
        evidence,
        title,
        charset,
        digest,
        _read_json(fields) if fields else {},
        None if math.isnan(certainty) else certainty,
        doubt,
    )
    return made(Classification, CLASSIFICATION_ROW, (row,))[0], words, url, judged_at


type _Columns = tuple[float, float, float, float, bytes, list[str], dict[str, float], tuple[Evidence, ...]]
"""Score, limit, certainty, time of the verdict, digest of the text, the fixed texts, scores, evidence."""


def _columns(value: bytes, start: int, fixed: int, evidence_kind: type[Evidence], evidence_row: tuple[str, ...]) -> _Columns:
    scores, evidence, digest, score, limit, certainty, judged_at = _HEAD.unpack_from(value, start)
    at = start + _HEAD.size
    numbers_at = at + digest
    form = _numbers(scores, evidence)
    numbers = form.unpack_from(value, numbers_at)
    texts = value[numbers_at + form.size :].decode().split(_SEPARATOR)
    words_at, zones_at = fixed + scores, fixed + scores + 2 * evidence
    if len(texts) != zones_at + evidence:
        raise ValueError("another number of texts")
    hits = zip(
        texts[words_at : words_at + evidence],
        texts[words_at + evidence : zones_at],
        numbers[scores : scores + evidence],
        texts[zones_at:],
        numbers[scores + evidence :],
        strict=True,
    )
    by_category = dict(zip(texts[fixed:words_at], numbers[:scores], strict=True))
    found = made(evidence_kind, evidence_row, hits)
    return score, limit, certainty, judged_at, value[at:numbers_at], texts[:fixed], by_category, found


_columns_of = _columns if _compiled is None else _compiled.unpack
