"""A real browser through the real proxy: what it says of each request, and what it makes of our answers."""

import asyncio
import hashlib
import os
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gatewayfilter.config import CrawlSettings, ProxySettings, Settings
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.interfaces import UnblockRequest
from gatewayfilter.model import Explanation, LogRecord, Request, ResourceType, Verdict
from gatewayfilter.proxy.addon import GatewayAddon
from gatewayfilter.proxy.filter_services import FilterServices
from gatewayfilter.proxy.master import LeanMaster
from gatewayfilter.proxy.pages.block_page import BlockPages
from gatewayfilter.proxy.pages.own_requests import OwnRequests
from gatewayfilter.proxy.pages.theme import PageTheme
from gatewayfilter.proxy.request.unblock_form import UnblockForm
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.telemetry import Counters
from gatewayfilter.wiring import engine_for_lists
from tests.e2e.browser_site import BrowserSite, browser_site
from tests.e2e.chromium import ANSWER_S, BINARY, Chromium, chromium

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(BINARY is None, reason="Chromium is not installed"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

RULES = """
/ads/*$third-party
/stub/analytics.js$script,redirect=google-analytics_analytics.js
/stub/film.mp4$media,redirect=noop-1s.mp4
/stub/sound.mp3$media,redirect=noop-0.1s.mp3
/stub/pixel.png$image,redirect=3x2.png
/forbidden$document
127.0.0.1##.advert
"""
EXPECTED = {
    "/page": ResourceType.DOCUMENT,
    "/style.css": ResourceType.STYLESHEET,
    "/font.woff2": ResourceType.FONT,
    "/image.png": ResourceType.IMAGE,
    "/favicon.ico": ResourceType.IMAGE,
    "/frame.html": ResourceType.SUBDOCUMENT,
    "/object.html": ResourceType.OBJECT,
    "/embed.html": ResourceType.OBJECT,
    "/sound.mp3": ResourceType.MEDIA,
    "/film.mp4": ResourceType.MEDIA,
    "/script.js": ResourceType.SCRIPT,
    "/worker.js": ResourceType.SCRIPT,
    "/data.json": ResourceType.XMLHTTPREQUEST,
    "/xhr.txt": ResourceType.XMLHTTPREQUEST,
    "/events": ResourceType.XMLHTTPREQUEST,
    "/beacon": ResourceType.PING,
    "/ping": ResourceType.PING,
    "/socket": ResourceType.WEBSOCKET,
    "/ads/script.js": ResourceType.SCRIPT,
    "/ads/banner.png": ResourceType.IMAGE,
    "/ads/frame.html": ResourceType.SUBDOCUMENT,
    "/ads/data.json": ResourceType.XMLHTTPREQUEST,
    "/stub/film.mp4": ResourceType.MEDIA,
}
STRICT = (
    "default-src 'self' 'unsafe-inline'; style-src 'none'; img-src *; script-src * 'unsafe-inline'; "
    "connect-src *; media-src *; frame-src *; font-src *; worker-src *; object-src *"
)
OPTIONAL = {"/favicon.ico"}
"""What a headless browser may leave out."""


class Watching:
    """The engine, with a list of what it was asked."""

    def __init__(self, engine: FilterEngine) -> None:
        self._engine = engine
        self.asked: list[Request] = []
        self.more = asyncio.Event()
        self.requests: list[UnblockRequest] = []

    def decide(self, request: Request) -> Verdict:
        self.asked.append(request)
        self.more.set()
        return self._engine.decide(request)

    def take(self, request: UnblockRequest) -> bool:
        self.requests.append(request)
        return True

    def explain(self, request: Request) -> Explanation:
        return self._engine.explain(request)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[BrowserSite]:
    async with browser_site(tmp_path) as found:
        yield found


@pytest.fixture
def engine(tmp_path: Path) -> FilterEngine:
    (tmp_path / "rules.txt").write_text(f"[Adblock Plus 2.0]\n{RULES}")
    return engine_for_lists([tmp_path / "rules.txt"])


@pytest.fixture
def watching(engine: FilterEngine) -> Watching:
    return Watching(engine)


@pytest.fixture
async def browser(tmp_path: Path, site: BrowserSite, engine: FilterEngine, watching: Watching) -> AsyncIterator[Chromium]:
    settings = Settings(
        data_dir=tmp_path / "state",
        proxy=ProxySettings(listen="127.0.0.1:0", upstream_ca=tmp_path / "origin-ca.pem"),
        crawl=CrawlSettings(allow_networks=("127.0.0.0/8",)),
    )
    records: list[LogRecord] = []
    counters = Counters()
    own = OwnRequests(b"k" * 32, engine, str, lambda: 0.0)
    pages = BlockPages(PageTheme.built_in("Lindenhof School"), own_requests=own)
    addon = GatewayAddon(
        settings,
        FilterServices(
            watching,
            recorder=DecisionRecorder(records.append),
            changes=engine,
            unblock_form=UnblockForm(engine, watching.take, lambda _: True, own, counters, lambda: 0.0, pages),
            pages=pages,
        ),
        counters,
    )
    master = LeanMaster(settings, addon)
    await master.start()
    authority = x509.load_pem_x509_certificate((tmp_path / "state" / "ca" / "mitmproxy-ca-cert.pem").read_bytes())
    key = authority.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    host, port = master.address
    try:
        async with chromium(
            tmp_path / "profile", f"http://{host}:{port}", b64encode(hashlib.sha256(key).digest()).decode()
        ) as found:
            yield found
    finally:
        await master.stop(0.2)


def by_path(watching: Watching) -> dict[str, Request]:
    """What the engine was asked of the site, by path."""
    return {request.url.path: request for request in watching.asked if request.url.host in {"127.0.0.1", "localhost"}}


def shown(name: str) -> Path | None:
    """Where screenshots go, when somebody wants to look at them."""
    folder = os.environ.get("GATEWAYFILTER_TEST_SCREENSHOTS")
    return Path(folder) / f"{name}.png" if folder else None


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    "policy",
    [
        "",
        STRICT,
    ],
)
async def test_a_page_that_loads_everything(
    policy: str, scheme: str, browser: Chromium, site: BrowserSite, watching: Watching
) -> None:
    site.policy = policy
    base = site.http if scheme == "http" else site.https
    tab = await browser.tab()
    await tab.go(f"{base}/page")
    out = await tab.evaluate("everything()")
    kept_away = {"/style.css", "/font.woff2"} if policy else set()  # by the page's own policy
    async with asyncio.timeout(ANSWER_S):  # nothing on the page tells when a ping or a beacon was sent
        while not EXPECTED.keys() - OPTIONAL - kept_away <= (asked := by_path(watching)).keys():
            watching.more.clear()
            await watching.more.wait()
    expected = {
        path: kind for path, kind in EXPECTED.items() if path not in kept_away and (path in asked or path not in OPTIONAL)
    }
    assert {path: asked[path].resource_type for path in expected} == expected
    for path, request in asked.items():
        if path not in {"/page", "/socket", "/manifest.json", "/favicon.ico"}:
            assert request.source is not None, path
            assert request.source.host == "127.0.0.1", path
    assert {path for path in site.seen if path.startswith(("/ads/", "/stub/"))} == set()
    assert out["ran"] == ["script.js"]
    assert out["hidden"] == "none"
    assert out["shown"] == "block"
    assert (out["fetch"], out["xhr"], out["worker"], out["socket"], out["events"]) == (200, 200, "works", "echo hi", "event")
    assert out["blockedFetch"] == 403  # readable: no CORS error beside it
    assert out["image"] == 1
    assert (out["film"], out["sound"], out["pixel"], out["stub"]) == (1, True, "3x2", "called")
    assert out["failures"] == ([] if not policy else out["failures"])
    assert [message for message in tab.messages if message.startswith("exception")] == []


@pytest.mark.parametrize("language", ["en", "zh-CN"])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_the_block_page_and_its_button(
    language: str, scheme: str, browser: Chromium, site: BrowserSite, watching: Watching
) -> None:
    base = site.http if scheme == "http" else site.https
    tab = await browser.tab(accept_language=language)
    await tab.go(f"{base}/forbidden")
    assert await tab.evaluate("document.documentElement.lang") == ("en" if language == "en" else "zh-Hans")
    assert "/forbidden$document" in await tab.evaluate("document.body.innerText")
    style = await tab.evaluate("getComputedStyle(document.querySelector('main')).borderRadius")
    assert style == "16px"  # its style sheet passes its own policy
    assert site.seen == []
    assert [message for message in tab.messages if "403" not in message] == []
    if (path := shown(f"block-{scheme}-{language}")) is not None:
        await asyncio.sleep(0.2)
        await tab.screenshot(path)
    await tab.evaluate("document.querySelector('input[name=comment]').value = 'for school'")
    tab.loaded.clear()
    await tab.evaluate("document.querySelector('button').click()")
    async with asyncio.timeout(ANSWER_S):
        await tab.loaded.wait()
    assert await tab.evaluate("document.title") == ("Your request was noted" if language == "en" else "您的申请已记录")
    assert [(request.url, request.comment) for request in watching.requests] == [(f"{base}/forbidden", "for school")]
    assert site.seen == []
    if (path := shown(f"asked-{scheme}-{language}")) is not None:
        await tab.screenshot(path)
