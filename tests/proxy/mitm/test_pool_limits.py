"""Which connections the fast path takes from the pool, and which idle ones are closed before another is opened."""

import asyncio
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mitmproxy.connection import Client, ConnectionState, Server
from mitmproxy.options import Options
from mitmproxy.proxy import commands
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import GetHttpConnection, HTTPMode
from mitmproxy.test import tflow

from gatewayfilter.proxy.mitm import adoption, origin_pool
from gatewayfilter.proxy.mitm.adoption import OriginAdoption
from gatewayfilter.proxy.mitm.fastpath.direct_reader import DirectReader
from gatewayfilter.proxy.mitm.http.http1_client import GatewayHttp1Client
from gatewayfilter.proxy.mitm.http.http2_flow import PatientHttp2Client
from gatewayfilter.proxy.mitm.origin_pool import FairSemaphore
from gatewayfilter.proxy.mitm.sharing import sharing_of
from tests.proxy.mitm.fastpath.test_direct_reader import Transport

OPTIONS = Options()
type Change = Callable[[Any], object]


class Worker:
    """What an adoption asks: the pool, hooks, the guard and the client's connection; `done` is what was done."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.has, self.waits, self.gives, self.fault = True, "", True, ""
        self.transport: Any = SimpleNamespace(abort=lambda: self.done.append("aborted"))
        self.limit: Any = FairSemaphore()
        pool = SimpleNamespace(note_key=self._note, may_have=lambda key: self.has, take_for=self._take)
        guard = SimpleNamespace(known_addresses=lambda data: ("192.0.2.1",))
        hooks = SimpleNamespace(run_at_once=lambda name: name != self.waits, run_now=self._hook)
        self.client = Client(peername=("10.0.0.2", 5), sockname=("10.0.0.1", 8080))
        handler: Any = SimpleNamespace(max_conns={("site.example", 80): self.limit}, transports={})
        self.connections: dict[str, Any] = {self.client.id: handler}
        self.adoption = OriginAdoption(cast("Any", pool), cast("Any", guard), cast("Any", hooks), cast("Any", self.connections))
        self.flow = tflow.tflow()
        self.flow.server_conn = Server(address=None)
        self.flow.request.host, self.flow.request.port, self.flow.request.method = "site.example", 80, "GET"
        context = Context(self.client, OPTIONS)
        context.server = Server(address=("site.example", 80))
        self.http: Any = SimpleNamespace(context=context, mode=HTTPMode.regular, connections={})

    def _note(self, server: Server, client: Client) -> None:
        sharing = sharing_of(server)
        assert sharing is not None
        assert sharing.may_adopt
        self.done.append("noted")

    def _take(self, sharing: Any, addresses: Any) -> Any:
        self.done.append(f"taken {addresses()[0]}")
        return self.transport if self.gives else None

    def _hook(self, name: str, data: Any) -> None:
        self.done.append(name)
        if self.fault and name == "server_connect":
            data.server.error = self.fault

    def adopt(self) -> object:
        self.done.clear()
        return self.adoption.adopt(self.http, self.flow)


def test_a_connection_is_taken_with_its_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker()
    side, io = object(), SimpleNamespace(reader=None, handler=None)
    monkeypatch.setattr(adoption, "_opened", lambda handler, server, transport: io)
    monkeypatch.setattr(adoption, "HeldConnection", lambda handler, data, reader, leave: ("held", leave))
    monkeypatch.setattr(OriginAdoption, "_layers", lambda self, layer, server: side)
    assert worker.adopt() is side
    assert worker.done == ["noted", "taken 192.0.2.1", "server_connect", "server_connected"]
    held: Any = io.handler
    assert (held[0], worker.limit._open, list(worker.connections[worker.client.id].transports.values())) == ("held", 1, [io])
    held[1]()
    assert worker.limit._open == 0


class Taken(Transport):
    """The transport of a connection from the pool."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": ("192.0.2.1", 80), "sockname": ("10.0.0.1", 5000)}.get(name, default)


@pytest.mark.parametrize("level", [logging.INFO, logging.WARNING])
async def test_a_connection_that_was_taken_is_as_one_that_was_opened(level: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(level, "mitmproxy.proxy.server")
    lines: list[str] = []
    handler: Any = SimpleNamespace(log=lines.append)
    server, transport = Server(address=("site.example", 80)), Taken()
    io = adoption._opened(handler, server, transport)
    assert (server.state, server.peername, server.sockname) == (ConnectionState.OPEN, ("192.0.2.1", 80), ("10.0.0.1", 5000))
    assert server.timestamp_start == server.timestamp_tcp_setup is not None
    assert isinstance(io.writer, asyncio.StreamWriter)
    assert (type(cast("Any", io.reader)), io.writer.transport is transport) == (DirectReader, True)
    assert lines == ["server connect site.example:80"] * (level == logging.INFO)
    transport.protocol.data_received(bytes(1_000_000))
    assert not transport.reading, "what is not read holds the origin back"


def test_which_requests_get_none_from_the_pool() -> None:
    early: list[Change] = [
        lambda one: setattr(one.flow.server_conn, "via", ("http", ("parent.example", 1))),
        lambda one: setattr(one.http.context.server, "state", ConnectionState.OPEN),
        lambda one: setattr(one.http.context.server, "error", "x"),
        lambda one: setattr(one.flow.request, "method", "POST"),
    ]
    for change in early:
        worker = Worker()
        change(worker)
        assert (worker.adopt(), worker.done) == (None, [])
    late: list[Change] = [
        lambda one: one.connections.clear(),
        lambda one: setattr(one, "has", False),
        *(
            (lambda one, name=name: setattr(one, "waits", name))
            for name in ("server_connect", "server_connected", "tls_start_server", "tls_established_server")
        ),
        lambda one: setattr(one.limit, "_open", 10_000),
        lambda one: one.connections[one.client.id].max_conns.update({("site.example", 80): object()}),
    ]
    for change in late:
        worker = Worker()
        change(worker)
        assert (worker.adopt(), worker.done) == (None, ["noted"])
    empty, refused = Worker(), Worker()
    empty.gives, refused.fault = False, "refused"
    assert (empty.adopt(), empty.done, empty.limit._open) == (None, ["noted", "taken 192.0.2.1"], 0)
    assert (refused.adopt(), refused.limit._open) == (None, 0)
    assert refused.done == ["noted", "taken 192.0.2.1", "server_connect", "aborted"]


def test_the_connection_that_a_request_needs() -> None:
    worker = Worker()
    asked_for, meant = adoption._asked_for, worker.flow.request.data
    plain = asked_for(worker.http, meant)
    assert (plain.address, plain.tls, plain.sni) == (("site.example", 80), False, None)
    meant.scheme = b"https"
    context = worker.http.context
    for mode, own, client, host, sni in (
        (HTTPMode.regular, "own.example", "client.example", "site.example", "site.example"),
        (HTTPMode.transparent, "own.example", "client.example", "site.example", "own.example"),
        (HTTPMode.transparent, None, "client.example", "site.example", "client.example"),
        (HTTPMode.transparent, None, None, "site.example", "site.example"),
        (HTTPMode.transparent, "own.example", "client.example", "other.example", "other.example"),
    ):
        worker.http.mode, context.server.sni, context.client.sni, meant.host = mode, own, client, host
        found = asked_for(worker.http, meant)
        assert (found.tls, found.sni) == (True, sni)


class Plain:
    """An HTTP layer with connections to origins, the oldest first."""

    def __init__(self, count: int) -> None:
        client = Client(peername=("10.0.0.2", 5), sockname=("10.0.0.1", 8080))
        self.first = Server(address=("first.example", 80))
        self.layer: Any = SimpleNamespace(
            connections={client: object()}, waiting_for_establishment={}, context=SimpleNamespace(server=self.first)
        )
        self.servers = [self.add(f"site{number}.example") for number in range(count)]

    def add(self, host: str) -> Server:
        server = Server(address=(host, 80))
        server.state = ConnectionState.OPEN
        side: Any = object.__new__(GatewayHttp1Client)
        side.context = SimpleNamespace(layers=[side])
        self.layer.connections[server] = side
        return server

    def closed(self, host: str = "new.example") -> list[str]:
        asked = GetHttpConnection((host, 80), False, None)
        found = list(origin_pool._close_idle(self.layer, asked))
        assert all(isinstance(one, commands.CloseConnection) for one in found)
        return [cast("Any", one).connection.address[0].removesuffix(".example") for one in found]


def test_the_oldest_idle_connections_are_closed() -> None:
    most = origin_pool._MOST_IDLE
    assert Plain(most).closed() == []
    assert Plain(most + 2).closed() == ["site0", "site1"]
    assert Plain(most + 1).closed("site0.example") == [], "the request is about to use it"


def ended_late(server: Server) -> None:
    server.error, server.timestamp_tcp_setup = "late", 5.0


def test_which_connections_stay() -> None:
    most = origin_pool._MOST_IDLE
    for change in (
        lambda one: one.layer.waiting_for_establishment.update({one.servers[0]: []}),
        lambda one: setattr(one.layer.context, "server", one.servers[0]),
        lambda one: setattr(one.servers[0], "state", ConnectionState.CLOSED),
        lambda one: setattr(one.layer.connections[one.servers[0]], "stream_id", 1),
    ):
        made = Plain(most + 1)
        change(made)
        assert made.closed() == []
        assert made.servers[0] in made.layer.connections
    ends: list[tuple[Change, bool]] = [
        (lambda server: setattr(server, "timestamp_end", 5.0), True),
        (lambda server: setattr(server, "error", "refused"), True),
        (ended_late, False),
    ]
    for change, gone in ends:
        made = Plain(1)
        change(made.servers[0])
        made.closed()
        assert (made.servers[0] not in made.layer.connections) == gone
    busy: Any = object.__new__(PatientHttp2Client)
    for streams, idle in (({}, True), ({1: "open"}, False)):
        busy.streams = streams
        assert origin_pool._idle(cast("Any", SimpleNamespace(context=SimpleNamespace(layers=[busy])))) == idle
    assert not origin_pool._idle(cast("Any", SimpleNamespace(context=SimpleNamespace(layers=[object()]))))
