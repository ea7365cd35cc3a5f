"""mitmproxy's server and the addon of its connections that a worker uses, with the filter's listener and top layer.

`GatewayServer` stands in for the server instances of mitmproxy's modes: it accepts connections by a `Listener`. With the fast
path it gives each connection a `FastPathContext` and a `HookRunner` as its top layer.
"""

import asyncio
import socket
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, cast

from mitmproxy import ctx
from mitmproxy.addons import proxyserver
from mitmproxy.proxy import mode_specs
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layer import Layer
from mitmproxy.proxy.layers import modes
from mitmproxy.proxy.mode_servers import AsyncioServerInstance, ProxyConnectionHandler

from gatewayfilter.proxy.listener.listener import Handlers, Listener, OpenTunnel
from gatewayfilter.proxy.mitm.fastpath.connection_handler import FastConnectionHandler
from gatewayfilter.proxy.mitm.fastpath.context import FastPath, FastPathContext
from gatewayfilter.proxy.mitm.fastpath.direct_reader import read_directly
from gatewayfilter.proxy.mitm.fastpath.hook_runner import HookRunner
from gatewayfilter.proxy.mitm.fastpath.tunnel_layer import TunnelLayer
from gatewayfilter.proxy.mitm.origin_pool import FairSemaphore
from gatewayfilter.proxy.mitm.upstream import set_on

_TOP_LAYERS: Final[dict[type[mode_specs.ProxyMode], Callable[[Context], Layer]]] = {
    mode_specs.RegularMode: modes.HttpProxy,
    mode_specs.UpstreamMode: modes.HttpUpstreamProxy,
    mode_specs.TransparentMode: modes.TransparentProxy,
}

type MakeListener = Callable[[Handlers], Listener]


class GatewayProxyserver(proxyserver.Proxyserver):
    """The addon that keeps a worker's connections."""

    name = "proxyserver"

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @contextmanager
    def register_connection(self, connection_id: tuple[Any, ...] | str, handler: ProxyConnectionHandler) -> Iterator[None]:
        """Keeps a connection while it is served; its requests share connections to origins fairly."""
        set_on(handler, "max_conns", defaultdict(FairSemaphore))
        read_directly(handler, handler.client, begun=isinstance(handler, FastConnectionHandler) and handler.in_tunnel)
        with super().register_connection(connection_id, handler):
            yield

    def register_server(self, server: "GatewayServer[Any]") -> None:
        """Registers a server. mitmproxy refuses connections to the addresses of registered servers."""
        self.servers._instances[server.mode] = server  # noqa: SLF001  it makes its servers itself


def _open_stream(connected: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Returns the stream of a socket, as `loop.connect_accepted_socket` makes it, without a turn of the loop and its task."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport = cast("Any", loop)._make_socket_transport(connected, protocol)  # noqa: SLF001  its callers all wait
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


class GatewayServer[M: mode_specs.ProxyMode](AsyncioServerInstance[M]):
    """Serves clients in one of the modes `regular`, `transparent` and `upstream`.

    Args:
        mode: how clients reach the proxy.
        manager: keeps the connections.
        make_listener: makes what accepts connections.
        fast_path: `None` where messages take mitmproxy's own code.
    """

    def __init__(
        self,
        mode: M,
        manager: GatewayProxyserver,
        make_listener: MakeListener,
        fast_path: FastPath | None,
    ) -> None:
        super().__init__(mode, manager)
        self._make_listener = make_listener
        self._fast_path = fast_path

    async def listen(self, host: str, port: int) -> list[Any]:
        """Returns the listener of an address.

        Raises:
            OSError: the address cannot be listened on.
        """
        listener = self._make_listener(Handlers(self.handle_stream, self._handle_tunnel, self._takes_tunnels))
        listener.listen(host, port)
        return [listener]

    def _takes_tunnels(self) -> bool:
        """Returns whether tunnels need no flow of their CONNECT: no hook is to get it but that of our own deadlines."""
        hooks = self._fast_path.hooks if self._fast_path is not None else None
        return (
            hooks is not None
            and type(self.mode) is mode_specs.RegularMode
            and not hooks.handlers("http_connect")
            and len(hooks.handlers("http_connected")) == 1
        )

    async def _handle_tunnel(self, client: socket.socket, data: bytes, tunnel: OpenTunnel) -> None:
        """Serves what is inside a tunnel, as `handle_stream` serves a redirected connection."""
        assert self._fast_path is not None
        try:
            reader, writer = _open_stream(client)
        except OSError:
            client.close()
            raise
        if writer.get_extra_info("peername") is None:  # reset meanwhile: mitmproxy's hooks would fail
            writer.transport.abort()
            return
        if data:
            reader.feed_data(data)
        handler = FastConnectionHandler(ctx.master, reader, writer, self._fast_path.options, self.mode)
        context = FastPathContext.of(handler.layer.context, self._fast_path)
        context.server.address = tunnel.address
        handler.in_tunnel = True
        handler.layer = cast("Layer", HookRunner(TunnelLayer(context, answered=tunnel.answered), self._fast_path.hooks))
        try:
            with self.manager.register_connection(handler.client.id, handler):
                await handler.handle_client()
        except BaseException:  # nobody else closes it
            writer.transport.abort()
            raise

    def make_top_layer(self, context: Context) -> Layer:
        """Returns the outermost layer of a connection."""
        make = _TOP_LAYERS[type(self.mode)]
        if self._fast_path is None:
            return make(context)
        return cast("Layer", HookRunner(make(FastPathContext.of(context, self._fast_path)), self._fast_path.hooks))
