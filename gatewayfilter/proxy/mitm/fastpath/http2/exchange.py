"""The fast path of HTTP/2: requests without a body and their responses, frame by frame, each in one step.

h2 makes a dozen objects of a frame, mitmproxy an event of each of them, which climbs through its layers; what goes out is made
the same way. Where frames are plain, what follows from them is known beforehand: request.py and response.py do it at once.

Streams are h2's own objects, with the state that h2 would have left them in, as are windows, tables of fields and mitmproxy's
streams and flows. So each frame can take either path: from the first one that is not plain (a body of a request, trailers,
settings, pings, resets, heads in several frames, padding, errors) what was read goes to h2. Its bounds (http2_bounds.py) apply
there: no frame that they count is plain.

proxy/mitm/upstream_digests.py lists the code that this stands in for; tests/proxy/mitm/fastpath/http2/ compares both paths.
"""

from dataclasses import dataclass
from typing import Final

from h2.connection import ConnectionState as H2ConnectionState
from mitmproxy.proxy import commands
from mitmproxy.proxy.layers.http import HTTPMode
from mitmproxy.proxy.mode_specs import ReverseMode

from gatewayfilter.proxy.mitm.fastpath.http2 import frames
from gatewayfilter.proxy.mitm.fastpath.http2.request import take_request
from gatewayfilter.proxy.mitm.fastpath.http2.response import Responses
from gatewayfilter.proxy.mitm.fastpath.http_layer import FastHttpLayer
from gatewayfilter.proxy.mitm.fastpath.steps import Commands, Sent
from gatewayfilter.proxy.mitm.http.http2_flow import PatientHttp2Client
from gatewayfilter.proxy.mitm.http.http2_server import GatewayHttp2Server

_OPEN: Final = frozenset({H2ConnectionState.IDLE, H2ConnectionState.SERVER_OPEN})
_PRIORITY_BYTES: Final = 5
_HEAD_FLAGS: Final = frames.END_STREAM | frames.END_HEADERS


@dataclass(slots=True)
class Taken:
    """What came of frames.

    Attributes:
        sent: what is to be sent.
        slow: steps that follow.
        rest: what was not handled, and follows after them.
    """

    sent: Sent
    slow: Commands | None
    rest: bytes


def take_from_client(http_layer: FastHttpLayer, server: GatewayHttp2Server, data: bytes) -> Taken | None:
    """Handles frames of a client. Returns what came of them, or `None` when nothing was done."""
    connection = server.h2_conn
    buffer = connection.incoming_buffer
    if (
        buffer._data  # noqa: SLF001  no public name for it
        or buffer._headers_buffer  # noqa: SLF001
        or buffer._preamble_len  # noqa: SLF001
        or server._completed is not None  # noqa: SLF001
        or "_handle_event" in vars(server)  # mitmproxy puts `done` there
        or server._paused is not None  # noqa: SLF001
        or connection.state_machine.state not in _OPEN
        or http_layer.mode is not HTTPMode.transparent
        or isinstance(http_layer.context.client.proxy_mode, ReverseMode)
    ):
        return None
    sent: Sent = []
    slow: Commands | None = None
    at, size = 0, len(data)
    while slow is None and size - at >= frames.HEAD_BYTES:
        high, low, kind, flags, number = frames.HEAD.unpack_from(data, at)
        begin = at + frames.HEAD_BYTES
        end = begin + (high << 8 | low)
        if end > size or end - begin > connection.max_inbound_frame_size:
            break
        if kind == frames.WINDOW_UPDATE:
            if not _open_window(server, number, data[begin:end], sent):
                break
            if server.has_full:
                slow = http_layer.run_steps([(server, server.go_on())])
        elif kind == frames.HEADERS and (block := _block(data[begin:end], flags, number)):
            taken = take_request(http_layer, server, number, block)
            if taken is None:
                break
            if isinstance(taken, list):
                sent += taken
            else:
                slow = taken
        else:
            break
        at = end
    return Taken(sent, slow, data[at:]) if at else None


def _open_window(server: GatewayHttp2Server, number: int, body: bytes, sent: Sent) -> bool:
    """Takes a WINDOW_UPDATE of a client. Returns False when nothing was done."""
    waited: list[bytes] = []
    opened = frames.open_window(server.h2_conn, number, body, waited)
    if waited:
        sent.append(commands.SendData(server.conn, b"".join(waited)))
    return opened


def _block(body: bytes, flags: int, number: int) -> bytes:
    """Returns the coded fields of a request that is one frame, `b""` for any other."""
    if flags == _HEAD_FLAGS:
        return body
    if flags != _HEAD_FLAGS | frames.PRIORITY:
        return b""
    return body[_PRIORITY_BYTES:] if int.from_bytes(body[:4]) & 0x7FFFFFFF != number else b""


def take_from_origin(http_layer: FastHttpLayer, client: PatientHttp2Client, data: bytes) -> Taken | None:
    """Handles frames of an origin. Returns what came of them, or `None` when nothing was done."""
    connection = client.h2_conn
    buffer = connection.incoming_buffer
    server = http_layer.connections.get(http_layer.context.client)
    if (
        buffer._headers_buffer  # noqa: SLF001  no public name for it
        or type(server) is not GatewayHttp2Server
        or server._paused is not None  # noqa: SLF001
        or client._paused is not None  # noqa: SLF001
        or "_handle_event" in vars(server)  # mitmproxy puts `done` there
        or "_handle_event" in vars(client)
        or client.stream_queue
        or connection.state_machine.state is not H2ConnectionState.CLIENT_OPEN
        or server.h2_conn.state_machine.state is not H2ConnectionState.SERVER_OPEN
        or http_layer.keeps_bodies
    ):
        return None
    held = buffer._data  # noqa: SLF001
    if held:
        data = bytes(held) + data
    responses = Responses(http_layer, server, client)
    at, size = 0, len(data)
    while responses.slow is None and size - at >= frames.HEAD_BYTES:
        high, low, kind, flags, number = frames.HEAD.unpack_from(data, at)
        begin = at + frames.HEAD_BYTES
        end = begin + (high << 8 | low)
        if end > size or end - begin > connection.max_inbound_frame_size:
            break
        if not _take_frame(responses, kind, flags, number, data[begin:end]):
            break
        at = end
    rest = data[at:]
    if responses.slow is None and _is_begun(responses, rest):
        buffer._data = bytearray(rest)  # noqa: SLF001  as `add_data` does
        rest = b""
    elif not at:
        return None
    else:
        buffer._data = bytearray()  # noqa: SLF001
    return Taken(responses.sent(), responses.slow, rest)


def _take_frame(responses: Responses, kind: int, flags: int, number: int, body: bytes) -> bool:
    """Handles a frame of an origin. Returns False when nothing was done."""
    if kind == frames.DATA and flags in {0, frames.END_STREAM}:
        return responses.take_data(number, body, end=flags == frames.END_STREAM)
    if kind == frames.HEADERS and flags in {frames.END_HEADERS, _HEAD_FLAGS}:
        return responses.take_head(number, body, end=flags == _HEAD_FLAGS)
    return kind == frames.WINDOW_UPDATE and responses.open_window(number, body)


def _is_begun(responses: Responses, rest: bytes) -> bool:
    """Returns whether only the beginning of a part of a body is left, of which h2 would do nothing but keep it."""
    if not rest or len(rest) < frames.HEAD_BYTES:
        return bool(rest)
    high, low, kind, flags, number = frames.HEAD.unpack_from(rest)
    size = high << 8 | low
    whole = size <= len(rest) - frames.HEAD_BYTES
    most = responses.client.h2_conn.max_inbound_frame_size
    return kind == frames.DATA and flags in {0, frames.END_STREAM} and not whole and size <= most and responses.is_plain(number)
