"""Pages that a script builds, rendered in the system's own Chromium by Playwright (the extra `render`).

The browser gets the page's markup from us, not from the origin: it is fetched once, politely, by the fetcher. Scripts and their
data come through `render_proxy`, thus through the guard, and redirects through the URL policy. Pictures, media, fonts, styles,
frames, sockets, downloads and any other document are refused; so is whatever is not a GET. Cookies and storage begin empty with
each page and end with it.
"""

import asyncio
import contextlib
import logging
import os
import shutil
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from gatewayfilter.config import CrawlSettings, RenderRule
from gatewayfilter.crawl.fetch.url_policy import may_crawl
from gatewayfilter.crawl.render.render_proxy import Budget, RenderProxy
from gatewayfilter.crawl.render.script_detection import UNUSUAL, rendering_sign
from gatewayfilter.documents.encoding.charset import decode
from gatewayfilter.errors import FetchError, UrlError
from gatewayfilter.interfaces import Page
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Playwright, Route
    from playwright.async_api import Page as RenderedPage

_log = logging.getLogger(__name__)

POOL = 2
"""Pages that are rendered at a time."""
PAGES_A_BROWSER = 50
"""Pages after which the browser is restarted: its memory only grows."""
TIME_LIMIT_S = 8.0
SETTLE_S = 3.0
"""How long a page may keep on loading after its markup was read."""
START_S = 20.0
CLOSE_S = 5.0
WAIT_S = 10.0
"""How long a page waits for a place before it is judged as it came."""
REST_S = 60.0
"""How long nothing is rendered after the browser could not be started."""
SANDBOX = True
"""Never off but in tests, which may run as root: Chromium then does not start."""
MAX_REQUESTS = 80
MAX_CONNECTIONS = 60
MAX_BYTES = 15_000_000
MAX_SHOWN = 200_000
"""Characters of shown text that are taken."""
_SHOWN_TEXT = """(() => {
    const written = [...document.querySelectorAll("*")].slice(0, 5000).flatMap(
        element => ["::before", "::after"].map(part => getComputedStyle(element, part).content)
    ).filter(text => text.length > 12 && text[0] === '"')
    return [document.body ? document.body.innerText : "", ...written].join("\\n")
})()"""
"""What the browser shows, and what its style sheets write."""
_ALLOWED = frozenset({"script", "xhr", "fetch"})
_EXECUTABLES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_HTML = frozenset({"", "text/html", "application/xhtml+xml"})
_ARGUMENTS = (
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--dns-prefetch-disable",
    "--no-first-run",
    "--no-pings",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # names are the proxy's matter
    "--js-flags=--max-old-space-size=256",
)


class RenderError(FetchError):
    """A page could not be rendered."""


def find_browser() -> str:
    """Returns the path of the system's Chromium, `""` for none. Nothing is ever downloaded."""
    return next((path for name in _EXECUTABLES if (path := shutil.which(name))), "")


def can_render() -> str:
    """Returns `""` where pages can be rendered, else what is missing."""
    if find_spec("playwright") is None:
        return "the extra 'render' is not installed (pip install 'gatewayfilter[render]')"
    return "" if find_browser() else "there is no Chromium on this machine"


def _refusal(settings: CrawlSettings) -> str:
    if os.geteuid() == 0:
        return "the filter runs as root, and Chromium has no sandbox for root: run it as a user of its own"
    return "they would go past the outbound proxies (crawl.proxies)" if settings.proxies or settings.proxies_from else ""


@contextlib.asynccontextmanager
async def renderer(settings: CrawlSettings, counters: Counters) -> "AsyncIterator[Renderer | None]":
    """Opens a renderer; `None` where `crawl.render` is off or rendering is not available, which is logged.

    Not available with outbound proxies: scripts and their data would bypass them, and reveal the crawler to origins.
    Nor as root: foreign scripts never run without Chromium's sandbox.
    """
    if settings.render is RenderRule.OFF:
        yield None
        return
    if missing := _refusal(settings) or can_render():
        _log.warning("pages are not rendered: %s", missing)
        yield None
        return
    async with Renderer(settings, counters) as opened:
        yield opened


class Renderer:
    """Renders pages; the browser starts with the first. An asynchronous context manager.

    Args:
        settings: for the guard, the URL policy, `max_bytes` and `user_agent`.
        counters: `pages_rendered` and `render_failures` are counted here.
    """

    def __init__(self, settings: CrawlSettings, counters: Counters) -> None:
        self._settings = settings
        self._counters = counters
        self._places = asyncio.Semaphore(POOL)
        self._one = asyncio.Lock()
        self._proxy = RenderProxy(settings)
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._pages = 0
        self._in_work = 0
        self._rest_until = 0.0

    async def __aenter__(self) -> Self:
        await self._proxy.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()
        if self._playwright is not None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(CLOSE_S):
                    await self._playwright.stop()
        await self._proxy.__aexit__()

    async def improved(self, page: Page) -> Page:
        """Returns the page as a script builds it, or as it came: when it needs none, or cannot be rendered. Never raises."""
        if not 200 <= page.status < 300 or page.content_type not in _HTML or not page.body:
            return page
        html = decode(page.body, page.headers.get("content-type", "")).text
        sign = rendering_sign(html)
        if not sign or time.monotonic() < self._rest_until:
            return page
        try:
            async with asyncio.timeout(WAIT_S):
                await self._places.acquire()
        except TimeoutError:
            return page
        try:
            rendered = await self.render(page.final_url, html, with_text=sign in UNUSUAL)
        except RenderError as error:
            self._counters.add("render_failures")
            _log.info("a page was not rendered: %s", error)
            return page
        finally:
            self._places.release()
        self._counters.add("pages_rendered")
        headers = {**page.headers, "content-type": "text/html; charset=utf-8"}
        return replace(page, headers=headers, body=rendered.encode("utf-8", "replace")[: self._settings.max_bytes])

    async def render(self, url: str, html: str, *, with_text: bool = False) -> str:
        """Returns the markup of a page after its scripts ran.

        Args:
            url: the page's address.
            html: its markup as it was fetched.
            with_text: whether the text that the browser shows stands before the markup.

        Raises:
            RenderError: it took too long, or the browser failed; the browser is restarted for the next page.
        """
        budget = self._proxy.admit(MAX_BYTES, MAX_CONNECTIONS)
        self._in_work += 1
        try:
            browser = await self._started()
            async with asyncio.timeout(TIME_LIMIT_S):
                return await self._in_browser(browser, url, html, budget, with_text=with_text)
        except Exception as error:
            await self._stop()
            raise RenderError(f"{type(error).__name__}: {error}".split("\n", 1)[0][:300]) from error
        finally:
            self._in_work -= 1
            self._proxy.release(budget)

    async def _in_browser(self, browser: "Browser", url: str, html: str, budget: Budget, *, with_text: bool) -> str:
        context = await browser.new_context(
            proxy={
                "server": f"http://{self._proxy.address}",
                "username": budget.user,
                "password": budget.password,
                "bypass": "<-loopback>",  # nothing goes past the proxy
            },
            user_agent=self._settings.user_agent,
            service_workers="block",
            accept_downloads=False,
        )
        try:
            await self._restrict(context, url, html)
            page = await context.new_page()
            await self._judge_redirects(context, page)
            page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.dismiss()))
            await page.goto(url, wait_until="domcontentloaded")
            with contextlib.suppress(Exception):  # a page that never rests is read as it is
                await page.wait_for_load_state("networkidle", timeout=SETTLE_S * 1000)
            shown = await page.evaluate(_SHOWN_TEXT) if with_text else ""
            return (f"<pre>{escape(str(shown)[:MAX_SHOWN])}</pre>" if shown else "") + await page.content()
        finally:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(CLOSE_S):
                    await context.close()

    async def _restrict(self, context: "BrowserContext", url: str, html: str) -> None:
        asked = 0
        served = False

        async def decide(route: "Route") -> None:
            nonlocal asked, served
            request = route.request
            asked += 1
            if not served and request.is_navigation_request() and request.url.partition("#")[0] == url:
                served = True
                await route.fulfill(body=html, content_type="text/html; charset=utf-8")
            elif asked <= MAX_REQUESTS and request.method == "GET" and self._may_load(request.url, request.resource_type):
                await route.continue_()
            else:
                await route.abort("blockedbyclient")

        await context.route("**/*", decide)
        await context.route_web_socket("**/*", lambda socket: asyncio.ensure_future(socket.close()))

    async def _judge_redirects(self, context: "BrowserContext", page: "RenderedPage") -> None:
        """Holds the targets of redirects to the same rules, for which `route` is not called."""
        session = await context.new_cdp_session(page)

        async def decide(event: dict[str, Any]) -> None:
            number, address = event["requestId"], event["request"]["url"]
            refused = "redirectedRequestId" in event and not self._may_load(address, str(event["resourceType"]).lower())
            with contextlib.suppress(Exception):  # the page has closed
                if refused:
                    await session.send("Fetch.failRequest", {"requestId": number, "errorReason": "BlockedByClient"})
                else:
                    await session.send("Fetch.continueRequest", {"requestId": number})

        session.on("Fetch.requestPaused", lambda event: asyncio.ensure_future(decide(event)))
        await session.send("Fetch.enable", {"patterns": [{"urlPattern": "*", "requestStage": "Request"}]})

    def _may_load(self, address: str, resource_type: str) -> bool:
        """Returns whether a page may load a URL; scripts are named by digests, which resemble secrets: the guard is enough."""
        if resource_type not in _ALLOWED:
            return False
        try:
            url = parse_url(address)
        except UrlError:
            return False
        return resource_type == "script" or not may_crawl(url, self._settings)

    async def _started(self) -> "Browser":
        async with self._one:
            if self._browser is not None and (not self._browser.is_connected() or self._is_old()):
                await self._stop()
            if self._browser is None:
                try:
                    async with asyncio.timeout(START_S):
                        self._browser = await self._launched()
                except Exception:
                    self._rest_until = time.monotonic() + REST_S
                    raise
                self._pages = 0
            self._pages += 1
            return self._browser

    def _is_old(self) -> bool:
        return self._pages >= PAGES_A_BROWSER and self._in_work <= 1

    async def _launched(self) -> "Browser":
        from playwright.async_api import async_playwright  # noqa: PLC0415  an optional extra that takes 0.3 s to import

        if self._playwright is None:
            self._playwright = await async_playwright().start()
        return await self._playwright.chromium.launch(
            executable_path=find_browser(),
            args=list(_ARGUMENTS),
            chromium_sandbox=SANDBOX,
            proxy={"server": f"http://{self._proxy.address}", "bypass": "<-loopback>"},
            env={name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG", "TMPDIR"}},
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )

    async def _stop(self) -> None:
        browser, self._browser = self._browser, None
        if browser is not None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(CLOSE_S):
                    await browser.close()
