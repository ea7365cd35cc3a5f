import asyncio
import gc
import logging
import socket
import ssl
import weakref
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mitmproxy.connection import Connection, ConnectionState
from mitmproxy.proxy import commands, events, server_hooks
from mitmproxy.proxy.mode_servers import ProxyConnectionHandler
from mitmproxy.proxy.server import ConnectionIO
from mitmproxy.test.tflow import tclient_conn, tserver_conn
from OpenSSL import SSL

from gatewayfilter.proxy.mitm.fastpath.connection_handler import (
    DetachedTransport,
    FastConnectionHandler,
    HeldConnection,
    IdleTimer,
)
from gatewayfilter.proxy.mitm.http.http_stream import GatewayHttpStream
from tests.proxy.conftest import StartGateway
from tests.proxy.connection_fakes import ask_for_page, until
from tests.proxy.mitm.test_shared_origins import CountingOrigin, left, origin_tls, visit
from tests.proxy.proxy_fakes import Origin

__all__ = ["origin_tls"]

NAMES = ("client_connected", "server_connect", "server_connected", "server_disconnected", "client_disconnected")


class Hooks:
    """Notes when each hook of a connection begins and ends; some wait in between."""

    name = "notes"

    def __init__(self, waits: frozenset[str]) -> None:
        self.waits = waits
        self.seen: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name not in NAMES:
            raise AttributeError(name)

        async def later() -> None:
            await asyncio.sleep(0.01)
            self.seen.append(f"{name} waited")

        def called(_: object) -> Any:
            self.seen.append(name)
            return later() if name in self.waits else None

        return called


@pytest.mark.parametrize("waits", [frozenset(), frozenset(NAMES)], ids=["none waits", "all wait"])
@pytest.mark.parametrize("fast_path", [True, False])
async def test_hooks_of_connections_run_once_and_to_their_end(
    waits: frozenset[str],
    fast_path: bool,  # noqa: FBT001  a column
    start_gateway: StartGateway,
    origin: Origin,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once: list[object] = []
    run = FastConnectionHandler.handle_hook

    async def note(self: FastConnectionHandler, hook: Any) -> None:
        at_once.append(hook)
        await run(self, hook)

    monkeypatch.setattr(FastConnectionHandler, "handle_hook", note)
    async with start_gateway(fast_path=fast_path) as gateway:
        hooks = Hooks(waits)
        gateway.master.addons.add(hooks)
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        async with asyncio.timeout(10):
            host = origin.http.removeprefix("http://").encode()
            writer.write(b"GET http://%b/page HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % (host, host))
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
            writer.close()
            expected = [step for name in NAMES for step in ((name, f"{name} waited") if waits else (name,))]
            await until(lambda: len(hooks.seen) == len(expected))
        assert sorted(hooks.seen) == sorted(expected)
        middle = [step for step in hooks.seen if "disconnected" not in step]
        assert middle == [step for step in expected if "disconnected" not in step]
    assert bool(at_once) is fast_path


@pytest.mark.parametrize("ending", ["client", "cancelled", "killed", "crashed"])
async def test_however_a_connection_ends_the_client_is_forgotten(
    ending: str, start_gateway: StartGateway, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start_gateway() as gateway:
        hooks = Hooks(frozenset({"client_disconnected", "server_disconnected"}))
        gateway.master.addons.add(hooks)
        connections = gateway.master.addons.get("proxyserver").connections
        if ending == "killed":
            monkeypatch.setattr(hooks, "client_connected", lambda client: setattr(client, "error", "killed"), raising=False)
        if ending == "crashed":
            monkeypatch.setattr(FastConnectionHandler, "handle_connection", _fail)
        async with asyncio.timeout(10):
            reader, writer = await ask_for_page(gateway.port, origin)
            if ending in {"client", "cancelled"}:
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            if ending == "client":
                writer.close()
            if ending == "cancelled":
                (handler,) = connections.values()
                handler.transports[handler.client].handler.cancel("a test")
                await reader.read()
            await until(lambda: "client_disconnected waited" in hooks.seen)
            await until(lambda: not connections)
            if ending != "client":
                with suppress(ConnectionError):
                    await reader.read()  # to its end: the connection is closed
        writer.close()
    assert hooks.seen.count("client_disconnected") == 1
    assert hooks.seen.count("server_connected") == hooks.seen.count("server_disconnected waited")


async def _fail(_self: object, _connection: object) -> None:
    raise ValueError("a crash")


@pytest.mark.parametrize(
    ("last", "passes"), [(b"", False), (b"\r\n", False), (b"GET /half HTTP/1.1\r\nHo", True)], ids=["nothing", "line end", "half"]
)
async def test_the_end_of_a_client_passes_layers_only_where_they_await_something(
    last: bytes,
    passes: bool,  # noqa: FBT001  a column
    start_gateway: StartGateway,
    origin: Origin,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends: list[object] = []
    handle = ProxyConnectionHandler.server_event

    async def note(self: Any, event: events.Event) -> None:
        if isinstance(event, events.ConnectionClosed) and event.connection is self.client:
            ends.append(event)
        await handle(self, event)

    monkeypatch.setattr(ProxyConnectionHandler, "server_event", note)
    async with start_gateway() as gateway:
        connections = gateway.master.addons.get("proxyserver").connections
        async with asyncio.timeout(10):
            reader, writer = await ask_for_page(gateway.port, origin)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            writer.write(last)
            await writer.drain()
            writer.close()
            await until(lambda: not connections)
    assert bool(ends) is passes


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
async def test_a_connection_that_has_ended_leaves_nothing_for_the_collector(
    start_gateway: StartGateway,
    origin_tls: ssl.SSLContext,
    client_tls: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
    *,
    secure: bool,
) -> None:
    made: list[weakref.ref[Any]] = []
    for kind in (SSL.Connection, GatewayHttpStream):
        _note_instances(monkeypatch, kind, made)
    async with (
        start_gateway(shared_origins=256) as gateway,
        CountingOrigin(tls=origin_tls if secure else None).running() as origin,
    ):
        gc.disable()
        try:
            for number in range(3):
                assert (await visit(gateway, origin, str(number), tls=client_tls if secure else None)).endswith(b"ok")
                await left(gateway, 1)
            (parked,) = gateway.master._shared._parked
            kept = {None, parked.tls.made}
            await until(lambda: {one() for one in made} <= kept)
        finally:
            gc.enable()
    assert len(made) == (3 + 3 + 1 if secure else 3)


def _note_instances(monkeypatch: pytest.MonkeyPatch, kind: Any, made: list[weakref.ref[Any]]) -> None:
    begin = kind.__init__

    def note(self: Any, *arguments: Any) -> None:
        made.append(weakref.ref(self))
        begin(self, *arguments)

    monkeypatch.setattr(kind, "__init__", note)


async def test_a_hook_that_waits_longer_than_the_client_finds_its_layers(
    start_gateway: StartGateway, origin: Origin, caplog: pytest.LogCaptureFixture
) -> None:
    gate, ended = asyncio.Event(), asyncio.Event()

    class Waits:
        name = "waits"

        async def request(self, _: object) -> None:
            await gate.wait()
            ended.set()

    async with start_gateway() as gateway:
        gateway.master.addons.add(Waits())
        connections = gateway.master.addons.get("proxyserver").connections
        async with asyncio.timeout(10):
            _, writer = await ask_for_page(gateway.port, origin)
            await until(lambda: connections)
            (handler,) = connections.values()
            await until(lambda: handler._hooks_waiting)
            writer.transport.abort()
            await until(lambda: not connections)
            gate.set()
            await ended.wait()
            await until(lambda: not handler._hooks_waiting)
    assert "crashed" not in caplog.text


@pytest.mark.parametrize("ends", ["client", "origin"])
async def test_a_taken_connection_has_its_hooks_once_whoever_ends_it(
    ends: str, start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks: list[object] = []
    serve = HeldConnection._serve

    def note(self: HeldConnection) -> asyncio.Task[None]:
        tasks.append(made := serve(self))
        return made

    monkeypatch.setattr(HeldConnection, "_serve", note)
    async with start_gateway(shared_origins=256) as gateway, CountingOrigin().running() as origin:
        await visit(gateway, origin, "0")
        await left(gateway, 1)
        hooks = Hooks(frozenset())
        gateway.master.addons.add(hooks)
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        async with asyncio.timeout(10):
            head = b"GET http://localhost:%d/1 HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % (origin.port, origin.port)
            writer.write(head)
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            if ends == "origin":
                for one in origin.writers:
                    one.close()
                await until(lambda: "server_disconnected" in hooks.seen)
                writer.write(head)
                assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            writer.close()
            await left(gateway, 1)
        middle = ["server_disconnected", "server_connect", "server_connected"] if ends == "origin" else []
        assert hooks.seen[:3] == list(NAMES[:3])
        assert hooks.seen[3 : 3 + len(middle)] == middle
        assert hooks.seen[3 + len(middle) :] == ["client_disconnected", "server_disconnected"]
        assert bool(tasks) is (ends == "origin")


class Writes:
    """A top layer that answers each read with what it is to send."""

    def __init__(self, handler: FastConnectionHandler, sent: list[bytes]) -> None:
        self._handler = handler
        self._sent = sent

    def handle_event(self, _event: events.Event) -> list[commands.Command]:
        return [commands.SendData(self._handler.client, data) for data in self._sent]


async def written_by(sent: list[bytes]) -> tuple[FastConnectionHandler, socket.socket, asyncio.StreamWriter]:
    """Returns a handler that has written to a peer which reads nothing yet, and that peer."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=ours)
    handler: Any = FastConnectionHandler.__new__(FastConnectionHandler)
    handler.client = client = tclient_conn()
    handler.transports = {client: ConnectionIO(None, reader, writer)}
    handler._server_event_lock = asyncio.Lock()
    handler.timeout_watchdog = IdleTimer(600, lambda: asyncio.sleep(0))
    handler.layer = Writes(handler, sent)
    handler.unsettled = False
    handler.handle_now(events.DataReceived(client, b"read"))
    return handler, theirs, writer


@pytest.mark.parametrize(
    ("sent", "waits"),
    [
        ([b"a"], False),
        ([b"a", b"b" * 1000, b"c"], False),
        ([b"a" * 10_000_000], True),
        ([b"a" * 10_000_000, b"b", b"c" * 10_000_000], True),
    ],
    ids=["short", "three", "long", "long and short"],
)
async def test_what_is_written_arrives_in_order_and_is_noted_while_it_waits(sent: list[bytes], *, waits: bool) -> None:
    handler, peer, writer = await written_by(sent)
    assert handler.unsettled == bool(writer.transport.get_write_buffer_size()) == waits
    got = b""
    async with asyncio.timeout(30):
        while len(got) < sum(map(len, sent)):
            got += await asyncio.get_running_loop().sock_recv(peer, 1 << 20)
    assert got == b"".join(sent)
    assert not writer.transport.get_write_buffer_size()
    writer.close()
    peer.close()


async def test_what_is_written_later_does_not_overtake_what_waits() -> None:
    handler, peer, writer = await written_by([b"a" * 5_000_000])
    got = bytearray()
    for _ in range(40):  # the system can take more again, before the event loop can tell
        with suppress(BlockingIOError):
            got += peer.recv(1 << 20)
    handler.layer = cast("Any", Writes(handler, [b"b"]))
    handler.handle_now(events.DataReceived(handler.client, b"read"))
    assert handler.unsettled
    async with asyncio.timeout(30):
        while len(got) < 5_000_001:
            got += await asyncio.get_running_loop().sock_recv(peer, 1 << 20)
    assert got == b"a" * 5_000_000 + b"b"
    writer.close()
    peer.close()


async def test_a_peer_that_has_gone_ends_its_connection() -> None:
    handler, peer, writer = await written_by([b"a"])
    peer.close()
    for _ in range(3):
        handler.handle_now(events.DataReceived(handler.client, b"read"))
    assert writer.transport.is_closing()
    assert handler.unsettled
    handler.unsettled = False
    handler.handle_now(events.DataReceived(handler.client, b"read"))
    assert handler.unsettled


class Commanded:
    """A handler whose layers give one command, and what it does about it."""

    def __init__(self, command: commands.Command, *connections: Connection) -> None:
        self.done: list[object] = []
        self.writer: Any = SimpleNamespace(is_closing=lambda: False, write=lambda data: self.done.append(("written", data)))
        handler: Any = FastConnectionHandler.__new__(FastConnectionHandler)
        handler.client = tclient_conn()
        handler.transports = {one: ConnectionIO(writer=cast("Any", self.writer)) for one in connections}
        handler.wakeup_timer = set()
        handler._server_event_lock = asyncio.Lock()
        handler.timeout_watchdog = IdleTimer(600, lambda: asyncio.sleep(0))
        handler.layer = SimpleNamespace(handle_event=lambda _: [command])
        handler.close_connection = lambda connection, half: self.done.append(("closed", connection, half))
        handler.log = lambda message, level, exc_info=None: self.done.append((message, level, exc_info))
        for name in ("open_connection", "wakeup", "hook_task"):
            setattr(handler, name, self._noting(name))
        handler.unsettled = False
        self.handler = handler
        handler.handle_now(events.DataReceived(handler.client, b"read"))

    def _noting(self, name: str) -> Any:
        async def note(command: object) -> None:
            self.done.append((name, command))

        return note


class OwnData(commands.SendData):
    """Data to send, by another kind of command."""


async def test_what_a_command_of_the_layers_does() -> None:
    server, log = tserver_conn(), commands.Log("said", logging.WARNING)
    for command, connections, done in (
        (commands.CloseConnection(server), [server], [("closed", server, False)]),
        (commands.CloseTcpConnection(server, half_close=True), [server], [("closed", server, True)]),
        (commands.CloseTcpConnection(server), [server], [("closed", server, False)]),
        (commands.CloseConnection(server), [], []),
        (OwnData(server, b"x"), [server], [("written", b"x")]),
        (OwnData(server, b"x"), [], []),
        (log, [], [("said", logging.WARNING, None)]),
    ):
        found = Commanded(command, *connections)
        assert (found.done, found.handler.unsettled) == (done, True)
    open_it, wake, hook = (
        commands.OpenConnection(server),
        commands.RequestWakeup(1.5),
        server_hooks.ClientConnectedHook(tclient_conn()),
    )
    opening = Commanded(open_it)
    task = opening.handler.transports[server].handler
    assert task.get_name().startswith("server connection handler")
    waking, hooking = Commanded(wake), Commanded(hook)
    (timer,) = waking.handler.wakeup_timer
    assert "wakeup timer (1.5s)" in timer.get_name()
    await asyncio.gather(task, timer)
    await until(lambda: hooking.done)
    assert [one.done for one in (opening, waking, hooking)] == [
        [("open_connection", open_it)],
        [("wakeup", wake)],
        [("hook_task", hook)],
    ]


async def test_a_writer_that_closes_gets_nothing_and_an_unknown_command_is_a_crash() -> None:
    server = tserver_conn()
    found = Commanded(commands.Log("first"), server)
    found.writer.is_closing = lambda: True
    found.handler._do(OwnData(server, b"x"))
    assert found.done == [("first", logging.INFO, None)]
    crashed = Commanded(commands.Command())
    assert crashed.done == [("mitmproxy has crashed!", logging.ERROR, True)]
    assert not crashed.handler._server_event_lock.locked()


async def test_while_a_read_is_handled_no_event_overtakes_it() -> None:
    found = Commanded(commands.Log("first"))
    locked: list[bool] = []

    def handle(_: events.Event) -> list[commands.Command]:
        locked.append(found.handler._server_event_lock.locked())
        return []

    found.handler.layer = SimpleNamespace(handle_event=handle)
    found.handler.handle_now(events.DataReceived(found.handler.client, b"read"))
    assert (locked, found.handler._server_event_lock.locked()) == ([True], False)


async def test_after_any_event_what_was_written_may_wait() -> None:
    found = Commanded(commands.Log("first"))
    found.handler.unsettled = False
    await found.handler.server_event(events.Start())
    assert found.handler.unsettled


@pytest.mark.parametrize(
    ("has_left", "is_there", "is_taken", "passes"),
    [(True, True, True, False), (False, True, True, True), (True, False, True, True), (True, True, False, True)],
)
async def test_the_end_of_a_taken_connection_passes_no_layers(
    *, has_left: bool, is_there: bool, is_taken: bool, passes: bool
) -> None:
    server, got = tserver_conn(), list[events.Event]()

    def handle(event: events.Event) -> list[commands.Command]:
        got.append(event)
        return []

    handler = Commanded(commands.Log("first")).handler
    loop = asyncio.get_running_loop()
    transport = DetachedTransport() if is_taken else asyncio.Transport()
    writer = asyncio.StreamWriter(transport, cast("Any", None), None, loop)
    if is_there:
        handler.transports[server] = ConnectionIO(writer=writer)
    handler.layer, handler._has_left = SimpleNamespace(handle_event=handle), has_left
    server.state, event = ConnectionState.OPEN, events.ConnectionClosed(server)
    await handler.server_event(event)
    assert (got, server.state) == ([event] if passes else [], ConnectionState.OPEN if passes else ConnectionState.CLOSED)
    vars(writer)["_transport"] = DetachedTransport()  # it closes its transport when it is collected


async def test_who_waits_for_the_lock_gets_it_after_the_read() -> None:
    found = Commanded(commands.Log("first"))
    lock = found.handler._server_event_lock
    await lock.acquire()
    waiting = asyncio.create_task(lock.acquire())
    await asyncio.sleep(0)
    found.handler.handle_now(events.DataReceived(found.handler.client, b"read"))
    async with asyncio.timeout(10):
        await waiting
    assert lock.locked()
