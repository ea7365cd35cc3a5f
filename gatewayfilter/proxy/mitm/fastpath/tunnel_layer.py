"""The top layer of a tunnel whose CONNECT the listener has read (listener/handshake.py).

mitmproxy reads a CONNECT by an HTTP layer with a connection and a stream of its own, through which each event of the tunnel
passes from then on. Here the layers of what is inside are at the top, as in transparent mode.
"""

from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.context import Context

from gatewayfilter.proxy.listener.handshake import ESTABLISHED
from gatewayfilter.proxy.mitm.hooks import TunnelOpenedHook


class TunnelLayer(layer.Layer):
    """Answers the CONNECT, and leaves the rest to the layers of what is inside the tunnel.

    Args:
        context: of the connection; its server has the address that the tunnel leads to.
        answered: the CONNECT was answered before.
    """

    def __init__(self, context: Context, *, answered: bool) -> None:
        super().__init__(context)
        self._answered = answered

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        child = layer.NextLayer(self.context)
        self._handle_event = child.handle_event  # type: ignore[method-assign]
        if not self._answered:
            yield commands.SendData(self.context.client, ESTABLISHED)
        yield TunnelOpenedHook(self.context.client)
        yield from child.handle_event(event)
