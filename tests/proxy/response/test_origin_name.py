"""What is learned of a passing page, and for which name: clients that say another name than that of the server they talk to."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest
import trustme
from mitmproxy import platform

from tests.proxy.mitm.http.test_http2 import Http2Client
from tests.proxy.proxy_fakes import FakePassed, Gateway, Origin

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

VICTIM = "victim.test"
PAGE = "/unknown"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request by CONNECT or a redirected connection.

    Attributes:
        target: what the tunnel leads to, `""` for a redirected connection.
        host: of the Host header.
        sni: `""` for a plain connection.
    """

    target: str
    host: str
    sni: str = ""


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


@asynccontextmanager
async def connected(
    gateway: Gateway, asked: Asked, port: int, tls: ssl.SSLContext
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    try:
        if asked.target:
            writer.write(f"CONNECT {asked.target}:{port} HTTP/1.1\r\nHost: {asked.target}:{port}\r\n\r\n".encode())
            assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        if asked.sni:
            await writer.start_tls(tls, server_hostname=asked.sni)
        yield reader, writer
    finally:
        writer.close()


async def get(
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], host: str, port: int, path: str = PAGE, *, more: str = ""
) -> int:
    reader, writer = streams
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: text/html\r\n{more}\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    await reader.readexactly(length)
    return int(head.split()[1])


TUNNELS = {
    "plain, by name": (Asked("localhost", "localhost"), True),
    "plain, to another address": (Asked("127.0.0.1", VICTIM), False),
    "plain, to an address that the name has": (Asked("127.0.0.1", "localhost"), False),
    "plain, to another name": (Asked("localhost", VICTIM), False),
    "plain, an address alone": (Asked("127.0.0.1", "127.0.0.1"), True),
    "TLS": (Asked("localhost", "localhost", "localhost"), True),
    "TLS, to an address": (Asked("127.0.0.1", "localhost", "localhost"), True),
    "TLS, another name in the Host header": (Asked("localhost", VICTIM, "localhost"), False),
    "TLS, to an address, another name in the Host header": (Asked("127.0.0.1", VICTIM, "localhost"), False),
}


@pytest.mark.parametrize(("asked", "learned"), TUNNELS.values(), ids=TUNNELS)
async def test_in_a_tunnel_a_page_is_learned_for_the_name_of_its_server_alone(
    asked: Asked, *, learned: bool, start_gateway: Any, origin: Origin, client_tls: ssl.SSLContext
) -> None:
    await learns(asked, learned, start_gateway(passed=FakePassed()), origin, client_tls)


REDIRECTED = {
    "plain": (Asked("", "localhost"), False),
    "plain, another name": (Asked("", VICTIM), False),
    "TLS": (Asked("", "localhost", "localhost"), True),
    "TLS, another name in the Host header": (Asked("", VICTIM, "localhost"), False),
}


@pytest.mark.parametrize(("asked", "learned"), REDIRECTED.values(), ids=REDIRECTED)
async def test_a_redirected_page_is_learned_for_the_name_of_its_server_alone(
    asked: Asked,
    *,
    learned: bool,
    start_gateway: Any,
    origin: Origin,
    client_tls: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = port_of(origin.https if asked.sni else origin.http)
    monkeypatch.setattr(platform, "original_addr", lambda _: ("127.0.0.1", port))
    await learns(asked, learned, start_gateway(passed=FakePassed(), mode="transparent"), origin, client_tls)


async def learns(asked: Asked, learned: bool, starting: Any, origin: Origin, tls: ssl.SSLContext) -> None:  # noqa: FBT001
    site = origin.https if asked.sni else origin.http
    port = port_of(site)
    url = f"{site.partition(':')[0]}://{asked.host}:{port}{PAGE}"
    async with starting as gateway:
        for number in range(8):
            async with connected(gateway, asked, port, tls) as streams:
                assert await get(streams, asked.host, port, f"{PAGE}/{number}") == 200
        expected = [f"{url}/{number}" for number in range(8)]
        assert [page.url for page in gateway.passed.seen] == (expected if learned else [])
        assert gateway.offers.urls == ([] if learned else expected)  # the crawler fetches what that host really serves
        assert gateway.counters["hook_errors"] == 0


async def test_a_redirected_plain_page_is_learned_where_the_resolver_knows_its_name(
    start_gateway: Any, origin: Origin, client_tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = port_of(origin.http)
    monkeypatch.setattr(platform, "original_addr", lambda _: ("127.0.0.1", port))
    async with start_gateway(passed=FakePassed(), mode="transparent") as gateway:
        await asyncio.get_running_loop().getaddrinfo("localhost", port, type=socket.SOCK_STREAM)
        for host in ("localhost", VICTIM):
            async with connected(gateway, Asked("", host), port, client_tls) as streams:
                assert await get(streams, host, port) == 200
        assert [page.url for page in gateway.passed.seen] == [f"http://localhost:{port}{PAGE}"]


@pytest.mark.parametrize("sni", ["", "localhost"])
async def test_each_response_of_a_kept_connection_is_held_against_its_name(
    sni: str, start_gateway: Any, origin: Origin, client_tls: ssl.SSLContext
) -> None:
    site = origin.https if sni else origin.http
    port = port_of(site)
    async with (
        start_gateway(passed=FakePassed()) as gateway,
        connected(gateway, Asked("localhost", "", sni), port, client_tls) as streams,
    ):
        for number, host in enumerate(("localhost", VICTIM, "localhost", "www.google.com")):
            assert await get(streams, host, port, f"{PAGE}/{number}") == 200
        assert [page.url for page in gateway.passed.seen] == [f"{site}{PAGE}/0", f"{site}{PAGE}/2"]


async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Passes over bodies, so that it reads them as further requests, and repeats what it is asked."""
    with suppress(asyncio.IncompleteReadError):
        while head := await reader.readuntil(b"\r\n\r\n"):
            text = b"<html>" + head.split()[1]
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n%s" % (len(text), text))
    writer.close()


HIDDEN = "GET /unknown/casino HTTP/1.1\r\nX: "


@pytest.mark.parametrize(
    "first",
    [
        f"GET {PAGE}/0 HTTP/1.1\r\nHost: localhost:PORT\r\nContent-Length: {len(HIDDEN)}\r\n\r\n{HIDDEN}",
        f"POST /known HTTP/1.1\r\nHost: localhost:PORT\r\nContent-Length: {len(HIDDEN)}\r\n\r\n{HIDDEN}",
    ],
    ids=["GET", "POST"],
)
@pytest.mark.parametrize("unknown", ["allow", "inspect"])
async def test_nothing_is_learned_once_a_connection_has_carried_a_body(first: str, unknown: str, start_gateway: Any) -> None:
    server = await asyncio.start_server(deaf, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, start_gateway(passed=FakePassed(), unknown=unknown) as gateway:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(f"CONNECT localhost:{port} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        writer.write(first.replace("PORT", str(port)).encode())
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readuntil(b"0" if "/0" in first else b"known")
        # It is answered with the page that the body asks for; that client alone is told what the page is.
        assert await get((reader, writer), "localhost", port, f"{PAGE}/1") == (200 if unknown == "allow" else 403)
        writer.close()
        public = gateway.passed.seen if unknown == "allow" else [page for page in gateway.inspect.seen if page.public]
        assert public == []
        assert f"http://localhost:{port}{PAGE}/1" in gateway.offers.urls


@pytest.mark.parametrize("body", [False, True])
async def test_nothing_is_learned_where_a_body_came_without_a_length(
    start_gateway: Any, client_tls: ssl.SSLContext, authority: trustme.CA, *, body: bool
) -> None:
    """By HTTP/2 the request announces no body; the origin gets it in chunks."""
    client_tls.set_alpn_protocols(["h2"])
    origin_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(origin_tls)
    server = await asyncio.start_server(deaf, "127.0.0.1", 0, ssl=origin_tls)
    async with server, start_gateway(passed=FakePassed()) as gateway:
        site = f"https://localhost:{server.sockets[0].getsockname()[1]}"
        client = await Http2Client.connect(gateway, site, client_tls)
        stream = client.ask("GET", PAGE, body=body, accept="text/html")
        if body:
            client.send(stream, HIDDEN.encode(), end=True)
        assert (await client.answer(stream))[0] == "200"
        client.close()
        assert [page.url for page in gateway.passed.seen] == ([] if body else [f"{site}{PAGE}"])


async def test_a_page_that_was_inspected_is_learned_for_the_name_of_its_server_alone(
    start_gateway: Any, origin: Origin, client_tls: ssl.SSLContext
) -> None:
    port = port_of(origin.http)
    async with start_gateway(unknown="inspect") as gateway:
        for target, host in (("127.0.0.1", VICTIM), ("localhost", "localhost")):
            async with connected(gateway, Asked(target, host), port, client_tls) as streams:
                assert await get(streams, host, port) == 200
        assert [page.public for page in gateway.inspect.seen] == [False, True]
        assert gateway.offers.urls == [f"http://{VICTIM}:{port}{PAGE}"]


async def parent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers what it is asked, in tunnels as well, itself."""
    if (await reader.readuntil(b"\r\n\r\n")).startswith(b"CONNECT"):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>")
    writer.close()


@pytest.mark.parametrize(
    ("target", "host", "learned"),
    [
        ("site.test", "site.test", True),
        ("93.184.216.34", VICTIM, False),
        ("site.test", VICTIM, False),
        ("10.0.0.1", "10.0.0.1", False),
    ],
)
async def test_behind_a_parent_the_name_that_it_is_given_counts(
    target: str, host: str, *, learned: bool, start_gateway: Any, client_tls: ssl.SSLContext
) -> None:
    server = await asyncio.start_server(parent, "127.0.0.1", 0)
    mode = f"upstream:http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, start_gateway(passed=FakePassed(), mode=mode) as gateway:
        async with connected(gateway, Asked(target, host), 80, client_tls) as streams:
            assert await get(streams, host, 80) == 200
        assert [page.url for page in gateway.passed.seen] == ([f"http://{host}{PAGE}"] if learned else [])


@pytest.mark.parametrize(
    ("fields", "learned"),
    [
        ("Sec-Fetch-Dest: document\r\nSec-Fetch-Site: cross-site\r\nReferer: http://elsewhere.test/\r\n", True),
        ("Sec-Fetch-Dest: iframe\r\nSec-Fetch-Site: same-origin\r\n", True),
        ("Sec-Fetch-Dest: iframe\r\nSec-Fetch-Site: cross-site\r\n", False),
        ("Sec-Fetch-Dest: iframe\r\nReferer: http://elsewhere.test/\r\n", False),
        ("Sec-Fetch-Dest: iframe\r\nSec-Fetch-Site: same-origin\r\nReferer: http://elsewhere.test/\r\n", False),
    ],
)
@pytest.mark.parametrize("unknown", ["allow", "inspect"])
async def test_nothing_is_learned_of_frames_in_pages_of_other_sites(
    fields: str, *, learned: bool, unknown: str, start_gateway: Any, origin: Origin, client_tls: ssl.SSLContext
) -> None:
    port = port_of(origin.http)
    async with start_gateway(passed=FakePassed(), unknown=unknown) as gateway:
        async with connected(gateway, Asked("localhost", "localhost"), port, client_tls) as streams:
            assert await get(streams, "localhost", port, more=fields) == 200
        public = gateway.passed.seen if unknown == "allow" else [page for page in gateway.inspect.seen if page.public]
        assert [page.url for page in public] == ([f"{origin.http}{PAGE}"] if learned else [])
        assert gateway.offers.urls == []
