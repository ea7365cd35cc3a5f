"""The JSON form of a classification."""

from collections.abc import Mapping
from typing import Any

from gatewayfilter.model import Classification, Evidence


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
    """Returns the classification from the values of `as_document`."""
    evidence = tuple(Evidence(*hit) for hit in document["evidence"])
    return Classification(**{**document, "evidence": evidence, "text_digest": bytes.fromhex(document["text_digest"])})
