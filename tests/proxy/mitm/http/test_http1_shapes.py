"""Every shape that HTTP/1 takes, byte by byte through a running proxy: what is sent, what the origin sees, what returns."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from tests.proxy.proxy_fakes import Gateway

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
END = b"\r\n\r\n"


@dataclass
class RawOrigin:
    """An origin that answers each request head with given bytes, and keeps all that it hears."""

    answer: bytes
    port: int = 0
    heard: bytearray = field(default_factory=bytearray)
    connections: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        answered = 0
        own = bytearray()
        while data := await reader.read(65536):
            self.heard += data
            own += data
            while own.count(END) > answered:
                answered += 1
                writer.write(self.answer)
                if b"connection: close" in self.answer.lower():
                    writer.close()
                    return
        writer.close()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["RawOrigin"]:
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self


async def exchange(gateway: Gateway, sent: bytes, done: Callable[[bytes], bool]) -> bytes:
    """Sends bytes and reads until what came is enough, or the proxy closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(sent)
    got = b""
    async with asyncio.timeout(5):
        while not done(got) and (data := await reader.read(65536)):
            got += data
    writer.close()
    return got


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n"
SHAPES = [
    pytest.param(b"GET / HTTP/1.1", b"", OK, b"\r\n\r\nok", id="plain"),
    pytest.param(
        b"HEAD / HTTP/1.1", b"", b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n", b"content-length: 500\r\n\r\n", id="head"
    ),
    pytest.param(b"HEAD / HTTP/1.1", b"", CHUNKED + b"\r\n", b"transfer-encoding: chunked\r\n\r\n", id="head-chunked"),
    pytest.param(b"GET / HTTP/1.1", b"", b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n", id="204"),
    pytest.param(
        b"GET / HTTP/1.1",
        b"",
        b"HTTP/1.1 304 Not Modified\r\netag: x\r\ncontent-length: 9\r\n\r\n",
        b"length: 9\r\n\r\n",
        id="304",
    ),
    pytest.param(
        b"GET / HTTP/1.1",
        b"Range: bytes=0-1\r\n",
        b"HTTP/1.1 206 Partial Content\r\ncontent-range: bytes 0-1/9\r\ncontent-length: 2\r\n\r\nok",
        b"content-range: bytes 0-1/9\r\ncontent-length: 2\r\n\r\nok",
        id="range",
    ),
    pytest.param(b"GET / HTTP/1.1", b"", CHUNKED + b"\r\n2\r\nok\r\n0\r\n\r\n", b"2\r\nok\r\n0\r\n\r\n", id="chunked"),
    pytest.param(
        b"GET / HTTP/1.1",
        b"",
        CHUNKED + b"trailer: x-sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n",
        b"0\r\nx-sum: 7\r\n\r\n",
        id="trailers",
    ),
    pytest.param(b"GET / HTTP/1.1", b"", b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK, b"\r\n\r\nok", id="early-hints"),
    pytest.param(
        b"GET / HTTP/1.1", b"", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 P\r\n\r\n" + OK, b"\r\n\r\nok", id="interim"
    ),
    pytest.param(b"GET / HTTP/1.1", b"Cookie: " + b"c" * 100_000 + b"\r\n", OK, b"\r\n\r\nok", id="large-cookie"),
    pytest.param(
        b"GET / HTTP/1.1",
        b"",
        b"HTTP/1.1 200 OK\r\nset-cookie: " + b"c" * 100_000 + b"\r\ncontent-length: 2\r\n\r\nok",
        b"ok",
        id="set",
    ),
    pytest.param(b"OPTIONS / HTTP/1.1", b"", OK, b"\r\n\r\nok", id="options"),
    pytest.param(b"PROPFIND / HTTP/1.1", b"Depth: 1\r\n", OK, b"\r\n\r\nok", id="webdav"),
]


@pytest.mark.parametrize(("line", "fields", "answer", "end"), SHAPES)
async def test_shapes_pass_and_keep_the_connection(
    line: bytes, fields: bytes, answer: bytes, end: bytes, gateway: Gateway
) -> None:
    method, target, version = line.split()
    async with RawOrigin(answer).running() as origin:
        head = b"%s http://127.0.0.1:%d%s %s\r\nHost: 127.0.0.1:%d\r\n%s\r\n" % (
            method,
            origin.port,
            target,
            version,
            origin.port,
            fields,
        )
        got = await exchange(gateway, head, lambda got: got.endswith(end))
        assert got.endswith(end)
        assert got.startswith((b"HTTP/1.1 2", b"HTTP/1.1 304", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200"))
        assert bytes(origin.heard).startswith(b"%s %s HTTP/1.1\r\n" % (method, target))
        assert fields in origin.heard
        twice = await exchange(gateway, head + head, lambda got: got.count(end) == 2)
        assert twice.count(end) == 2
        assert origin.connections == 2  # one for each client connection


@pytest.mark.parametrize("interim", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\n"])
async def test_interim_responses_have_an_end(interim: bytes, gateway: Gateway) -> None:
    """Nothing of them reaches the client, so that no slow client holds up an origin that sends them for ever."""
    for count, expected in ((100, b"\r\n\r\nok"), (101, b"interim responses without end")):
        async with RawOrigin(interim * count + OK).running() as origin:
            head = b"GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/html\r\n\r\n" % (
                origin.port,
                origin.port,
            )
            got = await exchange(gateway, head, lambda got, end=expected: end in got)  # type: ignore[misc]
            assert expected in got


async def test_chunks_that_came_together_go_on_together(gateway: Gateway) -> None:
    """An origin decides how small its chunks are; each by itself would cost more than a whole read of larger ones."""
    chunks = b"1\r\na\r\n" * 3000
    async with RawOrigin(CHUNKED + b"trailer: x-sum\r\n\r\n" + chunks + b"0\r\nX-Sum: 7\r\n\r\n").running() as origin:
        head = b"GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (origin.port, origin.port)
        got = await exchange(gateway, head, lambda got: got.endswith(b"0\r\nx-sum: 7\r\n\r\n"))
        body = got.partition(b"\r\n\r\n")[2]
        assert body.count(b"a") == 3000
        assert body.count(b"\r\n") < 100


async def test_chunks_before_a_malformed_one_go_on(gateway: Gateway) -> None:
    async with RawOrigin(CHUNKED + b"\r\n1\r\na\r\n2\r\nbc\r\nx\r\n").running() as origin:
        head = b"GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (origin.port, origin.port)
        got = await exchange(gateway, head, lambda _: False)
        assert got.endswith(b"\r\n\r\n3\r\nabc\r\n")


@pytest.mark.parametrize(
    ("version", "fields", "answer"),
    [
        (b"1.0", b"", OK),
        (b"1.0", b"", CHUNKED + b"\r\n2\r\nok\r\n0\r\n\r\n"),
        (b"1.1", b"Connection: close\r\n", OK),
        (b"1.1", b"", b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nok"),
        (b"1.1", b"", b"HTTP/1.0 200 OK\r\nconnection: close\r\n\r\nok"),
    ],
)
async def test_what_ends_with_the_connection(version: bytes, fields: bytes, answer: bytes, gateway: Gateway) -> None:
    async with RawOrigin(answer).running() as origin:
        head = b"GET http://127.0.0.1:%d/ HTTP/%s\r\nHost: x\r\n%s\r\n" % (origin.port, version, fields)
        got = await exchange(gateway, head, lambda _: False)
    assert got.partition(END)[2] == b"ok"
    if version == b"1.0":
        assert b"chunked" not in got


async def test_request_trailers_and_chunks_reach_the_origin(gateway: Gateway) -> None:
    body = b"5\r\nhello\r\n0\r\nX-Sum: 7\r\n\r\n"
    async with RawOrigin(OK).running() as origin:
        head = b"POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" % origin.port
        await exchange(gateway, head + body, lambda got: got.endswith(b"ok") and origin.heard.endswith(b"7\r\n\r\n"))
        assert origin.heard.endswith(b"0\r\nx-sum: 7\r\n\r\n")


async def test_an_expecting_client_is_told_to_continue(gateway: Gateway) -> None:
    async with RawOrigin(OK).running() as origin:
        head = b"POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n" % origin.port
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        async with asyncio.timeout(5):
            writer.write(head)
            assert (await reader.readuntil(END)).startswith(b"HTTP/1.1 100")
            writer.write(b"abc")
            assert (await reader.readuntil(END)).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_what_was_meant_for_the_proxy_stays_there(gateway: Gateway) -> None:
    async with RawOrigin(OK).running() as origin:
        fields = b"Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic c2VjcmV0\r\nAuthorization: Basic b3du\r\n"
        head = b"GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: x\r\n%s\r\n" % (origin.port, fields)
        await exchange(gateway, head, lambda got: got.endswith(b"ok"))
        assert b"proxy-" not in origin.heard.lower()
        assert b"Authorization: Basic b3du" in origin.heard


async def refused(gateway: Gateway) -> bytes:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return b"http://127.0.0.1:%d/" % port


async def unknown_name(gateway: Gateway) -> bytes:
    return b"http://nobody.invalid/"


@pytest.mark.parametrize(
    ("where", "status", "reason"),
    [(refused, 502, "connection-refused"), (unknown_name, 502, "name-not-found")],
)
@pytest.mark.parametrize("upload", [b"", b"x" * 300_000])
async def test_a_dead_origin_is_explained(
    where: Callable[[Gateway], Awaitable[bytes]], status: int, reason: str, upload: bytes, gateway: Gateway
) -> None:
    target = await where(gateway)
    fields = b"Content-Length: %d\r\n" % len(upload) if upload else b""
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nAccept-Language: zh-CN\r\n%s\r\n" % (target, fields)
    got = await exchange(gateway, head + upload, lambda got: b"</html>" in got)
    assert got.startswith(b"HTTP/1.1 %d" % status)
    assert f"x-gatewayfilter: error; reason={reason}".encode() in got
    assert b'lang="zh-Hans"' in got
    assert gateway.counters["origin_errors"] == 1
    assert gateway.counters["blocked"] == 0


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\nconnection: close", "bad-answer"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\nconnection: close\r\n\r\n", "bad-answer"),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\nx-endless: " + b"x" * 600_000, "bad-answer"),
        (b"HTTP/1.1 200 OK\r\nb\xffd: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n", "bad-answer"),
    ],
)
async def test_an_origin_that_talks_nonsense_is_explained(answer: bytes, reason: str, gateway: Gateway) -> None:
    async with RawOrigin(answer).running() as origin:
        head = b"GET http://127.0.0.1:%d/?q=<script> HTTP/1.1\r\nHost: x\r\n\r\n" % origin.port
        got = await exchange(gateway, head, lambda got: b"</html>" in got)
    assert got.startswith(b"HTTP/1.1 502")
    assert f"x-gatewayfilter: error; reason={reason}".encode() in got
    assert b"<script>" not in got
    assert gateway.counters["origin_errors"] == 1


@pytest.mark.parametrize("request_line", [b"GARBAGE", b"GET http://user:pw@host/ HTTP/1.1", b"GET ftp://x/ HTTP/1.1"])
async def test_an_unreadable_request_is_explained(request_line: bytes, gateway: Gateway) -> None:
    got = await exchange(gateway, request_line + b"\r\nHost: x\r\n\r\n", lambda got: b"</html>" in got)
    assert got.startswith(b"HTTP/1.1 400")
    assert b"x-gatewayfilter: error; reason=bad-request" in got or b"x-gatewayfilter: block; reason=bad-request" in got


@pytest.mark.parametrize("flood", [b"GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: x\r\n\r\n", b"\0"])
async def test_what_is_sent_ahead_is_bounded(flood: bytes, gateway: Gateway) -> None:
    async def hear_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(hear_only, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    async with silent, asyncio.timeout(5):
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(b"GET http://127.0.0.1:%d/ HTTP/1.1\r\nHost: x\r\n\r\n" % port)
        writer.write(flood * (2_000_000 // len(flood)))
        with pytest.raises((ConnectionError, EOFError)):
            await reader.readexactly(1)
        writer.close()


async def test_endless_trailers_are_cut_off(gateway: Gateway) -> None:
    async with RawOrigin(OK).running() as origin:
        head = b"POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" % origin.port
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(head + b"x: " + b"y" * 400_000)
        async with asyncio.timeout(5):
            with contextlib.suppress(ConnectionError):
                await reader.read()
        writer.close()


async def test_an_origin_that_says_more_than_its_answer_is_left(gateway: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(END)
        writer.write(OK)
        answered.set()
        await more.wait()
        writer.write(OK)
        ended.append(await reader.read())
        writer.close()
        gone.set()

    answered, more, gone = asyncio.Event(), asyncio.Event(), asyncio.Event()
    ended: list[bytes] = []
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(b"POST http://127.0.0.1:%d/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" % port)
        await answered.wait()
        got = await reader.readuntil(b"ok")
        more.set()
        await gone.wait()
        assert got + await reader.read() == OK  # once, and the end
        writer.close()
    assert ended == [b""]
    assert "crashed" not in caplog.text
