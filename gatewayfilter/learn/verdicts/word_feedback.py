"""Word feedback: words, pairs and readings of pages that reviewers rejected weigh less in a second look.

A function of the decisions that stand now, and of nothing else: `review undo` takes its part back exactly, and a user who files
unblock requests changes nothing. A page is designed to be rejected easily, so each decision has little effect:

- a page's blame of 1 is shared by its words in proportion to their weights, so naming many words lowers none of them much;
- of one site (registrable domain), and of one group of similar pages, one page counts for a word;
- a word is lowered only when pages of `LEAST_SITES` sites were rejected, and never below `LEAST_FACTOR`;
- approved pages with the word raise it again, by the same measure.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import log2
from typing import Final

from gatewayfilter.interfaces import DecidedPage, DecisionHistory
from gatewayfilter.model import HOST_ZONE, Classification, Evidence
from gatewayfilter.urls import parse_url, registrable_domain

LEAST_SITES: Final = 3
"""Sites with rejected pages before a word weighs less."""
LEAST_FACTOR: Final = 0.5
"""What is left of a word's weight at least: no number of rejections removes a word."""
PRIOR: Final = 4.0
"""Pages that a word is taken to have found rightly before anything was decided."""
LOG_ODDS: Final = 2.0
"""What it costs a page that all of its words have half their weights."""
MOST_PAGES: Final = 2_000
"""Decided pages that are read, the newest: 0.3 s of CPU time, at most every `CHECK_EVERY_S` and only after a decision."""
CHECK_EVERY_S: Final = 5.0
_SHOWN: Final = 3

type Term = tuple[str, str]
"""A category, and a word, combination, pair or kind of reading in it."""


@dataclass(frozen=True, slots=True)
class LoweredWord:
    """A word that weighs less.

    Attributes:
        factor: share of its weight that counts, `LEAST_FACTOR` to 1.
        rejected: sites with rejected pages that had it.
        approved: sites with approved pages that had it.
    """

    category: str
    word: str
    factor: float
    rejected: int
    approved: int


@dataclass(slots=True)
class _Side:
    """The rejected or the approved pages with a term: the sum of its shares, and the sites and groups that were counted."""

    share: float = 0.0
    sites: set[str] = field(default_factory=set)
    groups: set[int] = field(default_factory=set)

    def add(self, site: str, group: int, share: float) -> None:
        if site in self.sites or group in self.groups:
            return
        self.sites.add(site)
        self.groups.add(group)
        self.share += share


def lowered_words(pages: Iterable[DecidedPage]) -> dict[Term, LoweredWord]:
    """Returns the words that weigh less by these decisions."""
    sides: dict[Term, tuple[_Side, _Side]] = {}
    for page in pages:
        judged = page.classification.category or page.classification.doubt
        if not judged or (not page.rejected and page.category != judged):
            continue  # a page of another harmful category is neither for nor against its words
        site = registrable_domain(parse_url(page.url).host)
        shares = _shares(page.classification, judged)
        for word, share in shares.items():
            rejected, approved = sides.setdefault((judged, word), (_Side(), _Side()))
            (rejected if page.rejected else approved).add(site, page.group_id, share)
    found = {}
    for term, (rejected, approved) in sides.items():
        if len(rejected.sites) >= LEAST_SITES:
            wrong = rejected.share / (rejected.share + approved.share + PRIOR)
            factor = max(LEAST_FACTOR, 1.0 - wrong)
            found[term] = LoweredWord(*term, factor, len(rejected.sites), len(approved.sites))
    return found


class WordFeedback:
    """Follows the decisions of reviewers, and returns what they change for a page.

    Args:
        history: the decisions.
        clock: seconds, monotonic.
    """

    def __init__(self, history: DecisionHistory, clock: Callable[[], float] = time.monotonic) -> None:
        self._history = history
        self._clock = clock
        self._look_at = float("-inf")
        self._state: tuple[int, Mapping[Term, LoweredWord]] = 0, {}

    def words(self) -> Mapping[Term, LoweredWord]:
        """Returns the words that weigh less now; a decision applies after `CHECK_EVERY_S` at the latest.

        Raises:
            StoreError: the database refuses.
        """
        now = self._clock()
        if now >= self._look_at:
            step = self._history.last_step()
            if step != self._state[0]:
                self._state = step, lowered_words(self._history.decided_pages(MOST_PAGES))
            self._look_at = now + CHECK_EVERY_S
        return self._state[1]

    def fact_of(self, found: Classification, category: str) -> Evidence | None:
        """Returns what the decisions take from a page's log-odds, with the words that they lowered; `None` for nothing.

        Raises:
            StoreError: the database refuses.
        """
        words = self.words()
        if not words:
            return None
        shares = _shares(found, category)
        lowered = {word: words[category, word] for word in shares if (category, word) in words}
        if not lowered:
            return None
        left = sum(share * (lowered[word].factor if word in lowered else 1.0) for word, share in shares.items())
        shown = sorted(lowered, key=lambda word: (-shares[word], word))[:_SHOWN]
        named = " · ".join(f"{word} {lowered[word].factor:.0%}" for word in shown)
        return Evidence(f"words of rejected pages weigh less: {named}", category, round(LOG_ODDS * log2(left), 3), HOST_ZONE, -1)


def _shares(found: Classification, category: str) -> dict[str, float]:
    """Returns each word that counted for a category, with its share of their weights."""
    weights: dict[str, float] = {}
    for hit in found.evidence:
        if hit.category == category and hit.weight > 0 and hit.zone != HOST_ZONE:
            word = term_of(hit)
            weights[word] = weights.get(word, 0.0) + hit.weight
    whole = sum(weights.values())
    return {word: weight / whole for word, weight in weights.items()}


def term_of(hit: Evidence) -> str:
    """Returns by what a hit is known on other pages: a reading without its figures and the terms of its page."""
    return hit.word.partition(" (")[0] if hit.position < 0 else hit.word
