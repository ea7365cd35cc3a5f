"""mitmproxy's handler of a connection, whose hooks run at once where they do not wait, in one task instead of three.

mitmproxy disarms the connection's time-out around each hook of a connection, reads the hook's fields twice, and formats the
client's address for a log that has another form here. It has a task for a client, one that reads from it, and one that sleeps
until the time-out, and one for each connection to an origin. What is read passes two coroutines of a lock, which here is held by
a flag; and the end of a client that awaits nothing, or of a connection that the keep-alive pool has taken, passes no layers.
"""

import asyncio
import logging
import sys
import time
from asyncio import selector_events
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol, cast

from mitmproxy.connection import ConnectionState
from mitmproxy.proxy import commands, events, server_hooks
from mitmproxy.proxy.mode_servers import ProxyConnectionHandler
from mitmproxy.proxy.server import ConnectionHandler, ConnectionIO, LiveConnectionHandler, TimeoutWatchdog
from mitmproxy.utils import asyncio_utils, human

from gatewayfilter.proxy.mitm.fastpath.hook_runner import CachedAddonManager, free, is_at_rest
from gatewayfilter.proxy.mitm.http.upload_flow import AHEAD
from gatewayfilter.proxy.tunnel.timeouts import Deadlines

_log = logging.getLogger("mitmproxy.proxy.server")
SOCKET_TRANSPORT: Final = selector_events._SelectorSocketTransport  # type: ignore[attr-defined]  # noqa: SLF001  it has no public name
_OF_CONNECTIONS: Final = frozenset({
    server_hooks.ClientConnectedHook, server_hooks.ClientDisconnectedHook, server_hooks.ServerConnectHook,
    server_hooks.ServerConnectedHook, server_hooks.ServerDisconnectedHook, server_hooks.ServerConnectErrorHook,
})  # fmt: skip
"""Those without a flow, which could be held up by a user."""
_ATTRIBUTE: Final = "gatewayfilter_idle_deadlines"
_ALL_BUT_S: Final = 0.5
"""Who has more than all but this left waits beside those that have just come."""


class IdleTimer(TimeoutWatchdog):
    """The time-out of a connection, by a timer of the event loop instead of a task.

    Args:
        timeout: seconds without activity.
        callback: called, once, when they are over.
    """

    def __init__(self, timeout: int, callback: Callable[[], Awaitable[None]]) -> None:
        super().__init__(timeout, callback)
        self._timer: asyncio.TimerHandle | None = None
        self._deadlines: Deadlines[IdleTimer] | None = None
        self._over: asyncio.Future[None] | None = None
        self._is_due = False

    def begin(self) -> None:
        """Begins to wait."""
        left = self.timeout - (time.time() - self.last_activity)
        self._is_due = False
        if left > self.timeout - _ALL_BUT_S:
            self._deadlines = _deadlines(asyncio.get_running_loop(), self.timeout)
            self._deadlines.add(self)
        else:
            self._timer = asyncio.get_running_loop().call_later(max(0, left), self._compare)

    def end(self) -> None:
        """Ends that."""
        if self._deadlines is not None:
            self._deadlines.remove(self)
            self._deadlines = None
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

    def over(self) -> None:
        """Compares the time that is left, or notes that it is to be done later."""
        self._compare()

    def _compare(self) -> None:
        self._timer = self._deadlines = None
        if self.blocker:
            self._is_due = True
        elif self.last_activity + self.timeout < time.time():
            self._over = asyncio.ensure_future(self.callback())
        else:
            self.begin()


def _deadlines(loop: asyncio.AbstractEventLoop, timeout: int) -> Deadlines[IdleTimer]:
    """Returns the deadlines of all connections of a loop: a timer for each would be sorted into the loop's, and left there."""
    found: dict[int, Deadlines[IdleTimer]] = vars(loop).setdefault(_ATTRIBUTE, {})
    if timeout not in found:
        found[timeout] = Deadlines(loop, timeout, IdleTimer.over)
    return found[timeout]


class DetachedTransport(asyncio.Transport):
    """Stands in for a transport that was taken from a stream writer: closed, and closing it does nothing."""

    def is_closing(self) -> bool:
        """Returns True: nothing is to be written."""
        return True

    def close(self) -> None:
        """Does nothing: the connection goes on elsewhere."""

    def abort(self) -> None:
        """Does nothing: the connection goes on elsewhere."""

    def write(self, data: object) -> None:
        """Drops what is written."""

    def get_write_buffer_size(self) -> int:
        """Returns 0."""
        return 0


class ReadsDirectly(Protocol):
    """What hands a connection's bytes to the layers: `direct_reader.DirectReader`."""

    def begin(self) -> asyncio.Future[None]:
        """Begins. Returns what is done when the connection ends."""
        ...

    def stop(self) -> None:
        """Ends that."""
        ...


class FastConnectionHandler(ProxyConnectionHandler):
    """Serves the connection of a client.

    Args:
        master: has the addons.
        reader, writer: of the connection.
        options: mitmproxy's.
        mode: how the client reached the proxy.

    Attributes:
        in_tunnel: the listener has read the CONNECT, and fed the stream with what came behind it.
        unsettled: data that was written may wait, or a connection may be closing; else nothing has to be looked at before
            the next read.
    """

    in_tunnel: bool = False
    unsettled: bool = True
    _has_left: bool = False
    _hooks_waiting: int = 0

    def __init__(self, master: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, options: Any, mode: Any) -> None:
        self.master = master
        LiveConnectionHandler.__init__(self, reader, writer, options, mode)
        self.timeout_watchdog = IdleTimer(self.timeout_watchdog.timeout, self.on_timeout)

    def handle_now(self, event: events.DataReceived) -> None:
        """Does what `server_event` does, at once. To be called while no event is handled and none waits for its turn."""
        lock: Any = self._server_event_lock
        lock._locked = True  # noqa: SLF001  as its `acquire` does where nobody waits
        self.timeout_watchdog.last_activity = time.time()
        transports = self.transports
        try:
            for command in self.layer.handle_event(event):
                if type(command) is not commands.SendData:
                    self.unsettled = True
                    self._do(command)
                elif (io := transports.get(command.connection)) is not None:
                    writer: Any = io.writer
                    kind = type(writer)
                    to = writer._transport if kind is asyncio.StreamWriter else writer  # noqa: SLF001  it hands on to it
                    if type(to) is not SOCKET_TRANSPORT or to._buffer or to._closing or to._eof:  # noqa: SLF001
                        self.unsettled = True
                        if not to.is_closing():
                            to.write(command.data)
                        continue
                    data = command.data  # as its `write`, which checks and copies first
                    try:
                        sent = to._sock.send(data)  # noqa: SLF001
                    except OSError:  # it would block, or is broken
                        sent = 0
                    if sent != len(data):
                        self.unsettled = True
                        to.write(data[sent:])
        except Exception:  # noqa: BLE001  as mitmproxy
            self.log("mitmproxy has crashed!", logging.ERROR, exc_info=True)
        finally:
            if lock._waiters:  # noqa: SLF001
                lock.release()
            else:
                lock._locked = False  # noqa: SLF001  as `release` does where nobody waits

    def _do(self, command: commands.Command) -> None:
        """Does what a command asks for, as `server_event` does."""
        if isinstance(command, commands.OpenConnection):
            assert command.connection not in self.transports
            task = self._begin(self.open_connection(command), f"server connection handler {command.connection.address}")
            self.transports[command.connection] = ConnectionIO(handler=task)
        elif isinstance(command, commands.RequestWakeup):
            self.wakeup_timer.add(self._begin(self.wakeup(command), f"wakeup timer ({command.delay:.1f}s)"))
        elif isinstance(command, commands.ConnectionCommand) and command.connection not in self.transports:
            pass  # it has been closed
        elif isinstance(command, commands.SendData):
            writer = self.transports[command.connection].writer
            assert writer
            if not writer.is_closing():
                writer.write(command.data)
        elif isinstance(command, commands.CloseConnection):
            half_close = isinstance(command, commands.CloseTcpConnection) and command.half_close
            self.close_connection(command.connection, half_close)
        elif isinstance(command, commands.StartHook):
            self._begin(self.hook_task(command), f"handle_hook({command.name})", keep_ref=True)
        elif isinstance(command, commands.Log):
            self.log(command.message, command.level)
        else:
            raise RuntimeError(f"Unexpected command: {command}")

    def _begin(self, doing: Coroutine[Any, Any, None], name: str, *, keep_ref: bool = False) -> asyncio.Task[None]:
        return asyncio_utils.create_task(doing, name=name, keep_ref=keep_ref, client=self.client.peername)

    async def server_event(self, event: events.Event) -> None:
        """Handles an event, unless it is an end from which nothing follows."""
        if type(event) is events.ConnectionClosed:
            connection = event.connection
            if connection is self.client:
                if is_at_rest(self.layer):
                    connection.state = ConnectionState.CLOSED
                    return
            elif self._has_left and (io := self.transports.get(connection)) is not None and is_taken(io):
                connection.state = ConnectionState.CLOSED
                return
        try:
            await super().server_event(event)
        finally:
            self.unsettled = True

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
        self._has_left = True
        for io in list(self.transports.values()):
            held: Any = io.handler
            if type(held) is HeldConnection and is_taken(io):
                await held.release()
            elif held:
                held.cancel("client disconnected")
        if tasks := [io.handler for io in self.transports.values() if io.handler]:
            await asyncio.wait(tasks)
        AHEAD.pop(self.client, None)
        if not self._hooks_waiting:
            free(self.layer)

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

    async def hook_task(self, hook: commands.StartHook) -> None:
        """Runs a hook that waits, and hands its reply to the layers."""
        self._hooks_waiting += 1
        try:
            await super().hook_task(hook)
        finally:
            self._hooks_waiting -= 1

    async def handle_hook(self, hook: commands.StartHook) -> None:
        """Runs a hook to its end."""
        addons = self.master.addons
        if type(addons) is not CachedAddonManager or type(hook) not in _OF_CONNECTIONS or not addons.run_or_defer(hook):
            await super().handle_hook(hook)

    def log(self, message: str, level: int = logging.INFO, exc_info: Any = None) -> None:
        """Logs a message, with the client's address."""
        if _log.isEnabledFor(level):
            super().log(message, level, exc_info)


class HeldConnection:
    """A connection to an origin that was taken from the keep-alive pool. Stands in for the task that reads it.

    Such a task is made when the origin ends the connection, or it is closed from this side.

    Args:
        handler: of the client.
        data: of its hooks.
        reader: reads it.
        leave: called when it has ended.
    """

    def __init__(
        self,
        handler: ConnectionHandler,
        data: server_hooks.ServerConnectionHookData,
        reader: ReadsDirectly,
        leave: Callable[[], None],
    ) -> None:
        self._handler = handler
        self._data = data
        self._reader = reader
        self._leave = leave
        reader.begin().add_done_callback(self._ended)

    def cancel(self, message: str | None = None) -> bool:
        """Closes the connection; returns True. Its task takes the place of this object."""
        return self._serve().cancel(message)

    async def release(self) -> None:
        """Lets go of the connection, which the pool has taken."""
        self._reader.stop()
        self._handler.transports.pop(self._data.server)
        await self._after()

    def _ended(self, _: asyncio.Future[None]) -> None:
        io = self._handler.transports.get(self._data.server)
        if io is not None and cast("object", io.handler) is self:
            self._serve()

    def _serve(self) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        """Reads the connection until its end."""
        io = self._handler.transports.get(self._data.server)
        if io is not None:  # at once: what follows from the end closes it again
            io.handler = asyncio.current_task()
        try:
            await self._handler.handle_connection(self._data.server)
        finally:
            self._reader.stop()
            left = self._handler.transports.pop(self._data.server, None)
            if left is not None:  # cancelled before its end was handled
                self._data.server.state = ConnectionState.CLOSED
                if left.writer is not None:
                    left.writer.close()
            await self._after()

    async def _after(self) -> None:
        self._leave()
        if _log.isEnabledFor(logging.INFO):
            self._handler.log(f"server disconnect {human.format_address(self._data.server.address)}")
        self._data.server.timestamp_end = time.time()
        await self._handler.handle_hook(server_hooks.ServerDisconnectedHook(self._data))


def is_taken(io: ConnectionIO) -> bool:
    """Returns whether the keep-alive pool has taken a connection."""
    return isinstance(io.writer, asyncio.StreamWriter) and type(io.writer.transport) is DetachedTransport


async def _settle(task: asyncio.Task[Any]) -> None:
    """Takes the cancellations of the running task back, also one that has not reached it yet."""
    while task.uncancel():
        pass
    if sys.version_info < (3, 13):
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
