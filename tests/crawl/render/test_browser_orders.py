"""What the rendering browser is told, without a browser: how it starts, what a page may ask for, when it ends."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from gatewayfilter.crawl.render import renderer as rendering
from gatewayfilter.crawl.render.renderer import Renderer, RenderError
from gatewayfilter.interfaces import Page
from gatewayfilter.telemetry import Counters
from tests.crawl.crawl_origin import loopback_settings
from tests.crawl.render.fake_browser import Ended, FakeBrowser, FakePage, FakeRoute, put_in_place

URL = "http://shop.example/a"
SHELL = "<html><body><div id=root></div><script src=/app.js></script></body></html>"


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> FakeBrowser:
    monkeypatch.setattr(rendering, "find_browser", lambda: "/usr/bin/chromium")
    return put_in_place(monkeypatch)


@pytest.fixture
async def opened(browser: FakeBrowser) -> AsyncIterator[Renderer]:
    async with Renderer(loopback_settings(render="auto", user_agent="crawler/1"), Counters()) as renderer:
        yield renderer


async def test_it_starts_confined_and_with_the_proxy_as_its_only_way_out(
    browser: FakeBrowser, opened: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.environ", {"PATH": "/bin", "HOME": "/h", "LANG": "C", "TMPDIR": "/t", "http_proxy": "x", "KEY": "y"})
    await opened.render(URL, SHELL)
    way_out = {"server": f"http://{opened._proxy.address}", "bypass": "<-loopback>"}
    (options,) = browser.launches
    assert "--disable-quic" in options.pop("args")
    assert options == {
        "executable_path": "/usr/bin/chromium",
        "chromium_sandbox": True,
        "proxy": way_out,
        "env": {"PATH": "/bin", "HOME": "/h", "LANG": "C", "TMPDIR": "/t"},
        "handle_sigint": False,
        "handle_sigterm": False,
        "handle_sighup": False,
    }
    (context,) = browser.contexts
    proxy = context.options.pop("proxy")
    assert proxy.pop("username")
    assert proxy.pop("password")
    assert proxy == way_out
    assert context.options == {"user_agent": "crawler/1", "service_workers": "block", "accept_downloads": False}


async def test_each_page_has_credentials_of_its_own_that_end_with_it(browser: FakeBrowser, opened: Renderer) -> None:
    live: list[set[str]] = []

    async def look(page: FakePage) -> None:
        live.append(set(opened._proxy._budgets))

    browser.asks = look
    for _ in range(2):
        await opened.render(URL, SHELL)
    assert live == [{context.options["proxy"]["username"]} for context in browser.contexts]
    assert live[0] != live[1]
    assert not opened._proxy._budgets
    assert [context.closed for context in browser.contexts] == [1, 1]


async def test_the_page_is_served_from_what_was_fetched_once(browser: FakeBrowser, opened: Renderer) -> None:
    again = FakeRoute(URL, "document", navigation=True)
    browser.asks = lambda page: page.context.handler(again)
    assert await opened.render(URL, SHELL) == "<p>built"
    served = {"body": SHELL, "content_type": "text/html; charset=utf-8"}
    assert browser.opened == [(URL, "domcontentloaded", served)]
    assert again.end == "blockedbyclient"
    assert browser.settled == [("networkidle", 3000.0)]
    assert browser.pages[0].evaluated == []


async def test_the_fragment_of_the_page_changes_nothing(browser: FakeBrowser, opened: Renderer) -> None:
    ends = []
    for route in (
        FakeRoute(URL, "fetch"),  # not the navigation
        FakeRoute("http://other.example/", "document", navigation=True),
        FakeRoute(f"{URL}#top", "document", navigation=True),
        FakeRoute(URL, "document", navigation=True),
    ):
        fresh = await _restricted(opened, browser)
        await fresh(route)
        ends.append("served" if isinstance(route.end, dict) else route.end)
    assert ends == ["continued", "blockedbyclient", "served", "served"]


async def _restricted(opened: Renderer, browser: FakeBrowser) -> Any:
    """Returns what judges the requests of a page that has not been asked for."""
    context = await browser.new_context()
    await opened._restrict(cast("Any", context), URL, SHELL)
    return context.handler


@pytest.mark.parametrize(
    ("route", "end"),
    [
        (FakeRoute("http://cdn.example/app.js", "script"), "continued"),
        (FakeRoute("http://shop.example/data", "xhr"), "continued"),
        (FakeRoute("http://shop.example/data", "fetch"), "continued"),
        (FakeRoute("http://shop.example/data", "fetch", "POST"), "blockedbyclient"),
        (FakeRoute("http://shop.example/logout", "fetch"), "blockedbyclient"),
        (FakeRoute("http://shop.example/a.png", "image"), "blockedbyclient"),
        (FakeRoute("http://shop.example/frame", "document"), "blockedbyclient"),
    ],
)
async def test_what_a_page_asks_for(browser: FakeBrowser, opened: Renderer, route: FakeRoute, end: str) -> None:
    browser.asks = lambda page: page.context.handler(route)
    await opened.render(URL, SHELL)
    assert route.end == end


async def test_a_page_asks_for_so_many_things_only(browser: FakeBrowser, opened: Renderer) -> None:
    routes = [FakeRoute(f"http://shop.example/{number}") for number in range(rendering.MAX_REQUESTS + 2)]

    async def asks_much(page: FakePage) -> None:
        for route in routes:
            await page.context.handler(route)

    browser.asks = asks_much
    await opened.render(URL, SHELL)
    may = rendering.MAX_REQUESTS - 1  # the page itself is the first
    assert [route.end for route in routes] == ["continued"] * may + ["blockedbyclient"] * (len(routes) - may)


async def test_dialogs_and_sockets_are_ended(browser: FakeBrowser, opened: Renderer) -> None:
    dialog, socket = Ended(), Ended()

    async def bothers(page: FakePage) -> None:
        await page.handlers["dialog"](dialog)
        await page.context.socket_handler(socket)

    browser.asks = bothers
    await opened.render(URL, SHELL)
    assert (dialog.ends, socket.ends) == (1, 1)


PAUSED = [
    ({"redirectedRequestId": "0"}, "http://shop.example/data", "XHR", True),
    ({"redirectedRequestId": "0"}, "http://shop.example/logout", "XHR", False),
    ({"redirectedRequestId": "0"}, "http://shop.example/frame", "Document", False),
    ({}, "http://shop.example/logout", "XHR", True),  # `route` was asked about it
]


@pytest.mark.parametrize(("redirected", "address", "kind", "may"), PAUSED)
async def test_redirects_meet_the_same_rules(
    browser: FakeBrowser, opened: Renderer, redirected: dict[str, str], address: str, kind: str, *, may: bool
) -> None:
    event = {"requestId": "7", "request": {"url": address}, "resourceType": kind, **redirected}
    browser.asks = lambda page: page.context.paused(event)
    await opened.render(URL, SHELL)
    enabled = ("Fetch.enable", {"patterns": [{"urlPattern": "*", "requestStage": "Request"}]})
    if may:
        order: tuple[str, dict[str, str]] = ("Fetch.continueRequest", {"requestId": "7"})
    else:
        order = ("Fetch.failRequest", {"requestId": "7", "errorReason": "BlockedByClient"})
    assert browser.contexts[0].sent == [enabled, order]


async def test_a_page_that_never_rests_is_read_as_it_is(browser: FakeBrowser, opened: Renderer) -> None:
    browser.restless = True
    event = {"requestId": "7", "request": {"url": URL}, "resourceType": "XHR"}
    browser.asks = lambda page: page.context.paused(event)
    assert await opened.render(URL, SHELL) == "<p>built"
    assert browser.contexts[0].closed == 1
    assert browser.closes == 0


async def test_shown_text_stands_first_up_to_a_bound(
    browser: FakeBrowser, opened: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "MAX_SHOWN", 8)
    browser.shown = "a & casino"
    assert await opened.render(URL, SHELL, with_text=True) == "<pre>a &amp; casi</pre><p>built"
    browser.shown = ""
    assert await opened.render(URL, SHELL, with_text=True) == "<p>built"
    assert len(browser.pages[0].evaluated) == 1


async def test_what_fails_is_told_in_one_line_and_the_browser_starts_anew(browser: FakeBrowser, opened: Renderer) -> None:
    async def fails(page: FakePage) -> None:
        raise OSError("x" * 400 + "\nmore")

    browser.asks = fails
    with pytest.raises(RenderError) as told:
        await opened.render(URL, SHELL)
    assert str(told.value) == ("OSError: " + "x" * 400)[:300]
    assert (browser.closes, browser.contexts[0].closed) == (1, 1)
    assert not opened._proxy._budgets

    async def fails_soon(page: FakePage) -> None:
        raise OSError("first\nsecond")

    browser.asks = fails_soon
    with pytest.raises(RenderError, match=r"^OSError: first$"):
        await opened.render(URL, SHELL)
    assert (len(browser.launches), browser.starts) == (2, 1)


async def test_a_page_that_hangs_is_given_up(browser: FakeBrowser, opened: Renderer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "TIME_LIMIT_S", 0.01)

    async def hangs(page: FakePage) -> None:
        await asyncio.Event().wait()

    browser.asks = hangs
    with pytest.raises(RenderError, match="TimeoutError"):
        await opened.render(URL, SHELL)


async def test_it_is_restarted_after_so_many_pages_while_no_other_is_in_work(
    browser: FakeBrowser, opened: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "PAGES_A_BROWSER", 3)
    launches = []
    for _ in range(7):
        await opened.render(URL, SHELL)
        launches.append(len(browser.launches))
    assert launches == [1, 1, 1, 2, 2, 2, 3]
    assert browser.closes == 2


async def test_it_is_not_restarted_below_a_page(browser: FakeBrowser, opened: Renderer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "PAGES_A_BROWSER", 1)
    asks_nothing = browser.asks

    async def while_another_is_in_work(_: FakePage) -> None:
        browser.asks = asks_nothing
        await opened.render(URL, SHELL)

    browser.asks = while_another_is_in_work
    await opened.render(URL, SHELL)
    assert (len(browser.contexts), len(browser.launches)) == (2, 1)
    await opened.render(URL, SHELL)
    assert len(browser.launches) == 2


async def test_a_browser_that_is_gone_is_replaced(browser: FakeBrowser, opened: Renderer) -> None:
    await opened.render(URL, SHELL)
    browser.connected = False
    await opened.render(URL, SHELL)
    assert (len(browser.launches), browser.starts) == (2, 1)


async def test_it_ends_with_its_browser_and_proxy(browser: FakeBrowser) -> None:
    async with Renderer(loopback_settings(render="auto"), Counters()) as opened:
        await opened.render(URL, SHELL)
        host, _, port = opened._proxy.address.partition(":")
    assert (browser.closes, browser.stops) == (1, 1)
    with pytest.raises(OSError, match=r"refused|failed"):
        await asyncio.open_connection(host, int(port))
    async with Renderer(loopback_settings(render="auto"), Counters()):
        pass
    assert (browser.closes, browser.stops) == (1, 1)


def page(status: int = 200, kind: str = "text/html", body: str = SHELL) -> Page:
    return Page(URL, URL, status, {"content-type": kind, "x-kept": "1"} if kind else {}, body.encode())


@pytest.mark.parametrize(
    ("fetched", "rendered"),
    [
        (page(), True),
        (page(299), True),
        (page(199), False),
        (page(300), False),
        (page(kind=""), True),
        (page(kind="application/xhtml+xml"), True),
        (page(kind="text/plain"), False),
        (page(body=""), False),
        (page(body="<p>words"), False),
    ],
)
async def test_which_pages_are_rendered(browser: FakeBrowser, opened: Renderer, fetched: Page, *, rendered: bool) -> None:
    improved = await opened.improved(fetched)
    assert (improved is not fetched) is rendered
    assert (improved.body == b"<p>built") is rendered
    assert opened._counters["pages_rendered"] == rendered
    if rendered:
        assert improved.headers["content-type"] == "text/html; charset=utf-8"
        assert improved.headers.get("x-kept") == fetched.headers.get("x-kept")


async def test_a_rendered_page_is_bounded_and_may_have_odd_characters(browser: FakeBrowser) -> None:
    browser.built = "<p>\ud800 words"
    async with Renderer(loopback_settings(render="auto", max_bytes=1_024), Counters()) as opened:
        assert (await opened.improved(page())).body == b"<p>? words"
        browser.built = "x" * 2_000
        assert (await opened.improved(page())).body == b"x" * 1_024


async def test_places_are_given_back(browser: FakeBrowser, opened: Renderer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "WAIT_S", 0.01)

    async def fails(_: FakePage) -> None:
        raise OSError("gone")

    browser.asks = fails
    for _ in range(rendering.POOL + 1):
        assert (await opened.improved(page())).body == SHELL.encode()
    assert opened._counters["render_failures"] == rendering.POOL + 1


async def test_after_a_start_that_failed_nothing_is_rendered_for_a_while(
    browser: FakeBrowser, opened: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr("gatewayfilter.crawl.render.renderer.time.monotonic", lambda: clock[0])

    async def fails(**_: object) -> FakeBrowser:
        raise OSError("no display")

    launch = browser.launch
    monkeypatch.setattr(browser, "launch", fails)
    assert (await opened.improved(page())).body == SHELL.encode()
    monkeypatch.setattr(browser, "launch", launch)
    clock[0] += rendering.REST_S - 1
    assert (await opened.improved(page())).body == SHELL.encode()
    clock[0] += 1
    assert (await opened.improved(page())).body == b"<p>built"


async def test_the_text_that_is_shown_is_read_where_the_markup_is_unusual(browser: FakeBrowser, opened: Renderer) -> None:
    browser.shown = "casino"
    assert (await opened.improved(page())).body == b"<p>built"
    sheet = "<style>p::before{content:attr(title)}</style><p title=casino></p>"
    assert (await opened.improved(page(body=sheet))).body == b"<pre>casino</pre><p>built"
