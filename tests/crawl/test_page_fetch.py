"""How a page is fetched: its turn and its robots.txt, which answers are a passing failure, and how long to wait after them."""

from collections.abc import Awaitable, Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.crawl.net.fetch_errors import UnreachableError
from gatewayfilter.crawl.page_fetch import FetchedPage, PageFetch
from gatewayfilter.interfaces import Page, Priority, Validators
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import Url, parse_url

HERE = parse_url("http://a.example/page")
NOW = 1_000.0


class World:
    """A fetcher with one answer, and the robots.txt of sites."""

    def __init__(self, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.page = Page(HERE.text, "http://b.example:8080/end", status, dict(headers or {}), b"body")
        self.asked: list[tuple[object, ...]] = []
        self.checked: list[tuple[object, ...]] = []
        self.waits: list[tuple[object, ...]] = []
        self.politeness = SimpleNamespace(asked_to_wait=self._wait)
        self.counters = Counters()
        self.improved: Page | None = None

    def _wait(self, *what: object) -> float:
        self.waits.append(what)
        return 77.0

    async def fetch(
        self, url: Url, *, urgent: bool, patience_s: float, permit: Callable[[Url], Awaitable[None]], validators: object
    ) -> Page:
        self.asked.append((url, urgent, patience_s, validators))
        await permit(url)
        return self.page

    async def check(self, *what: object, **more: object) -> None:
        self.checked.append((what[0], more))

    def sitemaps(self, url: str) -> tuple[str, ...]:
        return (f"sitemap of {url}",)

    def open(self, *, renders: bool = False) -> PageFetch:
        world: Any = self
        rendering: Any = SimpleNamespace(improved=self._improve) if renders else None
        return PageFetch(world, world, self.counters, rendering, lambda: NOW)

    async def _improve(self, page: Page) -> Page:
        assert page is self.page
        return self.improved or page


@pytest.mark.parametrize(("priority", "urgent"), [(Priority.MANUAL, True), (Priority.VISIT, True), (Priority.VISIT + 1, False)])
async def test_a_page_is_fetched_when_its_host_and_its_robots_permit(priority: int, *, urgent: bool) -> None:
    world, known = World(), Validators("etag", "", "")
    found = await world.open().fetch(HERE, priority, patience_s=3.5, validators=known)
    assert found == FetchedPage(world.page, ("sitemap of http://b.example:8080/end",), rendered=False)
    assert world.asked == [(HERE, urgent, 3.5, known)]
    assert world.checked == [(HERE, {"priority": priority, "patience_s": 3.5})]
    assert world.counters.as_dict() == {"pages_fetched": 1}


@pytest.mark.parametrize("builds", [True, False])
async def test_a_page_that_a_script_builds_is_rendered(*, builds: bool) -> None:
    world = World()
    world.improved = Page(HERE.text, HERE.text, 200, {}, b"more") if builds else None
    found = await world.open(renders=True).fetch(HERE, 5, patience_s=0.0)
    assert (found.page, found.rendered) == ((world.improved, True) if builds else (world.page, False))


@pytest.mark.parametrize(
    ("status", "headers", "waits"),
    [
        (429, {}, True),
        (429, {"retry-after": "5"}, True),
        (503, {"retry-after": "5"}, True),
        (503, {}, False),
        (500, {"retry-after": "5"}, False),
        (502, {}, False),
        (504, {}, False),
        (408, {}, False),
        (425, {}, False),
    ],
)
async def test_after_a_passing_failure_the_host_is_left_alone_for_as_long_as_it_says(
    status: int, headers: dict[str, str], *, waits: bool
) -> None:
    world = World(status, headers)
    with pytest.raises(UnreachableError, match=f"answered with status {status}") as raised:
        await world.open().fetch(HERE, 5, patience_s=0.0)
    assert raised.value.retry_after_s == (77.0 if waits else 0.0)
    assert world.waits == ([("b.example:8080", headers, NOW)] if waits else [])
    assert world.counters.as_dict() == {"pages_fetched": 1}


@pytest.mark.parametrize("status", [200, 304, 404, 501, 505])
async def test_other_answers_are_pages(status: int) -> None:
    world = World(status)
    assert (await world.open().fetch(HERE, 5, patience_s=0.0)).page.status == status
