"""The browser's way out, without a browser: credentials, the guard, budgets."""

import asyncio
import base64
import socket

import pytest

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.render.render_proxy import Budget, RenderProxy
from tests.crawl.crawl_origin import Origin, loopback_settings, reply


async def ask(proxy: RenderProxy, request: str, budget: Budget | None, body: bytes = b"") -> bytes:
    host, _, port = proxy.address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    secret = f"{budget.user}:{budget.password}" if budget is not None else "a:b"
    credentials = base64.b64encode(secret.encode()).decode()
    writer.write(f"{request}\r\nProxy-Authorization: Basic {credentials}\r\nX: y\r\n\r\n".encode() + body)
    async with asyncio.timeout(10):
        if request.startswith("CONNECT") and body:
            await reader.readuntil(b"\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r")[0] or 0) if b"200" in head.split(b"\r")[0] else 0
        try:
            return head + await reader.readexactly(length)
        except asyncio.IncompleteReadError as cut:
            return head + cut.partial
        finally:
            writer.close()


async def test_pages_pass_with_credentials_only(origin: Origin) -> None:
    origin.answers["/x"] = reply(b"body")
    async with RenderProxy(loopback_settings()) as proxy:
        assert int(proxy.address.rpartition(":")[2]) > 1023, "a port that the system chose"
        budget = proxy.admit(10_000, 10)
        assert (await ask(proxy, f"GET {origin.url('/x')} HTTP/1.1", budget)).endswith(b"Connection: close\r\n\r\nbody")
        assert "proxy-authorization" not in origin.heads[0].lower()
        assert (await ask(proxy, f"GET {origin.url('/x')} HTTP/1.1", None)).startswith(b"HTTP/1.1 407")
        tunnel = await ask(proxy, f"CONNECT 127.0.0.1:{origin.port} HTTP/1.1", budget, b"GET /x HTTP/1.1\r\n\r\n")
        assert tunnel.endswith(b"body")
        proxy.release(budget)
        assert (await ask(proxy, f"GET {origin.url('/x')} HTTP/1.1", budget)).startswith(b"HTTP/1.1 407")


FORBIDDEN = [
    "CONNECT 127.0.0.1:{port} HTTP/1.1",
    "CONNECT localhost:{port} HTTP/1.1",
    "CONNECT [::ffff:127.0.0.1]:{port} HTTP/1.1",
    "GET http://127.0.0.1:{port}/x HTTP/1.1",
    "GET http://localhost:{port}/x HTTP/1.1",
    "GET http://169.254.169.254/latest HTTP/1.1",
    "CONNECT 10.0.0.1:443 HTTP/1.1",
    "CONNECT 0.0.0.0:{port} HTTP/1.1",
]


@pytest.mark.parametrize("request_line", FORBIDDEN)
async def test_internal_addresses_are_refused(origin: Origin, request_line: str) -> None:
    async with RenderProxy(CrawlSettings()) as proxy:
        budget = proxy.admit(10_000, 10)
        answer = await ask(proxy, request_line.format(port=origin.port), budget)
    assert answer.startswith(b"HTTP/1.1 403")
    assert budget.refused == ["403 Forbidden Address"]
    assert origin.requests == []


async def test_names_that_change_between_lookups(origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address that was checked is the one that is connected to: there is no second look-up."""
    answers = iter(["192.0.2.1", "127.0.0.1"])
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda *_, **__: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), origin.port))]
    )
    async with RenderProxy(CrawlSettings(allow_ports=(origin.port,))) as proxy:
        budget = proxy.admit(10_000, 10)
        for _ in range(2):
            head = await ask(proxy, f"CONNECT rebind.example:{origin.port} HTTP/1.1", budget)
            assert head.startswith(b"HTTP/1.1 403")
    assert origin.requests == []


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("POST http://127.0.0.1/x HTTP/1.1", b"405"),
        ("GET /x HTTP/1.1", b"400"),
        ("CONNECT nowhere HTTP/1.1", b"400"),
        ("GET https://127.0.0.1/ HTTP/1.1", b"405"),
    ],
)
async def test_what_is_no_request(request_line: str, status: bytes) -> None:
    async with RenderProxy(loopback_settings()) as proxy:
        assert (await ask(proxy, request_line, proxy.admit(1000, 5))).split()[1] == status


async def test_budgets_end(origin: Origin) -> None:
    origin.answers["/big"] = reply(b"x" * 500_000)
    async with RenderProxy(loopback_settings()) as proxy:
        budget = proxy.admit(100_000, 2)
        assert len(await ask(proxy, f"GET {origin.url('/big')} HTTP/1.1", budget)) < 200_000
        assert "too many bytes" in budget.refused
        await ask(proxy, f"GET {origin.url('/none')} HTTP/1.1", budget)
        assert (await ask(proxy, f"GET {origin.url('/none')} HTTP/1.1", budget)).startswith(b"HTTP/1.1 429")
