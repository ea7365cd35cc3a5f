"""mitmproxy's handler of a connection, whose hooks run at once where they do not wait.

mitmproxy disarms the connection's time-out around each hook of a connection, reads the hook's fields twice, and formats the
client's address for a log that has another form here.
"""

import asyncio
import logging
from typing import Any, Final

from mitmproxy.proxy import commands, server_hooks
from mitmproxy.proxy.mode_servers import ProxyConnectionHandler
from mitmproxy.proxy.server import LiveConnectionHandler

from gatewayfilter.proxy.mitm.fastpath.hook_runner import CachedAddonManager

_log = logging.getLogger("mitmproxy.proxy.server")
_OF_CONNECTIONS: Final = frozenset({
    server_hooks.ClientConnectedHook, server_hooks.ClientDisconnectedHook, server_hooks.ServerConnectHook,
    server_hooks.ServerConnectedHook, server_hooks.ServerDisconnectedHook, server_hooks.ServerConnectErrorHook,
})  # fmt: skip
"""Those without a flow, which could be held up by a user."""


class FastConnectionHandler(ProxyConnectionHandler):
    """Serves the connection of a client.

    Args:
        master: has the addons.
        reader, writer: of the connection.
        options: mitmproxy's.
        mode: how the client reached the proxy.
    """

    def __init__(self, master: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, options: Any, mode: Any) -> None:
        self.master = master
        LiveConnectionHandler.__init__(self, reader, writer, options, mode)

    async def handle_hook(self, hook: commands.StartHook) -> None:
        """Runs a hook to its end."""
        addons = self.master.addons
        if type(addons) is not CachedAddonManager or type(hook) not in _OF_CONNECTIONS or not addons.run_or_defer(hook):
            await super().handle_hook(hook)

    def log(self, message: str, level: int = logging.INFO, exc_info: Any = None) -> None:
        """Logs a message, with the client's address."""
        if _log.isEnabledFor(level):
            super().log(message, level, exc_info)
