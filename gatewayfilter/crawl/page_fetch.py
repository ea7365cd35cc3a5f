"""The fetching half of a visit: one page, politely, rendered where a script builds it. Uses no database."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from gatewayfilter.crawl.fetch.fetcher import Fetcher
from gatewayfilter.crawl.fetch.robots import Robots
from gatewayfilter.crawl.net.fetch_errors import UnreachableError
from gatewayfilter.crawl.render.renderer import Renderer
from gatewayfilter.interfaces import Page, Priority, Validators
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import Url, parse_url

_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses of a passing failure: the page may be had later."""


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A page as it was fetched.

    Attributes:
        sitemaps: those that the robots.txt of its origin names.
        rendered: by a browser, so its origin's validators do not cover all of it.
    """

    page: Page
    sitemaps: tuple[str, ...] = ()
    rendered: bool = False


class PageFetch:
    """Fetches pages with an open fetcher.

    Counts `pages_fetched`.

    Args:
        fetcher: open.
        robots: the robots.txt of sites.
        counters: where pages are counted.
        rendering: renders pages that a script builds; `None` where they stay as they came.
        clock: Unix seconds.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        robots: Robots,
        counters: Counters,
        rendering: Renderer | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._counters = counters
        self._clock = clock
        self._fetcher = fetcher
        self._robots = robots
        self._rendering = rendering

    async def fetch(self, url: Url, priority: int, *, patience_s: float, validators: Validators | None = None) -> FetchedPage:
        """Fetches a page.

        Args:
            url: of the page.
            priority: see `Priority`.
            patience_s: longest wait for a host's turn.
            validators: of the page as it was judged before; its status is `NOT_MODIFIED` when it is so still.

        Raises:
            FetchError: it was refused or could not be fetched.
        """

        async def permit(hop: Url) -> None:
            await self._robots.check(hop, self._fetcher, priority=priority, patience_s=patience_s)

        urgent = priority <= Priority.VISIT
        came = await self._fetcher.fetch(url, urgent=urgent, patience_s=patience_s, permit=permit, validators=validators)
        self._counters.add("pages_fetched")
        if came.status in _PASSING:
            raise self._passing(came)
        page = await self._rendering.improved(came) if self._rendering is not None else came
        return FetchedPage(page, self._robots.sitemaps(page.final_url), rendered=page is not came)

    def _passing(self, page: Page) -> UnreachableError:
        wait_s = 0.0
        if page.status == 429 or (page.status == 503 and "retry-after" in page.headers):
            netloc = parse_url(page.final_url).netloc
            wait_s = self._fetcher.politeness.asked_to_wait(netloc, page.headers, self._clock())
        return UnreachableError(f"answered with status {page.status}", wait_s)
