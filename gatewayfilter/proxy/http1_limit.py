"""A bound on the size of HTTP/1 request headers, which mitmproxy does not have: a client could fill the memory with them."""

from typing import Final

from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers.http import HttpLayer
from mitmproxy.proxy.layers.http._http1 import Http1Server

MAX_HEADER_BYTES: Final = 262_144
_TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class BoundedHttp1Server(Http1Server):
    """The client's side of an HTTP/1 connection; refuses headers above `MAX_HEADER_BYTES` with 431."""

    def read_headers(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        """Reads request headers."""
        yield from super().read_headers(event)
        if len(self.buf) > MAX_HEADER_BYTES and self.state == self.read_headers:
            yield commands.SendData(self.conn, _TOO_LARGE)
            yield commands.CloseConnection(self.conn)
            self.state = self.done


class HeaderLimit:
    """The addon that gives each HTTP/1 connection its bound. Stands behind mitmproxy's NextLayer, which makes the layers."""

    name = "headerlimit"

    def next_layer(self, nextlayer: layer.NextLayer) -> None:
        """Puts the bounded server into a new HTTP layer, before it makes its own."""
        made = nextlayer.layer
        client = nextlayer.context.client
        if isinstance(made, HttpLayer) and client.alpn in {None, b"", b"http/1.1", b"http/1.0"}:
            made.connections.setdefault(client, BoundedHttp1Server(made.context.fork()))
