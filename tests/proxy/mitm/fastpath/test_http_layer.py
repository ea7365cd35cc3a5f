"""The short ways of mitmproxy's HTTP layer: the same traffic, hooks once each, in tunnels and beside them."""

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from mitmproxy import http
from mitmproxy.connection import ConnectionState, Server
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers.http import DropStream, HttpStream, SendHttp
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._events import ErrorCode, RequestEndOfMessage, ResponseProtocolError
from mitmproxy.proxy.layers.http._hooks import HttpRequestHook
from mitmproxy.proxy.layers.tls import ServerTLSLayer
from mitmproxy.proxy.tunnel import TunnelState
from mitmproxy.test import tflow

from gatewayfilter.proxy.mitm.fastpath.http_layer import FastHttpLayer, closing
from tests.proxy.conftest import StartGateway
from tests.proxy.mitm.fastpath.test_fast_exchange import SENT, Layers
from tests.proxy.proxy_fakes import Gateway, Origin

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
HOOKS = ("requestheaders", "request", "responseheaders", "response")


class Listener:
    """Counts hooks; one of them waits when told to."""

    def __init__(self, waits: str) -> None:
        self.calls: Counter[str] = Counter()
        self.order: list[str] = []
        self._waits = waits

    def _called(self, name: str, flow: http.HTTPFlow) -> Any:
        self.calls[name] += 1
        self.order.append(f"{flow.request.path} {name}")

        async def later() -> None:
            await asyncio.sleep(0)

        return later() if name == self._waits else None

    def requestheaders(self, flow: http.HTTPFlow) -> Any:
        return self._called("requestheaders", flow)

    def request(self, flow: http.HTTPFlow) -> Any:
        return self._called("request", flow)

    def responseheaders(self, flow: http.HTTPFlow) -> Any:
        return self._called("responseheaders", flow)

    def response(self, flow: http.HTTPFlow) -> Any:
        return self._called("response", flow)


@pytest.mark.parametrize("waits", ["", *HOOKS])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_each_hook_runs_once_and_in_order(
    scheme: str,
    waits: str,
    gateway: Gateway,
    origin: Origin,
    client: aiohttp.ClientSession,
    client_tls: ssl.SSLContext,
) -> None:
    listener = Listener(waits)
    gateway.master.addons.add(listener)
    base = getattr(origin, scheme)
    for number in range(3):
        async with client.post(f"{base}/page{number}", data=b"x" * 70_000, proxy=gateway.url, ssl=client_tls) as response:
            assert response.status == 200
            await response.read()
    assert listener.calls == dict.fromkeys(HOOKS, 3)
    for number in range(3):
        ours = [entry.partition(" ")[2] for entry in listener.order if entry.startswith(f"/page{number} ")]
        assert sorted(ours) == sorted(HOOKS)
        assert ours.index("requestheaders") < ours.index("responseheaders") < ours.index("response")
    assert gateway.counters["requests"] == 3


async def test_what_passes_a_tunnel_goes_straight_inside(
    monkeypatch: pytest.MonkeyPatch,
    start_gateway: StartGateway,
    origin: Origin,
    client: aiohttp.ClientSession,
    client_tls: ssl.SSLContext,
) -> None:
    by_the_stream: list[str] = []
    passthrough = HttpStream.passthrough

    def note(self: HttpStream, event: events.Event) -> Any:
        by_the_stream.append(type(event).__name__)
        return passthrough(self, event)

    monkeypatch.setattr(HttpStream, "passthrough", note)
    async with start_gateway() as gateway:
        for number in range(3):
            async with client.get(f"{origin.https}/inside{number}", proxy=gateway.url, ssl=client_tls) as response:
                assert response.status == 200
    assert set(by_the_stream) <= {"RequestEndOfMessage", "HookCompleted"}


async def test_without_the_fast_path_all_hooks_are_handed_up(
    start_gateway: StartGateway, origin: Origin, client: aiohttp.ClientSession, client_tls: ssl.SSLContext
) -> None:
    listener = Listener("request")
    async with start_gateway(fast_path=False) as gateway:
        gateway.master.addons.add(listener)
        async with client.get(f"{origin.https}/page", proxy=gateway.url, ssl=client_tls) as response:
            assert response.status == 200
    assert listener.calls == dict.fromkeys(HOOKS, 1)


@pytest.mark.parametrize(
    ("change", "adopts"),
    [
        (lambda layers: setattr(layers.conn, "error", "x"), False),
        (lambda layers: layers.http.waiting_for_establishment.__setitem__(layers.conn, []), False),
        (lambda layers: setattr(layers.conn, "state", ConnectionState.CLOSED), True),
        (lambda layers: setattr(layers.conn, "tls", True), True),
        (lambda layers: setattr(layers.conn, "transport_protocol", "udp"), True),
        (lambda layers: vars(layers.conn).update(address=("site.example", 81)), True),
        (lambda layers: vars(layers.conn).update(address=("other.example", 80)), True),
        (lambda layers: vars(layers.conn).update(via=("http", ("parent.example", 1))), True),
    ],
)
def test_the_pool_is_asked_where_no_connection_is_there_or_comes(change: Callable[[Layers], object], *, adopts: bool) -> None:
    layers = Layers()
    layers.adopts = layers.origin(Server(address=("site.example", 80)))
    change(layers)
    assert layers.asks() == (SENT if adopts else "slow")
    assert layers.stream.context.server is (layers.adopts.conn if adopts else layers.context.server)


@pytest.mark.parametrize(
    ("state", "paused", "fast"), [("OPEN", False, True), ("ESTABLISHING", False, False), ("OPEN", True, False)]
)
def test_a_connection_by_tls_is_used_when_its_handshake_is_done(state: str, *, paused: bool, fast: bool) -> None:
    layers = Layers()
    tls: Any = object.__new__(ServerTLSLayer)
    tls.tunnel_state, tls.child_layer = TunnelState[state], layers.client
    tls._paused = object() if paused else None
    layers.http.connections[layers.conn] = tls
    layers.conn.tls = True
    flow: Any = SimpleNamespace(request=http.Request.make("GET", "https://site.example:80/"), server_conn=layers.conn)
    assert layers.http.origin_of(flow) is (layers.client if fast else tls)
    flow.request.scheme = "http"
    assert layers.http.origin_of(flow) is None


class Tunnel:
    """An HTTP layer whose client is in an open CONNECT tunnel."""

    def __init__(self) -> None:
        layers = Layers()
        self.layer: FastHttpLayer = layers.http
        self.server: Any = layers.server
        self.server.state = self.server.passthrough
        self.flow = tflow.tflow()
        self.flow.request.method = "CONNECT"
        self.stream = cast("Any", SimpleNamespace(_paused=None, flow=self.flow, stream_id=1))
        self.layer.streams[1] = self.stream
        self.event: events.Event = events.DataReceived(layers.context.client, b"data")

    def found(self, child: str = "server") -> object:
        of: Any = {"server": self.server, "stream": self.stream, "other": layer.NextLayer.__new__(layer.NextLayer)}[child]
        return self.layer.tunnel_of(of, self.event)


def test_what_belongs_to_an_open_tunnel() -> None:
    tunnel = Tunnel()
    assert tunnel.found("server") is tunnel.found("stream") is tunnel.stream
    tunnel.event = events.HookCompleted(HttpRequestHook(tunnel.flow), None)
    assert tunnel.found("server") is tunnel.stream
    changes: list[Callable[[Tunnel], object]] = [
        lambda one: setattr(one, "event", events.Start()),
        lambda one: setattr(one.server, "state", one.server.read_headers),
        lambda one: one.layer.connections.clear(),
        lambda one: one.layer.streams.clear(),
        lambda one: setattr(one.stream, "_paused", object()),
        lambda one: setattr(one.flow.request, "method", "GET"),
    ]
    for change in changes:
        other = Tunnel()
        change(other)
        assert other.found() is other.found("stream") is None
    assert Tunnel().found("other") is None


def test_ends_of_a_tunnel_go_through_its_state() -> None:
    tunnel = Tunnel()
    client, origin = tunnel.layer.context.client, Server(address=("site.example", 443))
    tunnel.stream.context = tunnel.layer.context
    data = commands.SendData(client, b"data")
    said, ended, closed = closing(
        tunnel.stream, iter([data, commands.CloseConnection(client), commands.CloseTcpConnection(origin, half_close=True)])
    )
    assert said is data
    assert isinstance(ended, SendHttp)
    assert (ended.connection, ended.event.stream_id) == (client, 1)
    assert isinstance(ended.event, ResponseProtocolError)
    assert (ended.event.message, ended.event.code) == ("EOF", ErrorCode.PASSTHROUGH_CLOSE)
    assert type(closed) is commands.CloseConnection
    assert closed.connection is origin


def test_a_stream_that_is_dropped_gets_no_late_events() -> None:
    layers = Layers()
    layers.path.hooks.run_or_defer = None  # there are none
    kept, dropped = cast("Any", object()), cast("Any", object())
    layers.http.streams |= {1: dropped, 3: kept}
    data = commands.SendData(layers.context.client, b"data")
    steps = iter([DropStream(1), DropStream(5), ReceiveHttp(RequestEndOfMessage(1)), data])
    assert list(FastHttpLayer.run_steps(layers.http, [(layers.server, steps)])) == [data]
    assert (layers.http.streams, layers.http.replies) == ({3: kept}, None)
