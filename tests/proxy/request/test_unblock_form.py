"""The button of the block page, and how block pages look."""

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
import pytest

from gatewayfilter.config import ProxySettings
from gatewayfilter.errors import StartupError
from gatewayfilter.interfaces import UnblockRequest
from gatewayfilter.model import Action, Reason, Request, ResourceType, Verdict
from gatewayfilter.proxy.pages.block_page import ASK_PATH, BlockPages
from gatewayfilter.proxy.pages.theme import PageTheme
from gatewayfilter.proxy.request.unblock_form import MOST_BYTES, UnblockForm
from gatewayfilter.urls import parse_url
from tests.proxy.conftest import StartGateway
from tests.proxy.proxy_fakes import BLOCK, Gateway, Origin

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture
def asked() -> list[UnblockRequest]:
    return []


@pytest.fixture
async def desk(start_gateway: StartGateway, asked: list[UnblockRequest]) -> AsyncIterator[Gateway]:
    def take(request: UnblockRequest) -> bool:
        asked.append(request)
        return len(asked) < 3

    async with start_gateway() as gateway:
        addon = gateway.master.addons.get("gatewayfilter")
        addon._requests._unblock_form = UnblockForm(
            gateway.decide, take, lambda address: f"#{address}", gateway.counters, lambda: 7.0, addon.pages
        )
        yield gateway


async def ask(
    gateway: Gateway, client: aiohttp.ClientSession, base: str, form: dict[str, str], **headers: str
) -> tuple[int, str]:
    sent = {
        "content-type": "application/x-www-form-urlencoded",
        **{name.replace("_", "-"): text for name, text in headers.items()},
    }
    async with client.post(f"{base}{ASK_PATH}", data=urlencode(form).encode(), proxy=gateway.url, headers=sent) as response:
        return response.status, response.headers["x-gatewayfilter"]


async def test_a_request_is_taken_and_never_reaches_the_site(
    desk: Gateway, asked: list[UnblockRequest], origin: Origin, client: aiohttp.ClientSession
) -> None:
    form = {"url": f"{origin.http}/blocked?x=1", "comment": "  for\x00 school\n please "}
    assert await ask(desk, client, origin.http, form, origin=origin.http, sec_fetch_site="same-origin") == (
        200,
        "notice; reason=asked",
    )
    assert asked == [
        UnblockRequest(form["url"], "#127.0.0.1", "blacklist", "test", "blocked.example", "gambling", "for school please", 7.0)
    ]
    assert origin.seen == []
    assert desk.counters["unblock_requests"] == 1
    assert desk.counters["requests"] == 0


@pytest.mark.parametrize(
    ("form", "headers", "status", "reason"),
    [
        ({"url": "{}/fine"}, {}, 200, "not-blocked"),
        ({"url": "http://blocked.example/"}, {}, 400, "ask-again"),
        ({"url": "javascript:alert(1)"}, {}, 400, "ask-again"),
        ({}, {}, 400, "ask-again"),
        ({"url": "{}/blocked"}, {"origin": "http://evil.example"}, 403, "ask-again"),
        ({"url": "{}/blocked"}, {"origin": "null"}, 403, "ask-again"),
        ({"url": "{}/blocked"}, {"sec_fetch_site": "cross-site"}, 403, "ask-again"),
        ({"url": "{}/blocked", "comment": "x" * MOST_BYTES}, {}, 413, "ask-again"),
        ({str(number): "x" for number in range(50)}, {}, 400, "ask-again"),
    ],
)
async def test_what_is_no_request_is_refused(
    form: dict[str, str],
    headers: dict[str, str],
    status: int,
    reason: str,
    desk: Gateway,
    asked: list[UnblockRequest],
    origin: Origin,
    client: aiohttp.ClientSession,
) -> None:
    filled = {name: text.replace("{}", origin.http) for name, text in form.items()}
    assert await ask(desk, client, origin.http, filled, **headers) == (status, f"notice; reason={reason}")
    assert asked == []
    assert origin.seen == []


async def test_too_many_are_asked_to_come_again(desk: Gateway, origin: Origin, client: aiohttp.ClientSession) -> None:
    form = {"url": f"{origin.http}/blocked"}
    assert [(await ask(desk, client, origin.http, form))[0] for _ in range(3)] == [200, 200, 503]
    async with client.get(f"{origin.http}{ASK_PATH}", proxy=desk.url) as response:
        assert response.status == 405


def page(
    pages: BlockPages, reason: Reason = Reason.BLACKLIST, kind: ResourceType = ResourceType.DOCUMENT, language: str = "en"
) -> str:
    request = Request(parse_url('http://b.example/"><script>?a=1&b=2'), None, kind)
    found = pages.block(request, Verdict(Action.BLOCK, reason), language).text
    assert found is not None
    return found


def test_the_button_stands_where_asking_helps() -> None:
    assert "<form" not in page(BlockPages())
    pages = BlockPages(PageTheme.built_in("Lindenhof School"), unblock_form=True)
    assert f'action="{ASK_PATH}"' in page(pages)
    assert "Lindenhof School ·" in page(pages)
    assert "申请访问此页面" in page(pages, language="zh")
    assert "<script>" not in page(pages)
    assert "<form" not in page(pages, Reason.UNKNOWN)
    assert "<form" not in page(pages, kind=ResourceType.SUBDOCUMENT)
    assert "form-action 'self'" in pages.failure("GET", "").headers["content-security-policy"]


def test_an_operators_own_template(tmp_path: Path) -> None:
    path = tmp_path / "own.html"
    path.write_text(
        "<h1>{{ brand }}: {{ text.title }}</h1>{% for name, value, code in facts %}<p>{{ name }}={{ value }}{% endfor %}"
    )
    pages = BlockPages(PageTheme.of(ProxySettings(block_template=path, brand_name="A & B")), unblock_form=True)
    assert page(pages).startswith("<h1>A &amp; B: This page is blocked</h1><p>Address=http://b.example/")
    assert pages.block(Request(parse_url("http://b.example/")), BLOCK, "en").status_code == 403


@pytest.mark.parametrize("text", ["{{ nothing_of_the_kind }}", "{% if %}", "\xff"])
def test_a_template_that_cannot_be_used_is_refused_at_the_start(text: str, tmp_path: Path) -> None:
    path = tmp_path / "own.html"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(StartupError, match=r"own\.html"):
        PageTheme.of(ProxySettings(block_template=path))
    with pytest.raises(StartupError, match="cannot read"):
        PageTheme.of(ProxySettings(block_template=tmp_path / "none"))
