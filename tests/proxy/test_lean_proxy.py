import asyncio
import contextlib
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest

from gatewayfilter.model import Action, Reason, Verdict
from gatewayfilter.proxy.master import LeanMaster
from tests.case_tables import all_cases
from tests.proxy.proxy_fakes import BLOCK, Gateway, Origin

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


async def raw(gateway: Gateway, data: bytes, *, timeout_s: float = 5) -> bytes:
    """Sends bytes to the proxy and returns what it answers until it closes or is silent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(data)
    answer = b""
    with contextlib.suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(timeout_s):
            while chunk := await reader.read(65536):
                answer += chunk
                if b"\r\n\r\n" in answer and b"connection: close" not in answer.lower():
                    break
    writer.close()
    return answer


async def until(true: Callable[[], bool]) -> None:
    """Waits for something that happens elsewhere in this event loop."""
    for _ in range(2000):
        if true():
            return
        await asyncio.sleep(0.005)
    pytest.fail("it never happened")


async def test_http_passes_and_alt_svc_is_stripped(gateway: Gateway, origin: Origin, client: aiohttp.ClientSession) -> None:
    for number in range(3):
        async with client.get(f"{origin.http}/page{number}", proxy=gateway.url) as response:
            assert response.status == 200
            assert f"<title>/page{number}</title>" in await response.text()
            assert "alt-svc" not in response.headers
    assert gateway.counters["requests"] == 3
    assert [record.url for record in gateway.records] == [f"{origin.http}/page{number}" for number in range(3)]


async def test_https_passes_with_the_filters_ca(
    gateway: Gateway, origin: Origin, client: aiohttp.ClientSession, client_tls: ssl.SSLContext
) -> None:
    for _ in range(2):
        async with client.get(f"{origin.https}/secret?x=1", proxy=gateway.url, ssl=client_tls) as response:
            assert response.status == 200
            assert "/secret" in await response.text()
    assert gateway.records[0].url == f"{origin.https}/secret?x=1"


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_blocked_page_never_reaches_the_origin(
    scheme: str, gateway: Gateway, origin: Origin, client: aiohttp.ClientSession, client_tls: ssl.SSLContext
) -> None:
    url = f"{getattr(origin, scheme)}/blocked"
    async with client.get(url, proxy=gateway.url, ssl=client_tls) as response:
        assert response.status == 403
        assert response.headers["x-gatewayfilter"] == "block; reason=blacklist"
        assert response.headers["cache-control"] == "no-store"
        assert "gambling" in await response.text()
    async with client.get(f"{getattr(origin, scheme)}/fine", proxy=gateway.url, ssl=client_tls) as response:
        assert response.status == 200
    assert origin.seen == [f"{getattr(origin, scheme)}/fine"]
    assert gateway.counters["blocked"] == 1


async def test_blocked_host_that_does_not_exist_is_answered_over_https(
    gateway: Gateway, client: aiohttp.ClientSession, client_tls: ssl.SSLContext
) -> None:
    async with client.get("https://blocked.invalid/", proxy=gateway.url, ssl=client_tls) as response:
        assert response.status == 403


async def test_chunked_bodies_pass(gateway: Gateway, origin: Origin, client: aiohttp.ClientSession) -> None:
    async with client.get(f"{origin.http}/chunked", proxy=gateway.url) as response:
        assert await response.read() == b"".join(b"%d" % number * 10 for number in range(5))


async def test_events_arrive_one_by_one(gateway: Gateway, origin: Origin, client: aiohttp.ClientSession) -> None:
    async with client.get(f"{origin.http}/events", proxy=gateway.url) as response:
        assert await response.content.readuntil(b"\n\n") == b"data: first\n\n"
        assert not origin.gate.is_set()
        origin.gate.set()
        assert await response.content.readuntil(b"\n\n") == b"data: second\n\n"


async def test_a_large_body_streams_without_being_kept(gateway: Gateway, origin: Origin, client: aiohttp.ClientSession) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    total = most = 0
    async with client.get(f"{origin.http}/large", proxy=gateway.url) as response:
        async for chunk in response.content.iter_any():
            total += len(chunk)
            most = max(most, resident())
    assert total == 64 << 20
    assert most - before < 40 << 20


async def test_uploads_stream_to_the_origin(gateway: Gateway, origin: Origin, client: aiohttp.ClientSession) -> None:
    reached = asyncio.Event()

    async def body() -> Any:
        yield bytes(100_000)
        await until(lambda: origin.uploaded >= 100_000)  # the first part is there before the rest is sent
        reached.set()
        yield bytes(50_000)

    async with client.post(f"{origin.http}/upload", data=body(), proxy=gateway.url) as response:
        assert await response.text() == "150000"
    assert reached.is_set()


@pytest.mark.parametrize("expect", [b"", b"Expect: 100-continue\r\n"])
async def test_blocked_upload_is_refused_before_it_is_sent(expect: bytes, gateway: Gateway, origin: Origin) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    head = b"POST %s/blocked-upload HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n%s\r\n" % (origin.http.encode(), expect)
    writer.write(head)
    async with asyncio.timeout(5):
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 403")
        for _ in range(300):  # far more than is thrown away; then the connection ends
            try:
                writer.write(bytes(100_000))
                await writer.drain()
            except ConnectionError:
                break
        else:
            pytest.fail("the connection stays open for a gigabyte")
    writer.close()
    assert origin.seen == []


async def test_blocked_upload_that_ends_leaves_the_proxy_well(
    gateway: Gateway, origin: Origin, client: aiohttp.ClientSession
) -> None:
    for _ in range(3):
        async with client.post(f"{origin.http}/blocked-upload", data=bytes(300_000), proxy=gateway.url) as response:
            assert response.status == 403
    async with client.get(f"{origin.http}/fine", proxy=gateway.url) as response:
        assert response.status == 200


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_websockets_pass_and_are_not_kept(
    scheme: str, gateway: Gateway, origin: Origin, client: aiohttp.ClientSession, client_tls: ssl.SSLContext
) -> None:
    url = f"{getattr(origin, scheme)}/socket"
    async with client.ws_connect(url, proxy=gateway.url, ssl=client_tls) as ws:
        for number in range(20):
            await ws.send_str(f"hello {number}")
            assert await ws.receive_str() == f"echo hello {number}"
    assert gateway.records[0].resource_type == "websocket"
    assert gateway.records[0].url.startswith("ws")


async def test_blocked_websocket_is_refused(gateway: Gateway, origin: Origin, client: aiohttp.ClientSession) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError):
        await client.ws_connect(f"{origin.http}/blocked-socket", proxy=gateway.url)


@pytest.mark.parametrize(("on_error", "status"), [("allow", 200), ("block", 503)])
async def test_a_broken_engine_fails_as_configured(
    on_error: str, status: int, start_gateway: Any, origin: Origin, client: aiohttp.ClientSession
) -> None:
    async with start_gateway(on_error=on_error) as gateway:
        async with client.get(f"{origin.http}/raise", proxy=gateway.url) as response:
            assert response.status == status
        assert gateway.counters["hook_errors"] == 1


async def test_hold_waits_for_the_verdict_and_for_nobody_else(
    start_gateway: Any, origin: Origin, client: aiohttp.ClientSession
) -> None:
    async with start_gateway(unknown="hold", hold_ms=10_000) as gateway:
        url = f"{origin.http}/unknown"
        held = asyncio.ensure_future(client.get(url, proxy=gateway.url))
        await until(lambda: bool(gateway.offers.urls))
        async with client.get(f"{origin.http}/other", proxy=gateway.url) as response:
            assert response.status == 200
        assert not held.done()
        gateway.decide.table[url] = Verdict(Action.BLOCK, Reason.LEARNED, detail="score 42.0")
        async with await held as response:
            assert response.status == 403
            assert "score 42.0" in await response.text()
        assert gateway.offers.urls == [url]
        assert origin.seen == [f"{origin.http}/other"]


async def test_hold_lets_go_after_its_time(start_gateway: Any, origin: Origin, client: aiohttp.ClientSession) -> None:
    async with start_gateway(unknown="hold", hold_ms=60) as gateway:
        async with client.get(f"{origin.http}/unknown", proxy=gateway.url) as response:
            assert response.status == 200
        assert gateway.records[-1].reason == "unknown"


async def test_unknown_block_says_that_it_is_being_looked_at(
    start_gateway: Any, origin: Origin, client: aiohttp.ClientSession
) -> None:
    async with start_gateway(unknown="block") as gateway:
        async with client.get(f"{origin.http}/unknown", proxy=gateway.url) as response:
            assert response.status == 403
            assert "not known yet" in await response.text()
        assert gateway.offers.urls == [f"{origin.http}/unknown"]


async def test_an_html_answer_to_a_guessed_type_is_offered(
    gateway: Gateway, origin: Origin, client: aiohttp.ClientSession
) -> None:
    headers = {"Accept": "*/*", "Referer": "http://page.example/"}
    async with client.get(f"{origin.http}/unknown-thing", proxy=gateway.url, headers=headers) as response:
        await response.read()
    assert gateway.offers.urls == [f"{origin.http}/unknown-thing"]


MALFORMED = [
    b"GARBAGE\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET http:// HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http://a b/ HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http://a\x00b/ HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http://user:pw@host/ HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http://[::1/ HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http://x:99999999/ HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http://ok.example/ HTTP/1.1\r\nHost: a/b\r\n\r\n",
    b"GET http://ok.example/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET http://ok.example/ HTTP/1.1\r\nbad header\r\n\r\n",
    b"GET http://ok.example/ HTTP/1.1\r\nHost: ok.example\r\nb\xffd name: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: \r\n\r\n",
    b"GET ftp://ok.example/ HTTP/1.1\r\nHost: ok.example\r\n\r\n",
    b"POST http://ok.example/ HTTP/1.1\r\nHost: ok.example\r\nContent-Length: -1\r\n\r\n",
    b"POST http://ok.example/ HTTP/1.1\r\nHost: ok.example\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"GET http://ok.example/ HTTP/9.9.9\r\nHost: ok.example\r\n\r\n",
    b"GET http://ok.example/" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: ok.example\r\n\r\n",
]


@pytest.mark.parametrize("request_head", MALFORMED)
async def test_malformed_requests_get_a_400_and_nothing_crashes(
    request_head: bytes, gateway: Gateway, origin: Origin, client: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await raw(gateway, request_head)
    assert answer.startswith(b"HTTP/1.1 400"), answer[:200]
    assert "crashed" not in caplog.text
    assert "Traceback" not in caplog.text
    async with client.get(f"{origin.http}/fine", proxy=gateway.url) as response:
        assert response.status == 200


async def test_endless_headers_are_cut_off(gateway: Gateway) -> None:
    answer = await raw(gateway, b"GET http://ok.example/ HTTP/1.1\r\n" + b"x-long: " + b"y" * 400_000)
    assert answer.startswith(b"HTTP/1.1 431")


async def test_host_header_follows_the_request_target(gateway: Gateway, origin: Origin) -> None:
    target = f"{origin.http}/host".encode()
    answer = await raw(gateway, b"GET %s HTTP/1.1\r\nHost: lie.example\r\nConnection: close\r\n\r\n" % target)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"lie.example" not in answer
    assert origin.http.removeprefix("http://").encode() in answer


@pytest.mark.parametrize("passes", [True, False])
async def test_tunnels_of_other_protocols_are_judged_by_host(*, passes: bool, start_gateway: Any) -> None:
    async with start_gateway(raw_tcp="on") as gateway:
        await other_protocol(gateway, passes=passes)


async def other_protocol(gateway: Gateway, *, passes: bool) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(100))
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    if not passes:
        gateway.decide.table[f"https://localhost:{port}/"] = BLOCK
    async with server, asyncio.timeout(5):
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(b"CONNECT localhost:%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % port)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"\x00\x01\x02\x03 no http")
        with contextlib.suppress(ConnectionError):
            assert await reader.read(100) == (b"\x00\x01\x02\x03 no http" if passes else b"")
        writer.close()
    assert [record.url for record in gateway.records] == [f"https://localhost:{port}/"]
    assert gateway.counters["blocked"] == (0 if passes else 1)


async def test_stop_lets_an_open_request_finish(start_gateway: Any, origin: Origin, client: aiohttp.ClientSession) -> None:
    async with start_gateway() as gateway, client.get(f"{origin.http}/events", proxy=gateway.url) as response:
        await response.content.readuntil(b"\n\n")
        stopping = asyncio.ensure_future(gateway.master.stop(5))
        await asyncio.sleep(0.1)
        assert not stopping.done()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", gateway.port)
        origin.gate.set()
        assert await response.content.readuntil(b"\n\n") == b"data: second\n\n"
        await response.read()
        await stopping


async def test_the_address_is_known_while_connections_drain(start_gateway: Any) -> None:
    async with start_gateway() as gateway:
        before = gateway.master.address
        await gateway.master.stop(0.1)
        assert gateway.master.address == before
        assert before[1]


@pytest.mark.parametrize("error", [MemoryError(), KeyError("a fault")])
async def test_a_lack_of_memory_is_one_sentence(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    master = object.__new__(LeanMaster)
    master._asyncio_exception_handler(asyncio.get_running_loop(), {"message": "Fatal error", "exception": error})
    (record,) = caplog.records
    assert bool(record.exc_info) is not isinstance(error, MemoryError)
    assert ("no memory is left" in record.getMessage()) is isinstance(error, MemoryError)


@all_cases(
    ("listening", "ours", "theirs", "itself"),
    [
        ("0.0.0.0", "192.0.2.1", ("192.0.2.1", 8080), True),
        ("0.0.0.0", "192.0.2.2", ("192.0.2.1", 8080), False),
        ("0.0.0.0", "192.0.2.1", ("127.0.0.1", 8080), True),
        ("127.0.0.1", "127.0.0.1", ("127.0.0.1", 8080), True),
        ("127.0.0.1", "127.0.0.1", ("127.0.0.2", 8080), False),
        ("127.0.0.1", "127.0.0.1", ("127.0.0.1", 8081), False),
    ],
)
def test_which_connections_lead_back(listening: str, ours: str, theirs: tuple[str, int], *, itself: bool) -> None:
    master = cast("LeanMaster", SimpleNamespace(address=(listening, 8080)))
    made = SimpleNamespace(getpeername=lambda: theirs, getsockname=lambda: (ours, 40_000))
    assert LeanMaster._is_self(master, cast("Any", made)) is itself


async def test_a_running_proxy_tells_a_lack_of_memory_in_one_sentence(gateway: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    assert gateway.port
    asyncio.get_running_loop().call_exception_handler({"message": "Fatal error", "exception": MemoryError()})
    assert [record.getMessage() for record in caplog.records] == ["no memory is left for a connection: it is closed"]
