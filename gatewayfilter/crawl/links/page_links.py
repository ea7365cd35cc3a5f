"""The links of a page that are followed: as a rule those of a harmful page to its own site."""

from collections import OrderedDict
from collections.abc import Callable, Iterator

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.fetch.url_policy import may_crawl
from gatewayfilter.crawl.fetch.url_resolution import resolve
from gatewayfilter.crawl.links.strategy import Strategy, strategy_of
from gatewayfilter.documents.html.markup import read_references
from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import Page
from gatewayfilter.urls import Url, parse_url, registrable_domain

SITE_LINKS_A_DAY = 500
"""A site may make pages without end (calendars, random words): so many of its links are queued in a day, no more."""
MAX_SITES = 10_000
_DAY_S = 86_400.0
_HTML = frozenset({"", "text/html", "application/xhtml+xml"})


def out_links(page: Page, charset: str, settings: CrawlSettings, strategy: Strategy | None = None) -> list[Url]:
    """Returns the links of a page to pages where the strategy leads and that may be fetched, in order, each once.

    Args:
        page: a fetched page.
        charset: how the classifier decoded it, `""` for UTF-8.
        settings: what may be fetched.
        strategy: bounds their number and where they may lead; by default `follow_links` to the same registrable domain.
    """
    strategy = strategy or strategy_of(settings, "")
    if page.content_type not in _HTML or not strategy.links_a_page:
        return []
    own = parse_url(page.final_url)
    found: dict[str, Url] = {own.key: own, parse_url(page.url).key: own}
    known = len(found)
    for link in _anchors(decoded(page.body, charset), own):
        if link.key not in found and strategy.leads_to(own, link) and not may_crawl(link, settings):
            found[link.key] = link
            if len(found) - known >= strategy.links_a_page:
                break
    return list(found.values())[known:]


def _anchors(text: str, own: Url) -> Iterator[Url]:
    written_base, references, _ = read_references(text)
    base = _absolute(own, written_base) or own
    for reference in references:
        link = _absolute(base, reference.reference) if reference.on_page else None
        if link is not None:
            yield link


def _absolute(base: Url, reference: str) -> Url | None:
    try:
        return resolve(base, reference)
    except UrlError:
        return None


def decoded(body: bytes, charset: str) -> str:
    """Returns a body as text by the charset that the classifier found, `""` for UTF-8. Never raises."""
    try:
        return body.decode(charset or "utf-8", "replace")
    except LookupError:
        return body.decode(errors="replace")


class LinkBudget:
    """How many links of each site may still be queued today. Keeps at most `MAX_SITES`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sites: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def take(self, host: str) -> bool:
        """Takes one link of the site that a host belongs to. Returns False when the day's are used up."""
        site = registrable_domain(host)
        now = self._clock()
        since, used = self._sites.get(site, (now, 0))
        if now - since >= _DAY_S:
            since, used = now, 0
        if used >= SITE_LINKS_A_DAY:
            return False
        self._sites[site] = (since, used + 1)
        self._sites.move_to_end(site)
        if len(self._sites) > MAX_SITES:
            self._sites.popitem(last=False)
        return True
