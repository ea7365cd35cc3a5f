"""mitmproxy's HTTP layer with short ways: commands climb one step instead of many, hooks are answered where they are first seen.

mitmproxy's layer handles an event by recursion, the client's side, the stream and the origin's side each within the one before,
so that each command is handed up through all of them; and each hook climbs to the top of the connection and its reply down
again, four times a request, in a CONNECT tunnel through two HTTP layers and two TLS layers. Here the recursion is a list, and a
hook that nothing waits for is run by the HTTP layer that sees it. The order of all steps stays: depth first, and the reply to a
hook goes back after the event at hand is done with, as hook_runner.py does it for all other layers.

What passes an open CONNECT tunnel of HTTP/1 goes straight to the layer inside it.

`install` replaces one method in this process; tests/proxy/mitm/test_mitmproxy_pin.py watches the version. Where the options of a
connection have no `run_hook`, as under stock mitmdump, all hooks are handed up.
"""

from collections import deque
from collections.abc import Callable, Iterator

from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers.http import DropStream, GetHttpConnection, HttpLayer, HttpStream, RegisterHttpConnection, SendHttp
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._events import ErrorCode, RequestHeaders, ResponseProtocolError
from mitmproxy.proxy.layers.http._http1 import Http1Server

from gatewayfilter.proxy.mitm.fastpath.steps import CompletedHooks, Step

type RunHook = Callable[[commands.StartHook], bool]
"""Runs a hook; returns False when it has to wait: whoever is above finishes it."""
type _Steps = list[Step]


def install() -> None:
    """Gives this process's mitmproxy the short ways. Doing it twice is doing it once."""
    HttpLayer.event_to_child = _event_to_child  # type: ignore[method-assign]


def _event_to_child(self: HttpLayer, child: layer.Layer, event: events.Event) -> layer.CommandGenerator[None]:
    """Stands in for `HttpLayer.event_to_child`."""
    state = self.__dict__
    tunnel = tunnel_of(self, child, event)
    steps: _Steps = [(child, child.handle_event(event)) if tunnel is None else (tunnel, _through(tunnel, event))]
    if "hook_replies" in state:  # from within a step: what is left is the outermost call's to do
        yield from _run(self, steps, state["hook_replies"])
        return
    yield from run_steps(self, steps)


def run_steps(http: HttpLayer, steps: _Steps, completed: CompletedHooks | None = None) -> layer.CommandGenerator[None]:
    """Does steps, the last one first, and all that follows from them.

    Args:
        http: not within another step.
        steps: layers, and what they do.
        completed: hooks that ran before.
    """
    replies: deque[tuple[layer.Layer, events.HookCompleted]] = deque()
    http.__dict__["hook_replies"] = replies
    try:
        yield from _run(http, steps, replies, completed)
        while replies:
            waiting, reply = replies.popleft()
            yield from _run(http, [(waiting, waiting.handle_event(reply))], replies, completed)
    finally:
        del http.__dict__["hook_replies"]


def tunnel_of(http: HttpLayer, child: layer.Layer, event: events.Event) -> HttpStream | None:
    """Returns the stream of an open CONNECT tunnel when an event need not become an HTTP event for it first."""
    kind = type(event)
    if kind is not events.DataReceived and not isinstance(event, events.CommandCompleted):
        return None
    client = http.connections.get(http.context.client)
    if not isinstance(client, Http1Server) or client.state != client.passthrough:
        return None
    stream = http.streams.get(client.stream_id)
    if (
        stream is None
        or (child is not stream and child is not client)
        or stream._paused  # noqa: SLF001  as Layer.handle_event asks
        or stream.flow.request.data.method != b"CONNECT"
    ):
        return None
    return stream


def _through(stream: HttpStream, event: events.Event) -> Iterator[commands.Command]:
    """Hands an event to what is inside a tunnel."""
    assert stream.child_layer is not None
    return closing(stream, stream.child_layer.handle_event(event))


def closing(stream: HttpStream, inside: Iterator[commands.Command]) -> Iterator[commands.Command]:
    """Lets what ends the client's connection go through a tunnel's own state."""
    for command in inside:
        if isinstance(command, commands.CloseConnection):
            if command.connection is stream.context.client:
                yield SendHttp(ResponseProtocolError(stream.stream_id, "EOF", ErrorCode.PASSTHROUGH_CLOSE), command.connection)
            else:
                yield commands.CloseConnection(command.connection)
        else:
            yield command


def _run(  # noqa: C901, PLR0912  the hot loop: a call costs more
    http: HttpLayer,
    steps: _Steps,
    replies: deque[tuple[layer.Layer, events.HookCompleted]],
    completed: CompletedHooks | None = None,
) -> layer.CommandGenerator[None]:
    run_hook: RunHook | None = getattr(http.context.options, "run_hook", None) if completed is None else completed.run
    while steps:
        child, coming = steps[-1]
        for command in coming:
            kind = type(command)
            if kind is commands.SendData or kind is commands.Log or child is None:
                yield command
            elif kind is ReceiveHttp:
                inner = command.event  # type: ignore[attr-defined]
                if type(inner) is RequestHeaders:
                    yield from http.make_stream(inner.stream_id)
                stream = http.streams.get(inner.stream_id)
                if stream is not None:  # else something more of a stream that is done with
                    steps.append((stream, stream.handle_event(inner)))
                    break
            elif kind is SendHttp:
                target = http.connections[command.connection]  # type: ignore[attr-defined]
                steps.append((target, target.handle_event(command.event)))  # type: ignore[attr-defined]
                break
            elif kind is DropStream:
                http.streams.pop(command.stream_id, None)  # type: ignore[attr-defined]
            elif run_hook is not None and isinstance(command, commands.StartHook) and run_hook(command):
                if command.blocking:
                    replies.append((child, events.HookCompleted(command, None)))
            else:
                if command.blocking or kind is commands.RequestWakeup:
                    http.command_sources[command] = child
                if kind is GetHttpConnection:
                    steps.append((None, http.get_connection(command)))  # type: ignore[arg-type]
                    break
                if kind is RegisterHttpConnection:
                    steps.append((None, http.register_connection(command)))  # type: ignore[arg-type]
                    break
                if kind is commands.OpenConnection:
                    http.connections[command.connection] = child  # type: ignore[attr-defined]
                yield command
        else:
            steps.pop()
