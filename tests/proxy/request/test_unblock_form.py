"""The button of the block page, the page of a request's state, bypass links, and how block pages look."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
import pytest

from gatewayfilter.config import ProxySettings
from gatewayfilter.errors import StartupError
from gatewayfilter.interfaces import BypassLink, RecognizedClient, RequestState, UnblockChanges, UnblockRequest
from gatewayfilter.model import (
    UNBLOCK_PATH,
    Action,
    EntryKind,
    LinkClaims,
    Reason,
    Request,
    ResourceType,
    Verdict,
    link_address,
)
from gatewayfilter.proxy.pages.block_page import BlockPages
from gatewayfilter.proxy.pages.own_requests import OwnRequests
from gatewayfilter.proxy.pages.theme import PageTheme
from gatewayfilter.proxy.request.unblock_form import LONGEST_COMMENT, MOST_BYTES, UnblockForm
from gatewayfilter.urls import parse_url
from tests.proxy.conftest import StartGateway
from tests.proxy.proxy_fakes import ALLOW, BLOCK, Gateway, Origin

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


KEY = b"k" * 32


class Known:
    """Recognizes clients by a table."""

    def __init__(self) -> None:
        self.client = RecognizedClient("", ("group:default", ""))

    def recognize(self, address: str, user: str = "") -> RecognizedClient:
        del address, user
        return self.client


@dataclass
class Desk:
    gateway: Gateway
    known: Known
    own: OwnRequests
    now: list[float]
    asked: list[UnblockRequest]
    opened: list[int]


def own_requests(known: Known | None = None, now: list[float] | None = None) -> OwnRequests:
    clock = now or [7.0]
    return OwnRequests(KEY, known or Known(), lambda address: f"#{address}", lambda: clock[0])


@pytest.fixture
async def desk(start_gateway: StartGateway) -> AsyncIterator[Desk]:
    async with start_gateway() as gateway:
        addon = gateway.master.addons.get("gatewayfilter")
        known, now, asked, opened = Known(), [7.0], list[UnblockRequest](), list[int]()
        own = own_requests(known, now)

        def take(request: UnblockRequest) -> bool:
            asked.append(request)
            return len(asked) < 30

        def redeem(number: int) -> bool:
            opened.append(number)
            return True

        addon._requests._unblock_form = UnblockForm(
            gateway.decide, take, redeem, own, gateway.counters, lambda: now[0], addon.pages
        )
        yield Desk(gateway, known, own, now, asked, opened)


async def ask(desk: Desk, client: aiohttp.ClientSession, base: str, form: dict[str, str], **headers: str) -> tuple[int, str, str]:
    """Sends the form; returns status, what the page that it leads to is, and the address of the page."""
    sent = {
        "content-type": "application/x-www-form-urlencoded",
        **{name.replace("_", "-"): text for name, text in headers.items()},
    }
    async with client.post(
        f"{base}{UNBLOCK_PATH}", data=urlencode(form).encode(), proxy=desk.gateway.url, headers=sent
    ) as response:
        return response.status, response.headers["x-gatewayfilter"].removeprefix("notice; reason="), str(response.url)


async def get(desk: Desk, client: aiohttp.ClientSession, address: str) -> tuple[int, str, str]:
    """Returns status and reason, without following a redirection, and the text or the address that it leads to."""
    async with client.get(address, proxy=desk.gateway.url, allow_redirects=False) as response:
        reason = response.headers["x-gatewayfilter"].removeprefix("notice; reason=")
        return response.status, reason, response.headers.get("location") or await response.text()


async def test_a_request_is_taken_and_never_reaches_the_site(desk: Desk, origin: Origin, client: aiohttp.ClientSession) -> None:
    form = {"url": f"{origin.http}/blocked?x=1", "comment": "  for\x00 school\n please "}
    headers = {"origin": origin.http, "sec_fetch_site": "same-origin", "x_forwarded_for": "10.9.9.9", "forwarded": "for=10.9.9.9"}
    assert (await ask(desk, client, origin.http, form, **headers))[:2] == (200, "waiting")
    assert desk.asked == [
        UnblockRequest(form["url"], "#127.0.0.1", "blacklist", "test", "blocked.example", "gambling", "for school please", 7.0)
    ]
    assert origin.seen == []
    assert desk.gateway.counters["unblock_requests"] == 1
    assert desk.gateway.counters["requests"] == 0


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
    desk: Desk,
    origin: Origin,
    client: aiohttp.ClientSession,
) -> None:
    filled = {name: text.replace("{}", origin.http) for name, text in form.items()}
    assert (await ask(desk, client, origin.http, filled, **headers))[:2] == (status, reason)
    assert desk.asked == []
    assert origin.seen == []


@pytest.mark.parametrize(
    ("comment", "kept"),
    [
        ("x" * 2_500, "x" * LONGEST_COMMENT),
        ("a\r\nBcc: all@example.com", "a Bcc: all@example.com"),
        ("\u202eabc\u2066\x1b[31m\u200b", "abc[31m"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
    ],
)
async def test_hostile_notes(comment: str, kept: str, desk: Desk, origin: Origin, client: aiohttp.ClientSession) -> None:
    _, _, address = await ask(desk, client, origin.http, {"url": f"{origin.http}/blocked", "comment": comment})
    assert desk.asked[0].comment == kept
    assert "<script>" not in (await get(desk, client, address))[2]


async def test_limits_answer_at_once(desk: Desk, origin: Origin, client: aiohttp.ClientSession) -> None:
    reasons = [(await ask(desk, client, origin.http, {"url": f"{origin.http}/blocked{number}"}))[1] for number in range(7)]
    assert reasons == ["waiting"] * 5 + ["too-many-open"] * 2
    assert (await ask(desk, client, origin.http, {"url": f"{origin.http}/blocked0", "comment": "more"}))[1] == "waiting"
    answered = [replace(found, state=RequestState.APPROVED, request_id=1, until=0.0) for found in desk.asked]
    reasons = []
    for number in range(10, 30):
        desk.own.take_in(UnblockChanges(1, answered))
        reasons.append((await ask(desk, client, origin.http, {"url": f"{origin.http}/blocked{number}"}))[1])
        answered = [replace(found, state=RequestState.APPROVED, request_id=1, until=0.0) for found in desk.asked]
    assert reasons == ["waiting"] * 15 + ["too-many-today"] * 5
    assert desk.gateway.counters["unblock_refused"] == 7
    desk.now[0] += 86_400
    assert (await ask(desk, client, origin.http, {"url": f"{origin.http}/blocked"}))[1] == "waiting"
    desk.known.client = RecognizedClient("kim", ("client:kim", ""), requests=False)
    assert (await ask(desk, client, origin.http, {"url": f"{origin.http}/blocked"}))[:2] == (403, "requests-off")


async def test_a_full_queue(desk: Desk, origin: Origin, client: aiohttp.ClientSession) -> None:
    desk.asked.extend([None] * 40)  # type: ignore[list-item]
    assert (await ask(desk, client, origin.http, {"url": f"{origin.http}/blocked"}))[:2] == (503, "ask-later")


async def test_the_page_of_a_request_shows_its_state(desk: Desk, origin: Origin, client: aiohttp.ClientSession) -> None:
    url = f"{origin.http}/blocked"
    _, _, page = await ask(desk, client, origin.http, {"url": url, "comment": "for school"})
    assert "for school" in (await get(desk, client, page))[2]
    request = replace(desk.asked[0], request_id=1)
    desk.own.take_in(UnblockChanges(1, [replace(request, state=RequestState.DENIED, word="<b>not now</b>", decided_at=8.0)]))
    status, reason, text = await get(desk, client, page)
    assert (status, reason) == (200, "denied")
    assert "&lt;b&gt;not now" in text
    assert (await ask(desk, client, origin.http, {"url": url}))[:2] == (403, "denied")
    approved = replace(request, state=RequestState.APPROVED, decided_at=8.0, until=1e9)
    desk.own.take_in(UnblockChanges(2, [approved]))
    assert (await get(desk, client, page))[1] == "waiting"  # the approval is on its way
    desk.gateway.decide.table[url] = ALLOW
    status, reason, text = await get(desk, client, page)
    assert reason == "approved"
    assert f'href="{url}"' in text
    del desk.gateway.decide.table[url]
    desk.now[0] = 100.0
    assert (await get(desk, client, page))[1] == "approved-ended"


async def test_a_state_is_for_the_client_that_asked(desk: Desk, origin: Origin, client: aiohttp.ClientSession) -> None:
    _, _, page = await ask(desk, client, origin.http, {"url": f"{origin.http}/blocked"})
    for other in (
        page.replace("&since", "x&since"),
        page.replace("blocked", "blocked2"),
        f"{origin.http}{UNBLOCK_PATH}",
        page.split("&", maxsplit=1)[0],
    ):
        assert (await get(desk, client, other))[:2] == (405, "ask-again")
    desk.known.client = RecognizedClient("kim", ("client:kim", ""))
    assert (await get(desk, client, page))[:2] == (405, "ask-again")
    desk.known.client = RecognizedClient()
    desk.now[0] += 3 * 86_400
    assert (await get(desk, client, page))[:2] == (405, "ask-again")


def claims(origin: Origin, **other: object) -> LinkClaims:
    return replace(LinkClaims(3, f"{origin.http}/blocked", "client:kim", 1000.0, False), **other)  # type: ignore[arg-type]


async def test_a_link_opens_its_page(desk: Desk, origin: Origin, client: aiohttp.ClientSession) -> None:
    desk.known.client = RecognizedClient("kim", ("client:kim", "group:kids", ""))
    status, _, waiting = await get(desk, client, link_address(KEY, claims(origin)))
    assert (status, desk.opened, desk.gateway.counters["links_opened"]) == (303, [3], 1)
    assert (await get(desk, client, waiting))[1] == "link-opening"
    desk.gateway.decide.table[f"{origin.http}/blocked"] = ALLOW
    assert (await get(desk, client, waiting))[::2] == (303, f"{origin.http}/blocked")
    assert (await get(desk, client, link_address(KEY, claims(origin))))[::2] == (303, f"{origin.http}/blocked")
    assert desk.opened == [3]
    async with client.head(link_address(KEY, claims(origin, scope="")), proxy=desk.gateway.url, allow_redirects=False) as found:
        assert found.status == 303
    assert desk.opened == [3]


@pytest.mark.parametrize(
    ("other", "link", "reason"),
    [
        ({"scope": "client:tom"}, {}, "link-other"),
        ({"scope": "group:adults"}, {}, "link-other"),
        ({"until": 7.0}, {}, "link-expired"),
        ({}, {"revoked_at": 1.0}, "link-revoked"),
        ({"once": True}, {"used_at": 1.0}, "link-used"),
        ({"url": "http://other.example/blocked"}, {}, "link-invalid"),
    ],
)
async def test_links_that_do_not_work(
    other: dict[str, object],
    link: dict[str, float],
    reason: str,
    desk: Desk,
    origin: Origin,
    client: aiohttp.ClientSession,
) -> None:
    desk.known.client = RecognizedClient("kim", ("client:kim", "group:kids", ""))
    stored = BypassLink(f"{origin.http}/blocked", EntryKind.URL, "x/", "client:kim", 1000.0, "once" in other, 1.0, 0, 3)
    desk.own.take_in(UnblockChanges(1, (), [replace(stored, **link)]))  # type: ignore[arg-type]
    address = link_address(KEY, claims(origin, **other)).partition("/.well-known")
    assert (await get(desk, client, f"{origin.http}{address[1]}{address[2]}"))[:2] == (403, reason)
    forged = link_address(b"K" * 32, claims(origin))
    assert (await get(desk, client, forged))[:2] == (403, "link-invalid")
    assert desk.opened == []
    assert desk.gateway.counters["links_refused"] == 2


async def test_a_link_ends_by_the_clock_wherever_it_jumps(desk: Desk, origin: Origin, client: aiohttp.ClientSession) -> None:
    desk.known.client = RecognizedClient("kim", ("client:kim", "group:kids", ""))
    address = link_address(KEY, claims(origin))
    for now, reason in ((1e9, "link-expired"), (-1e9, "link-opening"), (999.0, "link-opening"), (1000.0, "link-expired")):
        desk.now[0] = now
        status, found, leads_to = await get(desk, client, address)
        if status == 303:
            found = (await get(desk, client, leads_to))[1]
        assert (now, found) == (now, reason)
    used = BypassLink(f"{origin.http}/blocked", EntryKind.URL, "x/", "client:kim", 1000.0, True, 1.0, 0, 3, used_at=2.0)
    desk.own.take_in(UnblockChanges(1, (), [used]))
    desk.now[0] = 1.0  # before it was used
    assert (await get(desk, client, link_address(KEY, claims(origin, once=True))))[1] == "link-used"


def page(
    pages: BlockPages,
    reason: Reason = Reason.BLACKLIST,
    kind: ResourceType = ResourceType.DOCUMENT,
    language: str = "en",
    *,
    category: str = "",
    source: str = "",
) -> str:
    request = Request(
        parse_url('http://b.example/"><script>?a=1&b=2'), parse_url(source) if source else None, kind, client="10.0.0.7"
    )
    found = pages.block(request, Verdict(Action.BLOCK, reason, "list", "||raw^", category=category), language).text
    assert found is not None
    return found


def test_the_button_stands_where_asking_helps() -> None:
    assert "<form" not in page(BlockPages())
    pages = BlockPages(PageTheme.built_in("Lindenhof School"), own_requests=own_requests())
    assert f'action="{UNBLOCK_PATH}"' in page(pages)
    assert "Ask to unblock" in page(pages)
    assert "Lindenhof School ·" in page(pages)
    assert "申请访问此页面" in page(pages, language="zh")
    assert "<script>" not in page(pages)
    assert "<form" in page(pages, Reason.SCHEDULE)
    assert "<form" not in page(pages, Reason.UNKNOWN)
    assert "<form" not in page(pages, kind=ResourceType.SUBDOCUMENT)
    assert "form-action 'self'" in pages.failure("GET", "").headers["content-security-policy"]
    known = Known()
    known.client = RecognizedClient("kim", ("client:kim", ""), requests=False)
    assert "<form" not in page(BlockPages(own_requests=own_requests(known)))


def test_a_block_page_shows_the_state_of_ones_own_request() -> None:
    now = [7.0]
    own = own_requests(now=now)
    pages = BlockPages(own_requests=own)
    url = parse_url('http://b.example/"><script>?a=1&b=2').text
    request = UnblockRequest(url, "#10.0.0.7", "blacklist", "", "", "", "", 7.0, request_id=1)
    own.take_in(UnblockChanges(1, [request]))
    waiting = page(pages)
    assert "waiting for an answer" in waiting
    assert "&amp;state=" in waiting
    assert "<form" not in waiting
    own.take_in(UnblockChanges(2, [replace(request, state=RequestState.DENIED, word="<b>no", decided_at=8.0)]))
    assert "Your request was denied. Answer: &lt;b&gt;no" in page(pages)
    assert "<form" not in page(pages)
    now[0] += 3600.0
    assert "<form" in page(pages)
    own.take_in(UnblockChanges(3, [replace(request, state=RequestState.APPROVED, until=8.0, decided_at=8.0)]))
    assert "the approval has ended" in page(pages)
    link = BypassLink(url, EntryKind.URL, "b.example/", "", 1e6, True, 8.0, request_id=1, link_id=4)
    own.take_in(UnblockChanges(4, (), [link]))
    assert "?link=" in page(pages)
    other = own_requests()
    other.take_in(UnblockChanges(1, [replace(request, client="#10.0.0.8")]))
    assert "waiting" not in page(BlockPages(own_requests=other))


def test_what_a_block_page_tells() -> None:
    pages = BlockPages(title_of=lambda name, _: name.title())
    assert "This site is on a blocklist (Games)." in page(pages, category="games")
    assert "This site is on a blocklist." in page(pages)
    assert "This site is on a blocklist (Malware)." in page(pages, Reason.ADBLOCK, category="malware")
    assert "advertising and tracking" in page(pages, Reason.ADBLOCK, category="ads")
    assert "此网站在拦截名单上" in page(pages, category="games", language="zh")
    assert 'href="http://a.example/"' in page(pages, source="http://a.example/")
    assert "||raw^" in page(pages)
    short = page(BlockPages(short=True, title_of=lambda name, _: name.title()), category="games")
    for hidden in ("||raw^", "gatewayfilter list add", "<dt>List"):
        assert hidden in page(pages)
        assert hidden not in short
    assert "Games" in short


def test_an_operators_own_template(tmp_path: Path) -> None:
    path = tmp_path / "own.html"
    path.write_text(
        "<h1>{{ brand }}: {{ text.title }}</h1>{% for name, value, code in facts %}<p>{{ name }}={{ value }}{% endfor %}"
    )
    pages = BlockPages(PageTheme.of(ProxySettings(block_template=path, brand_name="A & B")), own_requests=own_requests())
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
