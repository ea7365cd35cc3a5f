"""The classification of a page: its category, the scores, and the words that are the evidence."""

from dataclasses import dataclass, field
from typing import Final

from gatewayfilter.model.certainty import in_words
from gatewayfilter.model.decision import Action, Reason, Verdict
from gatewayfilter.model.list_entry import LEARNED_PREFIX

HOST_ZONE: Final = "host"
"""The zone of evidence that is a fact about the page's host or about earlier reviews, not a word on the page."""

ZONE_FACTORS: Final = {"title": 3.0, "description": 3.0, "keywords": 3.0, "url": 1.0, "main": 1.0, "rest": 0.3}
"""What a hit counts by where it stands. The URL counts once: its owner chose it, but news sites write topics into theirs."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sensitive word found on a page.

    Attributes:
        weight: what the hit adds to the category's score, zone factor included; negative for exonerating context. In the zone
            `host`: what the fact adds to the log-odds that the page is harmful.
        zone: `title`, `description`, `keywords`, `main`, `rest` or `url`; `HOST_ZONE` for a fact that is no word of the page.
        position: character offset in the zone's normalised text.
    """

    word: str
    category: str
    weight: float
    zone: str
    position: int


@dataclass(frozen=True, slots=True)
class Classification:
    """The classifier's result for a page.

    Attributes:
        category: the worst category over its limit, `""` for none.
        score: that category's score, or the highest of all when none is over its limit.
        limit: the limit that it was compared with.
        scores: category → score, only those above zero.
        evidence: hits, heaviest first, bounded.
        title: the page's title, bounded.
        charset: used to decode the bytes, `""` for text.
        text_digest: MD5 of the visible text.
        fields: field of an extraction rule → its values, bounded; empty where no rule covers the page.
        certainty: probability that the page is harmful, 0 to 1, calibrated on unseen pages; `None` where none was estimated.
        doubt: the category that a harmless page may belong to: it is allowed, and a review task is opened; `""` for none.
    """

    category: str
    score: float
    limit: float
    scores: dict[str, float] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    title: str = ""
    charset: str = ""
    text_digest: bytes = b""
    fields: dict[str, list[str]] = field(default_factory=dict)
    certainty: float | None = None
    doubt: str = ""

    @property
    def harmful(self) -> bool:
        """Whether any category is over its limit."""
        return bool(self.category)

    def block(self, *, unknown: bool) -> Verdict:
        """Returns the verdict that blocks the page while its visitor waits; `unknown` for one that goes on no list."""
        source = f"{LEARNED_PREFIX}{self.category}"
        return Verdict(
            Action.BLOCK, Reason.LEARNED, source_list=source, category=self.category, detail=self.summary(), unknown=unknown
        )

    def summary(self, words: int = 5) -> str:
        """Returns the evidence in one line for block pages and logs.

        ``score 42.0 (limit 20.0), likely (97 %): casino, betting``; without the level where no certainty was estimated. A
        harmful page whose score is below the limit names the facts about its host that made the difference.
        """
        category = self.category or self.doubt
        found = (hit for hit in self.evidence if hit.category == category and hit.weight > 0 and hit.zone != HOST_ZONE)
        named = ", ".join(dict.fromkeys(hit.word for hit in found))
        listed = ", ".join(named.split(", ")[:words]) if named else "no words"
        worded = in_words(self.certainty, self.doubt)
        host = [hit.word for hit in self.evidence if hit.zone == HOST_ZONE and hit.weight > 0]
        by_host = f"; blocked because {', '.join(host[:2])}" if host and self.category and self.score < self.limit else ""
        return f"score {self.score:.1f} (limit {self.limit:.1f}){', ' if worded else ''}{worded}: {listed}{by_host}"


@dataclass(frozen=True, slots=True)
class ScoreBreakdown:
    """The breakdown of a page's score in one category: ``strong + topic_counted - context_counted + opinion``.

    Attributes:
        words_version: version of the words, the model and the extraction rules used.
        strong: sum of words and combinations that state what a page offers.
        topic: sum of words that name a topic, of which `topic_counted` counts.
        context: sum of exonerating context, of which `context_counted` is subtracted.
        opinion: added by the certainty and by the second opinion, negative to lower the score; 0 without them.
        limit: score above which a page of this length belongs to the category.
        words: number of distinct words and combinations found, of which `min_words` are needed.
    """

    words_version: str
    category: str
    strong: float
    topic: float
    topic_counted: float
    context: float
    context_counted: float
    opinion: float
    score: float
    limit: float
    words: int
    min_words: int
