"""The checker against real proxies on loopback: small ones that forward, tell, refuse or hang."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.crawl.net import proxy_check
from gatewayfilter.crawl.net.proxy_check import ProxyChecker, is_anonymous, without_password
from gatewayfilter.crawl.net.proxy_pool import ProxyPool
from tests.case_tables import all_cases

type Handler = Callable[[bytes], Awaitable[bytes]]


@asynccontextmanager
async def proxy(handler: Handler) -> AsyncIterator[str]:
    """A proxy that answers each request head with what `handler` makes of it."""
    connections: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(writer)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            writer.write(await handler(head))
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in connections:
            writer.close()


def answer(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def repeats(head: bytes) -> bytes:
    return answer(head)


async def tells(head: bytes) -> bytes:
    return answer(head.replace(b"\r\n\r\n", b"\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n"))


async def refuses(_: bytes) -> bytes:
    return answer(b"", "407 Proxy Authentication Required")


async def talks_nonsense(_: bytes) -> bytes:
    return b"\x00\x01\x02"


async def hangs(_: bytes) -> bytes:
    await asyncio.sleep(30)
    return b""


async def test_proxies_are_measured() -> None:
    async with (
        proxy(repeats) as good,
        proxy(tells) as telling,
        proxy(refuses) as refusing,
        proxy(talks_nonsense) as broken,
        proxy(hangs) as hanging,
    ):
        pool = ProxyPool([good, telling, refusing, broken, hanging, "127.0.0.1:1"])
        assert await ProxyChecker(pool, "http://echo.example/", timeout_s=0.5).check_due() == 2
        known = {found.address: found for found in pool.proxies()}
        assert (known[good].anonymous, known[telling].anonymous) == (True, False)
        assert known[good].response_ms > 0
        assert {address for address, found in known.items() if found.failures} == {
            refusing,
            broken,
            hanging,
            "http://127.0.0.1:1",
        }
        assert {pool.choose("one.example"), pool.choose("one.example")} == {good, telling}
        assert await ProxyChecker(pool, "http://echo.example/").check_due() == 0


@all_cases(
    ("body", "expected"),
    [(b"hello", None), (b"User-Agent: x", True), (b"user-agent: x\nVia: 1.1 p", False), (b"USER-AGENT: x\nx-real-ip: 1", False)],
)
def test_only_a_page_that_repeats_headers_can_tell(body: bytes, expected: bool | None) -> None:  # noqa: FBT001
    assert is_anonymous(body) is expected


class Session:
    """Answers with a status, and notes what it is asked."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.asked: list[tuple[object, ...]] = []

    @asynccontextmanager
    async def get(self, url: str, *, proxy: str, allow_redirects: bool) -> AsyncIterator[Any]:
        self.asked.append((url, proxy, allow_redirects))

        async def read(most: int) -> bytes:
            assert most == 64_000
            return b"User-Agent: x"

        yield SimpleNamespace(status=self.status, content=SimpleNamespace(read=read))


@all_cases(("status", "good"), [(199, False), (200, True), (299, True), (300, False)])
def test_which_answers_are_good_and_how_long_they_took(status: int, *, good: bool) -> None:
    clock, session = iter([10.0, 10.25]), Session(status)
    pool = ProxyPool(["http://proxy.example:3128"])
    checker = ProxyChecker(pool, "http://echo.example/")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proxy_check, "time", SimpleNamespace(monotonic=clock.__next__))
        assert asyncio.run(checker._check(session, "http://proxy.example:3128")) is good  # type: ignore[arg-type]
    assert session.asked == [("http://echo.example/", "http://proxy.example:3128", False)]
    (found,) = pool.proxies()
    assert (found.response_ms, found.anonymous) == ((250.0, True) if good else (found.response_ms, None))
    assert found.failures == (0 if good else 1)


@all_cases(
    ("address", "shown"),
    [
        ("http://ada:secret@proxy.example:3128", "http://proxy.example:3128"),
        ("http://ada:s@cret@proxy.example:3128", "http://proxy.example:3128"),
        ("socks5://proxy.example", "socks5://proxy.example"),
    ],
)
def test_no_password_is_shown(address: str, shown: str) -> None:
    assert without_password(address) == shown
