"""The crawlers that run and what they counted since their start, by their status files."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gatewayfilter.config import Settings
from gatewayfilter.telemetry import METRICS
from gatewayfilter.use_cases.process_facts import process_facts

COUNTED: Final = (
    "pages_fetched",
    "pages_rendered",
    "pages_refused",
    "pages_failed",
    "pages_retried",
    "dead_letters",
    "pages_unchanged",
    "pages_harmful",
    "pages_harmless",
    "pages_doubtful",
    "pages_skipped",
    "pages_buffered",
    "links_followed",
    "links_over_budget",
    "hosts_throttled",
    "dns_hits",
    "dns_misses",
    "proxies_failed",
)
"""Counters of `telemetry.METRICS` that are the crawler's."""


@dataclass(frozen=True, slots=True)
class CrawlerFacts:
    """The crawlers together.

    Attributes:
        running: how many run, by name; the learner's own is `learner`.
        counters: what they counted since each was started, by name; with zeros.
        dns_hit_share: of the lookups those that the DNS cache answered, `None` without lookups.
        learning: whether the settings have pages crawled at all.
        proxies: outbound proxies that the settings name themselves.
    """

    running: tuple[str, ...]
    counters: Mapping[str, int]
    dns_hit_share: float | None
    learning: bool
    proxies: int


def crawler_facts(settings: Settings) -> CrawlerFacts:
    """Returns what the status files tell; nothing runs where there are none."""
    names = ("learner", *(f"crawler-{index}" for index in range(1, settings.crawl.workers)))
    found = {name: facts for name in names if (facts := process_facts(settings, name))}
    totals = dict.fromkeys(COUNTED, 0)
    for facts in found.values():
        given = facts.get("counters")
        counters: dict[str, object] = given if isinstance(given, dict) else {}
        for name in COUNTED:
            value = counters.get(name, 0)
            totals[name] += value if isinstance(value, int) else 0
    lookups = totals["dns_hits"] + totals["dns_misses"]
    share = totals["dns_hits"] / lookups if lookups else None
    return CrawlerFacts(tuple(found), totals, share, settings.learn.enabled, len(settings.crawl.proxies))


def meaning(counter: str) -> str:
    """Returns what a counter counts, as docs/metrics.md has it."""
    return METRICS[counter]
