"""Rendering in the real Chromium, against an origin on loopback."""

import asyncio
import os
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import cast

import pytest

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl import CrawlContext, ForegroundCrawl
from gatewayfilter.crawl.render import renderer as rendering
from gatewayfilter.crawl.render.renderer import Renderer, RenderError, can_render, find_browser, renderer
from gatewayfilter.interfaces import Page
from gatewayfilter.telemetry import Counters
from tests.crawl.crawl_fakes import FakeFrontier, FakeSink
from tests.crawl.crawl_origin import Origin, loopback_settings, reply
from tests.crawl.render.real_browser import be_patient

pytestmark = pytest.mark.timeout(300)
real = pytest.mark.real
needs_browser = pytest.mark.skipif(bool(can_render()), reason=can_render() or "can render")


@pytest.fixture(autouse=True)
def without_sandbox_for_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests run as root too, to whom Chromium refuses its sandbox; the pages here are ours."""
    monkeypatch.setattr(rendering, "SANDBOX", os.geteuid() != 0)
    be_patient(monkeypatch)
    monkeypatch.setattr("gatewayfilter.crawl.render.renderer.os.geteuid", lambda: 1000)


APP = (
    """fetch('/data.json').then(r => r.text()).then(text => { document.getElementById('root').textContent = 'built ' + text })"""
)
SHELL = "<html><body><div id=root></div>{}<script src=/app.js></script></body></html>"


def page_of(origin: Origin, html: str) -> Page:
    url = origin.url("/shop")
    return Page(url, url, 200, {"content-type": "text/html"}, html.encode())


@pytest.fixture
async def browser() -> AsyncIterator[Renderer]:
    async with Renderer(loopback_settings(render="auto"), Counters()) as opened:
        yield opened


def answers(origin: Origin, script: str = APP) -> None:
    origin.answers["/app.js"] = reply(script.encode(), "Set-Cookie: a=b", content_type="text/javascript")
    origin.answers["/data.json"] = reply(b"casino", content_type="application/json")


@real
@needs_browser
async def test_a_page_that_a_script_builds_is_read(origin: Origin, browser: Renderer) -> None:
    answers(origin)
    rendered = await browser.improved(
        page_of(origin, SHELL.format("<img src=/i.png><link rel=stylesheet href=/s.css><iframe src=/f></iframe>"))
    )
    assert b"built casino" in rendered.body
    assert sorted(origin.requests) == ["/app.js", "/data.json"]
    await browser.improved(page_of(origin, SHELL.format("")))
    firsts = [head for head in origin.heads if head.startswith("GET /app.js")]
    assert len(firsts) == 2
    assert not any("cookie" in head.lower() for head in firsts)  # none came over from the first page


@real
@needs_browser
async def test_text_that_style_sheets_show_is_read(origin: Origin, browser: Renderer) -> None:
    sheet = "<style>p::before{content:attr(title)} [hidden]{display:block} .x{display:none}</style>"
    html = f"{sheet}<p title='roulette bonus'></p><div hidden>casino & jackpot</div><div class=x>poker</div>"
    shown = (await browser.improved(page_of(origin, html))).body.partition(b"</pre>")[0]
    assert b"roulette bonus" in shown
    assert b"casino &amp; jackpot" in shown
    assert b"poker" not in shown


@real
@needs_browser
async def test_scripts_reach_nothing_internal_and_change_nothing(origin: Origin) -> None:
    inside = Origin()
    server = await asyncio.start_server(inside.serve, "127.0.0.2", 0)
    inside.port = server.sockets[0].getsockname()[1]
    inside.answers["/script.js"] = reply(b"", content_type="text/javascript")
    script = f"""
        fetch('http://localhost:{origin.port}/secret'); fetch('/logout'); fetch('/post', {{method: 'POST', body: 'x'}});
        fetch('http://127.0.0.2:{inside.port}/other'); new WebSocket('ws://127.0.0.1:{origin.port}/socket');
        navigator.sendBeacon('/beacon'); window.open('/window'); const s = document.createElement('script');
        s.src = 'http://127.0.0.2:{inside.port}/script.js'; document.body.append(s);
        setTimeout(() => {{ document.getElementById('root').textContent = 'done'; location = '/elsewhere' }}, 300)
    """
    answers(origin, script)
    settings = loopback_settings(render="auto", allow_networks=("127.0.0.1/32",), allow_ports=(origin.port,))
    async with Renderer(settings, Counters()) as browser:
        html = await browser.render(origin.url("/shop"), SHELL.format(""))
    assert "done" in html
    assert set(origin.requests) <= {"/app.js", "/secret"}  # localhost is 127.0.0.1 here, which the settings let pass
    assert inside.requests == []
    async with Renderer(loopback_settings(render="auto"), Counters()) as browser:  # where the settings let it, the script is read
        await browser.render(origin.url("/shop"), SHELL.format(""))
    assert "/script.js" in inside.requests
    server.close()


@real
@needs_browser
async def test_redirects_of_scripts_meet_the_url_policy(origin: Origin, browser: Renderer) -> None:
    fetches = " ".join(f"await fetch('/{name}').then(r => r.text()).catch(() => '');" for name in ("first", "second"))
    answers(origin, f"(async () => {{ {fetches} document.getElementById('root').textContent = 'done' }})()")
    origin.answers["/first"] = reply(b"", "Location: /logout", status="302 Found")
    origin.answers["/second"] = reply(b"", "Location: /data.json", status="302 Found")
    assert "done" in await browser.render(origin.url("/shop"), SHELL.format(""))
    assert sorted(origin.requests) == ["/app.js", "/data.json", "/first", "/second"]


@real
@needs_browser
async def test_a_page_that_hangs_is_given_up_and_the_next_is_rendered(
    origin: Origin, browser: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "TIME_LIMIT_S", 4.0)
    answers(origin, "for (;;) {}")
    with pytest.raises(RenderError):
        await browser.render(origin.url("/shop"), SHELL.format(""))
    answers(origin)
    be_patient(monkeypatch)
    assert "built casino" in await browser.render(origin.url("/shop"), SHELL.format(""))


@real
@needs_browser
async def test_the_browser_is_started_anew_and_nothing_is_kept(
    origin: Origin, browser: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "PAGES_A_BROWSER", 1)
    answers(origin, "document.getElementById('root').textContent = 'was ' + localStorage.x; localStorage.x = 1")
    seen = []
    for _ in range(2):
        assert "was undefined" in await browser.render(origin.url("/shop"), SHELL.format(""))
        seen.append(browser._browser)
    assert seen[0] is not seen[1]


async def test_pages_that_speak_for_themselves_need_no_browser(origin: Origin) -> None:
    async with Renderer(loopback_settings(render="auto"), Counters()) as browser:
        for page in (
            page_of(origin, "<p>words"),
            Page("http://a.example/", "http://a.example/", 404, {}, b"<div id=root><script>"),
        ):
            assert await browser.improved(page) is page
        assert browser._browser is None


async def test_a_browser_that_does_not_start_leaves_pages_as_they_came(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    counters = Counters()
    starts = 0

    async def fails(_: Renderer) -> None:
        nonlocal starts
        starts += 1
        raise OSError("no display")

    monkeypatch.setattr(Renderer, "_launched", fails)
    async with Renderer(loopback_settings(render="auto"), counters) as browser:
        page = page_of(origin, SHELL.format(""))
        assert await browser.improved(page) is page
        assert await browser.improved(page) is page
    assert (starts, counters["render_failures"]) == (1, 1)


async def test_off_and_missing(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    async with renderer(CrawlSettings(), Counters()) as nothing:
        assert nothing is None
    monkeypatch.setattr(rendering, "find_browser", lambda: "")
    async with renderer(loopback_settings(render="auto"), Counters()) as nothing:
        assert nothing is None
    assert "not rendered" in caplog.text


async def test_nothing_is_rendered_as_root(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A page's scripts would run without Chromium's sandbox."""
    monkeypatch.setattr("gatewayfilter.crawl.render.renderer.os.geteuid", lambda: 0)
    monkeypatch.setattr(rendering, "can_render", lambda: "")
    async with renderer(loopback_settings(render="auto"), Counters()) as nothing:
        assert nothing is None
    assert "runs as root" in caplog.text


@real
@needs_browser
@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
async def test_chromium_itself_does_not_start_for_root(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "SANDBOX", True)
    async with Renderer(loopback_settings(render="auto"), Counters()) as browser:
        with pytest.raises(RenderError):
            await browser.render(origin.url("/shop"), SHELL.format(""))


@pytest.mark.parametrize("setting", [{"proxies": ("127.0.0.1:9",)}, {"proxies_from": ("/nowhere",)}])
async def test_nothing_is_rendered_past_outbound_proxies(setting: dict[str, object], caplog: pytest.LogCaptureFixture) -> None:
    async with renderer(loopback_settings(render="auto", **setting), Counters()) as nothing:
        assert nothing is None
    assert "past the outbound proxies" in caplog.text


async def test_pages_wait_for_a_place_only_so_long(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "WAIT_S", 0.05)
    entered = asyncio.Event()

    async def stays(*_: object, **__: object) -> str:
        entered.set()
        await asyncio.Event().wait()
        return ""

    monkeypatch.setattr(Renderer, "render", stays)
    async with Renderer(loopback_settings(render="auto"), Counters()) as browser:
        page = page_of(origin, SHELL.format(""))
        busy = [asyncio.create_task(browser.improved(page)) for _ in range(rendering.POOL)]
        await entered.wait()
        assert await browser.improved(page) is page
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)


@real
@needs_browser
async def test_the_worker_judges_what_the_browser_saw(origin: Origin) -> None:
    answers(origin)
    origin.answers["/shop"] = reply(SHELL.format("").encode())
    for rule in ("off", "auto"):
        sink = FakeSink()
        settings = loopback_settings(render=rule, timeout_s=60.0)
        (outcome,) = await ForegroundCrawl(CrawlContext(FakeFrontier(), sink, settings, Counters())).run([origin.url("/shop")])
        assert outcome.status == 200
        assert (b"built casino" in sink.pages[0].body) is (rule == "auto")


@pytest.mark.parametrize(
    ("address", "kind", "may"),
    [
        ("http://site.test/page", "fetch", True),
        ("http://site.test/page", "image", False),
        ("http://site.test/logout", "fetch", False),
        ("http://site.test/logout", "script", True),
        ("http://[", "fetch", False),
        ("http://[", "script", False),
    ],
)
def test_what_a_page_may_load(address: str, kind: str, *, may: bool) -> None:
    assert Renderer._may_load(cast("Renderer", SimpleNamespace(_settings=CrawlSettings())), address, kind) is may


def test_the_first_browser_that_is_installed_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"google-chrome": "/opt/chrome"}
    monkeypatch.setattr("gatewayfilter.crawl.render.renderer.shutil.which", installed.get)
    assert find_browser() == "/opt/chrome"
    installed["chromium"] = "/usr/bin/chromium"
    assert find_browser() == "/usr/bin/chromium"
    installed.clear()
    assert find_browser() == ""


@pytest.mark.parametrize(
    ("installed", "browser", "missing"),
    [(False, "/usr/bin/chromium", "extra 'render'"), (True, "", "no Chromium"), (True, "/usr/bin/chromium", "")],
)
def test_what_is_missing_for_rendering(monkeypatch: pytest.MonkeyPatch, browser: str, missing: str, *, installed: bool) -> None:
    monkeypatch.setattr(rendering, "find_spec", lambda _: object() if installed else None)
    monkeypatch.setattr(rendering, "find_browser", lambda: browser)
    assert missing in can_render()
    assert bool(can_render()) is bool(missing)
