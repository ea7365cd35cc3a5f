"""Frames of HTTP/2 as bytes (RFC 9113 §4 and §6), and what sending them takes off the state that h2 keeps of a connection."""

import struct
from typing import Any, Final

from h2.connection import H2Connection
from h2.stream import H2Stream, StreamState
from mitmproxy.proxy.layers.http._http_h2 import BufferedH2Connection, SendH2Data

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
_SENDING: Final = frozenset({StreamState.OPEN, StreamState.HALF_CLOSED_REMOTE})
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
    """Adds the frames of a piece of a body to what is sent, and keeps what the other side does not take yet.

    Returns:
        Whether all of it was sent.
    """
    most = connection.max_outbound_frame_size
    whole = True
    for chunk in (piece,) if len(piece) <= most else [piece[start : start + most] for start in range(0, len(piece), most)]:
        waiting = connection.stream_buffers.get(stream.stream_id)
        room = 0 if waiting else _room(connection, stream)
        if not waiting and len(chunk) <= room:
            _put(connection, stream, chunk, sent)
            continue
        whole = False
        if room > 0:
            _put(connection, stream, chunk[:room], sent)
        connection.stream_buffers[stream.stream_id].append(SendH2Data(chunk[max(room, 0) :], end_stream=False))
    return whole


def _room(connection: BufferedH2Connection, stream: H2Stream) -> int:
    return min(connection.outbound_flow_control_window, stream.outbound_flow_control_window)


def _put(connection: BufferedH2Connection, stream: H2Stream, chunk: bytes, sent: list[bytes]) -> None:
    size = len(chunk)
    sent += [HEAD.pack(size >> 8, size & 255, DATA, 0, stream.stream_id), chunk]
    connection.outbound_flow_control_window -= size
    stream.outbound_flow_control_window -= size


def open_window(connection: BufferedH2Connection, stream_id: int, body: bytes, sent: list[bytes]) -> bool:
    """Takes a WINDOW_UPDATE, and sends what has waited for it. Returns False, and has done nothing, where it is an error."""
    increment = _INCREMENT.unpack(body)[0] if len(body) == _INCREMENT.size else 0
    window: Any = connection if not stream_id else connection.streams.get(stream_id)
    if not 0 < increment <= _LARGEST_WINDOW:
        return False
    if window is None:
        return stream_id in connection._closed_streams  # noqa: SLF001  no public name for it; h2 ignores it then
    if stream_id and not window.open:
        return bool(window.closed)  # it is ignored then, too
    if window.outbound_flow_control_window + increment > _LARGEST_WINDOW:
        return False
    was_open = window.outbound_flow_control_window > 0
    window.outbound_flow_control_window += increment
    if connection.stream_buffers:
        if stream_id:
            _send_waiting(connection, stream_id, sent)
        elif not was_open:  # else streams wait for their own windows
            _send_in_turns(connection, sent)
    return True


def _send_in_turns(connection: BufferedH2Connection, sent: list[bytes]) -> None:
    """Does what `connection_window_updated` does: its further passes find nothing that could be sent."""
    buffers = connection.stream_buffers
    for number in list(buffers):
        if not connection.outbound_flow_control_window:
            return
        buffers[number] = buffers.pop(number)  # to the end
        _send_waiting(connection, number, sent)


def _send_waiting(connection: BufferedH2Connection, number: int, sent: list[bytes]) -> None:
    """Does what `stream_window_updated` does."""
    stream = connection.streams.get(number)
    if stream is None or stream.state_machine.state not in _SENDING:
        connection.stream_buffers.pop(number, None)
        return
    while (waiting := connection.stream_buffers.get(number)) and (room := _room(connection, stream)) > 0:
        data, end = waiting.popleft()
        room = min(room, connection.max_outbound_frame_size)  # the client may have lowered it meanwhile
        if len(data) > room:
            waiting.appendleft(SendH2Data(data[room:], end))
            data, end = data[:room], False
        if not end:
            _put(connection, stream, data, sent)
        else:
            H2Connection.send_data(connection, number, data, end_stream=True)
        if not waiting:
            del connection.stream_buffers[number]
            if number in connection.stream_trailers:
                connection.send_headers(number, connection.stream_trailers.pop(number), end_stream=True)
        sent.append(connection.data_to_send())


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
