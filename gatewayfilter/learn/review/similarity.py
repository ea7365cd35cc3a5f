"""The similarity of pages: by their titles, loosely, then by their texts.

Source: [page-dedup] content level: the title's similarity first, then the body's, for those with similar titles.
Deviation: no word segmentation: titles are compared by character pairs, texts by a 64-bit simhash over character 5-grams,
which serves Chinese and English alike. Likeness groups tasks, reports and leads to further links; it never hands on a verdict.
"""

import numpy as np
from numpy.typing import NDArray

SHINGLE = 5
"""Characters hashed together."""
MAX_CHARACTERS = 12_000
"""Characters of a text that are compared: about 1 ms."""
ALIKE_BITS = 10
"""Bits of 64 that the simhashes of near duplicates differ in at most (docs/classification.md)."""
ALIKE_TITLES = 0.5
"""Share of character pairs that titles of near duplicates have in common at least."""

_MIX = np.uint64(0x9E37_79B9_7F4A_7C15)
_MULTIPLIER = np.uint64(0x0000_0100_0000_01B3)
_SHIFT = np.uint64(29)


def simhash(text: str) -> int:
    """Returns a 64-bit hash that is similar for similar texts, 0 for a text shorter than a shingle. About 1 ms."""
    squeezed = "".join(text[:MAX_CHARACTERS].split()).lower()
    codes = np.frombuffer(squeezed.encode("utf-32-le", errors="replace"), dtype=np.uint32).astype(np.uint64)
    if len(codes) < SHINGLE:
        return 0
    hashes = _shingle_hashes(codes)
    bits = np.unpackbits(hashes.view(np.uint8).reshape(-1, 8), axis=1).sum(axis=0, dtype=np.int64)
    return int.from_bytes(np.packbits(2 * bits > len(hashes)).tobytes(), "little")


def _shingle_hashes(codes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Returns a well mixed hash of each distinct run of `SHINGLE` characters."""
    count = len(codes) - SHINGLE + 1
    hashes = np.zeros(count, dtype=np.uint64)
    for offset in range(SHINGLE):
        hashes = (hashes ^ codes[offset : offset + count]) * _MULTIPLIER
    hashes = np.unique(hashes)  # a phrase repeated a thousand times is one phrase
    for _ in range(2):
        hashes = (hashes ^ (hashes >> _SHIFT)) * _MIX
    return hashes ^ (hashes >> _SHIFT)


def distance(one: int, other: int) -> int:
    """Returns in how many bits two simhashes differ, 0 to 64."""
    return (one ^ other).bit_count()


def title_similarity(one: str, other: str) -> float:
    """Returns the share of character pairs that two titles have in common (Jaccard), 0 to 1; 1 for two empty ones."""
    pairs, others = title_pairs(one), title_pairs(other)
    if not pairs and not others:
        return 1.0
    return len(pairs & others) / len(pairs | others)


def are_alike(title: str, fingerprint: int, other_title: str, other_fingerprint: int) -> bool:
    """Returns whether two pages are near duplicates. Titles are compared last: it takes ten times as long."""
    if not fingerprint or not other_fingerprint or distance(fingerprint, other_fingerprint) > ALIKE_BITS:
        return False
    return title_similarity(title, other_title) >= ALIKE_TITLES


def title_pairs(title: str) -> set[str]:
    """Returns the pairs of neighbouring letters and digits of a title; empty for one without any."""
    squeezed = "".join(character for character in title.lower() if character.isalnum())
    return {squeezed[index : index + 2] for index in range(max(1, len(squeezed) - 1))} - {""}
