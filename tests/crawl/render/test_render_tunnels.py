"""The browser's way out on the wire: who closes a connection, what passes on in both directions, which addresses are tried."""

import asyncio
import base64
import socket
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from gatewayfilter.crawl.net.guarded_resolver import PooledResolver
from gatewayfilter.crawl.render import render_proxy as module
from gatewayfilter.crawl.render.render_proxy import Budget, RenderProxy
from tests.crawl.crawl_origin import Answer, Origin, loopback_settings, reply
from tests.crawl.crawl_proxy import resolves_to


@pytest.fixture
async def proxy() -> AsyncIterator[RenderProxy]:
    async with RenderProxy(loopback_settings()) as opened:
        yield opened


def credentials(budget: Budget, name: str = "Proxy-Authorization") -> str:
    return f"{name}: Basic {base64.b64encode(f'{budget.user}:{budget.password}'.encode()).decode()}\r\n"


@asynccontextmanager
async def connected(proxy: RenderProxy, head: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Sends a head, without the empty line at its end, and bounds the wait for all that comes of it."""
    host, _, port = proxy.address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"{head}\r\n".encode("latin-1"))
    try:
        async with asyncio.timeout(10):
            yield reader, writer
    finally:
        writer.close()


def closing(answer: bytes) -> Answer:
    """An answer after which the origin closes the connection."""

    async def answers(writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    return answers


async def whole(proxy: RenderProxy, head: str) -> bytes:
    """Returns what comes up to the end of the connection."""
    async with connected(proxy, head) as (reader, _):
        return await reader.read()


async def test_a_connection_that_is_refused_is_closed(proxy: RenderProxy) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)  # left to the garbage collector
        answer = await whole(proxy, "GET http://127.0.0.1/ HTTP/1.1\r\n")
    assert answer == (
        b'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="render"\r\n'
        b"Content-Length: 0\r\nConnection: close\r\n\r\n"
    )


@pytest.mark.parametrize("value", ["Basic", "Basic !", "Basic /w==", "Basic eDp5", "Basic YQ"])
async def test_other_credentials(proxy: RenderProxy, value: str) -> None:
    proxy.admit(10, 10)
    assert (await whole(proxy, f"GET http://127.0.0.1/ HTTP/1.1\r\nProxy-Authorization: {value}\r\n")).startswith(b"HTTP/1.1 407")


async def test_the_password_counts_and_the_name_is_written_in_any_way(proxy: RenderProxy, origin: Origin) -> None:
    origin.answers["/"] = closing(reply(b"body"))
    budget = proxy.admit(10_000, 10)
    head = f"GET {origin.url()} HTTP/1.1\r\nA: b\r\n"
    assert (await whole(proxy, f"{head}{credentials(budget, 'PROXY-authorization')}")).endswith(b"body")
    wrong = Budget(1, 1, user=budget.user, password="x")
    assert (await whole(proxy, f"{head}{credentials(wrong)}")).startswith(b"HTTP/1.1 407")
    assert budget.refused == []


async def test_a_refusal_names_its_reason_and_asks_for_no_credentials(proxy: RenderProxy, origin: Origin) -> None:
    budget = proxy.admit(10_000, 0)
    answer = await whole(proxy, f"GET {origin.url()} HTTP/1.1\r\n{credentials(budget)}")
    assert answer == b"HTTP/1.1 429 Too Many Connections\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    assert budget.refused == ["429 Too Many Connections"]
    assert not budget.tasks


async def test_the_origin_gets_the_request_without_the_proxys_fields(proxy: RenderProxy, origin: Origin) -> None:
    origin.answers["/a?b=%41"] = closing(reply(b"body"))
    budget = proxy.admit(10_000, 10)
    fields = f"Host: x\r\n{credentials(budget)}Proxy-Connection: keep-alive\r\nConnection: keep-alive\r\nX-Own: \xe9\r\n"
    assert (await whole(proxy, f"GET {origin.url('/a?b=%41')} HTTP/1.1\r\n{fields}")).endswith(b"body")
    assert origin.heads == ["GET /a?b=%41 HTTP/1.1\r\nHost: x\r\nX-Own: \xe9\r\nConnection: close\r\n\r\n"]
    origin.answers["/h"] = closing(b"HTTP/1.1 200 OK\r\nX-A: b\r\n\r\n")
    await whole(proxy, f"HEAD {origin.url('/h')} HTTP/1.1\r\n{credentials(budget)}")
    assert origin.heads[-1].startswith("HEAD /h HTTP/1.1\r\n")


async def test_the_browser_gets_one_answer_without_interim_ones(proxy: RenderProxy, origin: Origin) -> None:
    fields = b"Connection: keep-alive\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nX-Own: \xe9\r\nContent-Length: 4"

    interim = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    origin.answers["/"] = closing(interim + b"HTTP/1.1 200 OK\r\n" + fields + b"\r\n\r\nbody")
    answer = await whole(proxy, f"GET {origin.url()} HTTP/1.1\r\n{credentials(proxy.admit(10_000, 10))}")
    assert answer == b"HTTP/1.1 200 OK\r\nX-Own: \xe9\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"


@pytest.mark.parametrize(("more", "passes"), [(0, True), (1, False)])
async def test_a_budget_may_be_used_up(proxy: RenderProxy, origin: Origin, more: int, *, passes: bool) -> None:
    origin.answers["/"] = closing(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (5_000 + more))
    budget = proxy.admit(5_000, 1)
    answer = await whole(proxy, f"GET {origin.url()} HTTP/1.1\r\n{credentials(budget)}")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"x" * 5_000) or not passes
    assert budget.refused == ([] if passes else ["too many bytes"])


async def test_a_tunnel_ends_when_the_origin_closes(proxy: RenderProxy, origin: Origin) -> None:
    origin.answers["/"] = closing(b"bye")
    budget = proxy.admit(10_000, 10)
    async with connected(proxy, f"CONNECT 127.0.0.1:{origin.port} HTTP/1.1\r\n{credentials(budget)}") as (reader, writer):
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 Connection Established\r\n\r\n"
        assert len(budget.tasks) == 1
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await reader.read() == b"bye"
    assert budget.bytes_left == 10_000 - len(b"GET / HTTP/1.1\r\n\r\n") - len(b"bye")
    assert budget.connections_left == 9


@pytest.mark.parametrize("at_the_end", [False, True])
async def test_a_tunnel_ends_with_its_page(origin: Origin, *, at_the_end: bool) -> None:
    async with RenderProxy(loopback_settings()) as proxy:
        budget = proxy.admit(10_000, 10)
        async with connected(proxy, f"CONNECT 127.0.0.1:{origin.port} HTTP/1.1\r\n{credentials(budget)}") as (reader, _):
            await reader.readuntil(b"\r\n\r\n")
            (task,) = budget.tasks
            if at_the_end:
                await proxy.__aexit__()
            else:
                proxy.release(budget)
            assert await reader.read() == b""
        assert not budget.tasks
        assert task.done()
        assert not proxy._budgets
    with pytest.raises(RuntimeError, match="after shutdown"):
        await proxy._resolver.resolve("127.0.0.1", 1)


async def test_addresses_are_tried_in_turn_up_to_a_bound(
    proxy: RenderProxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin.answers["/"] = closing(reply(b"body"))
    head = f"GET {origin.url(host='name.test')} HTTP/1.1\r\n{credentials(proxy.admit(10_000, 10))}"
    resolves_with_default_family(monkeypatch, "10.0.0.1", "127.0.0.9", "127.0.0.1")  # one is refused, at one nobody listens
    assert (await whole(proxy, head)).endswith(b"body")
    resolves_with_default_family(monkeypatch, *["127.0.0.9"] * 4, "127.0.0.1")
    assert (await whole(proxy, head)).startswith(b"HTTP/1.1 502 Unreachable\r\n")
    resolves_with_default_family(monkeypatch, *["127.0.0.9"] * 3, "127.0.0.1")
    assert (await whole(proxy, head)).endswith(b"body")
    resolves_with_default_family(monkeypatch, "10.0.0.1", "127.0.0.9")
    assert (await whole(proxy, head)).startswith(b"HTTP/1.1 502 Unreachable\r\n")
    resolves_with_default_family(monkeypatch, "127.0.0.9", "10.0.0.1")
    assert (await whole(proxy, head)).startswith(b"HTTP/1.1 403 Forbidden Address\r\n")


def resolves_with_default_family(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    resolves_to(monkeypatch, *addresses)
    resolve = PooledResolver.resolve
    monkeypatch.setattr(PooledResolver, "resolve", lambda self, host, port: resolve(self, host, port, socket.AF_UNSPEC))


async def test_a_name_that_has_no_address(proxy: RenderProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr(PooledResolver, "resolve", fails)
    head = f"CONNECT none.test:443 HTTP/1.1\r\n{credentials(proxy.admit(10_000, 10))}"
    assert (await whole(proxy, head)).startswith(b"HTTP/1.1 502 Unknown Host\r\n")


async def test_a_head_that_never_ends_or_comes_is_given_up(proxy: RenderProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEAD_S", 0.01)
    assert await whole(proxy, "GET http://127.0.0.1/ HTTP/1.1") == b""
    monkeypatch.setattr(module, "HEAD_S", 10)
    with suppress(ConnectionError):  # it closes while more comes
        assert await whole(proxy, "GET http://127.0.0.1/ HTTP/1.1\r\n" + "X: y\r\n" * 14_000) == b""


async def test_addresses_of_a_name_come_as_the_system_gives_them() -> None:
    resolver = PooledResolver()
    (found,) = await resolver.resolve("127.0.0.1", 8080)
    assert found == {
        "hostname": "127.0.0.1", "host": "127.0.0.1", "port": 8080, "family": socket.AF_INET, "proto": socket.IPPROTO_TCP,
        "flags": socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    }  # fmt: skip
    await resolver.close()
    with pytest.raises(RuntimeError, match="after shutdown"):
        await resolver.resolve("127.0.0.1", 8080)
