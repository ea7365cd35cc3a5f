"""What of a response over HTTP/2 is left to h2, by the state of its stream, and which frames are taken or kept."""

from collections.abc import Callable

import pytest
from h2.stream import StreamState
from mitmproxy.proxy.layers.http._http2 import StreamState as Awaited

from gatewayfilter.proxy.mitm.fastpath.http2.exchange import Taken, take_from_origin
from gatewayfilter.proxy.mitm.fastpath.http2.response import Responses
from tests.proxy.mitm.fastpath.http2.frame_script import Http2Driver, raw
from tests.proxy.mitm.fastpath.http2.test_http2_state import PLAIN, driver, parts

__all__ = ["driver"]


class Under:
    """A stream that is under way, as the layers and both ends of h2 have it."""

    def __init__(self, driver: Http2Driver, number: int) -> None:
        self.number = number
        self.layer, self.server, self.client = parts(driver)
        self.stream = self.layer.streams[number]
        self.asked = self.client.h2_conn.streams[self.client.our_stream_id[number]]
        self.answered = self.server.h2_conn.streams[number]
        self.responses = Responses(self.layer, self.server, self.client)


EITHER: list[Callable[[Under], object]] = [
    lambda one: setattr(one.asked.state_machine, "state", StreamState.OPEN),
    lambda one: setattr(one.answered.state_machine, "state", StreamState.OPEN),
    lambda one: one.client.their_stream_id.pop(one.number),
    lambda one: one.layer.streams.pop(one.number),
    lambda one: one.server.h2_conn.streams.pop(one.number),
    lambda one: setattr(one.stream, "_paused", object()),
    lambda one: setattr(one.stream, "override", object()),
    lambda one: setattr(one.stream, "client_state", one.stream.state_stream_request_body),
    lambda one: setattr(one.stream.flow.request, "http_version", "HTTP/1.1"),
    lambda one: setattr(one.stream, "server_state", one.stream.state_done),
    lambda one: one.client.streams.pop(one.number),
]
"""What keeps any part of a response from the fast path."""


@pytest.mark.parametrize(
    "change",
    [
        *EITHER,
        lambda one: setattr(one.asked.state_machine, "headers_received", True),
        lambda one: setattr(one.answered.state_machine, "headers_sent", True),
    ],
)
def test_when_a_head_is_left_to_h2(driver: Http2Driver, change: Callable[[Under], object]) -> None:
    one = Under(driver, 3)
    change(one)
    assert one.responses.take_head(3, PLAIN, end=True) is False
    assert (one.responses.sent(), one.responses.slow) == ([], None)
    other = Under(driver, 5)
    other.client.streams[5] = Awaited.EXPECTING_HEADERS
    assert other.responses.take_head(5, PLAIN, end=True) is False, "its head has come"


@pytest.mark.parametrize(
    "change",
    [
        *EITHER,
        lambda one: setattr(one.stream.flow, "response", None),
        lambda one: setattr(one.stream.flow.response, "stream", False),
        lambda one: setattr(one.answered.state_machine, "headers_sent", False),
        lambda one: setattr(one.asked.state_machine, "trailers_received", True),
        lambda one: setattr(one.asked._inbound_window_manager, "current_window_size", 0),
        lambda one: setattr(one.client.h2_conn._inbound_flow_control_window_manager, "current_window_size", 0),
        lambda one: setattr(one.asked, "_expected_content_length", 1),
        lambda one: setattr(one.asked, "_expected_content_length", 3),
    ],
)
def test_when_a_part_of_a_body_is_left_to_h2(driver: Http2Driver, change: Callable[[Under], object]) -> None:
    one = Under(driver, 5)
    change(one)
    assert one.responses.take_data(5, b"k", end=True) is False
    assert (one.responses.sent(), one.responses.slow) == ([], None)


@pytest.mark.parametrize(
    ("frame", "cut", "begun"),
    [
        (raw(0, 0, 5, bytes(300)), 1, True),
        (raw(0, 0, 5, bytes(300)), 300, True),
        (raw(0, 1, 5, bytes(300)), 1, True),
        (raw(0, 0, 5, bytes(300)), 305, True),
        (raw(0, 0, 3, bytes(300)), 1, True),
        (raw(0, 8, 5, bytes(300)), 1, False),
        (raw(1, 4, 5, bytes(300)), 1, False),
        (raw(0, 0, 7, bytes(300)), 1, False),
        (raw(0, 0, 3, bytes(300)), 0, False),
        (b"", 0, False),
    ],
)
def test_which_beginnings_of_frames_are_kept_for_the_next_read(
    driver: Http2Driver, frame: bytes, cut: int, *, begun: bool
) -> None:
    layer, _, client = parts(driver)
    came = frame[: len(frame) - cut]
    assert take_from_origin(layer, client, came) == (Taken([], None, b"") if begun else None)
    assert bytes(client.h2_conn.incoming_buffer._data) == (came if begun else b"")


def test_frames_are_taken_up_to_the_size_that_was_granted(driver: Http2Driver) -> None:
    one = Under(driver, 5)
    one.asked._expected_content_length = None
    most = one.client.h2_conn.max_inbound_frame_size
    for size, taken in ((most, True), (most + 1, False)):
        frame = raw(0, 0, 5, bytes(size))
        assert (take_from_origin(one.layer, one.client, frame[:-1]) is not None) is taken
        if taken:
            found = take_from_origin(one.layer, one.client, frame[-1:])
            assert found is not None
            assert (found.slow, found.rest) == (None, b"")
            assert one.asked._actual_content_length == 1 + most
        else:
            assert take_from_origin(one.layer, one.client, frame) is None


def test_a_part_may_take_the_whole_window(driver: Http2Driver) -> None:
    one = Under(driver, 5)
    windows = one.asked._inbound_window_manager, one.client.h2_conn._inbound_flow_control_window_manager
    for window in windows:
        window.current_window_size = 1
    assert one.responses.take_data(5, b"k", end=True) is True
    assert [window.current_window_size for window in windows] == [0, 0]
