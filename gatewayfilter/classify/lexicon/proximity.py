"""Pairs of phrases that count where they stand close together: any of one list beside any of another.

"hurt your boss", "burn their cars", "beat the wife": who does harm to whom has thousands of phrasings, and no list holds all of
them. Two lists of fifty phrases hold 2,500. They must stand in one sentence and close together: a long text is not to join what
it says apart.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

MAX_GAP = 36
"""Characters between the two at most, of a script with letters: some six words."""
MAX_GAP_HAN = 10
"""The same between ideographs."""
MOST = 3
"""How often a pair counts on a page."""
ONE, OTHER = 0, 1
SENTENCE_ENDS = "\n.;!?|。"
_SENTENCE_END = re.compile(f"[{SENTENCE_ENDS}]")


@dataclass(frozen=True, slots=True)
class Proximity:
    """Two lists, any phrase of one beside any phrase of the other.

    Attributes:
        name: the meaning of the combination, for people; unique in its category.
        weight: for each of up to `MOST` places.
    """

    name: str
    weight: float
    one: tuple[str, ...]
    other: tuple[str, ...]


def places(text: str, found: Iterable[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Returns start and end of up to `MOST` places where both sides stand close together.

    No phrase counts in two of them, and none with the same text as an earlier one counts. Linear.

    Args:
        text: what was searched.
        found: start, end and side (`ONE` or `OTHER`) of each phrase, in the order of their starts.
    """
    last: list[tuple[int, int] | None] = [None, None]
    said: dict[str, tuple[int, int]] = {}
    for start, end, side in found:
        beside = last[1 - side]
        if beside is None or beside[1] > start or not _is_close(text, beside[1], start):
            last[side] = (start, end)
            continue
        said.setdefault(text[beside[0] : end], (beside[0], end))
        if len(said) == MOST:
            break
        last = [None, None]
    return list(said.values())


def _is_close(text: str, left: int, right: int) -> bool:
    most = MAX_GAP_HAN if text[left - 1] >= "\u2e80" and text[right] >= "\u2e80" else MAX_GAP
    return right - left <= most and not _SENTENCE_END.search(text, left, right)
