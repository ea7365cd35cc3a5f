"""The fast path of an HTTP/2 request without a body: from the client's stream to the origin's in one step (exchange.py)."""

import time
from collections.abc import Awaitable
from typing import Any, Final

from h2.connection import ConnectionState as H2ConnectionState
from h2.stream import H2Stream, StreamState
from mitmproxy import http
from mitmproxy.proxy import commands
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._events import RequestEndOfMessage, RequestHeaders
from mitmproxy.proxy.layers.http._hooks import HttpRequestHeadersHook, HttpRequestHook
from mitmproxy.proxy.layers.http._http2 import StreamState as Awaited

from gatewayfilter.proxy.mitm.fastpath.http2.frames import head_frames
from gatewayfilter.proxy.mitm.fastpath.http2.heads import are_lower, read_request
from gatewayfilter.proxy.mitm.fastpath.http2.hpack_codec import UNREADABLE, decoder_of, speed_up_encoder
from gatewayfilter.proxy.mitm.fastpath.http_layer import FastHttpLayer
from gatewayfilter.proxy.mitm.fastpath.steps import Commands, CompletedHooks, Sent, Step
from gatewayfilter.proxy.mitm.http.http2_flow import PatientHttp2Client
from gatewayfilter.proxy.mitm.http.http2_server import GatewayHttp2Server
from gatewayfilter.proxy.mitm.http.http_stream import GatewayHttpStream

_MOST_CONNECTIONS: Final = 8
"""With more of them idle ones have to be closed first (origin_pool.py)."""
_MOST_STREAMS: Final = 1 << 30
"""What is near the end of all stream numbers is left to h2."""


def take_request(http_layer: FastHttpLayer, server: GatewayHttp2Server, number: int, block: bytes) -> Sent | Commands | None:
    """Handles the head of a request.

    Args:
        http_layer: has the connections.
        server: the client's side.
        number: of the client's stream.
        block: the coded fields.

    Returns:
        What is to be sent, or steps that follow, or `None` when nothing was done: h2 gets the fields by reading the frame.
    """
    connection = server.h2_conn
    if (
        not number & 1
        or not connection.highest_inbound_stream_id < number < _MOST_STREAMS
        or connection.open_inbound_streams >= connection.local_settings.max_concurrent_streams
    ):
        return None
    decoder = decoder_of(connection)
    try:
        fields: Any = decoder.decode(block, raw=True)
    except UNREADABLE as error:  # h2 tells what it is
        decoder.again = error
        return None
    request = read_request(fields)
    address = http_layer.context.server.address
    if request is None or address is None or len(http_layer.connections) > _MOST_CONNECTIONS:
        decoder.again = fields
        return None
    meant = request.data
    meant.host, meant.port = address[0], address[1]
    meant.scheme = b"https" if http_layer.context.server.tls else b"http"
    _open_stream(server, number)
    return _ask(http_layer, server, number, request)


def _open_stream(server: GatewayHttp2Server, number: int) -> None:
    """Leaves h2 and mitmproxy in the state in which the head of a request without a body leaves them."""
    connection = server.h2_conn
    made = _stream_of(connection, number)
    machine = made.state_machine
    machine.client, machine.headers_received, machine.state = False, True, StreamState.HALF_CLOSED_REMOTE
    connection.highest_inbound_stream_id = number
    connection.state_machine.state = H2ConnectionState.SERVER_OPEN
    server.streams[number] = Awaited.HEADERS_RECEIVED


def _stream_of(connection: Any, number: int) -> H2Stream:
    ours, theirs = connection.local_settings, connection.remote_settings
    made = H2Stream(number, connection.config, ours.initial_window_size, theirs.initial_window_size)
    made.max_outbound_frame_size = connection.max_outbound_frame_size
    connection.streams[number] = made
    return made


def _ask(http_layer: FastHttpLayer, server: GatewayHttp2Server, number: int, request: http.Request) -> Sent | Commands:
    """Runs the hooks of a request, and sends it."""
    context, hooks, meant = http_layer.context, http_layer.hooks, request.data
    stream = GatewayHttpStream(context.fork(), number)
    stream.client_state = stream.state_wait_for_request_headers
    stream.flow = flow = http.HTTPFlow(context.client, stream.context.server)
    http_layer.streams[number] = stream
    flow.request = request
    flow.live = True
    fields = meant.headers.fields

    def rest(waits: Awaitable[None] | None, *ran: type[commands.StartHook]) -> Commands:
        headers_event = RequestHeaders(number, flow.request, end_stream=True, replay_flow=flow)
        end = iter((ReceiveHttp(RequestEndOfMessage(number)),))
        steps: list[Step] = [(server, end), (stream, stream.handle_event(headers_event))]
        return http_layer.run_steps(steps, CompletedHooks(hooks, flow, *ran, waits=waits))

    waits = hooks.call("requestheaders", flow)
    if waits is not None or flow.response is not None or flow.error is not None or flow.request is not request:
        return rest(waits, HttpRequestHeadersHook)
    meant.timestamp_end = time.time()
    meant.content = b""
    waits = hooks.call("request", flow)
    if waits is not None or flow.response is not None or flow.error is not None or flow.request is not request:
        return rest(waits, HttpRequestHeadersHook, HttpRequestHook)
    now = meant.headers.fields
    plain = not meant.content and not meant.trailers and meant.http_version == b"HTTP/2.0" and meant.authority
    client = _open_connection(http_layer, flow, number) if plain and (now is fields or _is_plain(now)) else None
    if client is None:
        return rest(None, HttpRequestHeadersHook, HttpRequestHook)
    stream.context.server = flow.server_conn = client.conn  # type: ignore[assignment]
    stream.client_state = stream.state_done
    stream.server_state = stream.state_wait_for_response_headers
    return [commands.SendData(client.conn, _send(client, number, meant))]


def _is_plain(fields: tuple[tuple[bytes, bytes], ...]) -> bool:
    """Returns whether no hook has added a field that h2 or mitmproxy would change or act on."""
    return are_lower(fields) and not any(name == b"expect" for name, _ in fields)


def _open_connection(http_layer: FastHttpLayer, flow: http.HTTPFlow, number: int) -> PatientHttp2Client | None:
    """Returns the connection that `HttpLayer.get_connection` would find, when it is open and takes a stream now."""
    client = http_layer.origin_of(flow)
    return client if type(client) is PatientHttp2Client and _takes_stream(client, number) else None


def _takes_stream(client: PatientHttp2Client, number: int) -> bool:
    connection = client.h2_conn
    most = client.provisional_max_concurrency or connection.remote_settings.max_concurrent_streams
    return (
        client._paused is None  # noqa: SLF001  as Layer.handle_event checks
        and "_handle_event" not in vars(client)  # mitmproxy puts `done` there
        and connection.state_machine.state is H2ConnectionState.CLIENT_OPEN
        and connection.highest_outbound_stream_id < _MOST_STREAMS
        and not client.stream_queue
        and number not in client.our_stream_id
        and connection.open_outbound_streams < most
    )


def _send(client: PatientHttp2Client, number: int, meant: http.RequestData) -> bytes:
    """Opens a stream with a request. Returns its frames."""
    connection = client.h2_conn
    speed_up_encoder(connection)
    ours = connection.get_next_available_stream_id()
    made = _stream_of(connection, ours)
    machine = made.state_machine
    machine.client, machine.headers_sent, machine.state = True, True, StreamState.HALF_CLOSED_LOCAL
    made._authority = meant.authority  # noqa: SLF001  as `send_headers` does
    made.request_method = meant.method
    connection.highest_outbound_stream_id = ours
    client.our_stream_id[number] = ours
    client.their_stream_id[ours] = number
    client.streams[ours] = Awaited.EXPECTING_HEADERS
    client.last_activity = time.time()
    pseudo = [(b":method", meant.method), (b":scheme", meant.scheme), (b":path", meant.path), (b":authority", meant.authority)]
    block = connection.encoder.encode([*pseudo, *meant.headers.fields])
    return head_frames(connection, ours, block, end=True)
