"""A request without a body and its answer, each in one step instead of two dozen.

mitmproxy takes a head apart into events that climb from the connection to the stream and down to the other connection, each
through several generators. Where a message is plain (http1_heads.py), the connection to the origin is open and idle, and no
hook has to wait, what comes out of all that is known before. It is done at once (request.py, response.py), and
connections and stream are left in the very state in which mitmproxy would have left them. The flow, the hooks and their order are
the same. Whatever is not as expected goes the long way, also in the middle of a message: hooks that ran are not run again.

tests/proxy/mitm/test_mitmproxy_pin.py watches the code whose work this is,
tests/proxy/mitm/fastpath/test_fastpath_exchange.py compares both ways.
"""

from mitmproxy.proxy import events, layer
from mitmproxy.proxy.layers.http import HttpLayer

from gatewayfilter.proxy.mitm.fastpath.request import take_request
from gatewayfilter.proxy.mitm.fastpath.response import take_body, take_response
from gatewayfilter.proxy.mitm.fastpath.steps import Commands, Hooks, Sent, SlowPath
from gatewayfilter.proxy.mitm.http.http1_client import GatewayHttp1Client
from gatewayfilter.proxy.mitm.http.http1_server import GatewayHttp1Server


def take(http_layer: HttpLayer, handler: layer.Layer, event: events.DataReceived, slow_path: SlowPath) -> Sent | Commands | None:
    """Handles what came from a client or an origin.

    Args:
        http_layer: has the connections.
        handler: of the connection that the data came from.
        event: the data.
        slow_path: for what turns out not to be plain.

    Returns:
        What is to be sent, or further commands when it goes on the long way, or `None` when nothing was done.
    """
    hooks: Hooks | None = getattr(http_layer.context.options, "hooks", None)
    if hooks is None or handler._paused is not None:  # noqa: SLF001  as Layer.handle_event asks
        return None
    if type(handler) is GatewayHttp1Server:
        if handler.state == handler.read_headers and not handler.buf:
            return take_request(http_layer, handler, event.data, hooks, slow_path)
    elif type(handler) is GatewayHttp1Client and not handler.buf:
        if handler.state == handler.read_headers:
            return take_response(http_layer, handler, event.data, hooks, slow_path)
        if handler.state == handler.read_body:
            return take_body(http_layer, handler, event.data, hooks, slow_path)
    return None
