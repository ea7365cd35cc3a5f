"""Which layer reads a connection, by its first bytes, its layers and its context."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from mitmproxy import exceptions
from mitmproxy.connection import Client, Server
from mitmproxy.options import Options
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import ClientTLSLayer, HttpLayer, ServerTLSLayer, TCPLayer, modes
from mitmproxy.proxy.layers.http import HTTPMode, HttpStream

from gatewayfilter.proxy.mitm.fastpath.context import FastPathContext
from gatewayfilter.proxy.mitm.fastpath.http_layer import FastHttpLayer
from gatewayfilter.proxy.mitm.hooks import UnreadableRequestHook
from gatewayfilter.proxy.mitm.next_layer import NextLayer, RefusalLayer
from gatewayfilter.proxy.pages.block_page import BlockPages

OPTIONS, PAGES = Options(), BlockPages()
HELLO = bytes.fromhex("16030100c8010000c40303")
HTTP1, HTTP2, NEITHER, UNDECIDED = b"GET / HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"SSH-2.0-x\r\n", b"P"


class Chooser:
    """Chooses, and notes in `done` what it calls."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.admits, self.broken = True, False
        tunnels = SimpleNamespace(
            admits=self._admits,
            refused=lambda client, server: self.done.append("refused"),
            failed=lambda: self.done.append("failed"),
        )
        deadlines = SimpleNamespace(
            begin_hello=lambda client: self.done.append("begin"), lift=lambda client: self.done.append("lift")
        )
        self.chooser = NextLayer(cast("Any", tunnels), cast("Any", deadlines), PAGES)

    def _admits(self, client: object, server: object) -> bool:
        if self.broken:
            raise RuntimeError("a fault")
        return self.admits

    def choose(self, context: Context, data: bytes) -> layer.Layer | None:
        """Returns the layer, `None` where it is not certain yet."""
        self.done.clear()
        asked = layer.NextLayer(context)
        asked.events.append(events.DataReceived(context.client, data))
        try:
            self.chooser.next_layer(asked)
        except exceptions.AddonHalt:
            assert asked.layer is None
            return None
        assert asked.layer is not None
        return asked.layer


@pytest.fixture
def chooser() -> Chooser:
    return Chooser()


def context_of(top: type[layer.Layer] = modes.HttpProxy, *, fast: bool = True) -> Context:
    client = Client(peername=("10.0.0.2", 5), sockname=("10.0.0.1", 8080))
    context = (FastPathContext if fast else Context)(client, OPTIONS)
    if isinstance(context, FastPathContext):
        context.fast_path = cast("Any", SimpleNamespace(hooks=None, keeps_bodies=False, origins=None))
    context.server = Server(address=("site.example", 443))
    context.layers = []
    made = object.__new__(top)
    context.layers.append(made)
    return context


def tunnelled(top: type[layer.Layer] = modes.HttpProxy, *, fast: bool = True, http2: bool = False) -> Context:
    """A connection inside of a CONNECT tunnel."""
    context = context_of(top, fast=fast)
    outer = object.__new__(HttpLayer)
    stream: Any = object.__new__(HttpStream)
    stream.flow = SimpleNamespace(request=SimpleNamespace(is_http2=http2))
    context.layers += [outer, stream]
    return context


def encrypted(context: Context, alpn: bytes | None = None) -> Context:
    context.layers.append(object.__new__(ClientTLSLayer))
    context.client.alpn = alpn
    return context


def test_it_waits_until_it_is_certain(chooser: Chooser) -> None:
    assert chooser.choose(context_of(), UNDECIDED) is None
    assert chooser.done == ["begin"]
    assert chooser.choose(encrypted(tunnelled()), b"") is None


@pytest.mark.parametrize("fast", [True, False])
def test_http_is_read_as_http(chooser: Chooser, *, fast: bool) -> None:
    for context, mode in (
        (context_of(fast=fast), HTTPMode.regular),
        (context_of(modes.HttpUpstreamProxy, fast=fast), HTTPMode.upstream),
        (context_of(modes.TransparentProxy, fast=fast), HTTPMode.transparent),
        (tunnelled(fast=fast), HTTPMode.transparent),
        (tunnelled(modes.HttpUpstreamProxy, fast=fast), HTTPMode.transparent),
    ):
        found = chooser.choose(context, HTTP1)
        assert isinstance(found, HttpLayer)
        assert (type(found) is FastHttpLayer, found.mode, chooser.done) == (fast, mode, ["lift"])


def test_what_was_negotiated_in_a_handshake_counts(chooser: Chooser) -> None:
    for alpn in (b"h2", b"http/1.1", b"http/1.0"):
        assert isinstance(chooser.choose(encrypted(tunnelled(), alpn), NEITHER), FastHttpLayer)
        assert chooser.done == ["lift"]
    assert isinstance(chooser.choose(encrypted(tunnelled(), b"spdy/3"), HTTP1), RefusalLayer)
    assert chooser.done == ["lift", "refused"]
    context = encrypted(tunnelled(), b"h2")
    context.layers.append(object.__new__(HttpLayer))
    assert isinstance(chooser.choose(context, NEITHER), TCPLayer), "the outer protocol says nothing of a tunnel inside"


def test_tls_is_opened(chooser: Chooser) -> None:
    proxy = chooser.choose(context_of(), HELLO)
    assert (type(proxy), chooser.done) == (ClientTLSLayer, ["begin"])
    context = context_of()
    chooser.choose(context, HELLO)
    assert not context.server.tls, "it leads to the proxy itself"
    context = tunnelled()
    assert type(chooser.choose(context, HELLO)) is ClientTLSLayer
    assert context.server.tls is True
    slow = chooser.choose(tunnelled(fast=False), HELLO)
    assert type(slow) is ServerTLSLayer
    assert type(slow.child_layer) is ClientTLSLayer
    twice = chooser.choose(encrypted(tunnelled()), HELLO)
    assert isinstance(twice, RefusalLayer)
    assert chooser.done == ["lift", "refused"]


def test_raw_tunnels_are_used_where_they_are_admitted(chooser: Chooser) -> None:
    assert type(chooser.choose(tunnelled(), NEITHER)) is TCPLayer
    assert chooser.done == ["lift"]
    for fast in (True, False):
        context = encrypted(tunnelled(fast=fast))
        context.server.tls = True
        found = chooser.choose(context, NEITHER)
        assert type(found) is (ServerTLSLayer if fast else TCPLayer)
        assert not isinstance(found, ServerTLSLayer) or type(found.child_layer) is TCPLayer
    assert type(chooser.choose(encrypted(context_of(modes.TransparentProxy)), NEITHER)) is TCPLayer
    for context in (context_of(), tunnelled(http2=True)):
        assert isinstance(chooser.choose(context, NEITHER), RefusalLayer)
        assert chooser.done == ["lift", "refused"]
    chooser.admits = False
    assert isinstance(chooser.choose(tunnelled(), NEITHER), RefusalLayer)
    assert chooser.done == ["lift", "refused"]


def test_after_a_fault_nothing_passes_unread(chooser: Chooser) -> None:
    chooser.broken = True
    assert isinstance(chooser.choose(tunnelled(), NEITHER), RefusalLayer)
    assert chooser.done == ["failed"]


def test_other_proxies_are_left_to_mitmproxy(chooser: Chooser) -> None:
    context = context_of()
    context.client.transport_protocol = "udp"
    for one in (context, context_of(modes.ReverseProxy)):
        asked = layer.NextLayer(one)
        asked.events.append(events.DataReceived(one.client, HTTP1))
        chooser.chooser.next_layer(asked)
        assert (asked.layer, chooser.done) == (None, [])


def test_a_refusal_is_answered_once(chooser: Chooser) -> None:
    refused = chooser.choose(tunnelled(), HTTP2)
    assert isinstance(refused, RefusalLayer)
    assert chooser.done == ["lift"]
    client = refused.context.client
    done = list(refused.handle_event(events.DataReceived(client, b"x")))
    sent, closed, hook = done
    assert isinstance(sent, commands.SendData)
    assert (sent.connection, sent.data.startswith(b"HTTP/1.1 400 "), b"connection: close" in sent.data) == (client, True, True)
    assert isinstance(closed, commands.CloseConnection)
    assert closed.connection is client
    assert isinstance(hook, UnreadableRequestHook)
    assert list(refused.handle_event(events.DataReceived(client, b"x"))) == []
    chooser.admits = False
    plain = chooser.choose(tunnelled(), NEITHER)
    assert isinstance(plain, RefusalLayer)
    assert [type(one) for one in plain.handle_event(events.DataReceived(client, b"x"))] == [
        *(commands.SendData, commands.CloseConnection),
    ]
