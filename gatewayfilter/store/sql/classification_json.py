"""The JSON form of a classification."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from gatewayfilter.model import Classification, Evidence
from gatewayfilter.model.values.frozen import made

EVIDENCE_ROW: Final = tuple(attribute.name for attribute in fields(Evidence))
CLASSIFICATION_ROW: Final = tuple(attribute.name for attribute in fields(Classification))
_KEYS: Final = frozenset(CLASSIFICATION_ROW)


def as_document(classification: Classification) -> dict[str, object]:
    """Returns the classification as JSON values."""
    document: dict[str, object] = {
        "category": classification.category,
        "score": classification.score,
        "limit": classification.limit,
        "scores": classification.scores,
        "evidence": [[hit.word, hit.category, hit.weight, hit.zone, hit.position] for hit in classification.evidence],
        "title": classification.title,
        "charset": classification.charset,
        "text_digest": classification.text_digest.hex(),
    }
    if classification.fields:
        document["fields"] = classification.fields
    if classification.certainty is not None:
        document["certainty"] = classification.certainty
    if classification.doubt:
        document["doubt"] = classification.doubt
    return document


def from_document(document: Mapping[str, Any]) -> Classification:
    """Returns the classification from the values of `as_document`.

    Raises:
        KeyError, TypeError, ValueError: this is of another form.
    """
    if not document.keys() <= _KEYS:
        raise TypeError("a classification with other members")
    known = document.get
    row = (
        document["category"],
        document["score"],
        document["limit"],
        known("scores") or {},
        made(Evidence, EVIDENCE_ROW, map(tuple, document["evidence"])),
        known("title", ""),
        known("charset", ""),
        bytes.fromhex(document["text_digest"]),
        known("fields") or {},
        known("certainty"),
        known("doubt", ""),
    )
    return made(Classification, CLASSIFICATION_ROW, (row,))[0]
