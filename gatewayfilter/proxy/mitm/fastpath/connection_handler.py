"""mitmproxy's handler of a connection, whose hooks run at once where they do not wait, in one task instead of three.

mitmproxy disarms the connection's time-out around each hook of a connection, reads the hook's fields twice, and formats the
client's address for a log that has another form here. It has a task for a client, one that reads from it, and one that sleeps
until the time-out.
"""

import asyncio
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, cast

from mitmproxy.proxy import commands, events, server_hooks
from mitmproxy.proxy.mode_servers import ProxyConnectionHandler
from mitmproxy.proxy.server import LiveConnectionHandler, TimeoutWatchdog

from gatewayfilter.proxy.mitm.fastpath.hook_runner import CachedAddonManager

_log = logging.getLogger("mitmproxy.proxy.server")
_OF_CONNECTIONS: Final = frozenset({
    server_hooks.ClientConnectedHook, server_hooks.ClientDisconnectedHook, server_hooks.ServerConnectHook,
    server_hooks.ServerConnectedHook, server_hooks.ServerDisconnectedHook, server_hooks.ServerConnectErrorHook,
})  # fmt: skip
"""Those without a flow, which could be held up by a user."""


class IdleTimer(TimeoutWatchdog):
    """The time-out of a connection, by a timer of the event loop instead of a task.

    Args:
        timeout: seconds without activity.
        callback: called, once, when they are over.
    """

    def __init__(self, timeout: int, callback: Callable[[], Awaitable[None]]) -> None:
        super().__init__(timeout, callback)
        self._timer: asyncio.TimerHandle | None = None
        self._over: asyncio.Future[None] | None = None
        self._is_due = False

    def begin(self) -> None:
        """Begins to wait."""
        left = self.timeout - (time.time() - self.last_activity)
        self._is_due = False
        self._timer = asyncio.get_running_loop().call_later(max(0, left), self._compare)

    def end(self) -> None:
        """Ends that."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._is_due = False

    @contextmanager
    def disarm(self) -> Iterator[None]:
        """Lets no time pass while a hook waits."""
        with super().disarm():
            yield
        if self._is_due and not self.blocker:
            self.begin()

    def _compare(self) -> None:
        self._timer = None
        if self.blocker:
            self._is_due = True
        elif self.last_activity + self.timeout < time.time():
            self._over = asyncio.ensure_future(self.callback())
        else:
            self.begin()


class FastConnectionHandler(ProxyConnectionHandler):
    """Serves the connection of a client.

    Args:
        master: has the addons.
        reader, writer: of the connection.
        options: mitmproxy's.
        mode: how the client reached the proxy.

    Attributes:
        in_tunnel: the listener has read the CONNECT, and fed the stream with what came behind it.
    """

    in_tunnel: bool = False

    def __init__(self, master: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, options: Any, mode: Any) -> None:
        self.master = master
        LiveConnectionHandler.__init__(self, reader, writer, options, mode)
        self.timeout_watchdog = IdleTimer(self.timeout_watchdog.timeout, self.on_timeout)

    async def handle_client(self) -> None:
        """Serves the client until it has left."""
        timer = cast("IdleTimer", self.timeout_watchdog)
        timer.begin()
        self.log("client connect")
        await self.handle_hook(server_hooks.ClientConnectedHook(self.client))
        if self.client.error:
            self.log("client kill connection")
            writer = self.transports.pop(self.client).writer
            assert writer
            writer.close()
        else:
            await self.server_event(events.Start())
            await self._read()
        timer.end()
        while self.wakeup_timer:
            self.wakeup_timer.pop().cancel()
        self.log("client disconnect")
        self.client.timestamp_end = time.time()
        await self.handle_hook(server_hooks.ClientDisconnectedHook(self.client))
        if handlers := [io.handler for io in self.transports.values() if io.handler]:
            for handler in handlers:
                handler.cancel("client disconnected")
            await asyncio.wait(handlers)

    async def _read(self) -> None:
        """Reads from the client until its end, or until the task of its connection, which is this one, is cancelled."""
        task = asyncio.current_task()
        assert task is not None
        io = self.transports[self.client]
        io.handler = task
        try:
            await self.handle_connection(self.client)
        except asyncio.CancelledError:
            pass
        except Exception as error:  # noqa: BLE001  as mitmproxy: what follows the end of a connection must follow
            self.log(f"connection handler has crashed: {error}", logging.ERROR, exc_info=error)
        if task.cancelling():  # layers close a connection by that; the rest of this task must not be cancelled
            await _settle(task)
        if self.transports.pop(self.client, None) is not None:  # cancelled or crashed before it was closed
            io.handler = None  # what ends the connection from here on must not interrupt this task
            assert io.writer is not None
            io.writer.close()

    async def handle_hook(self, hook: commands.StartHook) -> None:
        """Runs a hook to its end."""
        addons = self.master.addons
        if type(addons) is not CachedAddonManager or type(hook) not in _OF_CONNECTIONS or not addons.run_or_defer(hook):
            await super().handle_hook(hook)

    def log(self, message: str, level: int = logging.INFO, exc_info: Any = None) -> None:
        """Logs a message, with the client's address."""
        if _log.isEnabledFor(level):
            super().log(message, level, exc_info)


async def _settle(task: asyncio.Task[Any]) -> None:
    """Takes the cancellations of the running task back, also one that has not reached it yet."""
    while task.uncancel():
        pass
    if sys.version_info < (3, 13):
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
