"""Fingerprints of classified content: the same content is recognised wherever it is found again.

Source: [page-dedup] fingerprints with their verdict and a validity.
"""

from dataclasses import dataclass
from enum import StrEnum

from gatewayfilter.model.classification import Classification


class ContentKind(StrEnum):
    """What a fingerprint was taken of."""

    PAGE = "page"
    TEXT = "text"
    IMAGE = "image"


@dataclass(frozen=True, slots=True)
class ContentId:
    """Content by what it is, wherever it was found.

    Attributes:
        digest: MD5, 16 bytes: the key. Two contents with the same MD5 can be made on purpose, so it is never believed alone.
        proof: 128 bits of a keyed BLAKE3 of the whole content, 16 bytes, which nobody outside can aim at.
    """

    kind: ContentKind
    digest: bytes
    proof: bytes


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Content that was judged, with its verdict.

    Attributes:
        judge: who judged: `""` for the classifier, else the person's name.
        words: version of the lexicon that judged, `""` for a person, whose word does not age.
        url: where it was first seen.
        judged_at, expires_at: Unix seconds; a hit puts the expiry off.
        hits: how often it was met again.
    """

    content: ContentId
    classification: Classification
    judge: str
    words: str
    url: str
    judged_at: float
    expires_at: float
    hits: int = 0
