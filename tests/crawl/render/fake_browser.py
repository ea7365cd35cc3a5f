"""A browser that starts nothing and notes what it is told, in place of Playwright's."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Self

import pytest


@dataclass
class FakeRoute:
    """A request of a page; `end` is what became of it."""

    url: str
    resource_type: str = "fetch"
    method: str = "GET"
    navigation: bool = False
    end: Any = None

    @property
    def request(self) -> SimpleNamespace:
        return SimpleNamespace(
            url=self.url, method=self.method, resource_type=self.resource_type, is_navigation_request=lambda: self.navigation
        )

    async def fulfill(self, **answer: str) -> None:
        self.end = answer

    async def continue_(self) -> None:
        self.end = "continued"

    async def abort(self, reason: str) -> None:
        self.end = reason


class Ended:
    """A dialog or a socket, which the filter ends."""

    def __init__(self) -> None:
        self.ends = 0

    async def dismiss(self) -> None:
        self.ends += 1

    close = dismiss


@dataclass
class FakePage:
    """A page that the browser shows; `asks` runs while it opens."""

    browser: "FakeBrowser"
    context: "FakeContext"
    handlers: dict[str, Callable[[Any], Awaitable[None]]] = field(default_factory=dict)
    evaluated: list[str] = field(default_factory=list)

    def on(self, event: str, handler: Callable[[Any], Awaitable[None]]) -> None:
        self.handlers[event] = handler

    async def goto(self, url: str, wait_until: str) -> None:
        first = FakeRoute(url, "document", navigation=True)
        await self.context.handler(first)
        self.browser.opened.append((url, wait_until, first.end))
        await self.browser.asks(self)

    async def wait_for_load_state(self, state: str, timeout: float) -> None:
        self.browser.settled.append((state, timeout))
        if self.browser.restless:
            raise TimeoutError("it goes on loading")

    async def evaluate(self, script: str) -> str:
        self.evaluated.append(script)
        return self.browser.shown

    async def content(self) -> str:
        return self.browser.built


class FakeContext:
    """The surroundings of one page, and its session of the devtools' protocol."""

    def __init__(self, browser: "FakeBrowser", options: dict[str, Any]) -> None:
        self.browser = browser
        self.options = options
        self.closed = 0
        self.sent: list[tuple[str, dict[str, Any]]] = []

    async def route(self, pattern: str, handler: Callable[[FakeRoute], Awaitable[None]]) -> None:
        assert pattern == "**/*"
        self.handler = handler

    async def route_web_socket(self, pattern: str, handler: Callable[[Ended], Awaitable[None]]) -> None:
        assert pattern == "**/*"
        self.socket_handler = handler

    async def new_page(self) -> FakePage:
        page = FakePage(self.browser, self)
        self.browser.pages.append(page)
        return page

    async def new_cdp_session(self, page: FakePage) -> Self:
        assert page.context is self
        return self

    def on(self, event: str, handler: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        assert event == "Fetch.requestPaused"
        self.paused = handler

    async def send(self, order: str, values: dict[str, Any]) -> None:
        self.sent.append((order, values))
        if order != "Fetch.enable" and self.browser.restless:
            raise OSError("the page has closed")

    async def close(self) -> None:
        self.closed += 1
        if self.browser.restless:
            raise OSError("the page has closed")


async def _asks_nothing(_: FakePage) -> None:
    pass


class FakeBrowser:
    """The browser, the program that starts it, and Playwright's entry at once.

    Attributes:
        built: the markup that scripts built.
        shown: the text that is shown.
        restless: pages never settle, and cannot be closed.
        asks: what a page does.
    """

    def __init__(self) -> None:
        self.launches: list[dict[str, Any]] = []
        self.contexts: list[FakeContext] = []
        self.pages: list[FakePage] = []
        self.opened: list[tuple[str, str, Any]] = []
        self.settled: list[tuple[str, float]] = []
        self.built, self.shown, self.restless = "<p>built", "", False
        self.asks: Callable[[FakePage], Awaitable[None]] = _asks_nothing
        self.connected = True
        self.starts = self.stops = self.closes = 0
        self.chromium = self

    async def start(self) -> Self:
        self.starts += 1
        return self

    async def stop(self) -> None:
        self.stops += 1

    async def launch(self, **options: Any) -> Self:
        self.launches.append(options)
        self.connected = True
        await asyncio.sleep(0)
        return self

    def is_connected(self) -> bool:
        return self.connected

    async def new_context(self, **options: Any) -> FakeContext:
        self.contexts.append(FakeContext(self, options))
        return self.contexts[-1]

    async def close(self) -> None:
        self.closes += 1


def put_in_place(monkeypatch: pytest.MonkeyPatch) -> FakeBrowser:
    """Has Playwright start this browser, whether it is installed or not."""
    browser = FakeBrowser()
    module = SimpleNamespace(async_playwright=lambda: browser)
    monkeypatch.setitem(sys.modules, "playwright", SimpleNamespace(async_api=module))
    monkeypatch.setitem(sys.modules, "playwright.async_api", module)
    return browser
