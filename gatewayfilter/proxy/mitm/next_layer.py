"""Protocol detection: the addon that chooses which of mitmproxy's layers reads a connection, in place of mitmproxy's own.

mitmproxy's `NextLayer` decides on the first read and treats what it does not recognise as raw TCP: a request with a short first
segment would pass unread. Here the decision waits until it is certain (protocol_detection.py), HTTP is read as HTTP however
malformed, and raw TCP is used only where `RawTunnels` admits it.
"""

from typing import Final

from mitmproxy import exceptions, http
from mitmproxy.net.http.http1 import assemble_response
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import ClientTLSLayer, HttpLayer, ServerTLSLayer, TCPLayer, modes
from mitmproxy.proxy.layers.http import HTTPMode, HttpStream
from mitmproxy.proxy.layers.tls import HTTP1_ALPNS, HTTP2_ALPN

from gatewayfilter.proxy.listener.connection_deadlines import ConnectionDeadlines
from gatewayfilter.proxy.listener.protocol_detection import Protocol, detect
from gatewayfilter.proxy.mitm.fastpath.context import FastPathContext
from gatewayfilter.proxy.mitm.fastpath.http_layer import FastHttpLayer
from gatewayfilter.proxy.mitm.hooks import UnreadableRequestHook
from gatewayfilter.proxy.pages.block_page import BlockPages
from gatewayfilter.proxy.tunnel.raw_tunnels import RawTunnels

_HTTP_ALPNS: Final = frozenset({*HTTP1_ALPNS, HTTP2_ALPN})


class NextLayer:
    """Chooses layers.

    Args:
        tunnels: decides which connections may pass unread.
        deadlines: limits how long a connection may stay undecided.
        pages: the answers to connections that are refused.
    """

    name = "gatewayfilternextlayer"

    def __init__(self, tunnels: RawTunnels, deadlines: ConnectionDeadlines, pages: BlockPages) -> None:
        self._tunnels = tunnels
        self._deadlines = deadlines
        self._pages = pages

    def next_layer(self, nextlayer: layer.NextLayer) -> None:
        """Chooses the layer that reads a connection from here on.

        Raises:
            AddonHalt: it is not certain yet; mitmproxy's own addon must not decide.
        """
        context = nextlayer.context
        if context.client.transport_protocol != "tcp" or isinstance(context.layers[0], modes.ReverseProxy):
            return  # under stock mitmproxy alone
        try:
            nextlayer.layer = self._choose(context, nextlayer)
        except Exception:  # noqa: BLE001  a connection must not pass unread because of a failure
            self._tunnels.failed()
            nextlayer.layer = RefusalLayer(context, self._pages.not_http())
        if nextlayer.layer is None:
            self._deadlines.begin_hello(context.client)
            raise exceptions.AddonHalt

    def _choose(self, context: Context, nextlayer: layer.NextLayer) -> layer.Layer | None:
        if (alpn := context.client.alpn) and isinstance(context.layers[-1], ClientTLSLayer):
            return self._http(context) if alpn in _HTTP_ALPNS else self._refuse(context)
        match detect(nextlayer.data_client()):
            case Protocol.UNDECIDED:
                return None
            case Protocol.TLS:
                return self._tls(context)
            case Protocol.HTTP1:
                return self._http(context)
            case Protocol.HTTP2:  # no browser begins it without ALPN, and mitmproxy reads it only there
                self._deadlines.lift(context.client)
                return RefusalLayer(context, self._pages.bad_request("GET", ""), UnreadableRequestHook(context.client))
            case Protocol.NEITHER:
                return self._raw(context)

    def _tls(self, context: Context) -> layer.Layer:
        # mitmproxy forgets the outer server name, which nothing has judged yet, and its layers fail on what is deeper.
        if isinstance(context.layers[-1], ClientTLSLayer):
            return self._refuse(context)
        self._deadlines.begin_hello(context.client)
        if _is_for_the_proxy(context):
            return ClientTLSLayer(context)
        if isinstance(context, FastPathContext):  # its HTTP layer makes all connections to origins itself
            context.server.tls = True
            return ClientTLSLayer(context)
        server = ServerTLSLayer(context)
        server.child_layer = ClientTLSLayer(context)
        return server

    def _http(self, context: Context) -> layer.Layer:
        self._deadlines.lift(context.client)
        mode = HTTPMode.transparent
        if _is_for_the_proxy(context):
            mode = HTTPMode.upstream if isinstance(context.layers[0], modes.HttpUpstreamProxy) else HTTPMode.regular
        return FastHttpLayer(context, mode) if isinstance(context, FastPathContext) else HttpLayer(context, mode)

    def _raw(self, context: Context) -> layer.Layer:
        # Streams of HTTP/2 share one address in mitmproxy: what is judged could be another one than what is connected to.
        shared = any(isinstance(one, HttpStream) and one.flow.request.is_http2 for one in context.layers)
        if shared or _is_for_the_proxy(context) or not self._tunnels.admits(context.client, context.server):
            return self._refuse(context)
        self._deadlines.lift(context.client)
        if not isinstance(context, FastPathContext) or not context.server.tls:
            return TCPLayer(context)
        server = ServerTLSLayer(context)
        server.child_layer = TCPLayer(context)
        return server

    def _refuse(self, context: Context) -> layer.Layer:
        self._deadlines.lift(context.client)
        self._tunnels.refused(context.client, context.server)
        return RefusalLayer(context, self._pages.not_http())


class RefusalLayer(layer.Layer):
    """Answers any data with an error page, and closes the connection.

    Args:
        context: of the connection.
        answer: the page.
        hook: runs when the connection is refused.
    """

    def __init__(self, context: Context, answer: http.Response, hook: commands.StartHook | None = None) -> None:
        super().__init__(context)
        self._answer = answer
        self._hook = hook

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:  # noqa: ARG002  any event
        self._handle_event = self._done  # type: ignore[method-assign]
        self._answer.headers["connection"] = "close"
        yield commands.SendData(self.context.client, assemble_response(self._answer))
        yield commands.CloseConnection(self.context.client)
        if self._hook is not None:
            yield self._hook

    def _done(self, event: events.Event) -> layer.CommandGenerator[None]:  # noqa: ARG002
        yield from ()


def _is_for_the_proxy(context: Context) -> bool:
    """Returns whether a connection leads to the proxy itself: no CONNECT came before."""
    explicit = isinstance(context.layers[0], modes.HttpProxy | modes.HttpUpstreamProxy)
    return explicit and not any(isinstance(one, HttpLayer) for one in context.layers)
