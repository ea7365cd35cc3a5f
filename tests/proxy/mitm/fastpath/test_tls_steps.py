"""The short way through TLS, step by step: real records of OpenSSL in memory, and layers that note what reaches them."""

import datetime as dt
import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from mitmproxy.connection import Client, ConnectionState, Server
from mitmproxy.options import Options
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import HTTPMode
from mitmproxy.proxy.layers.tls import ClientTLSLayer, ServerTLSLayer
from mitmproxy.proxy.tunnel import TunnelState
from OpenSSL import SSL

from gatewayfilter.proxy.mitm.fastpath import tls_path
from gatewayfilter.proxy.mitm.fastpath.context import FastPathContext
from gatewayfilter.proxy.mitm.fastpath.http2.exchange import Taken
from gatewayfilter.proxy.mitm.fastpath.http_layer import FastHttpLayer
from gatewayfilter.proxy.mitm.fastpath.tls_path import awaits_nothing, deliver, deliver_http, holds_data
from gatewayfilter.proxy.mitm.http.error_answers import ErrorAnswers
from gatewayfilter.proxy.mitm.http.http1_client import GatewayHttp1Client
from gatewayfilter.proxy.mitm.http.http1_server import GatewayHttp1Server
from gatewayfilter.proxy.mitm.http.http2_flow import PatientHttp2Client
from gatewayfilter.proxy.mitm.http.http2_server import GatewayHttp2Server
from gatewayfilter.proxy.pages.block_page import BlockPages

GET = b"GET http://site.example/x HTTP/1.1\r\nHost: site.example\r\n\r\n"
LARGE = bytes(range(256)) * 1_200
OPTIONS, ERRORS = Options(), ErrorAnswers(BlockPages())


@pytest.fixture(scope="module")
def contexts() -> tuple[SSL.Context, SSL.Context]:
    """Of a server and of a client that verifies nothing."""
    key, now = ec.generate_private_key(ec.SECP256R1()), dt.datetime.now(dt.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "site.example")])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    made = made.not_valid_before(now).not_valid_after(now + dt.timedelta(1))
    server, client = SSL.Context(SSL.TLS_METHOD), SSL.Context(SSL.TLS_METHOD)
    server.use_certificate(made.sign(key, hashes.SHA256()))
    server.use_privatekey(key)
    client.set_verify(SSL.VERIFY_NONE)
    return server, client


class Pair:
    """Both ends of TLS, with their handshake behind them."""

    def __init__(self, contexts: tuple[SSL.Context, SSL.Context], *, ours_is_server: bool = True) -> None:
        server, client = SSL.Connection(contexts[0]), SSL.Connection(contexts[1])
        server.set_accept_state()
        client.set_connect_state()
        for _ in range(4):
            for one, other in ((client, server), (server, client)):
                self._step(one)
                if data := _read(one):
                    other.bio_write(data)
        self.ours, self.theirs = (server, client) if ours_is_server else (client, server)
        self._step(self.ours)
        _read(self.ours)

    @staticmethod
    def _step(one: SSL.Connection) -> None:
        try:
            one.do_handshake()
            one.recv(1)
        except SSL.WantReadError:
            pass

    def sealed(self, data: bytes) -> bytes:
        """Returns records of the other side."""
        self.theirs.sendall(data)
        return _read(self.theirs)

    def opened(self, records: bytes) -> bytes:
        """Returns what the other side reads."""
        if records:
            self.theirs.bio_write(records)
        found = b""
        try:
            while True:
                found += self.theirs.recv(65_536)
        except SSL.WantReadError:
            return found

    def ended(self) -> bytes:
        self.theirs.shutdown()
        return _read(self.theirs)


def _read(one: SSL.Connection) -> bytes:
    found = b""
    try:
        while True:
            found += one.bio_read(65_536)
    except SSL.WantReadError:
        return found


class Inner(layer.Layer):
    """Notes its events, and answers data as it is told."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.seen: list[object] = []
        self.answers: list[commands.Command] = []

    def _handle_event(self, event: events.Event) -> Iterator[commands.Command]:  # type: ignore[override]
        self.seen.append(event.data if isinstance(event, events.DataReceived) else type(event).__name__)
        yield from self.answers


class Tunnel:
    """A TLS layer of a client over records in memory."""

    def __init__(self, contexts: tuple[SSL.Context, SSL.Context], *, server: bool = False) -> None:
        client = Client(peername=("192.0.2.1", 1), sockname=("192.0.2.2", 8080), state=ConnectionState.OPEN)
        self.context = Context(client, OPTIONS)
        self.context.server = Server(address=("site.example", 443))
        self.context.layers = [cast("Any", object())]
        self.pair = Pair(contexts, ours_is_server=not server)
        self.layer: Any = ServerTLSLayer(self.context) if server else ClientTLSLayer(self.context)
        self.conn: Any = self.context.server if server else client
        self.inner = Inner(self.context)
        self.layer.tls, self.layer.tunnel_state, self.layer.child_layer = self.pair.ours, TunnelState.OPEN, self.inner

    def comes(self, data: bytes, connection: Any = None) -> list[Any]:
        """Has records come; returns what follows. `fast` tells whether that was a list."""
        found = deliver(self.layer, events.DataReceived(connection or self.conn, data))
        self.fast = isinstance(found, list)
        return list(found)


@pytest.fixture
def tunnel(contexts: tuple[SSL.Context, SSL.Context]) -> Tunnel:
    return Tunnel(contexts)


@pytest.mark.parametrize("size", [0, 1, 16_384, 16_385, 300_000])
def test_records_are_read_and_written_whole(contexts: tuple[SSL.Context, SSL.Context], size: int) -> None:
    pair, data = Pair(contexts), LARGE[:size]
    assert not holds_data(pair.ours)
    records = pair.sealed(data) if data else b""
    opened, seal, waiting = tls_path._open, tls_path._seal, tls_path._to_send
    assert opened(pair.ours, records) == (data, False, None)
    sealed = seal(pair.ours, data)
    assert (pair.opened(sealed), waiting(pair.ours), not sealed) == (data, b"", not data)
    if size > 1:
        half = len(records) // 2
        first, second = opened(pair.ours, (again := pair.sealed(data))[:half]), opened(pair.ours, again[half:])
        assert (first[0] + second[0], first[1:], second[1:]) == (data, (False, None), (False, None))


def test_how_the_other_side_ends(contexts: tuple[SSL.Context, SSL.Context]) -> None:
    opened, seal = tls_path._open, tls_path._seal
    pair = Pair(contexts)
    assert opened(pair.ours, pair.sealed(b"last") + pair.ended()) == (b"last", True, None)
    broken = Pair(contexts)
    plain, closed, error = opened(broken.ours, broken.sealed(b"last") + b"\x17\x03\x03\x00\x20" + b"x" * 32)
    assert (plain, closed, isinstance(error, SSL.Error)) == (b"last", False, True)
    assert isinstance(seal(broken.ours, b"dropped"), bytes)
    young = SSL.Connection(contexts[0])
    young.set_accept_state()
    with pytest.raises(SSL.WantReadError):
        seal(young, b"x")


def test_whether_tls_holds_data(contexts: tuple[SSL.Context, SSL.Context]) -> None:
    pair = Pair(contexts)
    pair.ours.bio_write(pair.sealed(b"ab"))
    assert holds_data(pair.ours)
    pair.ours.recv(1)
    assert holds_data(pair.ours)
    pair.ours.recv(1)
    assert not holds_data(pair.ours)
    pair.ours.sendall(b"x")
    assert holds_data(pair.ours)
    _read(pair.ours)
    tls_path._open(pair.ours, pair.ended())
    assert holds_data(pair.ours)


def test_data_goes_through_an_open_layer_both_ways(tunnel: Tunnel) -> None:
    other = Server(address=("other.example", 80))
    tunnel.inner.answers = [commands.SendData(tunnel.conn, b"answer"), commands.SendData(other, b"plain")]
    sealed, plain = tunnel.comes(tunnel.pair.sealed(b"question"))
    assert (tunnel.inner.seen, tunnel.pair.opened(sealed.data)) == ([b"question"], b"answer")
    assert (sealed.connection, plain.connection, plain.data) == (tunnel.conn, other, b"plain")
    tunnel.inner.answers = []
    assert (tunnel.comes(tunnel.pair.sealed(b"more")[:7]), tunnel.fast, tunnel.inner.seen) == ([], True, [b"question"])


def test_lists_of_commands_are_sealed_at_once(tunnel: Tunnel, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Server(address=("other.example", 80))
    really = tls_path.deliver
    answers: list[commands.SendData] = []
    monkeypatch.setattr(tls_path, "deliver", lambda child, event: answers if child is tunnel.inner else really(child, event))

    def came() -> list[tuple[object, bytes]]:
        found = really(tunnel.layer, events.DataReceived(tunnel.conn, tunnel.pair.sealed(b"x")))
        assert isinstance(found, list)
        return [(one.connection, tunnel.pair.opened(one.data) if one.connection is tunnel.conn else one.data) for one in found]

    assert came() == []
    answers[:] = [commands.SendData(tunnel.conn, b"one")]
    assert came() == [(tunnel.conn, b"one")]
    answers[:] = [commands.SendData(other, b"two")]
    assert came() == [(other, b"two")]
    answers[:] = [commands.SendData(other, b"two"), commands.SendData(tunnel.conn, b"one")]
    assert came() == [(other, b"two"), (tunnel.conn, b"one")]
    tunnel.layer.tls.sendall(b"waits")  # as the reply to a new key
    answers[:] = [commands.SendData(tunnel.conn, b"one")]
    assert came() == [(tunnel.conn, b"waits"), (tunnel.conn, b"one")]
    answers[:] = [commands.SendData(tunnel.conn, b"from elsewhere")]
    found = really(tunnel.layer, events.DataReceived(other, b"x"))
    assert isinstance(found, list)
    assert tunnel.pair.opened(found[0].data) == b"from elsewhere"
    tunnel.layer.tls.sendall(b"waits")
    found = really(tunnel.layer, events.DataReceived(tunnel.conn, b""))
    assert isinstance(found, list)
    assert [tunnel.pair.opened(one.data) for one in found] == [b"waits"]


def test_ends_and_faults_reach_the_layer_inside(tunnel: Tunnel, contexts: tuple[SSL.Context, SSL.Context]) -> None:
    tunnel.comes(tunnel.pair.sealed(b"last") + tunnel.pair.ended())
    assert (tunnel.inner.seen, tunnel.fast) == ([b"last", "ConnectionClosed"], False)
    assert not tunnel.conn.state & ConnectionState.CAN_READ
    silent = Tunnel(contexts)
    silent.comes(silent.pair.ended())
    assert silent.inner.seen == ["ConnectionClosed"]
    broken = Tunnel(contexts)
    first, *_ = broken.comes(broken.pair.sealed(b"last") + b"\x17\x03\x03\x00\x20" + b"x" * 32)
    assert (isinstance(first, commands.Log), first.level, first.message.startswith("TLS Error: ")) == (
        True,
        logging.WARNING,
        True,
    )
    assert broken.inner.seen == [b"last"]
    assert broken.conn.state is ConnectionState.OPEN


@pytest.mark.parametrize("state", ["paused", "establishing", "inactive", "failed", "waits for a hello"])
def test_what_is_not_open_is_left_to_mitmproxy(
    contexts: tuple[SSL.Context, SSL.Context], state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for server in (False, True):
        made = Tunnel(contexts, server=server)
        if state == "paused":
            made.layer._paused = cast("Any", object())
        elif state == "establishing":
            made.layer.tunnel_state = TunnelState.ESTABLISHING
        elif state == "inactive":
            made.layer.tunnel_state = TunnelState.CLOSED
        elif state == "failed":
            made.layer.event_to_child = lambda event: iter(())
        elif server:
            made.layer.wait_for_clienthello = True
        else:
            continue
        left: list[object] = []

        def leave(self: object, event: events.Event, left: list[object] = left) -> Iterator[commands.Command]:
            left.append(event)
            return iter(())

        def shake(tls: object, event: events.Event, left: list[object] = left) -> Iterator[commands.Command]:
            left.append("handshake")
            return iter(())

        monkeypatch.setattr(type(made.layer), "handle_event", leave)
        monkeypatch.setattr(tls_path, "_handshake", shake)
        made.comes(b"")
        shakes = state == "establishing" and not server
        assert (left == ["handshake"], len(left)) == (shakes, 1)
        left.clear()
        made.comes(b"x", Server(address=("other.example", 80)))
        assert len(left) == int(state != "inactive"), "data of another connection"
        monkeypatch.undo()


def test_commands_of_layers_are_sealed_on_their_way_out(tunnel: Tunnel) -> None:
    assert list(tls_path.tls_interact(tunnel.layer)) == []
    (sealed,) = tls_path.send_data(tunnel.layer, b"x")
    assert isinstance(sealed, commands.SendData)
    assert (tunnel.pair.opened(sealed.data), sealed.connection) == (b"x", tunnel.conn)
    tunnel.layer.tls.sendall(b"waits")
    (waiting,) = tls_path.tls_interact(tunnel.layer)
    assert isinstance(waiting, commands.SendData)
    assert tunnel.pair.opened(waiting.data) == b"waits"
    assert list(tls_path.send_data(tunnel.layer, b"")) == []
    list(tls_path.receive_data(tunnel.layer, tunnel.pair.sealed(b"in")))
    assert tunnel.inner.seen == [b"in"]


def test_the_end_of_a_handshake_waits_for_the_response(tunnel: Tunnel) -> None:
    may_wait = tls_path._may_wait
    client, other = tunnel.conn, Server(address=("other.example", 80))
    ticket, request = commands.SendData(client, b"t"), commands.SendData(other, b"r")
    for version, sent, result, expected in (
        ("TLSv1.3", [ticket], [request], True),
        ("TLSv1.2", [ticket], [request], False),
        ("TLSv1.3", [ticket], [], False),
        ("TLSv1.3", [ticket], [request, ticket], False),
        ("TLSv1.3", [ticket, request], [request], False),
        ("TLSv1.3", [], [request], True),
    ):
        client.tls_version = version
        assert may_wait(tunnel.layer, sent, result) == expected


class Http:
    """An HTTP layer with a client's and an origin's side; the steps that follow are noted in `slow`."""

    def __init__(self) -> None:
        client = Client(peername=("192.0.2.1", 1), sockname=("192.0.2.2", 8080), state=ConnectionState.OPEN)
        self.context = FastPathContext(client, OPTIONS)
        self.context.fast_path = cast("Any", SimpleNamespace(hooks=None, keeps_bodies=False, origins=None))
        self.layer = FastHttpLayer(self.context, HTTPMode.regular)
        self.server = GatewayHttp1Server(ERRORS, self.context)
        list(self.server.handle_event(events.Start()))
        self.layer.connections = {client: self.server}
        self.slow: list[Any] = []
        vars(self.layer).update(run_steps=self._steps, handle_event=self._event)

    def _steps(self, steps: list[Any], *_: object) -> Iterator[commands.Command]:
        self.slow.append([one for one, _ in steps])
        return iter(())

    def _event(self, event: events.Event) -> Iterator[commands.Command]:
        self.slow.append(event)
        return iter(())

    def origin(self) -> tuple[Server, GatewayHttp1Client]:
        server = Server(address=("site.example", 443))
        context = self.context.fork()
        context.server = server
        return server, GatewayHttp1Client.idle(context)

    def comes(self, connection: Any, data: bytes) -> object:
        self.slow.clear()
        found = deliver_http(self.layer, events.DataReceived(connection, data))
        if isinstance(found, list):
            return [(one.connection, one.data) for one in found]
        list(found)
        return "slow"


def test_who_gets_data_of_the_http_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    http, taken = Http(), list[object]()
    client = http.context.client
    answers: list[Any] = [None]
    monkeypatch.setattr(tls_path, "take", lambda layer, handler, event: taken.append(handler) or answers[0])  # type: ignore[func-returns-value]
    for server in (Server(address=("unknown.example", 80)),):
        assert (http.comes(server, b"x"), len(http.slow), taken) == ("slow", 1, [])
    assert (http.comes(client, GET), taken) == ("slow", [http.server])
    answers[0] = [commands.SendData(client, b"a")]
    assert http.comes(client, GET) == [(client, b"a")]
    plain, side = http.origin()
    http.layer.connections[plain] = side
    answers[0] = [commands.SendData(plain, b"b")]
    assert (http.comes(client, GET), taken[-1]) == ([(plain, b"b")], http.server)
    assert (http.comes(plain, b"x"), taken[-1]) == ([(plain, b"b")], side)
    answers[0] = None
    assert http.comes(plain, b"x") == "slow"
    answers[0] = []
    assert http.comes(client, GET) == []
    assert deliver(http.layer, events.DataReceived(client, GET)) is answers[0]
    taken.clear()
    for fault in ("_paused", "replies"):
        setattr(http.layer, fault, cast("Any", object()))
        assert (http.comes(client, GET), http.comes(plain, b"x"), taken) == ("slow", "slow", [])
        setattr(http.layer, fault, None)


class Secure(Http):
    """The same with an origin by TLS."""

    def __init__(self, contexts: tuple[SSL.Context, SSL.Context]) -> None:
        super().__init__()
        self.conn, self.side = self.origin()
        self.pair = Pair(contexts, ours_is_server=False)
        context = self.context.fork()
        context.server = self.conn
        self.tls: Any = ServerTLSLayer(context)
        self.tls.tls, self.tls.tunnel_state, self.tls.child_layer = self.pair.ours, TunnelState.OPEN, self.side
        self.layer.connections[self.conn] = self.tls


def test_requests_are_sealed_for_an_origin_by_tls(
    contexts: tuple[SSL.Context, SSL.Context], monkeypatch: pytest.MonkeyPatch
) -> None:
    http = Secure(contexts)
    monkeypatch.setattr(tls_path, "take", lambda layer, handler, event: [commands.SendData(http.conn, b"request")])
    found: Any = http.comes(http.context.client, GET)
    ((connection, data),) = found
    assert (connection, http.pair.opened(data)) == (http.conn, b"request")
    plain, side = http.origin()
    http.layer.connections[plain] = side
    sent = [commands.SendData(plain, b"a"), commands.SendData(http.conn, b"b"), commands.SendData(http.context.client, b"c")]
    first, second, third = tls_path._sealed(http.layer, sent)
    assert (first.data, http.pair.opened(second.data), third.data) == (b"a", b"b", b"c")


def test_answers_of_an_origin_by_tls(contexts: tuple[SSL.Context, SSL.Context], monkeypatch: pytest.MonkeyPatch) -> None:
    http, taken = Secure(contexts), list[tuple[object, bytes]]()
    client = http.context.client
    answers: list[Any] = [[commands.SendData(client, b"answer")]]
    monkeypatch.setattr(tls_path, "take", lambda layer, handler, event: taken.append((handler, event.data)) or answers[0])  # type: ignore[func-returns-value]
    assert http.comes(http.conn, http.pair.sealed(b"x")) == [(client, b"answer")]
    assert taken == [(http.side, b"x")]
    http.tls.tls.sendall(b"waits")
    found: Any = http.comes(http.conn, http.pair.sealed(b"y"))
    assert (found[0][0], http.pair.opened(found[0][1]), found[1:]) == (http.conn, b"waits", [(client, b"answer")])
    answers[0] = iter([commands.SendData(client, b"later")])
    http.tls.tls.sendall(b"waits")
    chained = list(deliver_http(http.layer, events.DataReceived(http.conn, http.pair.sealed(b"z"))))
    assert [http.pair.opened(one.data) if one.connection is http.conn else one.data for one in chained] == [b"waits", b"later"]  # type: ignore[attr-defined]
    answers[0] = None
    assert (http.comes(http.conn, http.pair.sealed(b"x")), http.slow) == ("slow", [[http.tls]])
    taken.clear()
    assert (http.comes(http.conn, http.pair.sealed(b"x")[:7]), http.slow, taken) == ("slow", [[http.tls]], [])
    ended = Secure(contexts)
    assert (ended.comes(ended.conn, ended.pair.ended()), ended.slow) == ("slow", [[ended.tls]])
    for fault in ("_paused", "tunnel_state", "tunnel_connection"):
        shut = Secure(contexts)
        setattr(shut.tls, fault, TunnelState.CLOSED if fault == "tunnel_state" else object())
        assert (shut.comes(shut.conn, shut.pair.sealed(b"x")), isinstance(shut.slow[0], events.DataReceived)) == ("slow", True)
    assert taken == []


def test_which_clients_await_nothing(contexts: tuple[SSL.Context, SSL.Context]) -> None:
    http = Http()
    assert awaits_nothing(http.layer)
    tunnel = Tunnel(contexts)
    tunnel.layer.child_layer = http.layer
    assert awaits_nothing(tunnel.layer)
    assert awaits_nothing(tunnel.inner) is False
    tunnel.layer.tunnel_state = TunnelState.ESTABLISHING
    assert awaits_nothing(tunnel.layer) is False
    tunnel.layer.tunnel_state = TunnelState.OPEN
    tunnel.layer.event_to_child = lambda event: iter(())
    assert awaits_nothing(tunnel.layer) is False
    for change in (
        lambda one: setattr(one.layer, "_paused", object()),
        lambda one: setattr(one.layer, "replies", object()),
        lambda one: one.layer.connections.clear(),
        lambda one: one.layer.streams.__setitem__(1, object()),
        lambda one: one.layer.command_sources.__setitem__(object(), object()),
        lambda one: setattr(one.server, "_paused", object()),
        lambda one: setattr(one.server, "state", one.server.wait),
        lambda one: one.server.buf.__iadd__(b"G"),
    ):
        other = Http()
        change(other)
        assert awaits_nothing(other.layer) is False


def test_an_undecided_layer_is_chosen_and_gets_the_data(tunnel: Tunnel, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    chosen: list[Any] = [tunnel.inner]

    def choose(undecided: layer.Layer, event: events.DataReceived) -> Any:
        asked.append(undecided)
        return chosen[0]

    monkeypatch.setattr(tls_path, "choose", choose)
    undecided = layer.NextLayer(tunnel.context)
    event = events.DataReceived(tunnel.conn, b"first")
    list(deliver(undecided, event))
    assert (asked, tunnel.inner.seen) == ([undecided], [b"first"])
    chosen[0] = [commands.SendData(tunnel.conn, b"refused")]
    assert deliver(undecided, event) is chosen[0]
    list(deliver(tunnel.inner, event))
    assert (len(asked), tunnel.inner.seen) == (2, [b"first", b"first"])


def test_data_of_a_tunnel_goes_to_what_is_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    http = Http()
    inner = Inner(http.context)
    stream = SimpleNamespace(child_layer=inner, stream_id=1, context=http.context)
    client, (plain, side) = http.context.client, http.origin()
    http.layer.connections[plain] = side
    vars(http.layer)["tunnel_of"] = lambda handler, event: stream
    assert http.comes(client, b"x") == "slow"
    assert (inner.seen, len(http.slow)) == ([], 1), "the first bytes are the head of a request"
    http.server.state = http.server.passthrough
    assert (http.comes(client, b"x"), http.slow) == ("slow", [[stream]])
    sent = [commands.SendData(plain, b"y")]
    monkeypatch.setattr(tls_path, "deliver", lambda top, event: sent if top is inner else None)
    assert http.comes(client, b"x") == [(plain, b"y")]


class Http2(Http):
    """The same with a client by HTTP/2, of which `taken` is what the fast path makes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.server2: Any = object.__new__(GatewayHttp2Server)
        self.client2: Any = object.__new__(PatientHttp2Client)
        self.server2._paused = self.client2._paused = None
        self.layer.connections[self.context.client] = self.server2
        self.taken: Any = None
        self.asked: list[object] = []
        for name in ("take_from_client", "take_from_origin"):
            monkeypatch.setattr(tls_path, name, self._taker(name))

    def _taker(self, name: str) -> Any:
        def taker(http: object, side: object, data: bytes) -> Any:
            self.asked.append((name, side, data))
            return self.taken

        return taker


def test_frames_of_clients_and_origins(monkeypatch: pytest.MonkeyPatch) -> None:
    http = Http2(monkeypatch)
    client, origin = http.context.client, Server(address=("site.example", 80))
    http.layer.connections[origin] = http.client2
    vars(http.layer)["tunnel_of"] = lambda handler, event: None
    for connection, name, side in ((client, "take_from_client", http.server2), (origin, "take_from_origin", http.client2)):
        http.taken = None
        assert (http.comes(connection, b"frames"), http.asked.pop()) == ("slow", (name, side, b"frames"))
        assert isinstance(http.slow[0], events.DataReceived)
        http.taken = Taken([commands.SendData(client, b"a")], None, b"")
        assert (http.comes(connection, b"frames"), http.slow) == ([(client, b"a")], [])
        later = commands.SendData(client, b"later")
        for slow, rest in ((None, b"rest"), ([later], b""), ([later], b"rest")):
            http.taken, made = Taken([commands.SendData(client, b"a")], cast("Any", slow), rest), list[Any]()
            http.slow.clear()
            found = deliver_http(http.layer, events.DataReceived(connection, b"frames"))
            assert not isinstance(found, list)
            made += found
            assert [one.data for one in made] == [b"a", *([b"later"] if slow else [])]
            assert [one.data for one in http.slow] == ([b"rest"] if rest else [])


def test_frames_of_an_origin_by_tls(contexts: tuple[SSL.Context, SSL.Context], monkeypatch: pytest.MonkeyPatch) -> None:
    http = Http2(monkeypatch)
    client, conn = http.context.client, Server(address=("site.example", 443))
    pair, context = Pair(contexts, ours_is_server=False), http.context.fork()
    context.server = conn
    tls: Any = ServerTLSLayer(context)
    tls.tls, tls.tunnel_state, tls.child_layer = pair.ours, TunnelState.OPEN, http.client2
    http.layer.connections[conn] = tls
    vars(http.layer)["tunnel_of"] = lambda handler, event: None

    def came(data: bytes) -> list[tuple[object, bytes]]:
        http.slow.clear()
        found = deliver_http(http.layer, events.DataReceived(conn, pair.sealed(data)))
        made: list[Any] = list(found)
        return [(one.connection, pair.opened(one.data) if one.connection is conn else one.data) for one in made]

    tls.tls.sendall(b"waits")
    assert (came(b"frames"), http.slow) == ([(conn, b"waits")], [[tls]])
    assert http.asked.pop() == ("take_from_origin", http.client2, b"frames")
    tls.tls.sendall(b"waits")
    http.taken = Taken([commands.SendData(client, b"a"), commands.SendData(conn, b"b")], None, b"")
    assert (came(b"frames"), http.slow) == ([(conn, b"waits"), (client, b"a"), (conn, b"b")], [])
    later = commands.SendData(client, b"later")
    for slow, rest in ((None, b"rest"), ([later], b""), ([later], b"rest")):
        http.taken = Taken([commands.SendData(client, b"a")], cast("Any", slow), rest)
        assert came(b"frames") == [(client, b"a"), *([(client, b"later")] if slow else [])]
        assert http.slow == ([[tls]] if rest else [])
