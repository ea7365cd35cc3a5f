"""The connection of a follower to its publisher, when it is closed."""

import socket
import threading
from http.client import HTTPConnection
from types import SimpleNamespace
from typing import cast

from gatewayfilter.fleet.transport import Transport, _shut


def test_a_transport_that_is_closed_holds_no_connection() -> None:
    closed: list[bool] = []
    transport = Transport("http://127.0.0.1:9", "")
    transport.close()
    transport._connection = cast("HTTPConnection", SimpleNamespace(close=lambda: closed.append(True)))
    for _ in range(2):
        transport.close()
    assert closed == [True]
    assert vars(transport)["_connection"] is None


def test_a_late_answer_is_ended_on_both_sides() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        late = threading.Event()
        _shut(ours, late)
        assert (late.is_set(), theirs.recv(1), ours.recv(1)) == (True, b"", b"")
    closed = threading.Event()
    _shut(ours, closed)
    assert closed.is_set(), "it ended by itself meanwhile"
