"""Discovery over sitemaps and feeds: of sites where a harmful page was found, and of tasks that enable it.

A harmful page names its feeds and sitemaps; these are queued, once a day a site, beside the sitemaps that its robots.txt names,
or `/sitemap.xml` where that names none. When they come back, their links to the same site are queued. A sitemap or feed of any
other site is followed by tasks alone, where their strategy demands it.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.fetch.url_policy import may_crawl
from gatewayfilter.crawl.fetch.url_resolution import resolve
from gatewayfilter.crawl.links.feeds import FeedKind, feed_of
from gatewayfilter.crawl.links.page_links import decoded
from gatewayfilter.crawl.links.strategy import Strategy
from gatewayfilter.documents.html.markup import read_references
from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import Page
from gatewayfilter.model import Classification
from gatewayfilter.urls import Url, parse_url, registrable_domain

MAX_SITES = 10_000
MAX_LISTS = 5
"""Sitemaps and feeds that one page or index may name."""
_DAY_S = 86_400.0
_FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml"})
_HTML = frozenset({"", "text/html", "application/xhtml+xml"})


class FocusedDiscovery:
    """Finds further links on sites with harmful pages. Keeps the last `MAX_SITES` of them; safe to share between threads.

    Args:
        settings: `follow_links` bounds the links of one sitemap or feed, 0 switches all of it off.
        clock: Unix seconds.
    """

    def __init__(self, settings: CrawlSettings, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._clock = clock
        self._one = threading.Lock()
        self._sites: OrderedDict[str, float] = OrderedDict()

    def links(self, page: Page, classification: Classification | None, sitemaps: Sequence[str] = ()) -> list[Url]:
        """Returns the links to follow beside those of the page's text, in order, each once; none as a rule.

        Args:
            page: a page that was judged.
            classification: the judgement.
            sitemaps: those that the robots.txt of its origin names.
        """
        if not self._settings.follow_links:
            return []
        own = parse_url(page.final_url)
        site = registrable_domain(own.host)
        if classification is not None and classification.harmful:
            fresh = self._note(site)
            return self._chosen(_lists(page, classification.charset, own, sitemaps), own, MAX_LISTS + 1) if fresh else []
        if not self._is_harmful(site):
            return []
        feed = feed_of(page)
        if feed is None:
            return []
        limit = MAX_LISTS if feed.kind is FeedKind.SITEMAP_INDEX else self._settings.follow_links
        return self._chosen(_resolved(own, feed.links), own, limit)

    def _note(self, site: str) -> bool:
        """Notes a site with a harmful page. Returns whether it was not noted today."""
        with self._one:
            now = self._clock()
            fresh = now - self._sites.get(site, float("-inf")) >= _DAY_S
            if fresh:
                self._sites[site] = now
                self._sites.move_to_end(site)
                if len(self._sites) > MAX_SITES:
                    self._sites.popitem(last=False)
            return fresh

    def _is_harmful(self, site: str) -> bool:
        with self._one:
            return self._clock() - self._sites.get(site, float("-inf")) < _DAY_S

    def _chosen(self, links: Iterator[Url], own: Url, limit: int) -> list[Url]:
        site = registrable_domain(own.host)
        return _first(links, limit, self._settings, own, lambda link: registrable_domain(link.host) == site)


def task_links(
    page: Page, charset: str, sitemaps: Sequence[str], strategy: Strategy, depth: int, settings: CrawlSettings
) -> tuple[list[Url], int]:
    """Returns what a task finds by sitemaps and feeds, and how many links away from its start all links of this page are.

    Its first pages lead to sitemaps and feeds, these to pages. A sitemap is no step: its pages are as far as itself.

    Args:
        page: a page of the task.
        charset: how the classifier decoded it, `""` for UTF-8.
        sitemaps: those that the robots.txt of its origin names.
        strategy: the task's.
        depth: how many links away from where the task began the page is.
        settings: what may be fetched.
    """
    feed = feed_of(page) if strategy.sitemaps else None
    next_depth = depth if feed is not None and depth else depth + 1
    if not strategy.sitemaps or next_depth > strategy.depth or (depth and feed is None):
        return [], next_depth
    own = parse_url(page.final_url)
    found = _resolved(own, feed.links) if feed is not None else _lists(page, charset, own, sitemaps)
    most = MAX_LISTS + 1 if feed is None else len(feed.links)
    return _first(found, most, settings, own, lambda link: strategy.leads_to(own, link)), next_depth


def _lists(page: Page, charset: str, own: Url, sitemaps: Sequence[str]) -> Iterator[Url]:
    yield from _resolved(own, list(sitemaps) or ["/sitemap.xml"])
    if page.content_type not in _HTML:
        return
    base, links, _ = read_references(decoded(page.body, charset))
    base_url = next(_resolved(own, [base]), own) if base else own
    named = [
        link.reference
        for link in links
        if not link.on_page and ("sitemap" in link.rel.split() or ("alternate" in link.rel.split() and link.kind in _FEED_TYPES))
    ]
    yield from _resolved(base_url, named)


def _first(links: Iterator[Url], limit: int, settings: CrawlSettings, own: Url, leads: Callable[[Url], bool]) -> list[Url]:
    """Returns the first links, each once, that lead where they should and may be fetched."""
    found: dict[str, Url] = {}
    for link in links:
        if link.key != own.key and leads(link) and not may_crawl(link, settings):
            found.setdefault(link.key, link)
            if len(found) >= limit:
                break
    return list(found.values())


def _resolved(base: Url, references: list[str]) -> Iterator[Url]:
    for reference in references:
        try:
            yield resolve(base, reference)
        except UrlError:
            continue
