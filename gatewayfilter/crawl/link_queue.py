"""The queue of found links: those not seen before, within the budgets of site and strategy."""

from collections.abc import Sequence

from gatewayfilter.crawl.context import CrawlContext
from gatewayfilter.crawl.links.page_links import LinkBudget
from gatewayfilter.crawl.links.strategy import Strategy
from gatewayfilter.interfaces import CrawlRequest
from gatewayfilter.urls import Url, digest_of, registrable_domain


class LinkFollower:
    """Queues links. Runs in the queue's thread alone.

    Counts `links_followed` and `links_over_budget`.
    """

    def __init__(self, context: CrawlContext) -> None:
        self._frontier = context.frontier
        self._settings = context.settings
        self._counters = context.counters
        self._clock = context.clock
        self._seen = context.seen
        self._sites = context.task_sites
        self._budget = LinkBudget(context.clock)

    def follow(self, found: Sequence[Url], strategy: Strategy, depth: int) -> list[bytes]:
        """Queues links that were not seen yet, `depth` links away from the start.

        Returns:
            The digests to be marked as seen once that stands.

        Raises:
            StoreError: the database refuses.
        """
        fresh = {digest: link for link in found if (digest := seen_key(link, strategy.task)) not in self._seen}
        links = self._within_budget(fresh, strategy)
        if len(links) < len(fresh):
            self._counters.add("links_over_budget", len(fresh) - len(links))
        if links:
            self._counters.add("links_followed", len(links))
            now = self._clock()
            step_s = self._settings.per_host_delay_s  # one after the other, as the host's delay allows
            offers = [
                CrawlRequest(link.text, strategy.priority, now + at * step_s, strategy.task, depth if strategy.task else 0)
                for at, link in enumerate(links.values())
            ]
            self._frontier.add(offers, now)
        return list(links)

    def _within_budget(self, fresh: dict[bytes, Url], strategy: Strategy) -> dict[bytes, Url]:
        if not strategy.task:
            return {digest: link for digest, link in fresh.items() if self._budget.take(link.host)}
        if self._sites is None:
            return {}
        by_site: dict[str, list[bytes]] = {}
        for digest, link in fresh.items():
            by_site.setdefault(registrable_domain(link.host) or link.host, []).append(digest)
        now = self._clock()
        got: set[bytes] = set()
        for site, digests in by_site.items():
            count = self._sites.take(strategy.task, site, len(digests), strategy.pages_per_site, now, strategy.period_s)
            got.update(digests[:count])
        return {digest: link for digest, link in fresh.items() if digest in got}


def seen_key(url: Url, task: str) -> bytes:
    """Returns the digest under which a URL is remembered as seen: each task has its own."""
    return digest_of(f"{task}\n{url.text}") if task else url.digest
