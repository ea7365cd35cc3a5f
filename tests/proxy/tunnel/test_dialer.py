"""Ways to origins: by name or address, preferred addresses first, through a parent, never back to ourselves, never for ever."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

from gatewayfilter.proxy.tunnel import dialer as dialers
from gatewayfilter.proxy.tunnel.dialer import Dial, Dialer, ParentRefusedError, Way
from gatewayfilter.proxy.tunnel.resolver import AddressInfo, Resolver
from tests.held_ports import HOST, hold_port, port_of
from tests.proxy.connection_fakes import tcp_server, until

BOTH = [
    (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 1, 0, 0)),
    (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 1)),
]


async def dialled(dialer: Dialer, host: str, port: int, prefer: str = "") -> Way:
    """Waits for a way, as a test can."""
    ended: asyncio.Future[Way | OSError] = asyncio.get_running_loop().create_future()
    dialer.dial(host, port, ended.set_result, prefer).begin()
    async with asyncio.timeout(10):
        found = await ended
    assert len(dialer.deadlines) == 0
    if isinstance(found, OSError):
        raise found
    return found


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
@pytest.mark.parametrize("remembers", [True, False])
async def test_names_and_addresses(*, host: str, remembers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    if remembers:
        monkeypatch.setattr(loop, "getaddrinfo", Resolver(loop).getaddrinfo)
    async with tcp_server() as server:
        dialer = Dialer(loop)
        for _ in range(2):  # the second time without a look-up, where there is a memory
            way = await dialled(dialer, host, server.port)
            assert way.socket.getpeername() == ("127.0.0.1", server.port)
            assert way.first == b""
            way.socket.close()
        with hold_port() as nobody, pytest.raises(ConnectionRefusedError):
            await dialled(dialer, host, port_of(nobody))


@pytest.mark.parametrize("times", [1, 2])
async def test_a_name_that_nobody_knows(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "getaddrinfo", Resolver(loop).getaddrinfo)
    for _ in range(times):
        with pytest.raises(socket.gaierror):
            await dialled(Dialer(loop), "nowhere.invalid", 443)
    with pytest.raises(OSError, match="not a name"):
        await dialled(Dialer(loop), "a" * 70 + ".example", 443)


@pytest.mark.parametrize("prefer", ["127.0.0.1", "::1", "192.0.2.1", ""])
async def test_the_clients_own_choice_counts_where_the_name_has_it(prefer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    tried: list[str] = []

    async def resolve(*_: object, **__: object) -> list[Any]:
        return BOTH

    class Winner:
        def __init__(self, found: list[AddressInfo], done: Callable[[socket.socket], None]) -> None:
            tried.extend(info[4][0] for info in found)
            self._done = done

        def try_next(self) -> None:
            self._done(socket.socket())

    monkeypatch.setattr(loop, "getaddrinfo", resolve)
    monkeypatch.setattr(dialers, "race_of", lambda _, found, done: Winner(found, done))
    way = await dialled(Dialer(loop), "both.example", 1, prefer)
    way.socket.close()
    assert tried == (["127.0.0.1", "::1"] if prefer == "127.0.0.1" else ["::1", "127.0.0.1"])


@pytest.mark.parametrize(("asked", "ends"), [(0, False), (1, True)])
async def test_a_way_back_to_ourselves_is_none(*, asked: int, ends: bool) -> None:
    """Only where the port is ours is the question asked at all."""
    seen: list[socket.socket] = []

    def leads_back(made: socket.socket) -> bool:
        seen.append(made)
        return True

    async with tcp_server() as server:
        dialer = Dialer(asyncio.get_running_loop(), leads_back=leads_back)
        assert dialer.own_port == 0
        dialer.own_port = server.port if asked else server.port + 1
        if ends:
            with pytest.raises(OSError, match="leads back"):
                await dialled(dialer, "127.0.0.1", server.port)
            assert seen[0].fileno() == -1
        else:
            (await dialled(dialer, "127.0.0.1", server.port)).socket.close()
        assert len(seen) == asked


async def test_what_an_attempt_ends_with_comes_after_it_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()

    async def fail(*_: object, **__: object) -> list[Any]:
        raise OSError("no resolver")

    monkeypatch.setattr(loop, "getaddrinfo", fail)
    ended: list[Way | OSError] = []
    Dialer(loop).dial("site.example", 443, ended.append).begin()
    assert ended == []
    await until(lambda: ended)
    assert str(ended[0]) == "no resolver"


async def test_giving_up_ends_the_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    answer, asked = loop.create_future(), asyncio.Event()

    async def ask(*_: object, **__: object) -> Any:
        asked.set()
        return await answer

    monkeypatch.setattr(loop, "getaddrinfo", ask)
    ended: list[Way | OSError] = []
    attempt = Dialer(loop).dial("site.example", 443, ended.append)
    attempt.begin()
    await asked.wait()
    attempt.cancel()
    await asyncio.sleep(0)
    assert (answer.cancelled(), ended) == (True, [])


@pytest.mark.parametrize("at", ["look-up", "parent"])
@pytest.mark.parametrize("how", ["too long", "given up"])
async def test_an_attempt_ends_when_nobody_answers(at: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()

    async def never(*_: object, **__: object) -> list[Any]:
        await asyncio.Event().wait()
        return []

    ended: list[Way | OSError] = []
    async with tcp_server() as parent:
        if at == "look-up":
            monkeypatch.setattr(loop, "getaddrinfo", never)
        dialer = Dialer(
            loop, ("127.0.0.1", parent.port) if at == "parent" else None, connect_s=0.02 if how == "too long" else 1000.0
        )
        attempt: Dial = dialer.dial("slow.example", 443, ended.append)
        attempt.begin()
        if at == "parent":
            await until(lambda: parent.heard.endswith(b"\r\n\r\n"))
        else:
            await asyncio.sleep(0.005)
        if how == "given up":
            attempt.cancel()
        if at == "parent":
            async with asyncio.timeout(10):
                await parent.ended.wait()
        if how == "too long":
            await until(lambda: ended)
            assert isinstance(ended[0], TimeoutError)
            assert "timed out" in str(ended[0])
        await asyncio.sleep(0.03)
        assert len(ended) == (how == "too long")
        assert len(dialer.deadlines) == 0


@pytest.mark.parametrize(
    ("says", "want"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nhello", b"hello"),
        (b"HTTP/1.0 299 x\r\nA: b\r\n\r\n", b""),
        (b"HTTP/1.1 403 No\r\n\r\n", "refused: HTTP/1.1 403 No"),
        (b"nonsense\r\n\r\n", "refused: nonsense"),
        (b"HTTP/1.1 200 OK\r\n", "gave no answer"),
        (b"x" * 70_000, "gave no answer"),
        (b"", "gave no answer"),
    ],
)
@pytest.mark.parametrize("pieces", ["whole", "bytes"])
async def test_a_parent_is_asked(says: bytes, want: bytes | str, pieces: str) -> None:
    heard: list[bytes] = []

    async def parent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        step = 1 if pieces == "bytes" and len(says) < 100 else max(1, len(says))
        for start in range(0, len(says), step):
            writer.write(says[start : start + step])
            await asyncio.sleep(0)
        writer.close()

    server = await asyncio.start_server(parent, "127.0.0.1", 0)
    dialer = Dialer(asyncio.get_running_loop(), ("127.0.0.1", server.sockets[0].getsockname()[1]))
    if isinstance(want, str):
        with pytest.raises(ParentRefusedError, match=want):
            await dialled(dialer, "bank.example", 443)
    else:
        way = await dialled(dialer, "bank.example", 443)
        rest = way.first
        while chunk := await asyncio.get_running_loop().sock_recv(way.socket, 100):
            rest += chunk
        assert rest == want
        way.socket.close()
    assert heard == [b"CONNECT bank.example:443 HTTP/1.1\r\nHost: bank.example:443\r\n\r\n"]
    server.close()


async def test_a_parent_that_is_gone() -> None:
    with hold_port() as nobody:
        dialer = Dialer(asyncio.get_running_loop(), (HOST, port_of(nobody)))
        with pytest.raises(ConnectionRefusedError):
            await dialled(dialer, "bank.example", 443)
