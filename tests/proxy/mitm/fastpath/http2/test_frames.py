"""Frames as bytes, and the windows and buffers of h2 that sending them changes, at each bound."""

from collections import defaultdict, deque
from types import SimpleNamespace
from typing import Any

import pytest
from h2.stream import StreamState
from mitmproxy.proxy.layers.http._http_h2 import SendH2Data

from gatewayfilter.proxy.mitm.fastpath.http2 import frames
from gatewayfilter.proxy.mitm.fastpath.http2.frames import frame, give_back, head_frames, open_window, put_data
from tests.case_tables import all_cases
from tests.proxy.mitm.fastpath.http2.frame_script import raw

LARGEST = 2**31 - 1
OPEN, DONE = StreamState.OPEN, StreamState.CLOSED


def stream(number: int, window: int = 100, state: StreamState = OPEN) -> Any:
    return SimpleNamespace(
        stream_id=number,
        outbound_flow_control_window=window,
        open=state is not DONE,
        closed=state is DONE,
        state_machine=SimpleNamespace(state=state),
    )


class Connection:
    """The part of h2's connection that frames change; what h2 itself would send is `own`."""

    def __init__(self, *streams: Any, window: int = 100, most: int = 10) -> None:
        self.streams = {one.stream_id: one for one in streams}
        self.outbound_flow_control_window = window
        self.max_outbound_frame_size = most
        self.stream_buffers: dict[int, deque[SendH2Data]] = defaultdict(deque)
        self.stream_trailers: dict[int, Any] = {}
        self._closed_streams = {1: None}
        self.own: list[bytes] = []

    def data_to_send(self) -> bytes:
        found, self.own = b"".join(self.own), []
        return found

    def send_headers(self, number: int, fields: Any, *, end_stream: bool) -> None:
        self.own.append(b"trailers %d %r %d" % (number, fields, end_stream))


@pytest.fixture(autouse=True)
def _ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has h2 end a stream by a frame of its own."""

    def send_data(connection: Any, number: int, data: bytes, *, end_stream: bool) -> None:
        assert end_stream
        connection.own.append(raw(0, 1, number, data))
        connection.outbound_flow_control_window -= len(data)
        connection.streams[number].outbound_flow_control_window -= len(data)

    monkeypatch.setattr(f"{frames.__name__}.H2Connection.send_data", send_data)


def put(connection: Any, one: Any, piece: bytes) -> tuple[bool, bytes, list[bytes]]:
    sent: list[bytes] = []
    whole = put_data(connection, one, piece, sent)
    return whole, b"".join(sent), [waiting.data for waiting in connection.stream_buffers.get(one.stream_id, ())]


def window(connection: Any, number: int, increment: int) -> tuple[bool, bytes]:
    sent: list[bytes] = []
    opened = open_window(connection, number, increment.to_bytes(4), sent)
    return opened, b"".join(sent)


@all_cases("size", [0, 1, 255, 256, 65_535, 65_536, 16_777_215])
def test_a_frame_has_its_length_in_three_bytes(size: int) -> None:
    body = bytes(size)
    assert frame(9, 5, 2**31 - 1, body) == raw(9, 5, 2**31 - 1, body)


@all_cases(
    ("size", "end", "parts"),
    [
        (10, True, [(1, 5, 10)]),
        (10, False, [(1, 4, 10)]),
        (11, True, [(1, 1, 10), (9, 4, 1)]),
        (20, False, [(1, 0, 10), (9, 4, 10)]),
        (21, False, [(1, 0, 10), (9, 0, 10), (9, 4, 1)]),
        (35, True, [(1, 1, 10), (9, 0, 10), (9, 0, 10), (9, 4, 5)]),
    ],
)
def test_a_head_takes_as_many_frames_as_it_needs(size: int, parts: list[tuple[int, int, int]], *, end: bool) -> None:
    block, at, expected = bytes(range(size)), 0, b""
    for kind, flags, length in parts:
        expected += raw(kind, flags, 3, block[at : at + length])
        at += length
    connection: Any = Connection()
    assert head_frames(connection, 3, block, end=end) == expected


@all_cases(
    ("of_all", "of_one", "sizes", "waits"),
    [
        (100, 100, [10, 10, 5], []),
        (25, 100, [10, 10, 5], []),
        (24, 100, [10, 10, 4], [1]),
        (100, 10, [10], [10, 5]),
        (100, 12, [10, 2], [8, 5]),
        (100, 11, [10, 1], [9, 5]),
        (1, 100, [1], [9, 10, 5]),
        (0, 100, [], [10, 10, 5]),
        (100, -5, [], [10, 10, 5]),
    ],
)
def test_a_body_is_sent_as_far_as_the_windows_reach(of_all: int, of_one: int, sizes: list[int], waits: list[int]) -> None:
    body, one = bytes(range(25)), stream(3, of_one)
    connection = Connection(one, window=of_all)
    expected, at = b"", 0
    for size in sizes:
        expected += raw(0, 0, 3, body[at : at + size])
        at += size
    whole, sent, waiting = put(connection, one, body)
    assert (whole, sent, [len(piece) for piece in waiting]) == (not waits, expected, waits)
    assert b"".join(waiting) == body[at:]
    assert (connection.outbound_flow_control_window, one.outbound_flow_control_window) == (of_all - at, of_one - at)


def test_what_comes_later_waits_behind_what_waits() -> None:
    one = stream(3, 4)
    connection = Connection(one)
    assert put(connection, one, b"abcdef") == (False, raw(0, 0, 3, b"abcd"), [b"ef"])
    one.outbound_flow_control_window = 50
    assert put(connection, one, b"gh") == (False, b"", [b"ef", b"gh"])
    assert list(connection.stream_buffers[3]) == [SendH2Data(b"ef", end_stream=False), SendH2Data(b"gh", end_stream=False)]


@all_cases(
    ("number", "increment", "opened"),
    [
        (0, 0, False),
        (0, 1, True),
        (3, 0, False),
        (3, 1, True),
        (0, LARGEST - 100, True),
        (0, LARGEST - 99, False),
        (3, LARGEST - 100, True),
        (3, LARGEST - 99, False),
        (3, 2**31, False),
        (0, 2**31 + 1, False),
        (1, 5, True),  # of a stream that has ended and is forgotten
        (5, 5, True),  # of one that has ended
        (7, 5, False),  # of one that never began
        (9, 5, False),  # of one that is not open yet
    ],
)
def test_which_windows_are_opened(number: int, increment: int, *, opened: bool) -> None:
    idle = stream(9)
    idle.open = False
    streams = stream(3), stream(5, state=DONE), idle
    connection = Connection(*streams)
    assert window(connection, number, increment) == (opened, b"")
    changed = opened and number in {0, 3}
    assert connection.outbound_flow_control_window == 100 + (increment if changed and not number else 0)
    assert [one.outbound_flow_control_window for one in streams] == [100 + (increment if changed and number else 0), 100, 100]


@all_cases("body", [b"", b"\0\0\1", b"\0\0\0\1\0"])
def test_a_window_of_another_length_is_an_error(body: bytes) -> None:
    connection: Any = Connection()
    assert open_window(connection, 0, body, []) is False


def waiting(*streams: Any, of_all: int = 0, most: int = 10) -> Any:
    """Returns a connection with fifteen bytes that wait for each stream, five of which are the last."""
    connection = Connection(*streams, window=of_all, most=most)
    for one in streams:
        connection.stream_buffers[one.stream_id] += [SendH2Data(b"a" * 10, False), SendH2Data(b"b" * 5, True)]
    return connection


def test_an_opened_stream_sends_what_waits_for_it() -> None:
    one, other = stream(3, 0), stream(5, 0)
    connection = waiting(one, other, of_all=100)
    assert window(connection, 3, 1) == (True, raw(0, 0, 3, b"a"))
    assert window(connection, 3, 3) == (True, raw(0, 0, 3, b"aaa"))
    assert window(connection, 3, 8) == (True, raw(0, 0, 3, b"a" * 6) + raw(0, 0, 3, b"bb"))
    connection.stream_trailers[3] = b"x"
    assert window(connection, 3, 100) == (True, raw(0, 1, 3, b"bbb") + b"trailers 3 b'x' 1")
    assert (3 in connection.stream_buffers, connection.stream_trailers) == (False, {})
    assert [piece.data for piece in connection.stream_buffers[5]] == [b"a" * 10, b"b" * 5]
    assert (connection.outbound_flow_control_window, one.outbound_flow_control_window) == (85, 97)


def test_frames_that_waited_are_as_long_as_the_client_takes_now() -> None:
    connection = waiting(stream(3, 0), of_all=100, most=4)
    assert window(connection, 3, 100) == (
        True,
        b"".join(raw(0, 0, 3, b"a" * size) for size in (4, 4, 2)) + raw(0, 0, 3, b"bbbb") + raw(0, 1, 3, b"b"),
    )


def test_an_opened_connection_lets_streams_send_in_turns() -> None:
    connection = waiting(stream(3, 12), stream(5, 100), stream(7, 0))
    assert window(connection, 0, 28) == (
        True,
        raw(0, 0, 3, b"a" * 10) + raw(0, 0, 3, b"bb") + raw(0, 0, 5, b"a" * 10) + raw(0, 1, 5, b"b" * 5),
    )
    assert connection.outbound_flow_control_window == 1
    assert {number: [piece.data for piece in left] for number, left in connection.stream_buffers.items()} == {
        3: [b"bbb"],
        7: [b"a" * 10, b"b" * 5],
    }
    connection.streams[3].outbound_flow_control_window = 100
    assert window(connection, 0, 10) == (True, b""), "streams that wait for their own window are not looked at"


def test_the_last_who_sent_is_the_last_in_the_next_turn() -> None:
    connection = waiting(stream(3, 100), stream(5, 100))
    assert window(connection, 0, 10) == (True, raw(0, 0, 3, b"a" * 10))
    assert list(connection.stream_buffers) == [5, 3]
    assert window(connection, 0, 10) == (True, raw(0, 0, 5, b"a" * 10))
    assert list(connection.stream_buffers) == [3, 5]


def test_what_waits_for_a_stream_that_is_gone_is_dropped() -> None:
    ended, gone = stream(3, 100, StreamState.CLOSED), stream(5, 100)
    remote = stream(7, 100, StreamState.HALF_CLOSED_REMOTE)
    connection = waiting(ended, gone, remote)
    del connection.streams[5]
    assert window(connection, 0, 20) == (True, raw(0, 0, 7, b"a" * 10) + raw(0, 1, 7, b"b" * 5))
    assert dict(connection.stream_buffers) == {}


class Manager:
    """Opens a window again by what it is told."""

    def __init__(self, increment: int | None) -> None:
        self.increment = increment
        self.processed: list[int] = []

    def process_bytes(self, size: int) -> int | None:
        self.processed.append(size)
        return self.increment


@all_cases(
    ("of_all", "of_one", "state", "made"),
    [
        (None, None, OPEN, b""),
        (300, None, OPEN, raw(8, 0, 0, b"\0\0\1\x2c")),
        (None, 2, OPEN, raw(8, 0, 3, b"\0\0\0\2")),
        (1, 2, OPEN, raw(8, 0, 0, b"\0\0\0\1") + raw(8, 0, 3, b"\0\0\0\2")),
        (1, 2, DONE, raw(8, 0, 0, b"\0\0\0\1")),
    ],
)
def test_what_was_read_comes_back_as_windows(of_all: int | None, of_one: int | None, state: StreamState, made: bytes) -> None:
    one, connection = stream(3, state=state), Connection()
    all_manager, one_manager = Manager(of_all), Manager(of_one)
    one._inbound_window_manager = one_manager
    vars(connection)["_inbound_flow_control_window_manager"] = all_manager
    assert give_back(connection, one, 77) == made  # type: ignore[arg-type]
    assert (all_manager.processed, one_manager.processed) == ([77], [77] if state is OPEN else [])
