"""The connection of a follower to its publisher, when it is closed."""

from http.client import HTTPConnection
from types import SimpleNamespace
from typing import cast

from gatewayfilter.fleet.transport import Transport


def test_a_transport_that_is_closed_holds_no_connection() -> None:
    closed: list[bool] = []
    transport = Transport("http://127.0.0.1:9", "")
    transport.close()
    transport._connection = cast("HTTPConnection", SimpleNamespace(close=lambda: closed.append(True)))
    for _ in range(2):
        transport.close()
    assert closed == [True]
    assert vars(transport)["_connection"] is None
