"""Fingerprints of classified content, by which the same content is recognised at any URL.

Source: [page-dedup] fingerprints with their verdict and a validity.
"""

from dataclasses import dataclass
from enum import StrEnum

from gatewayfilter.model.classification import Classification


class ContentKind(StrEnum):
    """The kind of content behind a fingerprint."""

    PAGE = "page"
    TEXT = "text"
    IMAGE = "image"


@dataclass(frozen=True, slots=True)
class ContentId:
    """The identity of content, independent of its URL.

    Attributes:
        digest: 16 bytes: the key. Of a page the proof; of others an MD5, of which collisions can be constructed, so it is never
            trusted alone.
        proof: 128 bits of a keyed BLAKE3 of the whole content, 16 bytes; without the key no collision can be constructed.
    """

    kind: ContentKind
    digest: bytes
    proof: bytes

    def __hash__(self) -> int:
        """Returns a hash of digest and proof, each of which keeps its own: a dozen look-ups of a page cost no more than one.

        Both count: many contents can be made with one digest, and images have one proof. They may be equal.
        """
        return hash((self.digest, self.proof))


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Classified content, with its verdict.

    Attributes:
        judge: `""` for the classifier, else the reviewer's name.
        words: version of the lexicon used, `""` for a reviewer's decision, which does not expire with the words.
        url: of the first occurrence.
        judged_at, expires_at: Unix seconds; a hit extends the expiry.
        hits: number of later occurrences.
    """

    content: ContentId
    classification: Classification
    judge: str
    words: str
    url: str
    judged_at: float
    expires_at: float
    hits: int = 0
