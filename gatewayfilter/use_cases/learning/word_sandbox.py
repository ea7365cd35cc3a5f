"""A page or text judged by the words in use, with every hit in its place; nothing is learned.

This loads the classifier: a process that must stay small runs it in a child.
"""

from dataclasses import dataclass

from gatewayfilter.classify import breakdown_of, highlight_zone
from gatewayfilter.classify.highlight import Segment
from gatewayfilter.config import Settings
from gatewayfilter.interfaces import Page
from gatewayfilter.model import Classification, ScoreBreakdown
from gatewayfilter.wiring import classifier


@dataclass(frozen=True, slots=True)
class MarkedZone:
    """A zone of a page (title, main …), cut at the hits: the segments joined are its text as it was judged."""

    name: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class JudgedPage:
    """A page and how it was judged.

    Attributes:
        score_breakdown: `None` where nothing on the page counts.
        zones: those with a hit, else the first.
        all_zones: how many the page has.
    """

    classification: Classification
    score_breakdown: ScoreBreakdown | None
    zones: tuple[MarkedZone, ...]
    all_zones: int


def judge_page(settings: Settings, page: Page) -> JudgedPage:
    """Judges a page by the words in use.

    Raises:
        ClassifyError: the words or the page cannot be used.
    """
    explained = classifier(settings).explain(page)
    judged = explained.classification
    marked = [zone for zone in explained.zones if any(hit.zone == zone for hit in judged.evidence)]
    zones = tuple(
        MarkedZone(zone, tuple(highlight_zone(explained.zones[zone], zone, judged)))
        for zone in marked or list(explained.zones)[:1]
    )
    return JudgedPage(judged, breakdown_of(explained, words_version=""), zones, len(explained.zones))


def page_of_text(text: str) -> Page:
    """Returns plain text as a page without an address."""
    return Page("", "", 200, {"content-type": "text/plain; charset=utf-8"}, text.encode(errors="replace"))
