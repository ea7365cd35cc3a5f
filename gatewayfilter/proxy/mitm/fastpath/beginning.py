"""The fast path of a connection's beginning: the choice of its layers and the client's handshake, without pauses.

mitmproxy's layers pause at each hook: the hook climbs to the top of the connection, and its reply comes down again as an event.
Where no hook can wait, it is run here where it occurs, and its layer goes on. Layers and hooks are the same, in the same order;
failures and all that is not usual (an unfinished ClientHello, a connection that is to pass unread) are mitmproxy's to handle.
"""

from collections.abc import Iterator
from itertools import chain
from logging import ERROR
from typing import Final, cast

from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers import tls as tls_layers
from mitmproxy.proxy.layers.http import HTTPMode
from mitmproxy.proxy.layers.tls import (
    HTTP2_ALPN,
    ClientTLSLayer,
    TlsClienthelloHook,
    TlsEstablishedClientHook,
    TLSLayer,
)
from mitmproxy.proxy.tunnel import TunnelState
from mitmproxy.tls import ClientHelloData, TlsData

from gatewayfilter.proxy.mitm.fastpath.context import FastPathContext
from gatewayfilter.proxy.mitm.fastpath.http_layer import FastHttpLayer
from gatewayfilter.proxy.mitm.fastpath.steps import Commands, Hooks, Sent, process

_OF_HANDSHAKES: Final = ("tls_clienthello", "tls_start_client", "tls_established_client")
_CLOSED: Final = "connection closed early"

type Events = list[events.Event]


def choose(undecided: layer.NextLayer, event: events.DataReceived) -> layer.Layer | Commands:
    """Lets the addons choose the layer that reads a client's data, as `NextLayer._ask` does.

    Returns:
        The layer, which is to get the data, or what follows where that is not all.
    """
    context = undecided.context
    if (
        not isinstance(context, FastPathContext)
        or undecided._paused is not None  # noqa: SLF001  as Layer.handle_event checks
        or event.connection is not context.client
        or len(undecided.events) != 1
        or type(undecided.events[0]) is not events.Start
        or not context.fast_path.hooks.run_at_once("next_layer")
    ):
        return cast("Commands", undecided.handle_event(event))
    begun = [*undecided.events, event]
    undecided.events.append(event)
    context.fast_path.hooks.run_now("next_layer", undecided)
    chosen = undecided.layer
    if chosen is None:
        return iter(())
    undecided.events.clear()
    undecided.handle_event = undecided._handle_event = undecided._handle = chosen.handle_event  # type: ignore[method-assign]  # noqa: SLF001
    plain_http = type(chosen) is FastHttpLayer and chosen.mode is not HTTPMode.upstream and context.client.alpn != HTTP2_ALPN
    if not plain_http and type(chosen) is not ClientTLSLayer:
        return chain.from_iterable(chosen.handle_event(one) for one in begun)
    for _ in chosen.handle_event(begun[0]):
        raise AssertionError("these layers only begin to wait")
    return chosen


def shake_hands(tls: ClientTLSLayer, event: events.DataReceived) -> tuple[Sent, Events] | Commands:
    """Takes a step of a client's handshake, as `TunnelLayer._handle_event` does.

    Returns:
        What is to be sent and, when the handshake is done, the events that waited for it; or what follows after a failure.
    """
    context = tls.context
    if not isinstance(context, FastPathContext):
        return tls.handle_event(event)
    hooks = context.fast_path.hooks
    if not all(map(hooks.run_at_once, _OF_HANDSHAKES)) or tls.is_dtls or tls.recv_buffer:
        return tls.handle_event(event)
    data = event.data
    if not tls.client_hello_parsed:
        try:
            hello = tls_layers.parse_client_hello(data)
        except ValueError:
            hello = None
        if hello is None:
            return tls.handle_event(event)
        tls.conn.sni, tls.conn.alpn_offers = hello.sni, hello.alpn_protocols
        found = ClientHelloData(context, hello)
        hooks.run_now("tls_clienthello", found)
        if found.ignore_connection or found.establish_server_tls_first:
            return _as_found(tls, event, found)
        tls.client_hello_parsed = True
        start = TlsData(tls.conn, context)
        hooks.run_now("tls_start_client", start)
        if start.ssl_conn is None:
            return process(tls, _without_context(tls))
        tls.tls = start.ssl_conn
    return _exchange(tls, data, hooks)


def _exchange(tls: ClientTLSLayer, data: bytes, hooks: Hooks) -> tuple[Sent, Events] | Commands:
    """Hands OpenSSL what the client sent."""
    sent: Sent = []
    others: list[commands.Command] = []
    steps = TLSLayer.receive_handshake_data(tls, data)
    while True:
        try:
            command = next(steps)
        except StopIteration as end:
            done, error = end.value
            break
        if type(command) is commands.SendData:
            sent.append(command)
        elif type(command) is TlsEstablishedClientHook:
            hooks.run_now("tls_established_client", command.data)
        else:
            others.append(command)
    if error or others:
        return chain(sent, others, process(tls, _finish(tls, error)) if done or error else ())
    if not done:
        return sent, []
    tls.tunnel_state = TunnelState.OPEN
    waited, tls._event_queue = tls._event_queue, []  # noqa: SLF001
    return sent, waited


def _finish(tls: ClientTLSLayer, error: str | None) -> Commands:
    """Does what `TunnelLayer._handle_event` does after a handshake."""
    if error:
        yield from tls.on_handshake_error(error)
    yield from tls._handshake_finished(error)  # noqa: SLF001


def _without_context(tls: ClientTLSLayer) -> Commands:
    """Does what `TLSLayer.start_tls` does where no addon has prepared the connection, and what follows."""
    yield commands.Log(f"No {tls.proto_name} context was provided, failing connection.", ERROR)
    yield commands.CloseConnection(tls.conn)
    yield from _finish(tls, _CLOSED)


def _as_found(tls: ClientTLSLayer, event: events.DataReceived, found: ClientHelloData) -> Iterator[commands.Command]:
    """Lets mitmproxy handle a ClientHello, whose hook ran already."""
    hook: TlsClienthelloHook | None = None
    for command in tls.handle_event(event):
        if type(command) is TlsClienthelloHook and hook is None:
            hook = command
            hook.data.ignore_connection = found.ignore_connection
            hook.data.establish_server_tls_first = found.establish_server_tls_first
        else:
            yield command
    assert hook is not None
    yield from tls.handle_event(events.HookCompleted(hook, None))
