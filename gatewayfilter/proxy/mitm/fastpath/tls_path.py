"""The fast path through TLS: data goes from layer to layer without a generator at each.

Every layer of mitmproxy wraps the commands of the one inside it into generators of its own, ten deep for HTTPS. `deliver` goes
down by plain calls. The result is a list where it is only data to be sent, which each TLS layer encrypts on the way up, and
mitmproxy's own commands in all other cases: handshakes, ends of connections, errors, paused layers.

TLS records are read and written through one buffer of the process instead of a new one of 64 KB for each attempt, and no attempt
is made where nothing waits.
"""

import logging
from itertools import chain
from typing import Any, Final, cast

from mitmproxy.connection import ConnectionState
from mitmproxy.proxy import commands, events, layer, tunnel
from mitmproxy.proxy.layers.http import HttpClient
from mitmproxy.proxy.layers.tls import ClientTLSLayer, ServerTLSLayer, TLSLayer
from OpenSSL import SSL

from gatewayfilter.proxy.mitm.fastpath.beginning import choose, shake_hands
from gatewayfilter.proxy.mitm.fastpath.exchange import take
from gatewayfilter.proxy.mitm.fastpath.http2.exchange import Taken, take_from_client, take_from_origin
from gatewayfilter.proxy.mitm.fastpath.http_layer import FastHttpLayer, closing
from gatewayfilter.proxy.mitm.fastpath.steps import Commands, Sent, behind, process
from gatewayfilter.proxy.mitm.http.http1_client import GatewayHttp1Client
from gatewayfilter.proxy.mitm.http.http1_server import GatewayHttp1Server
from gatewayfilter.proxy.mitm.http.http2_flow import PatientHttp2Client
from gatewayfilter.proxy.mitm.http.http2_server import GatewayHttp2Server

_ffi: Final = cast("Any", SSL)._ffi  # noqa: SLF001  pyOpenSSL has no way to read into a buffer that is there
_lib: Final = cast("Any", SSL)._lib  # noqa: SLF001
_SIZE: Final = 262_144
_BUFFER: Final = _ffi.new("char[]", _SIZE)
"""Every worker has one event loop, and nothing else runs between a read into this and the copy out of it."""
_AT: Final = _ffi.new("char **")
_BEGINNINGS: Final[tuple[list[type[events.Event]], ...]] = ([], [events.Start], [events.Start, events.DataReceived])
"""What usually has waited for the end of a handshake."""


def deliver(top: layer.Layer, event: events.DataReceived) -> Sent | Commands:
    """Hands data to a layer. Returns what follows: a list where it is nothing but data to be sent."""
    inner = behind(top)
    kind = type(inner)
    if kind is FastHttpLayer:
        return deliver_http(inner, event)  # type: ignore[arg-type]
    if kind is ClientTLSLayer or kind is ServerTLSLayer:
        return _tls(inner, event)  # type: ignore[arg-type]
    if kind is layer.NextLayer:
        chosen = choose(inner, event)  # type: ignore[arg-type]
        return deliver(chosen, event) if isinstance(chosen, layer.Layer) else chosen
    return inner.handle_event(event)


def deliver_http(http: FastHttpLayer, event: events.DataReceived) -> Sent | Commands:  # noqa: C901  a call costs more
    """Hands data to the HTTP layer. Returns what follows, as `deliver` does."""
    handler = http.connections.get(event.connection)
    if handler is None or http._paused is not None or http.replies is not None:  # noqa: SLF001
        return http.handle_event(event)
    kind = type(handler)
    if kind is GatewayHttp1Client:
        taken = take(http, handler, event)
        return http.handle_event(event) if taken is None else taken
    if kind is HttpClient or (kind is GatewayHttp1Server and handler.state == handler.read_headers):  # type: ignore[attr-defined]
        stream = None  # as `tunnel_of` would find
    else:
        stream = http.tunnel_of(handler, event)
    if stream is not None:
        assert stream.child_layer is not None
        result = deliver(stream.child_layer, event)
        if type(result) is list:
            return result
        return http.run_steps([(stream, closing(stream, iter(result)))])
    if kind is ServerTLSLayer:
        return _from_origin(http, handler, event)  # type: ignore[arg-type]
    inner = handler if kind is GatewayHttp1Server else behind(handler)
    if type(inner) is GatewayHttp2Server:
        return _http2(http, event, take_from_client(http, inner, event.data))
    if type(inner) is PatientHttp2Client:
        return _http2(http, event, take_from_origin(http, inner, event.data))
    taken = take(http, inner, event)
    if taken is None:
        return http.handle_event(event)
    if type(taken) is list and taken and taken[0].connection is not http.context.client:
        origin = http.connections.get(taken[0].connection)
        if type(origin) is ServerTLSLayer:
            return _seal_all(origin, taken, [])
    return taken


def _from_origin(http: FastHttpLayer, tls: ServerTLSLayer, event: events.DataReceived) -> Sent | Commands:
    """Handles what came over a connection by TLS that the HTTP layer has made itself."""
    if not _is_open(tls) or event.connection is not tls.tunnel_connection:
        return http.handle_event(event)
    plain, closed, error = _open(tls.tls, event.data)
    if closed or error is not None:
        return http.run_steps([(tls, process(tls, _after(tls, plain, closed=closed, error=error)))])
    inner = behind(tls.child_layer)
    if plain and type(inner) is PatientHttp2Client:
        return _http2_from_origin(http, tls, inner, plain)
    taken = take(http, inner, events.DataReceived(tls.conn, plain)) if plain else None
    if taken is None:
        return http.run_steps([(tls, process(tls, _after(tls, plain, closed=False, error=None)))])
    answer = _to_send(tls.tls)  # such as the reply to a new key
    first = [commands.SendData(tls.conn, answer)] if answer else []
    return [*first, *taken] if type(taken) is list else chain(first, taken)


def _http2(http: FastHttpLayer, event: events.DataReceived, taken: Taken | None) -> Sent | Commands:
    """Returns what follows from data of HTTP/2."""
    if taken is None:
        return http.handle_event(event)
    sent = _sealed(http, taken.sent)
    if taken.slow is None and not taken.rest:
        return sent
    rest = _handled(http, events.DataReceived(event.connection, taken.rest)) if taken.rest else ()
    return chain(sent, taken.slow or (), rest)


def _handled(http: FastHttpLayer, event: events.DataReceived) -> Commands:
    """Has the layers handle an event when what comes before is sent: should they fail, that is not lost."""
    yield from http.handle_event(event)


def _http2_from_origin(http: FastHttpLayer, tls: ServerTLSLayer, client: PatientHttp2Client, plain: bytes) -> Sent | Commands:
    """Handles what came from an origin by HTTP/2."""
    answer = _to_send(tls.tls)
    first = [commands.SendData(tls.conn, answer)] if answer else []
    taken = take_from_origin(http, client, plain)
    if taken is None:
        return chain(first, http.run_steps([(tls, process(tls, _after(tls, plain, closed=False, error=None)))]))
    sent = first + _sealed(http, taken.sent)
    if taken.slow is None and not taken.rest:
        return sent
    return chain(sent, taken.slow or (), _read_on(http, tls, taken.rest) if taken.rest else ())


def _read_on(http: FastHttpLayer, tls: ServerTLSLayer, rest: bytes) -> Commands:
    """Has the layers read the rest when what comes before is sent."""
    yield from http.run_steps([(tls, process(tls, _after(tls, rest, closed=False, error=None)))])


def _sealed(http: FastHttpLayer, sent: Sent) -> Sent:
    """Encrypts what goes to origins."""
    for place, command in enumerate(sent):
        origin = http.connections.get(command.connection)
        if type(origin) is ServerTLSLayer:
            sent[place] = commands.SendData(origin.conn, _seal(origin.tls, command.data))
    return sent


def awaits_nothing(top: layer.Layer) -> bool:
    """Returns whether a client speaks HTTP/1.1, has got all answers, and has begun no further request."""
    inner = behind(top)
    if type(inner) is ClientTLSLayer:
        if not _is_open(inner) or _is_special(inner):
            return False
        inner = behind(inner.child_layer)
    if type(inner) is not FastHttpLayer or inner._paused is not None or inner.replies is not None:  # noqa: SLF001
        return False
    server = inner.connections.get(inner.context.client)
    return (
        type(server) is GatewayHttp1Server
        and not inner.streams
        and not inner.command_sources
        and server._paused is None  # noqa: SLF001
        and server.state == server.read_headers
        and not server.buf
    )


def _is_open(tls: TLSLayer) -> bool:
    return tls._paused is None and tls.tunnel_state is tunnel.TunnelState.OPEN  # noqa: SLF001


def _is_special(tls: TLSLayer) -> bool:
    """Returns whether mitmproxy handles data of a layer in another way: after a failure, or before a ClientHello."""
    return "event_to_child" in tls.__dict__ or (type(tls) is ServerTLSLayer and tls.wait_for_clienthello)


def _tls(tls: TLSLayer, event: events.DataReceived) -> Sent | Commands:
    if event.connection is not tls.tunnel_connection:
        if tls._paused is not None or tls.tunnel_state is tunnel.TunnelState.ESTABLISHING or _is_special(tls):  # noqa: SLF001
            return tls.handle_event(event)
        return _seal_all(tls, deliver(tls.child_layer, event), [])
    if not _is_open(tls) or _is_special(tls):
        shakes = type(tls) is ClientTLSLayer and tls.tunnel_state is tunnel.TunnelState.ESTABLISHING and tls._paused is None  # noqa: SLF001
        return _handshake(tls, event) if shakes and not _is_special(tls) else tls.handle_event(event)  # type: ignore[arg-type]
    plain, closed, error = _open(tls.tls, event.data)
    if closed or error is not None:
        return process(tls, _after(tls, plain, closed=closed, error=error))
    answer = _to_send(tls.tls)
    first = [commands.SendData(tls.conn, answer)] if answer else []
    if not plain:
        return first
    return _seal_all(tls, deliver(tls.child_layer, events.DataReceived(tls.conn, plain)), first)


def _handshake(tls: ClientTLSLayer, event: events.DataReceived) -> Sent | Commands:
    """Takes a step of a handshake, and hands on what came with its end."""
    result = shake_hands(tls, event)
    if not isinstance(result, tuple):
        return result
    sent, waited = result
    undecided = tls.child_layer
    if type(undecided) is not layer.NextLayer or [type(one) for one in waited] not in _BEGINNINGS:
        return chain(sent, process(tls, _handle(tls, [], chain.from_iterable(map(undecided.handle_event, waited)))))
    undecided.events += waited[:1]
    if len(waited) < 2:
        return sent
    follows = deliver(undecided, cast("events.DataReceived", waited[1]))
    if type(follows) is list and _may_wait(tls, sent, follows):
        for one in sent:
            _lib.BIO_write(tls.tls._from_ssl, one.data, len(one.data))  # noqa: SLF001
        sent = []
    return _seal_all(tls, follows, sent)


def _may_wait(tls: ClientTLSLayer, sent: Sent, result: Sent) -> bool:
    """Returns whether the end of a handshake can go out with the response: session tickets, behind which a request went on."""
    client = tls.conn
    if client.tls_version != "TLSv1.3" or not result:
        return False
    return not any(one.connection is client for one in result) and all(one.connection is client for one in sent)


def _seal_all(tls: TLSLayer, result: Sent | Commands, first: Sent) -> Sent | Commands:
    if not isinstance(result, list):
        return process(tls, _handle(tls, first, result))
    conn = tls.conn
    if len(result) == 1 and result[0].connection is conn:
        first.append(commands.SendData(conn, _seal(tls.tls, result[0].data)))
        return first
    for command in result:
        if command.connection == conn:
            command = commands.SendData(conn, _seal(tls.tls, command.data))  # noqa: PLW2901
        first.append(command)
    return first


def _handle(tls: TLSLayer, first: Sent, result: Commands) -> Commands:
    yield from first
    for command in result:
        yield from tls._handle_command(command)  # noqa: SLF001


def receive_data(self: TLSLayer, data: bytes) -> Commands:
    """Stands in for `TLSLayer.receive_data`."""
    plain, closed, error = _open(self.tls, data)
    yield from _after(self, plain, closed=closed, error=error)


def _after(tls: TLSLayer, plain: bytes, *, closed: bool, error: SSL.Error | None) -> Commands:
    """Does what `TLSLayer.receive_data` does after the last record that could be read."""
    if error is not None:
        yield commands.Log(f"TLS Error: {error}", logging.WARNING)
    yield from tls.tls_interact()
    if plain:
        yield from tls.event_to_child(events.DataReceived(tls.conn, plain))
    if closed:
        tls.conn.state &= ~ConnectionState.CAN_READ
        yield from tls.event_to_child(events.ConnectionClosed(tls.conn))


def tls_interact(self: TLSLayer) -> Commands:
    """Stands in for `TLSLayer.tls_interact`."""
    if data := _to_send(self.tls):
        yield commands.SendData(self.conn, data)


def send_data(self: TLSLayer, data: bytes) -> Commands:
    """Stands in for `TLSLayer.send_data`."""
    if sealed := _seal(self.tls, data):
        yield commands.SendData(self.conn, sealed)


def _open(tls: SSL.Connection, data: bytes) -> tuple[bytes, bool, SSL.Error | None]:
    """Decrypts. Returns the plain text, whether the other side has closed its half, and an error that came after it."""
    ssl, source = tls._ssl, tls._into_ssl  # noqa: SLF001
    if data:
        tls.bio_write(data)
    plain: list[bytes] = []
    while True:
        size = _lib.SSL_read(ssl, _BUFFER, _SIZE)
        if size <= 0:
            if _lib.SSL_get_error(ssl, size) == _lib.SSL_ERROR_WANT_READ:
                break
            try:
                tls._raise_ssl_error(ssl, size)  # noqa: SLF001
            except SSL.WantReadError:
                break
            except SSL.ZeroReturnError:
                return b"".join(plain), True, None
            except SSL.Error as error:
                return b"".join(plain), False, error
        plain.append(_ffi.buffer(_BUFFER, size)[:])
        if not _lib.BIO_get_mem_data(source, _AT) and not _lib.SSL_pending(ssl):
            break
    return plain[0] if len(plain) == 1 else b"".join(plain), False, None


def _seal(tls: SSL.Connection, data: bytes) -> bytes:
    """Encrypts. What the other side cannot read any more is dropped: it has ended, or has sent what is no TLS."""
    try:
        tls.sendall(data)
    except SSL.Error as error:
        if isinstance(error, SSL.WantReadError):
            raise
    return _to_send(tls)


def _to_send(tls: SSL.Connection) -> bytes:
    """Returns the records that wait to be sent."""
    source = tls._from_ssl  # noqa: SLF001
    size = _lib.BIO_get_mem_data(source, _AT)
    if not size:
        return b""
    pieces: list[bytes] = []
    while size:
        read = _lib.BIO_read(source, _BUFFER, min(size, _SIZE))
        pieces.append(_ffi.buffer(_BUFFER, read)[:])
        size -= read
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def holds_data(tls: SSL.Connection) -> bool:
    """Returns whether records wait to be read or sent, or the other side has ended the connection."""
    waiting = tls.pending() or _lib.BIO_get_mem_data(tls._into_ssl, _AT) or _lib.BIO_get_mem_data(tls._from_ssl, _AT)  # noqa: SLF001
    return bool(waiting or tls.get_shutdown())
