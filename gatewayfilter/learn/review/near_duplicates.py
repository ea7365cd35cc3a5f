"""Near duplicates: harmless pages that are nearly the same as a harmful one, such as a toned-down mirror or an entrance page.

Source: [page-dedup] content level, for the expansion of links. Likeness never hands on a verdict: such a page stays allowed,
its links are followed like those of a harmful page, and a review task is opened.
"""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable

from gatewayfilter.interfaces import ReviewStore
from gatewayfilter.learn.review.similarity import ALIKE_TITLES, are_alike, simhash, title_pairs
from gatewayfilter.model import TaskOutline

COMPARED = 2000
"""Newest tasks about harmful pages that a page is held against."""
_FRESH_S = 30.0
"""For which the outlines are believed: a task that was opened meanwhile is met by the next page."""
_MOST_CANDIDATES = 20
"""Tasks with similar titles that are compared by text."""
_NOTED = 256


class NearDuplicates:
    """Finds the harmful page that a harmless one is nearly the same as. For one thread.

    Titles come first: an index of their character pairs costs some 10 µs a page. Only when one is alike the page's text is
    hashed, which costs 1 ms.

    Args:
        reviews: the tasks; those with blocked pages count.
        clock: Unix seconds.
    """

    def __init__(self, reviews: ReviewStore, clock: Callable[[], float] = time.time) -> None:
        self._reviews = reviews
        self._clock = clock
        self._read_at = float("-inf")
        self._outlines: list[TaskOutline] = []
        self._sizes: list[int] = []
        self._index: dict[str, list[int]] = {}
        self._noted: OrderedDict[str, None] = OrderedDict()

    def find(self, title: str, text: Callable[[], str]) -> TaskOutline | None:
        """Returns the newest task with a near duplicate of this page, `None` for none.

        Args:
            title: the page's; without one there is nothing to find.
            text: returns the text of the page; called only when a title is similar.

        Raises:
            StoreError: the tasks cannot be read.
        """
        pairs = title_pairs(title)
        if not pairs:
            return None
        self._refresh()
        common = Counter(position for pair in pairs for position in self._index.get(pair, ()))
        alike = [
            position
            for position, count in common.items()
            if count >= ALIKE_TITLES * (len(pairs) + self._sizes[position] - count)  # Jaccard
        ]
        if not alike:
            return None
        fingerprint = simhash(text())
        for position in sorted(alike)[:_MOST_CANDIDATES]:
            outline = self._outlines[position]
            if are_alike(title, fingerprint, outline.title, outline.simhash):
                return outline
        return None

    def note(self, url: str) -> None:
        """Records that the page at this URL is a near duplicate; the last `_NOTED` are kept."""
        self._noted[url] = None
        if len(self._noted) > _NOTED:
            self._noted.popitem(last=False)

    def take(self, url: str) -> bool:
        """Returns whether the page at this address was noted, and forgets it."""
        noted = url in self._noted
        self._noted.pop(url, None)
        return noted

    def _refresh(self) -> None:
        now = self._clock()
        if now - self._read_at < _FRESH_S:
            return
        self._outlines = self._reviews.harmful_outlines(COMPARED)
        self._sizes = []
        self._index = {}
        for position, outline in enumerate(self._outlines):
            pairs = title_pairs(outline.title)
            self._sizes.append(len(pairs))
            for pair in pairs:
                self._index.setdefault(pair, []).append(position)
        self._read_at = now
