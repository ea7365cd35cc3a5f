"""The passage of a long page in which the words of one category stand closest together.

Other text around an offer dilutes its words and its reading. So such a passage is judged once more as if it were a page.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gatewayfilter.classify.lexicon.lexicon import Category
from gatewayfilter.classify.lexicon.match_filter import Role
from gatewayfilter.classify.score import ZoneHits

LONG_PAGE = 1_500
"""Bytes of visible text above which a page has passages: an offer of some hundred is lost among as few."""
LETTERS, IDEOGRAPHS = 1_200, 480
"""Characters in which the words of a passage stand, by script."""
MARGIN = 4
"""The lines at both ends of a passage belong to it, up to one part of so many."""
LEAST_SHARE = 0.75
"""Of a category's limit, what the words of a passage come to at least."""
ALL_BUT = 0.999
"""Of the least share: what sums may differ by, added up in another order."""
_ZONES = frozenset({"main", "rest"})


class Passage(NamedTuple):
    """A part of a zone.

    Attributes:
        zone: its name.
        start: offset of the passage in the zone's text.
        text: what stands there.
    """

    zone: str
    start: int
    text: str


def densest(found: Iterable[ZoneHits], categories: Mapping[str, Category], *, ideographic: bool) -> Passage | None:
    """Returns the passage with the most weight of one category, as a share of its limit; `None` where none comes to enough."""
    size = IDEOGRAPHS if ideographic else LETTERS
    best, least = None, LEAST_SHARE
    for hits in found:
        if not hits.placed or hits.zone not in _ZONES:
            continue
        places: dict[str, list[tuple[int, float]]] = {}
        for meaning, (start, _) in hits.hits.items():
            if meaning.role is Role.WORD and meaning.category in categories:
                places.setdefault(meaning.category, []).append((start, meaning.weight))
        for name, of_category in places.items():
            if sum(weight for _, weight in of_category) < ALL_BUT * least * categories[name].limit:
                continue  # nearly always: not even all of the zone comes to enough
            share, first, last = _closest(sorted(of_category), size)
            share /= categories[name].limit
            if share >= least:
                best, least = (hits, first, last), share
    if best is None:
        return None
    hits, first, last = best
    start = max(hits.text.rfind("\n", 0, first) + 1, first - size // MARGIN)
    tail, _, _ = hits.text[last : last + size // MARGIN].partition("\n")
    return Passage(hits.zone, start, hits.text[start:last] + tail)


def _closest(places: list[tuple[int, float]], size: int) -> tuple[float, int, int]:
    """Returns the most weight within `size` characters, and the first and last place of it."""
    best, first, total = (0.0, 0, 0), 0, 0.0
    for last, (place, weight) in enumerate(places):
        total += weight
        while place - places[first][0] > size:
            total -= places[first][1]
            first += 1
        if total > best[0]:
            best = total, places[first][0], places[last][0]
    return best
