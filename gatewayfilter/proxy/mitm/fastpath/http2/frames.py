"""Frames of HTTP/2 as bytes (RFC 9113 §4 and §6), and what sending them takes off the state that h2 keeps of a connection."""

import struct
from typing import Any, Final

from h2.connection import H2Connection
from h2.stream import H2Stream
from mitmproxy.proxy.layers.http._http_h2 import BufferedH2Connection

HEAD: Final = struct.Struct(">HBBBL")
"""The upper two octets of a frame's length, the lowest one, type, flags, stream."""
HEAD_BYTES: Final = 9
DATA: Final = 0
HEADERS: Final = 1
WINDOW_UPDATE: Final = 8
_CONTINUATION: Final = 9
END_STREAM: Final = 1
END_HEADERS: Final = 4
PRIORITY: Final = 32
_LARGEST_WINDOW: Final = 2**31 - 1
_INCREMENT: Final = struct.Struct(">L")


def frame(kind: int, flags: int, stream_id: int, body: bytes) -> bytes:
    """Returns a frame."""
    size = len(body)
    return HEAD.pack(size >> 8, size & 255, kind, flags, stream_id) + body


def head_frames(connection: H2Connection, stream_id: int, block: bytes, *, end: bool) -> bytes:
    """Returns the frames of a header block.

    Args:
        connection: knows how long they may be.
        stream_id: of the stream.
        block: the coded fields.
        end: the message has nothing but this head.
    """
    most = connection.max_outbound_frame_size
    flags = END_STREAM if end else 0
    if len(block) <= most:
        return frame(HEADERS, flags | END_HEADERS, stream_id, block)
    parts = [block[start : start + most] for start in range(0, len(block), most)]
    made = [frame(HEADERS, flags, stream_id, parts[0])]
    made += [frame(_CONTINUATION, 0, stream_id, part) for part in parts[1:-1]]
    return b"".join([*made, frame(_CONTINUATION, END_HEADERS, stream_id, parts[-1])])


def put_data(connection: BufferedH2Connection, stream: H2Stream, piece: bytes, sent: list[bytes]) -> bool:
    """Adds the frames of a piece of a body to what is sent, or has h2 keep what the other side does not take yet.

    Returns:
        Whether all of it was sent.
    """
    size = len(piece)
    number = stream.stream_id
    if size > min(connection.outbound_flow_control_window, stream.outbound_flow_control_window) or connection.stream_buffers.get(
        number
    ):
        connection.send_data(number, piece)
        sent.append(connection.data_to_send())
        return False
    most = connection.max_outbound_frame_size
    if size <= most:
        sent += [HEAD.pack(size >> 8, size & 255, DATA, 0, number), piece]
    else:
        sent += [frame(DATA, 0, number, piece[start : start + most]) for start in range(0, size, most)]
    connection.outbound_flow_control_window -= size
    stream.outbound_flow_control_window -= size
    return True


def open_window(connection: BufferedH2Connection, stream_id: int, body: bytes) -> bool:
    """Takes a WINDOW_UPDATE. Returns False, and has done nothing, where h2 must: data waits for it, or it is an error."""
    increment = _INCREMENT.unpack(body)[0] if len(body) == _INCREMENT.size else 0
    if not 0 < increment <= _LARGEST_WINDOW or connection.stream_buffers:
        return False
    window: Any = connection if not stream_id else connection.streams.get(stream_id)
    if window is None:
        return stream_id in connection._closed_streams  # noqa: SLF001  no public name for it; h2 ignores it then
    if stream_id and not window.open:
        return bool(window.closed)  # it is ignored then, too
    if window.outbound_flow_control_window + increment > _LARGEST_WINDOW:
        return False
    window.outbound_flow_control_window += increment
    return True


def give_back(connection: H2Connection, stream: H2Stream, size: int) -> bytes:
    """Does what `acknowledge_received_data` does. Returns the WINDOW_UPDATE frames that follow, often none."""
    made = b""
    increment = connection._inbound_flow_control_window_manager.process_bytes(size)  # noqa: SLF001  no public name for it
    if increment:
        made = frame(WINDOW_UPDATE, 0, 0, _INCREMENT.pack(increment))
    if stream.open:
        increment = stream._inbound_window_manager.process_bytes(size)  # noqa: SLF001
        if increment:
            made += frame(WINDOW_UPDATE, 0, stream.stream_id, _INCREMENT.pack(increment))
    return made
