"""Beginnings of connections that are not usual, by the fast path and by mitmproxy's layers: the same bytes, hooks and ends."""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from mitmproxy import tls

from tests.proxy.conftest import StartGateway
from tests.proxy.connection_fakes import until
from tests.proxy.proxy_fakes import Origin

NAMES = frozenset({
    "tls_clienthello", "tls_start_client", "tls_established_client", "tls_failed_client", "next_layer", "requestheaders",
    "request", "response", "client_disconnected", "tls_established_server", "tls_start_server",
})  # fmt: skip


class Meddles:
    """Notes the hooks of a connection, and changes what one of them was given."""

    name = "meddles"

    def __init__(self, change: dict[str, Callable[[Any], None]]) -> None:
        self.seen: list[str] = []
        self._change = change

    def of_handshake(self) -> list[str]:
        """Returns the hooks from the ClientHello on: mitmproxy has one more layer for a CONNECT before."""
        return self.seen[self.seen.index("tls_clienthello") :]

    def __getattr__(self, name: str) -> Any:
        if name not in NAMES:
            raise AttributeError(name)

        def called(subject: Any) -> None:
            self.seen.append(name)
            self._change.get(name, lambda _: None)(subject)

        return called


def pass_through(data: tls.ClientHelloData) -> None:
    data.ignore_connection = True


def fail(_: tls.TlsData) -> None:
    raise RuntimeError


def leave_out(data: tls.TlsData) -> None:
    data.ssl_conn = None


@pytest.mark.parametrize(
    ("change", "pieces", "answered"),
    [
        ({}, 1, True),
        ({}, 7, True),
        ({"tls_clienthello": pass_through}, 1, True),
        ({"tls_clienthello": pass_through}, 3, True),
        ({"tls_clienthello": fail, "tls_established_client": fail}, 1, True),
        ({"tls_start_client": leave_out}, 1, False),
    ],
    ids=["usual", "in pieces", "passes unread", "passes unread, in pieces", "hooks fail", "no context"],
)
@pytest.mark.parametrize("together", [True, False])
async def test_both_ways_are_equal(
    change: dict[str, Callable[[Any], None]],
    pieces: int,
    answered: bool,  # noqa: FBT001  a column
    together: bool,  # noqa: FBT001  the request comes with the end of the handshake
    start_gateway: StartGateway,
    origin: Origin,
) -> None:
    port = int(origin.https.rpartition(":")[2])
    trusting = ssl._create_unverified_context()  # both the origin's certificate and ours may come
    found = []
    for fast_path in (True, False):
        async with start_gateway(fast_path=fast_path) as gateway:
            hooks = Meddles(change)
            gateway.master.addons.add(hooks)
            async with asyncio.timeout(10):
                got = await _fetch(gateway.port, port, trusting, pieces, together=together)
                await until(lambda: not gateway.master._proxyserver.connections)
            assert got.startswith(b"HTTP/1.1 200") is answered
            found.append((got.partition(b"\r\n")[0], hooks.of_handshake()))
    assert found[0] == found[1]


async def test_what_is_no_handshake_fails_in_the_same_way(start_gateway: StartGateway, origin: Origin) -> None:
    port = int(origin.https.rpartition(":")[2])
    found = []
    for fast_path in (True, False):
        for late in (b"\x16\x03\x03\0\4junk", b"\x15\x03\x03\0\2\2\x30", b"GET / HTTP/1.1\r\n\r\n", b""):
            async with start_gateway(fast_path=fast_path) as gateway:
                hooks = Meddles({})
                gateway.master.addons.add(hooks)
                reader, writer = await _tunnel(gateway.port, port)
                incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
                with pytest.raises(ssl.SSLWantReadError):
                    ssl._create_unverified_context().wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
                writer.write(outgoing.read())
                async with asyncio.timeout(10):
                    assert await reader.read(1)
                    writer.write(late)
                    writer.write_eof()
                    with suppress(ConnectionError):
                        await reader.read()
                    writer.close()
                    await until(lambda: not gateway.master._proxyserver.connections)
                found.append((late, hooks.of_handshake()))
    half = len(found) // 2
    assert found[:half] == found[half:]
    assert all("tls_failed_client" in seen for _, seen in found)


async def _tunnel(proxy: int, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy)
    writer.write(b"CONNECT localhost:%d HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % (port, port))
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def _fetch(proxy: int, port: int, context: ssl.SSLContext, pieces: int, *, together: bool) -> bytes:
    """Sends a request by a handshake of our own, whose ClientHello may come in pieces. Returns what came."""
    reader, writer = await _tunnel(proxy, port)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    made = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    got = b""
    request = b"GET /page HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % port
    while True:
        try:
            made.do_handshake()
            break
        except ssl.SSLWantReadError:
            hello = outgoing.read()
            size = -(-len(hello) // pieces)
            for start in range(0, len(hello), size):
                writer.write(hello[start : start + size])
                await asyncio.sleep(0.01 if pieces > 1 else 0)
            data = await reader.read(65536)
            if not data:
                writer.close()
                return b""
            incoming.write(data)
    if not together:
        writer.write(outgoing.read())
        await asyncio.sleep(0.02)
    made.write(request)
    writer.write(outgoing.read())
    while b"</title>localhost:%d" % port not in got:
        incoming.write(await reader.read(65536))
        with suppress(ssl.SSLWantReadError):
            while True:
                got += made.read(65536)
    writer.close()
    return got
