"""The ICAP server over real connections: OPTIONS, REQMOD, RESPMOD, previews, 204 and 206, persistence, hostile clients."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.errors import InspectError
from gatewayfilter.integration.icap import server
from gatewayfilter.integration.icap.page_judge import PageJudge
from gatewayfilter.integration.icap.server import IcapServer
from gatewayfilter.integration.icap.service import LARGEST_PAGE, IcapService
from gatewayfilter.interfaces import InternalAnswer, PassedResponse
from gatewayfilter.model import Classification, Request, Verdict
from gatewayfilter.settings import LearnSettings
from gatewayfilter.telemetry import Counters
from tests.integration.integration_engine import Records, decider_over, engine
from tests.integration.squid.squid_ends import comes

HARMFUL = Classification("gambling", 42.0, 20.0)
CRLF = "\r\n"


class Judge:
    """An inspector that finds pages harmful that hold `casino`."""

    def __init__(self) -> None:
        self.seen: list[PassedResponse] = []

    async def inspect(self, response: PassedResponse) -> Classification | None:
        self.seen.append(response)
        if b"fault" in response.body:
            raise InspectError("a fault")
        return HARMFUL if b"casino" in response.body else None


def _answer_blocked(request: Request, verdict: Verdict, accept_language: str) -> InternalAnswer:
    return InternalAnswer(403, {"content-type": "text/html"}, f"{verdict.reason} {request.url.host} {accept_language}".encode())


class Icap:
    """A running server, and a client of it."""

    def __init__(self, over: FilterEngine, *, blocks_failures: bool = False) -> None:
        self.records, self.judge = Records(), Judge()
        decider, self.counters = decider_over(over, self.records)
        judge = PageJudge(self.judge, LearnSettings(), frozenset(), self.counters, limit_s=20, blocks_failures=blocks_failures)
        self.server = IcapServer(IcapService(decider, judge, _answer_blocked, self.counters, 64), self.counters)
        self.port = 0
        self.listener: Any = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Icap"]:
        server = await self.server.start("127.0.0.1", 0)
        self.listener = server.sockets[0]
        self.port = self.listener.getsockname()[1]
        try:
            yield self
        finally:
            self.server.close()
            server.close()

    async def ask(self, *parts: bytes, ends: bytes = b"") -> bytes:
        """Sends parts, each once there was an answer to the one before; returns all answers, until `ends` or the end."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        got = b""
        for number, part in enumerate(parts):
            writer.write(part)
            if number + 1 < len(parts):
                got += await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
        if not ends:
            writer.write_eof()
        while True:
            data = await asyncio.wait_for(reader.read(65_536), 20)
            got += data
            if not data or (ends and got.endswith(ends)):
                break
        writer.close()
        return got


def message(method: str, url: str, *further: str, response: str = "", body: bytes | None = None, last: str = "0") -> bytes:
    """An ICAP request with the body in one chunk."""
    http = f"GET {url} HTTP/1.1{CRLF}Host: x{CRLF}Accept-Language: en{CRLF}{CRLF}"
    heads, kind = (http + response, "res") if response else (http, "req")
    offsets = f"req-hdr=0, {f'res-hdr={len(http)}, ' if response else ''}{'null' if body is None else kind}-body={len(heads)}"
    fields = ["Host: i", *further, f"Encapsulated: {offsets}"]
    head = f"{method} icap://i/{method.lower()} ICAP/1.0{CRLF}{CRLF.join(fields)}{CRLF}{CRLF}{heads}".encode()
    if body is None:
        return head
    return head + (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + f"{last}{CRLF}{CRLF}".encode()


HTML = f"HTTP/1.1 200 OK{CRLF}Content-Type: text/html{CRLF}{CRLF}"
TWICE = HTML.replace("Content-Type", f"Content-Type: image/png{CRLF}Content-Type")
IMAGE = f"HTTP/1.1 200 OK{CRLF}Content-Type: image/png{CRLF}{CRLF}"
LONG = f"HTTP/1.1 200 OK{CRLF}Content-Type: text/html{CRLF}Content-Length: {LARGEST_PAGE + 1}{CRLF}{CRLF}"
GARDEN, BLOCKED = "http://garden.test/", "http://blocked.test/"
PASSED, PAGE, CONTINUE = b"ICAP/1.0 204", b"ICAP/1.0 200", b"ICAP/1.0 100"
REST = b"6\r\ncasino\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("parts", "starts", "holds"),
    [
        ([message("OPTIONS", GARDEN).replace(b"options ICAP", b"respmod ICAP")], PAGE, b"Methods: RESPMOD"),
        ([b"OPTIONS icap://i/reqmod ICAP/1.0\r\n\r\n"], PAGE, b"Allow: 204, 206"),
        ([message("REQMOD", GARDEN, "Allow: 204")], PASSED, b""),
        ([message("REQMOD", GARDEN)], PAGE, b"Encapsulated: req-hdr=0, null-body=66"),
        ([message("REQMOD", GARDEN, body=b"posted")], PAGE, b"6\r\nposted\r\n0\r\n\r\n"),
        ([message("REQMOD", GARDEN, "Allow: 206", body=b"posted")], b"ICAP/1.0 206", b"0; use-original-body=0\r\n\r\n"),
        ([message("REQMOD", GARDEN, "Preview: 0", body=b"")], PASSED, b""),
        ([message("REQMOD", BLOCKED, "Allow: 204")], PAGE, b"blacklist blocked.test en"),
        ([message("REQMOD", BLOCKED, body=b"posted")], PAGE, b"HTTP/1.1 403 Forbidden"),
        ([message("REQMOD", "nowhere", "Allow: 204")], PAGE, b"HTTP/1.1 400"),
        ([message("RESPMOD", BLOCKED, response=IMAGE, body=b"x")], PAGE, b"blacklist blocked.test"),
        ([message("RESPMOD", GARDEN, "Allow: 204", response=HTML, body=b"<p>beans")], PASSED, b""),
        ([message("RESPMOD", GARDEN, response=HTML, body=b"<p>beans")], PAGE, b"8\r\n<p>beans\r\n0\r\n\r\n"),
        ([message("RESPMOD", GARDEN, "Allow: 204", response=HTML, body=b"<p>casino")], PAGE, b"learned garden.test"),
        ([message("RESPMOD", GARDEN, "Preview: 8", response=IMAGE, body=b"12345678")], PASSED, b""),
        ([message("RESPMOD", GARDEN, "Preview: 4096", response=HTML, body=b"casino", last="0; ieof")], PAGE, b"learned"),
        ([message("RESPMOD", GARDEN, "Preview: 8", response=HTML, body=b"<p>beans"), REST], CONTINUE, b"learned"),
        ([message("RESPMOD", GARDEN, "Preview: 1", "Allow: 204", response=HTML, body=b"<"), b"0\r\n\r\n"], CONTINUE, PASSED),
        ([message("RESPMOD", GARDEN, "Preview: 8", response=LONG, body=b"<p>beans")], PASSED, b""),
        ([message("RESPMOD", GARDEN, "Allow: 204", response=HTML, body=b"fault")], PASSED, b""),
        ([message("RESPMOD", GARDEN, "Allow: 204", response=HTML)], PASSED, b""),
        ([message("RESPMOD", GARDEN, "Allow: 204", response=HTML.replace("200", "203"), body=b"casino")], PAGE, b"learned"),
        ([message("RESPMOD", GARDEN, "Allow: 204", response=TWICE, body=b"casino")], PAGE, b"learned"),
    ],
)  # fmt: skip
async def test_each_request_gets_its_answer(listed: FilterEngine, parts: list[bytes], starts: bytes, holds: bytes) -> None:
    async with Icap(listed).running() as icap:
        got = await icap.ask(*parts)
        assert got.startswith(starts), got
        assert holds in got
        assert b'ISTag: "' in got
        assert icap.counters["icap_malformed"] == 0


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 505),
        (b"nonsense\r\n\r\n", 400),
        (b"REQMOD icap://i/reqmod ICAP/1.0\r\n\r\n", 400),
        (b"REQMOD icap://i/reqmod ICAP/1.0\r\nEncapsulated: req-hdr=0\r\n\r\n", 400),
        (b"REQMOD icap://i/reqmod ICAP/1.0\r\nEncapsulated: req-hdr=0, null-body=99999999\r\n\r\n", 400),
        (b"REQMOD icap://i/reqmod ICAP/1.0\r\nEncapsulated: req-body=0, req-hdr=4, null-body=9\r\n\r\n", 400),
        (b"REQMOD icap://i/reqmod ICAP/1.0\r\nEncapsulated: req-hdr=5, null-body=9\r\n\r\n", 400),
        (b"REQMOD icap://i/reqmod ICAP/1.0\r\nEncapsulated: req-hdr=0, null-body=4\r\n\r\nGET ", 400),
        (message("REQMOD", GARDEN, "Preview: -1", body=b"x"), 400),
        (message("REQMOD", f"{GARDEN} casino"), 400),
        (b"REQMOD icap://i/reqmod ICAP/1.0\r\nAllow: 204\r\nEncapsulated: null-body=0\r\n\r\n", 400),
        (b"RESPMOD icap://i/respmod ICAP/1.0\r\nAllow: 204\r\nEncapsulated: res-body=0\r\n\r\n0\r\n\r\n", 400),
        (message("REQMOD", GARDEN, "bad\x01name: x"), 400),
        (message("REQMOD", GARDEN).replace(b"/reqmod", b"/other"), 404),
        (message("REQMOD", GARDEN).replace(b"/reqmod", b"/respmod"), 405),
        (message("REQMOD", GARDEN, body=b"")[:-5] + b"xyz\r\n", 400),
        (message("REQMOD", GARDEN, body=b"")[:-5] + b"ffffffff\r\n", 400),
        (message("REQMOD", GARDEN, body=b"")[:-5] + b"2\r\nabcd\r\n", 400),
        (b"REQMOD icap://i/reqmod ICAP/1.0\r\n" + b"a: b\r\n" * 600 + b"\r\n", 400),
        (b"x" * 70_000, 400),
    ],
)
async def test_malformed_requests_are_refused_and_their_connection_closed(listed: FilterEngine, data: bytes, status: int) -> None:
    async with Icap(listed).running() as icap:
        got = await icap.ask(data)
        assert b"ICAP/1.0 %d " % status in got
        assert b"Connection: close" in got
        assert icap.counters["icap_malformed"] == 1


async def test_connections_persist_requests_may_be_pipelined_and_cut_anywhere(listed: FilterEngine) -> None:
    async with Icap(listed).running() as icap:
        requests = message("RESPMOD", GARDEN, "Allow: 204", response=HTML, body=b"<p>beans" * 100) * 3
        got = await icap.ask(requests + message("REQMOD", BLOCKED))
        assert got.count(PASSED) == 3
        assert got.count(b"blacklist blocked.test") == 1
        assert len(icap.judge.seen) == 1  # the same page, byte for byte
        assert icap.counters["icap_repeated"] == 2
        reader, writer = await asyncio.open_connection("127.0.0.1", icap.port)
        for byte in message("REQMOD", GARDEN, "Allow: 204", "Connection: close", body=b"posted"):
            writer.write(bytes([byte]))
            await writer.drain()
        assert (await reader.read()).startswith(PASSED)
        writer.close()


async def test_what_is_too_long_to_be_judged_passes_unchanged(listed: FilterEngine) -> None:
    piece = b"casino " * 8_000
    chunks = (b"%x\r\n%b\r\n" % (len(piece), piece)) * 40
    async with Icap(listed).running() as icap:
        head = message("RESPMOD", GARDEN, response=HTML, body=b"")[:-5]
        got = await icap.ask(head + chunks + b"0\r\n\r\n")
        assert got.count(b"casino") == 8_000 * 40
        assert got.endswith(b"\r\n0\r\n\r\n")
        got = await icap.ask(head.replace(b"Host: i", b"Allow: 204") + chunks + b"0\r\n\r\n")
        assert got.startswith(PASSED)
        assert len(got) < 200
        blocked = message("REQMOD", BLOCKED, body=b"")[:-5]
        assert b"Connection: close" in await icap.ask(blocked + chunks + b"0\r\n\r\n", ends=b"en\r\n0\r\n\r\n")
        short = await icap.ask(message("REQMOD", BLOCKED, body=b"posted") + message("REQMOD", GARDEN, "Allow: 204"))
        assert b"Connection: close" not in short
        assert PASSED in short
        assert icap.judge.seen == []


async def test_a_judgement_that_fails_blocks_where_set_so(listed: FilterEngine) -> None:
    async with Icap(listed, blocks_failures=True).running() as icap:
        got = await icap.ask(message("RESPMOD", GARDEN, "Allow: 204", response=HTML, body=b"fault"))
        assert b"failure garden.test" in got
        often = HTML.replace("Content-Type", f"Content-Encoding: gzip{CRLF}" * 11 + "Content-Type")
        got = await icap.ask(message("RESPMOD", GARDEN, "Allow: 204", response=often, body=b"x"))
        assert b"failure garden.test" in got
        assert [verdict.reason.value for _, verdict in icap.records.records] == ["failure"] * 2


async def test_a_client_that_reads_no_answers_is_given_up(listed: FilterEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "TAKEN_S", 0.05)
    async with Icap(listed).running() as icap:
        loop, small = asyncio.get_running_loop(), (socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        icap.listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        with socket.socket() as client:
            client.setblocking(False)
            client.setsockopt(*small)
            await loop.sock_connect(client, ("127.0.0.1", icap.port))
            requests = message("REQMOD", GARDEN) * 2_000
            with pytest.raises(ConnectionError):
                await asyncio.wait_for(_send_for_ever(client, requests), 20)


async def test_a_connection_counts_until_its_answer_is_read(listed: FilterEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 1)
    async with Icap(listed).running() as icap:
        loop = asyncio.get_running_loop()
        icap.listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        with socket.socket() as client:
            client.setblocking(False)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            await loop.sock_connect(client, ("127.0.0.1", icap.port))
            await loop.sock_sendall(client, message("REQMOD", GARDEN, "Connection: close", body=b"x" * 50_000))
            await comes(lambda: icap.counters["icap_requests"] == 1)
            await asyncio.sleep(0.01)
            assert await icap.ask() == b""
            assert icap.counters["icap_refused"] == 1
            got = b""
            async with asyncio.timeout(20):
                while data := await loop.sock_recv(client, 65_536):
                    got += data
            assert got.count(b"x") > 50_000
        await comes(lambda: not icap.server._writers)
        assert (await icap.ask(message("REQMOD", GARDEN, "Allow: 204"))).startswith(PASSED)


async def test_an_answer_that_is_read_too_late_is_cut_off(listed: FilterEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "TAKEN_S", 0.02)
    async with Icap(listed).running() as icap:
        loop, got = asyncio.get_running_loop(), b""
        icap.listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        with socket.socket() as client:
            client.setblocking(False)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            await loop.sock_connect(client, ("127.0.0.1", icap.port))
            await loop.sock_sendall(client, message("REQMOD", GARDEN, "Connection: close", body=b"x" * 50_000))
            await comes(lambda: icap.counters["icap_requests"] == 1)
            await comes(lambda: not icap.server._writers)
            with suppress(ConnectionResetError):
                async with asyncio.timeout(20):
                    while data := await loop.sock_recv(client, 65_536):
                        got += data
            assert len(got) < 50_000


async def test_a_fault_is_answered_counted_and_ends_the_connection(listed: FilterEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: object) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr(IcapService, "answer", fails)
    async with Icap(listed).running() as icap:
        got = await icap.ask(message("REQMOD", GARDEN) * 2)
        assert got.startswith(b"ICAP/1.0 500 Server Error\r\n")
        assert got.count(b"ICAP/1.0") == got.count(b"Connection: close") == 1
        await comes(lambda: not icap.server._writers)
        assert (icap.counters["hook_errors"], icap.counters["icap_malformed"]) == (1, 0)


@pytest.mark.parametrize("sent", [b"", b"REQMOD"])
async def test_a_connection_that_asks_nothing_is_closed(
    sent: bytes, listed: FilterEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "IDLE_S", 0.02)
    async with Icap(listed).running() as icap:
        reader, writer = await asyncio.open_connection("127.0.0.1", icap.port)
        writer.write(sent)
        with suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 20) == b""
        await comes(lambda: not icap.server._writers)
        assert (icap.counters["icap_malformed"], icap.counters["hook_errors"]) == (0, 0)
        writer.close()


async def _send_for_ever(client: socket.socket, data: bytes) -> None:
    while True:
        await asyncio.get_running_loop().sock_sendall(client, data)


FILTER = engine()
_PIECES = st.sampled_from(
    [
        *(b"REQMOD icap://i/reqmod ICAP/1.0\r\n", b"RESPMOD icap://i/respmod ICAP/1.0\r\n", b"Preview: 0\r\n", b"\0", b"\xff"),
        *(b"Encapsulated: req-hdr=0, null-body=30\r\n", b"Encapsulated: req-hdr=0, res-hdr=30, res-body=60\r\n", b"\r\n"),
        *(b"GET http://blocked.test/ HTTP/1.1\r\n\r\n", b"0\r\n\r\n", b"5\r\nabcde\r\n", b"Allow: 204\r\n"),
        *(b"HTTP/1.1 200 OK\r\n", b"Content-Type: text/html\r\n"),
    ]
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(_PIECES, st.binary(max_size=40)), max_size=20))
def test_no_bytes_of_a_client_are_a_fault(pieces: list[bytes]) -> None:
    async def feed() -> Counters:
        icap = Icap(FILTER)
        async with icap.running():
            await icap.ask(b"".join(pieces))
        return icap.counters

    assert asyncio.run(feed())["hook_errors"] == 0
