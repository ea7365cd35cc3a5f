"""The rules of the keep-alive pool one by one; clients, transports and TLS are stand-ins."""

import asyncio
import socket
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mitmproxy.connection import Client, ConnectionState, Server
from mitmproxy.options import Options
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.tls import ServerTLSLayer
from mitmproxy.proxy.tunnel import TunnelState

from gatewayfilter.proxy.mitm import shared_origins
from gatewayfilter.proxy.mitm.fastpath.direct_reader import DirectReader
from gatewayfilter.proxy.mitm.http.http1_client import GatewayHttp1Client
from gatewayfilter.proxy.mitm.shared_origins import MOST_AGE_S, MOST_IDLE_S, SharedOrigins, take_over
from gatewayfilter.proxy.mitm.sharing import Adopted, Sharing, note_sharing, sharing_of
from gatewayfilter.telemetry import Counters

AT = ("site.example", 80)
PEER = ("192.0.2.1", 80)
OPTIONS = Options()


class Transport(asyncio.Transport):
    """A connection to an origin."""

    def __init__(self, peer: tuple[str, int] | None = PEER) -> None:
        super().__init__()
        self.peer, self.closing, self.reading, self.unsent = peer, False, True, 0
        self.aborted = False
        self.protocol: Any = None
        self.socket: Any = None

    def is_closing(self) -> bool:
        return self.closing

    def is_reading(self) -> bool:
        return self.reading

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": self.peer, "socket": self.socket}[name]

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def abort(self) -> None:
        self.aborted = True

    close = abort


class Reader(DirectReader):
    at_rest = True

    def __init__(self) -> None:
        pass


class Writer(asyncio.StreamWriter):
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __del__(self) -> None:
        pass


class Held:
    """A connection to an origin that a client has."""

    def __init__(self, pool: "Pool", client: str, *, tls: bool = False, peer: tuple[str, int] = PEER) -> None:
        self.server = Server(address=AT)
        self.server.peername, self.server.state, self.server.tls = peer, ConnectionState.OPEN, tls
        self.transport = Transport(peer)
        context = Context(Client(peername=("10.0.0.2", 5), sockname=("10.0.0.1", 8080)), OPTIONS)
        context.server = self.server
        self.http = GatewayHttp1Client.idle(context)
        self.made = object() if tls else None
        self.tls: Any
        top: Any = self.http
        if tls:
            top = self.tls = object.__new__(ServerTLSLayer)
            top.tls, top.tunnel_state, top._paused, top.child_layer = self.made, TunnelState.OPEN, None, self.http
        self.layers: Any = SimpleNamespace(connections={self.server: top})
        self.sharing = Sharing(cast("Any", None), may_adopt=True)
        note_sharing(self.server, self.sharing)
        self.ended: list[str] = []
        self.io: Any = SimpleNamespace(
            writer=Writer(self.transport), reader=Reader(), handler=SimpleNamespace(cancel=self.ended.append)
        )
        handler = pool.clients.setdefault(
            client, cast("Any", SimpleNamespace(transports={}, timeout_watchdog=SimpleNamespace(last_activity=time.time())))
        )
        handler.transports[self.server] = self.io
        self.client = handler
        hook: Any = SimpleNamespace(server=self.server, client=SimpleNamespace(id=client, sni=None, alpn_offers=()))
        pool.pool.note_key(self.server, hook.client)
        pool.pool.server_connected(hook)
        self.sharing.http_layer = cast("Any", self.layers)
        self.hook = hook


class Pool:
    """A pool with its clock and what TLS was told."""

    def __init__(self, most: int = 10) -> None:
        self.now, self.clients = 1_000.0, dict[str, Any]()
        self.ended: list[object] = []
        self.released: Any = (("peer",), 7.0)
        self.counters = Counters()
        tls: Any = SimpleNamespace(
            release=lambda server, made: self.released, end=lambda peer, made: self.ended.append((peer, made))
        )
        self.pool = SharedOrigins(cast("Any", self.clients), tls, most, self.counters, lambda: self.now)

    def left(self, client: str) -> int:
        """Has a client leave; returns how many connections are kept then."""

        async def leave() -> None:
            self.pool.client_disconnected(cast("Any", SimpleNamespace(id=client)))

        asyncio.run(leave())
        return len(self.pool)

    def take(self, sharing: Sharing | None = None, addresses: tuple[str, ...] = (PEER[0],)) -> asyncio.Transport | None:
        wanted = sharing or Sharing(None, may_adopt=True, key=(AT, None, ()))
        return self.pool.take_for(wanted, lambda: addresses)


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Pool:
    monkeypatch.setattr(shared_origins, "_is_readable", lambda transport: transport.socket is not None)
    monkeypatch.setattr(shared_origins, "holds_data", lambda made: False)
    return Pool()


def test_an_idle_connection_is_kept_and_taken(pool: Pool) -> None:
    held = Held(pool, "first")
    assert (held.sharing.key, held.sharing.opened_at) == ((AT, None, ()), 1_000.0)
    assert pool.left("first") == 1
    assert (held.server.state, held.sharing.http_layer, held.transport.protocol.since) == (ConnectionState.CLOSED, None, 1_000.0)
    assert held.io.writer.transport is not held.transport
    pool.pool.server_disconnected(held.hook)
    pool.now += 3.0
    wanted = Sharing(None, may_adopt=True, key=(AT, None, ()))
    assert pool.take(wanted) is held.transport
    assert wanted.adopted == Adopted(held.server, None, (), 0.0, 1_000.0)
    assert (wanted.opened_at, len(pool.pool), pool.counters["origin_connections_shared"]) == (1_000.0, 0, 1)
    assert not pool.pool.may_have((AT, None, ()))
    assert pool.take() is None
    assert not held.transport.aborted


def test_tls_is_released_and_ended_with_its_connection(pool: Pool) -> None:
    key = (AT, "site.example", ())
    for taken in (True, False):
        held = Held(pool, "first", tls=True)
        assert held.sharing.key == key
        assert pool.left("first") == 1
        wanted = Sharing(None, may_adopt=True, key=key)
        if taken:
            assert pool.take(wanted) is held.transport
            assert wanted.adopted is not None
            assert (wanted.adopted.made, wanted.adopted.peer, wanted.adopted.verified_at) == (held.made, ("peer",), 7.0)
            assert pool.ended == []
        else:
            held.transport.protocol.data_received(b"late")
            assert (pool.ended, held.transport.aborted, len(pool.pool)) == ([(("peer",), held.made)], True, 0)
    pool.released = None
    Held(pool, "first", tls=True)
    assert pool.left("first") == 0


def bound(held: Held) -> None:
    held.sharing.bound = True


def keyless(held: Held) -> None:
    held.sharing.key = None


@pytest.mark.parametrize(
    "change",
    [
        bound,
        keyless,
        lambda held: setattr(held.sharing, "http_layer", None),
        lambda held: held.layers.connections.clear(),
        lambda held: setattr(held.server, "state", ConnectionState.CAN_READ),
        lambda held: setattr(held.server, "error", "x"),
        lambda held: vars(held.server).update(via=("http", ("parent.example", 1))),
        lambda held: setattr(held.server, "tls", True),
        lambda held: setattr(held.io, "handler", None),
        lambda held: setattr(held.io, "writer", None),
        lambda held: setattr(held.io, "reader", None),
        lambda held: setattr(held.io.reader, "at_rest", False),
        lambda held: setattr(held.transport, "closing", True),
        lambda held: setattr(held.transport, "reading", False),
        lambda held: setattr(held.transport, "unsent", 1),
        lambda held: setattr(held.http, "_paused", object()),
        lambda held: setattr(held.http, "_first", None),
        lambda held: setattr(held.http, "stream_id", 1),
        lambda held: setattr(held.http, "request", object()),
        lambda held: setattr(held.http, "state", held.http.read_body),
        lambda held: held.http.buf.__iadd__(b"late"),
    ],
)
def test_what_is_under_way_or_personal_is_not_kept(pool: Pool, change: Callable[[Held], object]) -> None:
    held = Held(pool, "first")
    change(held)
    assert pool.left("first") == 0
    assert held.transport.protocol is None


@pytest.mark.parametrize("fault", ["state", "paused", "none", "data", "plain"])
def test_tls_that_is_not_at_rest_is_not_kept(pool: Pool, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(pool, "first", tls=True)
    if fault == "state":
        held.tls.tunnel_state = TunnelState.ESTABLISHING
    elif fault == "paused":
        held.tls._paused = object()
    elif fault == "none":
        held.tls.tls = None
    elif fault == "plain":
        held.server.tls = False
    else:
        monkeypatch.setattr(shared_origins, "holds_data", lambda made: True)
    assert pool.left("first") == 0


def test_old_connections_are_neither_kept_nor_shared(pool: Pool) -> None:
    for age, kept in ((MOST_AGE_S - 1.0, 1), (MOST_AGE_S, 0)):
        held = Held(pool, "first")
        held.sharing.opened_at = pool.now - age
        assert pool.left("first") == kept
        pool.pool.server_disconnected(held.hook)
        if kept:
            pool.now += 1.0
            assert pool.take() is None
            assert held.transport.aborted
    for idle, shared in ((MOST_IDLE_S - 1.0, True), (MOST_IDLE_S, False)):
        held = Held(pool, "first")
        pool.left("first")
        pool.pool.server_disconnected(held.hook)
        pool.now += idle
        assert (pool.take() is held.transport) == shared
        assert held.transport.aborted == (not shared)
    for fault in ("closing", "socket"):
        held = Held(pool, "first")
        pool.left("first")
        setattr(held.transport, fault, True)
        assert (pool.take(), held.transport.aborted) == (None, True)


def test_the_address_has_to_be_one_that_the_client_may_reach(pool: Pool) -> None:
    held = Held(pool, "first")
    pool.left("first")
    pool.pool.server_disconnected(held.hook)
    held.transport.peer = None
    assert pool.take() is None
    held.transport.peer = PEER
    assert pool.take(addresses=("192.0.2.2",)) is None
    assert pool.take(Sharing(None, may_adopt=True, key=(("other.example", 80), None, ()))) is None
    assert pool.take(Sharing(None, may_adopt=True)) is None
    assert pool.take(addresses=("192.0.2.2", PEER[0])) is held.transport


def test_the_one_used_last_is_taken_first(pool: Pool) -> None:
    kept = [Held(pool, f"client {number}") for number in range(3)]
    for number in range(3):
        pool.left(f"client {number}")
    assert [pool.take() for _ in range(4)] == [one.transport for one in reversed(kept)] + [None]


def test_a_silent_client_lends_its_connection(pool: Pool) -> None:
    for idle, peer, lends in ((6.0, PEER[0], True), (4.0, PEER[0], False), (6.0, "192.0.2.2", False)):
        held = Held(pool, "first")
        held.client.timeout_watchdog.last_activity = time.time() - idle
        assert (pool.take(addresses=(peer,)) is held.transport) == lends
        assert held.ended == ["taken by another client"] * lends
        pool.pool.server_disconnected(held.hook)
        del held.client.transports[held.server]
    unknown = Held(pool, "first")
    unknown.client.timeout_watchdog.last_activity = 0.0
    unknown.server.peername = None
    assert pool.take() is None
    unknown.server.peername = PEER
    bound(unknown)
    assert (pool.take(), unknown.ended) == (None, [])
    assert pool.pool.may_have((AT, None, ()))
    pool.pool.server_disconnected(unknown.hook)
    assert not pool.pool.may_have((AT, None, ()))


def test_numbers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_origins, "_is_readable", lambda transport: False)
    small = Pool(2)
    kept = [Held(small, f"client {number}") for number in range(3)]
    assert [small.left(f"client {number}") for number in range(3)] == [1, 2, 2]
    assert [one.transport.aborted for one in kept] == [True, False, False]
    monkeypatch.setattr(shared_origins, "_MOST_OF_ONE", 2)
    large = Pool()
    kept = [Held(large, f"client {number}") for number in range(4)]
    assert [large.left(f"client {number}") for number in range(4)] == [1, 2, 2, 2]
    assert [one.transport.aborted for one in kept] == [True, True, False, False]
    assert large.left("nobody") == 2
    off = Pool(0)
    held = Held(off, "first")
    assert (held.sharing.key, off.left("first"), off.left("nobody")) == (None, 0, 0)


def test_what_belongs_to_a_key(pool: Pool) -> None:
    def key(tls: bool, sni: str | None = None, client_sni: str | None = None, **more: Any) -> object:  # noqa: FBT001
        server = Server(address=more.get("address", AT), transport_protocol=more.get("protocol", "tcp"))
        server.tls, server.sni, server.alpn_offers = tls, sni, more.get("offers", ())
        sharing = Sharing(None, may_adopt=True)
        note_sharing(server, sharing)
        pool.pool.note_key(server, cast("Any", SimpleNamespace(sni=client_sni, alpn_offers=more.get("client_offers", ()))))
        return sharing.key

    assert key(False, "a.example", "b.example", offers=(b"h2",)) == (AT, None, ())
    assert key(True, "a.example", "b.example") == (AT, "a.example", ())
    assert key(True, "", "b.example") == (AT, "", ())
    assert key(True, None, "b.example") == (AT, "b.example", ())
    assert key(True) == (AT, "site.example", ())
    assert key(True, offers=[b"h2"], client_offers=[b"http/1.1"]) == (AT, "site.example", (b"h2",))
    assert key(True, client_offers=[b"http/1.1"]) == (AT, "site.example", (b"http/1.1",))
    assert key(False, address=None) is None
    assert key(False, protocol="udp") is None
    pool.pool.note_key(Server(address=AT), cast("Any", None))


def test_an_adopted_connection_keeps_its_age(pool: Pool) -> None:
    held = Held(pool, "first")
    held.sharing.adopted = Adopted(held.server, None, (), 0.0, 5.0)
    held.sharing.opened_at = 5.0
    pool.pool.server_connected(held.hook)
    assert held.sharing.opened_at == 5.0
    unnoted: Any = SimpleNamespace(server=Server(address=AT), client=SimpleNamespace(id="first"))
    pool.pool.server_connected(unnoted)
    pool.pool.server_disconnected(unnoted)
    other = Held(pool, "second")
    pool.pool.server_disconnected(held.hook)
    assert pool.pool.may_have((AT, None, ()))
    pool.pool.server_disconnected(other.hook)
    assert not pool.pool.may_have((AT, None, ()))
    pool.pool.server_disconnected(other.hook)


@pytest.mark.parametrize("ends", ["data_received", "eof_received", "connection_lost"])
def test_whatever_its_origin_does_ends_a_kept_connection(pool: Pool, ends: str) -> None:
    held = Held(pool, "first")
    pool.left("first")
    parked = held.transport.protocol
    getattr(parked, ends)(*(() if ends == "eof_received" else (b"x",)))
    assert (len(pool.pool), held.transport.aborted) == (0, True)
    held.transport.aborted = False
    parked.eof_received()
    assert not held.transport.aborted, "once"


def test_a_pool_that_is_closed_keeps_nothing(pool: Pool) -> None:
    held = Held(pool, "first")
    pool.left("first")
    cancelled: list[bool] = []
    pool.pool._sweeper = cast("Any", SimpleNamespace(cancel=lambda: cancelled.append(True)))
    pool.pool.close()
    assert (len(pool.pool), held.transport.aborted, cancelled, pool.pool._sweeper) == (0, True, [True], None)
    pool.pool.close()
    assert cancelled == [True]
    Held(pool, "second")
    assert pool.left("second") == 0


def test_idle_connections_are_swept(pool: Pool) -> None:
    first, second = Held(pool, "first"), Held(pool, "second")

    async def sweep() -> list[bool]:
        seconds: list[float] = []
        loop = asyncio.get_running_loop()
        later = loop.call_later

        def call_later(after: float, *more: Any, **named: Any) -> asyncio.TimerHandle:
            seconds.append(after)
            return later(after, *more, **named)

        loop.call_later = call_later  # type: ignore[assignment, method-assign]
        pool.pool.client_disconnected(cast("Any", SimpleNamespace(id="first")))
        began = pool.pool._sweeper
        assert began is not None
        pool.now += 10.0
        pool.pool.client_disconnected(cast("Any", SimpleNamespace(id="second")))
        assert pool.pool._sweeper is began
        assert seconds == [5.0]
        kept = []
        for after in (39.0, 1.0, 10.0):
            pool.now += after
            pool.pool._sweep()
            kept.append(len(pool.pool))
        assert (kept, seconds, vars(pool.pool)["_sweeper"]) == ([2, 1, 0], [5.0, 5.0, 5.0], None)
        return [first.transport.aborted, second.transport.aborted]

    assert asyncio.run(sweep()) == [True, True]


async def test_a_connection_that_is_opened_asks_the_pool(pool: Pool) -> None:
    found: Any = [(2, 1, 6, "", PEER), (2, 1, 6, "", ("192.0.2.9", 80))]
    assert await pool.pool.take(found) is None
    held = Held(pool, "first")
    pool.pool.client_disconnected(cast("Any", SimpleNamespace(id="first")))
    for may_adopt in (False, True):
        server = Server(address=AT)
        sharing = Sharing(None, may_adopt=may_adopt)
        note_sharing(server, sharing)
        pool.pool.server_connect(cast("Any", SimpleNamespace(server=server, client=held.hook.client)))
        assert sharing.key == (AT, None, ())
        turns: list[bool] = []
        asyncio.get_running_loop().call_soon(turns.append, True)
        assert await pool.pool.take(found) is (held.transport if may_adopt else None)
        assert turns == [True] * may_adopt, "it waits a turn, as mitmproxy expects"
    assert await pool.pool.take(found) is None
    pool.pool.server_connect(cast("Any", SimpleNamespace(server=Server(address=AT), client=held.hook.client)))
    assert await pool.pool.take(found) is None
    pool.pool.close()


def test_what_a_handshake_had_set_is_set_again() -> None:
    before, server = Server(address=AT), Server(address=AT)
    before.timestamp_tls_setup, before.alpn, before.cipher, before.tls_version = 5.0, b"h2", "x", "TLSv1.3"
    before.certificate_list = [cast("Any", "certificate")]
    before.sni = "kept.example"
    take_over(server, before)
    assert (server.timestamp_tls_setup, server.alpn, server.cipher, server.tls_version) == (5.0, b"h2", "x", "TLSv1.3")
    assert (list[object](server.certificate_list), server.sni, sharing_of(server)) == (["certificate"], None, None)


def test_a_connection_from_the_pool_has_its_handshake_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    did: list[str] = []

    def step(name: str) -> Any:
        did.append(name)
        return iter(())

    before, server = Server(address=AT), Server(address=AT)
    before.cipher = "x"
    tls: Any = SimpleNamespace(
        conn=server,
        context=None,
        tls="made",
        start_tls=lambda: step("start"),
        _handshake_finished=lambda error: step(f"end {error}"),
    )
    monkeypatch.setattr(shared_origins, "_start_handshake", lambda layer: step("whole"))
    for sharing in (None, Sharing(None, may_adopt=True)):
        if sharing is not None:
            note_sharing(server, sharing)
        assert (list(shared_origins.start_handshake(tls)), did) == ([], ["whole"])
        did.clear()
    assert sharing is not None
    sharing.adopted = Adopted(before, None, (), 0.0, 0.0)
    (hook,) = shared_origins.start_handshake(tls)
    assert (did, type(hook).__name__, server.cipher) == (["start", "end None"], "TlsEstablishedServerHook", "x")
    assert (cast("Any", hook).data.conn, cast("Any", hook).data.ssl_conn) == (server, "made")


def test_whether_the_kernel_holds_data() -> None:
    readable = shared_origins._is_readable
    near, far = socket.socketpair()
    transport = Transport()
    assert readable(transport), "no socket"
    transport.socket = near
    with near, far:
        assert not readable(transport)
        far.send(b"x")
        assert readable(transport)
        near.recv(1)
        far.close()
        assert readable(transport)
    assert readable(transport), "it is closed"
