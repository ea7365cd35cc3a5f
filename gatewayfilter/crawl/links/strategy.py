"""The crawl strategies: depth, breadth, hosts, urgency and the next visit.

Source: [cloud-crawler §3] each task has its own scheduling strategy, changed by configuration.
"""

from dataclasses import dataclass
from typing import Final

from gatewayfilter.interfaces import Priority
from gatewayfilter.settings import CrawlSettings, CrawlTask, Follow
from gatewayfilter.urls import Url, registrable_domain

MAX_PAGE_LINKS: Final = 1000
"""Links of one page that a task follows, at most; its `pages_per_site` is the bound that counts."""
_DAY_S: Final = 86_400.0
_HOUR_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Strategy:
    """How the links of a page are queued, and when the page is visited again.

    Attributes:
        task: its name; `""` for what users visit and what harmful pages lead to.
        depth: links away from the start that are followed.
        follow: links of which pages.
        hosts: where links may lead, as in `CrawlTask`; none: the page's own site.
        links_a_page: most links of one page.
        pages_per_site: most pages of a site in `period_s`; 0: the worker's own bound.
        priority: of links.
        recrawl_s: a page is due again after so long; 0: it is done.
        sitemaps: whether the sitemaps and feeds of the first pages' sites are followed.
    """

    task: str
    depth: int
    follow: Follow
    hosts: tuple[str, ...]
    links_a_page: int
    pages_per_site: int
    priority: int
    recrawl_s: float
    sitemaps: bool = False

    @property
    def period_s(self) -> float:
        """The time in which `pages_per_site` counts."""
        return max(self.recrawl_s, _DAY_S)

    def follows(self, depth: int, *, harmful: bool) -> bool:
        """Returns whether the links of a page at this depth are followed."""
        if depth >= self.depth or not self.links_a_page:
            return False
        return self.follow is Follow.ALL or (harmful and self.follow is Follow.HARMFUL)

    def leads_to(self, own: Url, link: Url) -> bool:
        """Returns whether the target of a link on the page `own` is in the scope of the crawl."""
        if not self.hosts:
            return registrable_domain(link.host) == registrable_domain(own.host)
        return any(_is_host(link.host, pattern) for pattern in self.hosts)


def strategy_of(settings: CrawlSettings, task: str) -> Strategy:
    """Returns the strategy of a task; one that is no longer set follows nothing more."""
    if not task:
        return _focused(settings)
    chosen = settings.tasks.get(task) or CrawlTask(follow=Follow.NONE)
    return Strategy(
        task=task,
        depth=chosen.depth,
        follow=chosen.follow,
        hosts=chosen.hosts,
        links_a_page=MAX_PAGE_LINKS,
        pages_per_site=chosen.pages_per_site,
        priority=chosen.priority,
        recrawl_s=chosen.recrawl_hours * _HOUR_S,
        sitemaps=chosen.sitemaps,
    )


def _focused(settings: CrawlSettings) -> Strategy:
    """Links from harmful pages are visited ahead of users, however deep; the site's daily bound ends it."""
    return Strategy("", 2**31, Follow.HARMFUL, (), settings.follow_links, 0, Priority.LINK, 0.0)


def _is_host(host: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return host == pattern[2:] or host.endswith(pattern[1:])
    return host == pattern
