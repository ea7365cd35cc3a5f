"""HTTP as it was, with rules at work: HTTP/2, HTTP/1.0, streams, conditional requests, slow and endless bodies."""

import asyncio
import ssl
from collections.abc import AsyncIterator

import aiohttp
import pytest

from gatewayfilter.model import Action, Reason, ResponseChange, Verdict
from tests.proxy.edit_origin import Answer, EditOrigin, edit_origin
from tests.proxy.mitm.http.test_http1_shapes import RawOrigin, exchange
from tests.proxy.mitm.http.test_http2 import Http2Client
from tests.proxy.proxy_fakes import Gateway, Origin

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

STYLE = ResponseChange(style="p{}")
SHEET = b"<style>p{}</style>"
PAGE = {"sec-fetch-dest": "document", "accept-encoding": "br"}


class Same:
    @staticmethod
    def apply(text: str) -> str:
        return text.replace("event", "EVENT")


@pytest.fixture
async def site() -> AsyncIterator[EditOrigin]:
    async with edit_origin() as origin:
        yield origin


async def raw(gateway: Gateway, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(data)
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    return answer


def ask(client: Http2Client, path: str) -> int:
    return client.ask("GET", path, body=False, **PAGE)


async def test_http2_clients_get_edited_pages_and_late_blocks(
    gateway: Gateway, origin: Origin, client_tls: ssl.SSLContext
) -> None:
    client_tls.set_alpn_protocols(["h2"])
    gateway.changes.responses["/page"] = STYLE
    gateway.changes.responses["/late"] = ResponseChange(verdict=Verdict(Action.BLOCK, Reason.ADBLOCK, rule="x$header=y"))
    client = await Http2Client.connect(gateway, origin.https, client_tls)
    for _ in range(2):
        status, body = await client.answer(ask(client, "/page"))
        assert status == "200"
        assert body.startswith(SHEET)
        status, body = await client.answer(ask(client, "/late"))
        assert status == "403"
        assert b"x$header=y" in body
    assert (await client.answer(ask(client, "/fine")))[0] == "200"
    client.close()


async def test_http_1_0_clients_get_the_page_as_it_is(gateway: Gateway, site: EditOrigin) -> None:
    gateway.changes.responses["/"] = STYLE
    answer = await raw(gateway, f"GET {site.url}/ HTTP/1.0\r\nSec-Fetch-Dest: document\r\n\r\n".encode())
    assert SHEET not in answer
    assert answer.endswith(b"</html>")


async def test_connections_stay_open_after_an_edited_page(gateway: Gateway, site: EditOrigin) -> None:
    gateway.changes.responses["/"] = STYLE
    ask = f"GET {site.url}/ HTTP/1.1\r\nHost: x\r\nSec-Fetch-Dest: document\r\n\r\n".encode()
    last = ask.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    answer = await raw(gateway, ask + ask + last)
    assert answer.count(b"HTTP/1.1 200") == 3
    assert answer.count(SHEET) == 3
    assert answer.endswith(b"0\r\n\r\n")


async def test_events_come_one_by_one_whatever_the_rules_say(
    gateway: Gateway, origin: Origin, client: aiohttp.ClientSession
) -> None:
    gateway.changes.responses["/events"] = ResponseChange(edits=(Same(),), style="p{}", csp=("script-src 'none'",))
    async with client.get(f"{origin.http}/events", proxy=gateway.url) as response:
        assert await response.content.readuntil(b"\n\n") == b"data: first\n\n"
        origin.gate.set()
        assert response.headers["content-security-policy"] == "script-src 'none'"


async def test_the_first_bytes_of_a_page_do_not_wait_for_the_last(
    gateway: Gateway, site: EditOrigin, client: aiohttp.ClientSession
) -> None:
    gateway.changes.responses["/"] = STYLE
    site.answers["/"] = Answer(b"<html><head></head>" + b"x" * 5000, {"content-type": "text/html; charset=utf-8"}, endless=True)
    async with client.get(f"{site.url}/", proxy=gateway.url, headers=PAGE) as response:
        assert await response.content.readexactly(30) == b"<html><head>" + SHEET
    async with asyncio.timeout(10):
        await site.cut_off.wait()


async def test_websockets_pass_with_rules_at_work(gateway: Gateway, origin: Origin, client: aiohttp.ClientSession) -> None:
    gateway.changes.responses["/socket"] = ResponseChange(style="p{}", edits=(Same(),), remove_headers=("x",))
    async with client.ws_connect(f"{origin.http}/socket", proxy=gateway.url) as ws:
        await ws.send_str("event")
        assert await ws.receive_str() == "echo event"


async def test_a_late_block_while_the_client_still_uploads(gateway: Gateway, origin: Origin) -> None:
    gateway.changes.responses["/fine"] = ResponseChange(verdict=Verdict(Action.BLOCK, Reason.ADBLOCK, rule="x$header=y"))
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(f"POST {origin.http}/fine HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n".encode())
    async with asyncio.timeout(10):
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 403")
        assert b"connection: close" in head.lower()
    writer.close()


async def test_trailers_follow_an_edited_page(gateway: Gateway) -> None:
    gateway.changes.responses["/page"] = STYLE
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n"
    async with RawOrigin(head + b"4\r\npage\r\n0\r\nx-sum: 7\r\n\r\n").running() as origin:
        address = b"127.0.0.1:%d" % origin.port
        asked = b"GET http://%b/page HTTP/1.1\r\nHost: %b\r\nsec-fetch-dest: document\r\n\r\n" % (address, address)
        for _ in range(2):
            answer = await exchange(gateway, asked, lambda got: got.endswith(b"x-sum: 7\r\n\r\n"))
            assert SHEET in answer
            assert b"page\r\n0\r\nx-sum: 7\r\n\r\n" in answer
