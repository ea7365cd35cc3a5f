"""The fast path of a request without a body: from the client's connection to the origin's in one step (exchange.py)."""

import time
from collections.abc import Awaitable, Callable
from typing import Final

from h11._readers import ContentLengthReader
from mitmproxy import http
from mitmproxy.net.http import http1
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.layers.http import HTTPMode
from mitmproxy.proxy.layers.http._events import RequestHeaders
from mitmproxy.proxy.layers.http._hooks import HttpRequestHeadersHook, HttpRequestHook
from mitmproxy.proxy.layers.http._http1 import make_body_reader
from mitmproxy.proxy.mode_specs import ReverseMode

from gatewayfilter.proxy.mitm.fastpath.fast_functions import make_flow
from gatewayfilter.proxy.mitm.fastpath.http1_heads import read_head, request_of
from gatewayfilter.proxy.mitm.fastpath.http_layer import FastHttpLayer
from gatewayfilter.proxy.mitm.fastpath.steps import Commands, CompletedHooks, Sent, Step
from gatewayfilter.proxy.mitm.http.http1_client import GatewayHttp1Client
from gatewayfilter.proxy.mitm.http.http1_server import GatewayHttp1Server
from gatewayfilter.proxy.mitm.http.http_stream import GatewayHttpStream
from gatewayfilter.proxy.mitm.sharing import binds
from gatewayfilter.proxy.request.header_fields import Fields
from gatewayfilter.proxy.request.repeated_request import LONGEST_KEPT, RepeatedRequest, note_repeated

_MOST_CONNECTIONS: Final = 8
"""With more of them idle ones have to be closed first (origin_pool.py)."""
_OF_FRAMING: Final = frozenset({b"content-length", b"expect", b"transfer-encoding", b"upgrade"})
_NO_BODY: Final = ContentLengthReader(0)
_assemble: Final[Callable[[http.Request], bytes]] = http1.assemble_request_head


def take_request(http_layer: FastHttpLayer, server: GatewayHttp1Server, data: bytes) -> Sent | Commands | None:
    """Handles a client's request. Returns what follows, or `None` when nothing was done."""
    repeated = read = server.repeated
    if read is None or read.head != data:
        repeated, read = None, read_head(data)
        if read is None:
            return None
        server.repeated = read if len(data) <= LONGEST_KEPT else None
    request = request_of(read)
    if repeated is not None:
        note_repeated(request, repeated)
    context, hooks, meant = http_layer.context, http_layer.hooks, request.data
    if len(http_layer.connections) > _MOST_CONNECTIONS or not _find_target(http_layer, meant):
        return None
    stream = http_layer.spare
    if stream is None:
        stream = GatewayHttpStream(context.fork(), server.stream_id)
    else:
        http_layer.spare = None
        stream.stream_id, stream.context.server = server.stream_id, context.server
    stream.client_state = stream.state_wait_for_request_headers
    stream.flow = flow = make_flow(context.client, context.server)
    http_layer.streams[server.stream_id] = stream
    server.request = flow.request = request
    fields = stream.plain_request = meant.headers.fields

    def rest(waits: Awaitable[None] | None, *ran: type[commands.StartHook]) -> Commands:
        headers_event = RequestHeaders(server.stream_id, flow.request, end_stream=True, replay_flow=flow)
        steps: list[Step] = [(server, _end_of_request(server)), (stream, stream.handle_event(headers_event))]
        return http_layer.run_steps(steps, CompletedHooks(hooks, flow, *ran, waits=waits))

    waits = hooks.call("requestheaders", flow)
    if waits is not None or flow.response is not None or flow.error is not None or flow.request is not request:
        return rest(waits, HttpRequestHeadersHook)
    meant.timestamp_end = time.time()
    meant.content = b""
    waits = hooks.call("request", flow)
    if waits is not None or flow.response is not None or flow.error is not None or flow.request is not request:
        return rest(waits, HttpRequestHeadersHook, HttpRequestHook)
    plain = not meant.content and not meant.trailers and _is_as_before(fields, request)
    client = _idle_connection(http_layer, flow) if plain else None
    if client is None:
        return rest(None, HttpRequestHeadersHook, HttpRequestHook)
    stream.context.server = flow.server_conn = client.conn  # type: ignore[assignment]
    stream.client_state = stream.state_done
    stream.server_state = stream.state_wait_for_response_headers
    server.body_reader = _NO_BODY
    server.request_done = True
    server.state = server.wait
    client.stream_id = server.stream_id
    client.request = request
    client.request_done = True
    return [commands.SendData(client.conn, _assemble(request) if repeated is None else _head_of(request, repeated))]


def _head_of(request: http.Request, repeated: RepeatedRequest) -> bytes:
    """Returns the head that goes to the origin."""
    meant = request.data
    made_of = (meant.headers.fields, meant.path, meant.method, meant.authority, meant.scheme, meant.http_version)
    if made_of != repeated.sent_from:
        repeated.sent = _assemble(request)
        repeated.sent_from = made_of
    return repeated.sent


def _find_target(http_layer: FastHttpLayer, meant: http.RequestData) -> bool:
    """Sets where a request leads, as `HttpStream.state_wait_for_request_headers` does. Returns whether that is clear."""
    context = http_layer.context
    if isinstance(context.client.proxy_mode, ReverseMode):
        return False
    if http_layer.mode is HTTPMode.transparent:
        address = context.server.address
        if address is None:
            return False
        meant.host, meant.port = address[0], address[1]
        meant.scheme = b"https" if context.server.tls else b"http"
        return True
    if http_layer.mode is HTTPMode.regular:
        meant.authority = b""
    return bool(meant.host)


def _end_of_request(server: GatewayHttp1Server) -> Commands:
    """Does what `Http1Server.read_headers` does after the head of a request without a body."""
    server.body_reader = make_body_reader(0)
    server.state = server.read_body
    yield from server.read_body(events.DataReceived(server.conn, b""))


def _idle_connection(http_layer: FastHttpLayer, flow: http.HTTPFlow) -> GatewayHttp1Client | None:
    """Returns the connection that `HttpLayer.get_connection` would find, when it is open and idle, or one from the pool."""
    client = http_layer.origin_of(flow)
    if client is None:
        origins = http_layer.context.fast_path.origins
        return origins.adopt(http_layer, flow) if origins is not None else None
    if type(client) is not GatewayHttp1Client or client._paused is not None:  # noqa: SLF001
        return None
    idle = client.stream_id is None and client.request is None and client.state == client.read_headers
    return client if idle and not client.buf._data else None  # noqa: SLF001  its truth is two calls


def _is_as_before(before: object, request: http.Request) -> bool:
    """Returns whether no hook has added a field that delimits the message, or that logs its connection in."""
    fields: Fields = request.data.headers.fields
    return fields is before or not (any(name.lower() in _OF_FRAMING for name, _ in fields) or binds(request))
