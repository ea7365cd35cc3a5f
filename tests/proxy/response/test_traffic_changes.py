"""Adblock modifiers on real traffic: a client, the lean proxy and an origin on loopback."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest

from gatewayfilter.model import Action, Reason, RequestChange, ResponseChange, Verdict
from gatewayfilter.proxy.response.css_injector import style_hash, style_text
from tests.proxy.edit_origin import ENCODERS, Answer, EditOrigin, edit_origin
from tests.proxy.proxy_fakes import Gateway

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

DOCUMENT = {"sec-fetch-dest": "document", "sec-fetch-mode": "navigate", "accept-encoding": "gzip, deflate, br, zstd, dcb"}
SCRIPT = {"sec-fetch-dest": "script", "sec-fetch-mode": "no-cors"}
CSS = ".ad { display: none !important }"
PAGE = "<!DOCTYPE html><html><head><title>t</title></head><body><p class=ad>广告</p></body></html>".encode()


@dataclass(frozen=True)
class Swap:
    """A `BodyEdit`."""

    old: str
    new: str

    def apply(self, text: str) -> str:
        return text.replace(self.old, self.new)


@pytest.fixture
async def site() -> AsyncIterator[EditOrigin]:
    async with edit_origin() as origin:
        yield origin


async def fetch(
    gateway: Gateway, client: aiohttp.ClientSession, url: str, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    sent = {**DOCUMENT, **{name.replace("_", "-"): value for name, value in headers.items()}}
    async with client.request(method, url, proxy=gateway.url, headers=sent, allow_redirects=False) as response:
        return response.status, {name.lower(): value for name, value in response.headers.items()}, await response.read()


@pytest.mark.parametrize("encoding", ENCODERS)
@pytest.mark.parametrize("pieces", [1, 7, 10_000])
async def test_a_style_sheet_is_put_into_a_page(
    encoding: str, pieces: int, gateway: Gateway, site: EditOrigin, client: aiohttp.ClientSession
) -> None:
    headers = {"content-type": "text/html; charset=utf-8", "etag": '"strong"', "accept-ranges": "bytes"}
    site.answers["/"] = Answer(PAGE, headers, encoding=encoding, pieces=pieces)
    gateway.changes.responses["/"] = ResponseChange(style=CSS)
    status, head, body = await fetch(gateway, client, f"{site.url}/")
    assert status == 200
    assert body == PAGE.replace(b"<head>", b"<head><style>" + CSS.encode() + b"</style>")
    assert "content-encoding" not in head
    assert "content-length" not in head
    assert "accept-ranges" not in head
    assert head["etag"] == 'W/"strong"'
    assert site.seen[0][2]["accept-encoding"] == "gzip, deflate, br, zstd"
    assert gateway.counters["responses_changed"] == 1


@pytest.mark.parametrize(
    ("path", "answer", "headers"),
    [
        ("/script.js", Answer(PAGE), {"sec_fetch_dest": "script", "sec_fetch_mode": "no-cors"}),
        ("/xhtml", Answer(PAGE, {"content-type": "application/xhtml+xml"}), {}),
        ("/plain", Answer(PAGE, {"content-type": "text/plain"}), {}),
        ("/download", Answer(PAGE, {"content-type": "text/html", "content-disposition": "attachment"}), {}),
        (
            "/part",
            Answer(PAGE, {"content-type": "text/html", "content-range": "bytes 0-9/99"}, status=206),
            {"range": "bytes=0-9"},
        ),
        ("/unknown", Answer(PAGE, {"content-type": "text/html", "content-encoding": "dcb"}), {}),
    ],
)
async def test_what_a_style_sheet_would_break_stays_as_it_is(
    path: str, answer: Answer, headers: dict[str, str], gateway: Gateway, site: EditOrigin, client: aiohttp.ClientSession
) -> None:
    site.answers[path] = answer
    gateway.changes.responses[path] = ResponseChange(style=CSS, remove_elements=(".ad",))
    status, head, body = await fetch(gateway, client, f"{site.url}{path}", **headers)
    assert (status, body) == (answer.status, PAGE)
    assert head["content-length"] == str(len(PAGE))


@pytest.mark.parametrize(("status", "method"), [(304, "GET"), (204, "GET"), (200, "HEAD")])
async def test_answers_without_a_body_keep_their_head(
    status: int, method: str, gateway: Gateway, site: EditOrigin, client: aiohttp.ClientSession
) -> None:
    site.answers["/"] = Answer(PAGE if method == "HEAD" else b"", {"content-type": "text/html", "etag": '"x"'}, status)
    gateway.changes.responses["/"] = ResponseChange(style=CSS, edits=(Swap("a", "b"),), csp=("script-src 'none'",))
    answered, head, body = await fetch(gateway, client, f"{site.url}/", method)
    assert (answered, body, head["etag"]) == (status, b"", '"x"')
    assert head["content-security-policy"] == "script-src 'none'"


async def test_a_page_in_utf_16_stays_as_it_is(gateway: Gateway, site: EditOrigin, client: aiohttp.ClientSession) -> None:
    wide = PAGE.decode().encode("utf-16")
    site.answers["/said"] = Answer(wide, {"content-type": "text/html; charset=utf-16le"})
    site.answers["/marked"] = Answer(wide, {"content-type": "text/html"})
    for path in ("/said", "/marked"):
        gateway.changes.responses[path] = ResponseChange(style=CSS)
        assert (await fetch(gateway, client, f"{site.url}{path}"))[2] == wide


async def test_policies_of_the_page_let_the_sheet_in(gateway: Gateway, site: EditOrigin, client: aiohttp.ClientSession) -> None:
    site.answers["/"] = Answer(PAGE, {"content-type": "text/html", "content-security-policy": "default-src 'none'"})
    gateway.changes.responses["/"] = ResponseChange(style=CSS, csp=("script-src 'none'",), permissions=("camera=()",))
    async with client.get(f"{site.url}/", proxy=gateway.url, headers=DOCUMENT) as response:
        page, ours = response.headers.getall("content-security-policy")
        assert page == f"default-src 'none'; style-src {style_hash(style_text(CSS))}"
        assert ours == "script-src 'none'"
        assert response.headers["permissions-policy"] == "camera=()"


async def test_elements_and_text_are_changed_and_the_encoding_is_kept(
    gateway: Gateway, site: EditOrigin, client: aiohttp.ClientSession
) -> None:
    text = (
        "<html><head></head><body><p class=ad>广告</p><p>赌场 ad</p><script>track()</script><script>good()</script></body></html>"
    )
    site.answers["/"] = Answer(text.encode("gb18030"), {"content-type": "text/html; charset=GBK"}, encoding="gzip", pieces=3)
    gateway.changes.responses["/"] = ResponseChange(
        edits=(Swap("赌场", "花园"),), remove_elements=(".ad", "script:has-text(track)", "p[broken"), style=CSS
    )
    _, _, body = await fetch(gateway, client, f"{site.url}/")
    assert body.decode("gb18030") == (
        f"<html><head><style>{CSS}</style></head><body><p>花园 ad</p><script>good()</script></body></html>"
    )


@pytest.mark.parametrize("kind", ["application/json", "text/javascript", "application/ld+json", "application/vnd.apple.mpegurl"])
async def test_text_of_other_kinds_is_replaced(
    kind: str, gateway: Gateway, site: EditOrigin, client: aiohttp.ClientSession
) -> None:
    site.answers["/x"] = Answer(b'{"ads": 1, "caf\xe9": 2}', {"content-type": kind})
    gateway.changes.responses["/x"] = ResponseChange(edits=(Swap('"ads": 1, ', ""),))
    _, _, body = await fetch(gateway, client, f"{site.url}/x", sec_fetch_dest="empty")
    assert body == b'{"caf\xe9": 2}'


async def test_binaries_and_long_texts_are_left_alone(gateway: Gateway, site: EditOrigin, client: aiohttp.ClientSession) -> None:
    long = b"a".join(os.urandom(8000) for _ in range(400))
    site.answers["/image"] = Answer(b"aaa", {"content-type": "image/png"})
    site.answers["/long"] = Answer(long, {"content-type": "text/plain"}, encoding="zstd", pieces=5)
    change = ResponseChange(edits=(Swap("a", "b"),))
    gateway.changes.responses.update({"/image": change, "/long": change})
    assert (await fetch(gateway, client, f"{site.url}/image"))[2] == b"aaa"
    assert (await fetch(gateway, client, f"{site.url}/long"))[2] == long
    assert gateway.counters["edits_skipped"] == 1


@pytest.mark.parametrize(
    "body", [b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03nonsense" * 9, ENCODERS["gzip"](bytes(80_000_000))], ids=["broken", "bomb"]
)
async def test_a_body_that_cannot_be_decoded_is_broken_off(
    body: bytes, gateway: Gateway, site: EditOrigin, client: aiohttp.ClientSession
) -> None:
    site.answers["/"] = Answer(body, {"content-type": "text/html", "content-encoding": "gzip"})
    gateway.changes.responses["/"] = ResponseChange(style=CSS)
    with pytest.raises(aiohttp.ClientPayloadError):
        await fetch(gateway, client, f"{site.url}/")
    assert gateway.counters["edits_failed"] == 1
    assert (await fetch(gateway, client, f"{site.url}/other"))[0] == 200


async def test_headers_are_taken_away_but_none_that_frames_the_message(
    gateway: Gateway, site: EditOrigin, client: aiohttp.ClientSession
) -> None:
    site.answers["/"] = Answer(PAGE, {"content-type": "text/html", "x-track": "1", "refresh": "0"})
    gateway.changes.requests["/"] = RequestChange(remove_headers=("x-client-data", "host", "referer"))
    gateway.changes.responses["/"] = ResponseChange(remove_headers=("x-track", "refresh", "content-length"))
    _, head, body = await fetch(gateway, client, f"{site.url}/", x_client_data="secret", referer="http://a.example/")
    assert {"x-client-data", "referer"}.isdisjoint(site.seen[0][2])
    assert {"x-track", "refresh"}.isdisjoint(head)
    assert head["content-length"] == str(len(body))


async def test_a_parameter_is_taken_away_silently_and_the_body_of_a_post_stays(
    gateway: Gateway, site: EditOrigin, client: aiohttp.ClientSession
) -> None:
    gateway.changes.requests["/a?utm=1&x=2"] = RequestChange(url=f"{site.url}/a?x=2")
    async with client.post(f"{site.url}/a?utm=1&x=2", data=b"utm=1", proxy=gateway.url, headers=SCRIPT) as response:
        assert response.status == 200
    assert [(method, path) for method, path, _ in site.seen] == [("POST", "/a?x=2")]
    assert gateway.records[0].url.endswith("/a?utm=1&x=2")


async def test_a_page_is_redirected_once_and_never_in_circles(
    gateway: Gateway, site: EditOrigin, client: aiohttp.ClientSession
) -> None:
    gateway.changes.requests["/a?utm=1"] = RequestChange(url=f"{site.url}/b", redirect=True)
    gateway.changes.requests["/b"] = RequestChange(url=f"{site.url}/a?utm=1", redirect=True)
    async with client.get(f"{site.url}/a?utm=1", proxy=gateway.url, headers=DOCUMENT) as response:
        assert (response.status, len(response.history)) == (200, 1)
        assert response.history[0].status == 307
        assert response.history[0].headers["cache-control"] == "no-store"
    assert [path for _, path, _ in site.seen] == ["/b"]


async def test_a_rewritten_url_is_judged_again(gateway: Gateway, site: EditOrigin, client: aiohttp.ClientSession) -> None:
    gateway.changes.requests["/a"] = RequestChange(url=f"{site.url}/blocked")
    assert (await fetch(gateway, client, f"{site.url}/a"))[0] == 403
    assert site.seen == []


async def test_what_a_person_allowed_is_not_touched(gateway: Gateway, site: EditOrigin, client: aiohttp.ClientSession) -> None:
    gateway.decide.table[f"{site.url}/"] = Verdict(Action.ALLOW, Reason.MANUAL_ALLOW)
    site.answers["/"] = Answer(PAGE)
    gateway.changes.requests["/"] = RequestChange(url=f"{site.url}/other")
    gateway.changes.responses["/"] = ResponseChange(style=CSS)
    assert (await fetch(gateway, client, f"{site.url}/"))[2] == PAGE


@pytest.mark.parametrize("endless", [False, True])
async def test_a_rule_about_headers_blocks_before_any_byte_of_the_body(
    endless: bool,  # noqa: FBT001
    gateway: Gateway,
    site: EditOrigin,
    client: aiohttp.ClientSession,
) -> None:
    site.answers["/"] = Answer(b"secret" * 1000, {"content-type": "text/html", "via": "ads"}, endless=endless)
    blocked = Verdict(Action.BLOCK, Reason.ADBLOCK, source_list="l", rule="*$header=via:ads", line=3)
    gateway.changes.responses["/"] = ResponseChange(verdict=blocked, style=CSS)
    for _ in range(2):
        status, head, body = await fetch(gateway, client, f"{site.url}/")
        assert status == 403
        assert head["x-gatewayfilter"] == "block; reason=adblock"
        assert b"$header=via:ads" in body
        assert b"secret" not in body
    if endless:
        async with asyncio.timeout(10):
            await site.cut_off.wait()
    assert (await fetch(gateway, client, f"{site.url}/other"))[0] == 200
    assert gateway.changes.seen[0][3] == "127.0.0.1"
    assert re.search("text/html", gateway.changes.seen[0][2]["content-type"])
    assert gateway.counters["blocked"] == 2
    assert [record.action for record in gateway.records if record.reason == "adblock"] == ["block"] * 2
