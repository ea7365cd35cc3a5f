"""The second look: facts about a page's host, and earlier reviews, move a verdict that is not clear.

Each fact is evidence with a bounded weight in log-odds. They move a verdict by one step at most, between `block`, `doubt` (the
page is allowed and reviewed) and `harmless`. A page that the classifier found harmless without doubt is not looked at, so no
page is blocked for its host. Facts in favour of a page take `MOST_AGAINST` at most, which is also the distance from which on a
verdict is clear: its odds are nine times those at the limit. So nothing that the owner of a site can arrange frees a clear page.

docs/reviews.md has the table of facts, with who can forge each.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, log
from typing import Final, Protocol

from gatewayfilter.classify import BLOCKED_FROM
from gatewayfilter.interfaces import HostFacts, HostFactStore, Page
from gatewayfilter.learn.verdicts.host_listing import HostListing
from gatewayfilter.learn.verdicts.trusted_hosts import TrustedHosts
from gatewayfilter.learn.verdicts.user_content_hosts import UserContentHosts
from gatewayfilter.learn.verdicts.word_feedback import WordFeedback
from gatewayfilter.model import HOST_ZONE, Classification, Evidence
from gatewayfilter.settings import Strictness
from gatewayfilter.urls import is_ip_literal, parse_url

MOST_AGAINST: Final = 2.2
"""What all facts together take from the log-odds at most: the odds fall to a ninth."""
MOST_FOR: Final = 3.0
"""What they add at most."""
LEAST_SHIFT: Final = 0.5
"""A smaller sum changes no verdict: facts that nearly cancel out are none."""
MOST_HARMFUL_PAGES, MOST_HARMLESS_PAGES = 2.0, -1.5
"""Bounds of what the other pages of the host add and take away."""
LISTED: Final = 2.0
LINKED: Final = 0.5
KNOWN: Final = -0.5
KNOWN_S: Final = 30 * 86_400.0
KNOWN_PAGES: Final = 3
"""For `KNOWN`: a host on which so many harmless pages were judged, the first of them at least 30 days ago."""
LEAST_TO_BLOCK: Final = 0.5
"""Certainty of the page itself without which no fact gets it blocked."""

_SCORE_SLOPE: Final = 2.0
"""Log-odds above the limit for each factor e of score over limit, where the classifier estimated no certainty."""
_MOST_LOGIT: Final = 12.0


class SecondLook(Protocol):
    """Moves a verdict by what is known beside the page."""

    def look(self, page: Page, found: Classification) -> Classification:
        """Returns the verdict on a page after the second look."""
        ...


@dataclass(frozen=True, slots=True)
class HostSecondLook:
    """Moves verdicts by facts about the host. Implements `SecondLook`.

    Attributes:
        trusted: hosts whose pages are not blocked by words alone.
        user_content: hosts of user content: nothing is derived from their other pages.
        strictness: as in the settings.
        facts: other pages and the queue; `None` for trusted hosts alone.
        listing: what black lists hold.
        feedback: what earlier reviews lowered.
        clock: Unix seconds.
    """

    trusted: TrustedHosts
    user_content: UserContentHosts
    strictness: Strictness = Strictness.STANDARD
    facts: HostFactStore | None = None
    listing: HostListing | None = None
    feedback: WordFeedback | None = None
    clock: Callable[[], float] = time.time

    def look(self, page: Page, found: Classification) -> Classification:
        """Returns the verdict after the second look, with the facts as evidence in the zone `host`.

        A page without a category and without a doubt is returned as it is, at no cost.

        Raises:
            StoreError: the database refuses.
        """
        category = found.category or found.doubt
        if not category:
            return found
        host = parse_url(page.final_url).host
        reason = self.trusted.reason_of(host)
        known = self._known(page, found, host, category)
        if reason:
            trust = Evidence(f"{reason}: not blocked by words alone", category, 0.0, HOST_ZONE, -1)
            found = replace(found, evidence=(*found.evidence, trust, *known))
            return _doubted(found) if found.harmful else found
        return _moved(found, known, BLOCKED_FROM[self.strictness]) if known else found

    def _known(self, page: Page, found: Classification, host: str, category: str) -> list[Evidence]:
        known: list[tuple[str, float]] = []
        shared = is_ip_literal(host) or self.user_content.holds(host)
        if self.facts is not None:
            facts = self.facts.facts_of(page.final_url, host, found.text_digest)
            known += [] if shared else _of_pages(facts, host, self.clock())
            if facts.linked:
                known.append(("a harmful page links to it", LINKED))
        if self.listing is not None and not shared and (source := self.listing.source_of(host, category)):
            known.append((f"the list {source} has {host} as {category}", LISTED))
        evidence = [Evidence(text, category, round(weight, 3), HOST_ZONE, -1) for text, weight in known]
        lowered = self.feedback.fact_of(found, category) if self.feedback is not None else None
        return [*evidence, lowered] if lowered is not None else evidence


def _of_pages(facts: HostFacts, host: str, now: float) -> list[tuple[str, float]]:
    harmful = sum(facts.harmful.values())
    if not harmful and not facts.harmless:
        return []
    weight = log((harmful + 0.5) / (facts.harmless + 0.5))
    weight = min(max(weight, MOST_HARMLESS_PAGES), MOST_HARMFUL_PAGES)
    known = [(f"{harmful} of {harmful + facts.harmless} other pages of {host} are harmful", weight)]
    age_s = now - facts.known_since if facts.known_since is not None else 0.0
    if age_s >= KNOWN_S and not harmful and facts.harmless >= KNOWN_PAGES:
        known.append((f"{host} is known for {int(age_s / 86_400)} days", KNOWN))
    return known


def _moved(found: Classification, known: list[Evidence], block_at: float) -> Classification:
    """Returns the verdict after the facts: one step up or down, or the same."""
    shift = min(max(sum(fact.weight for fact in known), -MOST_AGAINST), MOST_FOR)
    limit = _logit(block_at)
    own = _log_odds(found, limit)
    certainty = None if found.certainty is None else round(_probability(_logit(found.certainty) + shift), 6)
    seen = replace(found, evidence=(*found.evidence, *known), certainty=certainty)
    if abs(shift) < LEAST_SHIFT:
        return seen
    if found.harmful:
        # A page that the classifier blocked stands at the limit at least, whatever figure it blocks at.
        return _doubted(seen) if max(own, limit) + shift < limit else seen
    if found.certainty is None:
        return seen
    if shift > 0:
        blocked = found.certainty >= LEAST_TO_BLOCK and own + shift >= limit
        return replace(seen, category=found.doubt, doubt="") if blocked else seen
    return replace(seen, doubt="") if own + shift < 0 else seen


def _doubted(found: Classification) -> Classification:
    return replace(found, category="", doubt=found.category)


def _log_odds(found: Classification, limit: float) -> float:
    """Returns the log-odds of a verdict; without a certainty, as far above the limit as the score is."""
    if found.certainty is not None:
        return _logit(found.certainty)
    return limit + _SCORE_SLOPE * log(max(found.score, 1e-6) / max(found.limit, 1e-6))


def _logit(probability: float) -> float:
    return min(max(log(max(probability, 1e-9) / max(1.0 - probability, 1e-9)), -_MOST_LOGIT), _MOST_LOGIT)


def _probability(logit: float) -> float:
    return 1.0 / (1.0 + exp(-logit))
