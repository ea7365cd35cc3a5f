"""A stack of a connection's layers without sockets, with or without the fast path, fed with events."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from types import SimpleNamespace
from typing import Any

from mitmproxy import http
from mitmproxy.connection import Client, ConnectionState, Server
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.mode_specs import ProxyMode

from gatewayfilter.proxy.master import LeanMaster
from gatewayfilter.proxy.mitm.fastpath.hook_runner import CachedAddonManager
from gatewayfilter.proxy.mitm.install import install
from gatewayfilter.proxy.pages.block_page import BlockPages

HOOKS = ("requestheaders", "request", "responseheaders", "response", "error")


class Watcher:
    """An addon that notes hooks and does what the path of a request says: `/kill-request/` kills in `request`."""

    def __init__(self, deeds: dict[str, Callable[[http.HTTPFlow], Awaitable[None] | None]]) -> None:
        self.seen: list[tuple[object, ...]] = []
        self._deeds = deeds

    def _called(self, name: str, flow: http.HTTPFlow) -> Awaitable[None] | None:
        request, response = flow.request, flow.response
        self.seen.append((
            name, flow.live, request.method, request.host, request.port, request.path, request.headers.fields,
            request.raw_content, request.timestamp_end is None, flow.server_conn.address,
            response and (response.status_code, response.reason, response.headers.fields),
            response and (response.raw_content, response.timestamp_end is None), flow.error and flow.error.msg,
        ))  # fmt: skip
        deed, _, hook = request.path.strip("/").partition("-")
        return self._deeds[deed](flow) if hook == name and deed in self._deeds else None

    def __getattr__(self, name: str) -> Any:
        if name in HOOKS:
            return lambda flow: self._called(name, flow)
        raise AttributeError(name)


class Driver:
    """One stack of layers; does what mitmproxy's connection handler does, at once.

    Attributes:
        sent: the bytes sent to each connection: the client's first, then origins' as they were opened.
        ends: how connections were closed, by us.
    """

    def __init__(self, master: LeanMaster, mode: str) -> None:
        install(
            BlockPages(), fast_path=isinstance(master.addons, CachedAddonManager)
        )  # the last master that was made may have been another one
        self._addons = master.addons if isinstance(master.addons, CachedAddonManager) else CachedAddonManager(master)
        self._addons.chain = master.addons.chain
        client = Client(
            peername=("192.0.2.1", 1), sockname=("192.0.2.2", 8080), timestamp_start=0.0, proxy_mode=ProxyMode.parse(mode),
            state=ConnectionState.OPEN,
        )  # fmt: skip
        context = Context(client, master.options)
        self._top: Any = master._instance.make_top_layer(context)
        connections: Any = master._proxyserver.connections
        connections[client.id] = SimpleNamespace(layer=self._top)
        self._waiting: deque[tuple[commands.StartHook, Any]] = deque()
        self._replies: deque[events.Event] = deque()
        self.connections: list[Client | Server] = [client]
        self.sent: list[bytearray] = [bytearray()]
        self.ends: list[tuple[int, bool]] = []
        self._happens(events.Start())

    def _number(self, connection: Any) -> int:
        return next((number for number, known in enumerate(self.connections) if known is connection), -1)

    def data(self, number: int, data: bytes) -> None:
        """Lets bytes come from a connection."""
        if number < len(self.connections) and self.connections[number].state & ConnectionState.CAN_READ:
            self._happens(events.DataReceived(self.connections[number], data))

    def end(self, number: int, *, half: bool = False) -> None:
        """Lets a connection end."""
        if number < len(self.connections) and self.connections[number].state & ConnectionState.CAN_READ:
            connection = self.connections[number]
            connection.state = connection.state & ~ConnectionState.CAN_READ if half else ConnectionState.CLOSED
            self._happens(events.ConnectionClosed(connection))

    def release(self) -> None:
        """Ends the hook that has waited longest."""
        if self._waiting:
            hook, waits = self._waiting.popleft()
            _run(waits)
            self._replies.append(events.HookCompleted(hook, None))
            self._happens(None)

    def _happens(self, event: events.Event | None) -> None:
        if event is not None:
            self._carry_out(self._top.handle_event(event))
        while self._replies:
            self._carry_out(self._top.handle_event(self._replies.popleft()))

    def _carry_out(self, coming: Iterable[commands.Command]) -> None:
        for command in coming:
            if isinstance(command, commands.OpenConnection):
                self._open(command)
            elif isinstance(command, commands.StartHook):
                self._start(command)
            elif isinstance(command, commands.Log):
                assert "crashed" not in command.message
            elif isinstance(command, commands.ConnectionCommand):
                number = self._number(command.connection)
                if number >= 0:  # else never opened, or lent only, as behind a parent proxy
                    self._tell(number, command)

    def _open(self, command: commands.OpenConnection) -> None:
        server = command.connection
        server.state = ConnectionState.OPEN
        server.timestamp_tcp_setup = server.timestamp_start = 1.0
        self.connections.append(server)
        self.sent.append(bytearray())
        self._replies.append(events.OpenConnectionCompleted(command, None))

    def _tell(self, number: int, command: commands.ConnectionCommand) -> None:
        connection = command.connection
        if isinstance(command, commands.SendData) and connection.state & ConnectionState.CAN_WRITE:
            self.sent[number] += command.data
        elif isinstance(command, commands.CloseConnection):
            half = getattr(command, "half_close", False)
            if connection.state is not ConnectionState.CLOSED:
                self.ends.append((number, half))
            connection.state = connection.state & ~ConnectionState.CAN_WRITE if half else ConnectionState.CLOSED

    def _start(self, hook: commands.StartHook) -> None:
        waits = self._addons._unfinished.pop(id(hook), None)
        if waits is None:
            waits = self._addons.run(hook)
        if waits is not None:
            self._waiting.append((hook, waits))
        elif hook.blocking:
            self._replies.append(events.HookCompleted(hook, None))

    def finish(self) -> None:
        """Ends what still waits."""
        while self._waiting:
            self.release()


def _run(waits: Any) -> None:
    try:
        waits.send(None)
    except StopIteration:
        return
    raise AssertionError("a hook of these tests waits once only")
