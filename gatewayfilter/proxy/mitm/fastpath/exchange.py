"""The fast path of an exchange: a request without a body and its response, each in one step instead of two dozen.

mitmproxy takes a head apart into events that climb from the connection to the stream and down to the other connection, each
through several generators. Where a message is plain (http1_heads.py), the connection to the origin is open and idle, and no
hook has to wait, the outcome is known beforehand. request.py and response.py do it at once, and leave connections and stream in
the state in which mitmproxy would have left them. The flow, the hooks and their order are the same. Everything else takes the
slow path, also from the middle of a message: hooks that ran are not run again.

proxy/mitm/upstream_digests.py lists the code that this stands in for; tests/proxy/mitm/fastpath/test_fastpath_exchange.py and
test_fastpath_fuzz.py compare both paths.
"""

from mitmproxy.proxy import events, layer

from gatewayfilter.proxy.mitm.fastpath.http_layer import FastHttpLayer
from gatewayfilter.proxy.mitm.fastpath.request import take_request
from gatewayfilter.proxy.mitm.fastpath.response import take_body, take_response
from gatewayfilter.proxy.mitm.fastpath.steps import Commands, Sent
from gatewayfilter.proxy.mitm.http.http1_client import GatewayHttp1Client
from gatewayfilter.proxy.mitm.http.http1_server import GatewayHttp1Server


def take(http_layer: FastHttpLayer, handler: layer.Layer, event: events.DataReceived) -> Sent | Commands | None:
    """Handles data of a client or an origin.

    Args:
        http_layer: has the connections.
        handler: of the connection that the data came from.
        event: the data.

    Returns:
        What is to be sent, or further commands when the rest takes the slow path, or `None` when nothing was done.
    """
    if handler._paused is not None:  # noqa: SLF001  as Layer.handle_event checks
        return None
    if type(handler) is GatewayHttp1Server:
        if handler.state == handler.read_headers and not handler.buf._data:  # noqa: SLF001  its truth is two calls
            return take_request(http_layer, handler, event.data)
    elif type(handler) is GatewayHttp1Client and not handler.buf._data:  # noqa: SLF001
        if handler.state == handler.read_headers:
            return take_response(http_layer, handler, event.data)
        if handler.state == handler.read_body:
            return take_body(http_layer, handler, event.data)
    return None
