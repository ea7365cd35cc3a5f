"""The HTTP layer of the fast path: commands climb one step instead of many, hooks run where they are first seen.

mitmproxy's layer handles an event by recursion, the client's side, the stream and the origin's side each within the one before,
so that each command is handed up through all of them. Each hook climbs to the top of the connection and its reply down again,
four times a request, in a CONNECT tunnel through two HTTP layers and two TLS layers. Here the recursion is a list, and a hook
that does not have to wait is run by the HTTP layer that sees it. The order of all steps stays: depth first, and the reply to a
hook follows after the current event, as in hook_runner.py for all other layers.

Data of an open CONNECT tunnel over HTTP/1 goes straight to the layer inside it.
"""

from collections import deque
from collections.abc import Iterator
from typing import Literal

from mitmproxy import http
from mitmproxy.connection import ConnectionState, Server
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers.http import (
    DropStream,
    GetHttpConnection,
    HttpLayer,
    HTTPMode,
    HttpStream,
    RegisterHttpConnection,
    SendHttp,
)
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._events import ErrorCode, RequestHeaders, ResponseProtocolError
from mitmproxy.proxy.layers.http._http1 import Http1Server
from mitmproxy.proxy.layers.tls import ServerTLSLayer
from mitmproxy.proxy.tunnel import TunnelState

from gatewayfilter.proxy.mitm.fastpath.context import FastPathContext
from gatewayfilter.proxy.mitm.fastpath.steps import CompletedHooks, Step, behind
from gatewayfilter.proxy.mitm.http.http_stream import GatewayHttpStream

type _Replies = deque[tuple[layer.Layer, events.HookCompleted]]


class FastHttpLayer(HttpLayer):
    """mitmproxy's HTTP layer with a list of steps instead of a recursion.

    Args:
        context: of the connection.
        mode: as for mitmproxy's layer.

    Attributes:
        hooks: runs hooks.
        keeps_bodies: bodies have to be kept or measured.
        replies: replies to hooks that follow after the current event; `None` while no event is handled.
        spare: a stream that has ended and only took the fast path, for the next request.
    """

    context: FastPathContext

    def __init__(self, context: FastPathContext, mode: HTTPMode) -> None:
        super().__init__(context, mode)
        self.hooks = context.fast_path.hooks
        self.keeps_bodies = context.fast_path.keeps_bodies
        self.replies: _Replies | None = None
        self.spare: GatewayHttpStream | None = None

    def event_to_child(self, child: layer.Layer, event: events.Event) -> layer.CommandGenerator[None]:
        """Hands an event to a child, and does all that follows from it."""
        tunnel = self.tunnel_of(child, event)
        steps: list[Step] = [(child, child.handle_event(event)) if tunnel is None else (tunnel, _through(tunnel, event))]
        # From within a step: the replies to hooks are left to the outermost call.
        return self.run_steps(steps) if self.replies is None else self._run(steps, self.replies)

    def run_steps(self, steps: list[Step], completed: CompletedHooks | None = None) -> layer.CommandGenerator[None]:
        """Does steps, the last one first, and all that follows from them. Not to be called from within another step.

        Args:
            steps: layers, and what they do.
            completed: hooks that ran before.
        """
        replies: _Replies = deque()
        self.replies = replies
        try:
            yield from self._run(steps, replies, completed)
            while replies:
                waiting, reply = replies.popleft()
                yield from self._run([(waiting, waiting.handle_event(reply))], replies, completed)
        finally:
            self.replies = None

    def tunnel_of(self, child: layer.Layer, event: events.Event) -> HttpStream | None:
        """Returns the stream of an open CONNECT tunnel when an event need not become an HTTP event for it first."""
        kind = type(event)
        if kind is not events.DataReceived and not isinstance(event, events.CommandCompleted):
            return None
        client = self.connections.get(self.context.client)
        if not isinstance(client, Http1Server) or client.state != client.passthrough:
            return None
        stream = self.streams.get(client.stream_id)
        if (
            stream is None
            or (child is not stream and child is not client)
            or stream._paused  # noqa: SLF001  as Layer.handle_event checks
            or stream.flow.request.data.method != b"CONNECT"
        ):
            return None
        return stream

    def origin_of(self, flow: http.HTTPFlow) -> layer.Layer | Literal[False] | None:
        """Returns the layer that speaks HTTP over the connection which `HttpLayer.get_connection` would find for a request.

        `None` where it would find none, `False` where that one is not open for use.
        """
        wanted = flow.request.data
        address = (wanted.host, wanted.port)
        tls = wanted.scheme == b"https"
        for connection, handler in self.connections.items():
            if (
                type(connection) is Server
                and connection.tls is tls
                and connection.address == address
                and connection.via == flow.server_conn.via
                and connection.transport_protocol == "tcp"
            ):
                if connection in self.waiting_for_establishment or connection.error:
                    return False
                if connection.state is ConnectionState.OPEN:
                    if type(handler) is ServerTLSLayer and handler.tunnel_state is TunnelState.OPEN and handler._paused is None:  # noqa: SLF001
                        return behind(handler.child_layer)
                    return behind(handler)
        return None

    def _run(  # noqa: C901, PLR0912  the hot loop: a call costs more
        self, steps: list[Step], replies: _Replies, completed: CompletedHooks | None = None
    ) -> layer.CommandGenerator[None]:
        run_hook = self.hooks.run_or_defer if completed is None else completed.run
        while steps:
            child, coming = steps[-1]
            for command in coming:
                kind = type(command)
                if kind is commands.SendData or kind is commands.Log or child is None:
                    yield command
                elif kind is ReceiveHttp:
                    inner = command.event  # type: ignore[attr-defined]
                    if type(inner) is RequestHeaders:
                        yield from self.make_stream(inner.stream_id)
                    stream = self.streams.get(inner.stream_id)
                    if stream is not None:  # else a late event of a stream that was dropped
                        steps.append((stream, stream.handle_event(inner)))
                        break
                elif kind is SendHttp:
                    target = self.connections[command.connection]  # type: ignore[attr-defined]
                    steps.append((target, target.handle_event(command.event)))  # type: ignore[attr-defined]
                    break
                elif kind is DropStream:
                    self.streams.pop(command.stream_id, None)  # type: ignore[attr-defined]
                elif isinstance(command, commands.StartHook) and run_hook(command):
                    if command.blocking:
                        replies.append((child, events.HookCompleted(command, None)))
                else:
                    if command.blocking or kind is commands.RequestWakeup:
                        self.command_sources[command] = child
                    if kind is GetHttpConnection:
                        steps.append((None, self.get_connection(command)))  # type: ignore[arg-type]
                        break
                    if kind is RegisterHttpConnection:
                        steps.append((None, self.register_connection(command)))  # type: ignore[arg-type]
                        break
                    if kind is commands.OpenConnection:
                        self.connections[command.connection] = child  # type: ignore[attr-defined]
                    yield command
            else:
                steps.pop()


def _through(stream: HttpStream, event: events.Event) -> Iterator[commands.Command]:
    """Hands an event to what is inside a tunnel."""
    assert stream.child_layer is not None
    return closing(stream, stream.child_layer.handle_event(event))


def closing(stream: HttpStream, inside: Iterator[commands.Command]) -> Iterator[commands.Command]:
    """Lets commands that end the client's connection go through a tunnel's own state."""
    for command in inside:
        if isinstance(command, commands.CloseConnection):
            if command.connection is stream.context.client:
                yield SendHttp(ResponseProtocolError(stream.stream_id, "EOF", ErrorCode.PASSTHROUGH_CLOSE), command.connection)
            else:
                yield commands.CloseConnection(command.connection)
        else:
            yield command
