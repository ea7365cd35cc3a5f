"""Back pressure over HTTP/2 at its bounds: when a stream is full, when its origin may send on, and what is owed of its window."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from mitmproxy.connection import Server
from mitmproxy.proxy import events
from mitmproxy.proxy.layers import http as http_layers
from mitmproxy.proxy.layers.http._http2 import Http2Server

from gatewayfilter.proxy.mitm.http.http2_flow import (
    MOST_UNSENT,
    PAUSED,
    PatientHttp2Client,
    PatientHttp2Server,
    TakeMore,
)
from tests.case_tables import all_cases


class Side:
    """The client's side over streams whose unsent bytes a test sets."""

    def __init__(self, alpn: bytes | None = None) -> None:
        self.origin = Server(address=("site.example", 443))
        self.origin.alpn = alpn
        parent: Any = object.__new__(http_layers.HttpLayer)
        self.parent = parent
        parent.streams = {3: SimpleNamespace(context=SimpleNamespace(server=self.origin))}
        parent.connections = {self.origin: "its layer"}
        self.closed: set[int] = set()
        server: Any = object.__new__(PatientHttp2Server)
        server._full = {}
        server.context = SimpleNamespace(layers=[parent, server])
        server.h2_conn = SimpleNamespace(stream_buffers={})
        server.is_closed = lambda number: number in self.closed
        self.server = server

    def waits(self, *sizes: int, number: int = 3) -> None:
        self.server.h2_conn.stream_buffers[number] = [SimpleNamespace(data=bytes(size)) for size in sizes]

    def goes_on(self, *, over: bool = False) -> list[tuple[Any, ...]]:
        return [(type(one.event), one.event.stream_id, one.connection) for one in self.server.go_on(over=over)]


@all_cases(("sizes", "full"), [((MOST_UNSENT,), False), ((MOST_UNSENT + 1,), True), ((MOST_UNSENT - 1, 2), True), ((), False)])
def test_when_a_stream_is_full(sizes: tuple[int, ...], *, full: bool) -> None:
    side = Side()
    side.waits(*sizes)
    side.server.note_unsent(3)
    assert (side.server.is_full(3), side.server.has_full, side.origin in PAUSED) == (full, full, full)
    assert not side.server.is_full(5)
    list(side.server.go_on(over=True))
    assert side.origin not in PAUSED


def test_only_streams_that_are_there_get_full() -> None:
    side = Side()
    side.waits(MOST_UNSENT + 1, number=5)
    side.server.note_unsent(5)
    assert not side.server.has_full
    side.waits(MOST_UNSENT + 1)
    for layers in ([side.server], [object(), side.server]):
        side.server.context.layers = layers
        side.server.note_unsent(3)
        assert not side.server.has_full


@all_cases(
    ("left", "closed", "over", "goes_on"),
    [
        (MOST_UNSENT // 2 + 1, False, False, False),
        (MOST_UNSENT // 2, False, False, True),
        (MOST_UNSENT, True, False, True),
        (MOST_UNSENT, False, True, True),
        (0, False, False, True),
    ],
)
@all_cases("alpn", [None, b"http/1.1", b"h2"])
def test_when_an_origin_may_send_on(left: int, alpn: bytes | None, *, closed: bool, over: bool, goes_on: bool) -> None:
    side = Side(alpn)
    side.waits(MOST_UNSENT + 1)
    side.server.note_unsent(3)
    assert (side.origin in PAUSED) is (alpn != b"h2"), "a connection of HTTP/2 is read on for its other streams"
    side.waits(left)
    side.closed = {3} if closed else set()
    made = side.goes_on(over=over)
    assert (side.server.is_full(3), made) == (not goes_on, [(TakeMore, 3, side.origin)] if goes_on and alpn == b"h2" else [])
    assert (side.origin in PAUSED) is (alpn != b"h2" and not goes_on)
    PAUSED.discard(side.origin)


def test_an_origin_that_is_gone_is_told_nothing() -> None:
    side = Side(b"h2")
    side.waits(MOST_UNSENT + 1)
    side.server.note_unsent(3)
    side.parent.connections.clear()
    assert (side.goes_on(over=True), side.server.has_full) == ([], False)


async def test_a_connection_is_read_when_nothing_of_it_waits() -> None:
    side, read = Side(), list[str]()

    async def wait() -> None:
        await PAUSED.wait(side.origin)
        read.append("on")

    await wait()
    PAUSED.add(side.origin)
    PAUSED.add(side.origin)
    assert PAUSED
    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    assert read == ["on"]
    PAUSED.discard(side.origin)
    PAUSED.discard(side.origin)
    async with asyncio.timeout(10):
        await waiting
    assert (read, side.origin in PAUSED) == (["on", "on"], False)


class Origin:
    """The origin's side, with what it gives back of windows."""

    def __init__(self, *, full: bool) -> None:
        self.given: list[tuple[int, int]] = []
        self.sends = b"window"
        side = Side(b"h2")
        if full:
            side.server._full = {3: side.origin}
        side.parent.context = SimpleNamespace(client="client")
        side.parent.connections["client"] = side.server
        client: Any = object.__new__(PatientHttp2Client)
        client._owed, client._acknowledge = {}, lambda count, number: self.given.append((count, number))
        client.context = SimpleNamespace(layers=[side.parent, client])
        client.conn = side.origin
        client.our_stream_id, client.their_stream_id = {3: 7}, {7: 3}
        client.h2_conn = SimpleNamespace(data_to_send=lambda: self.sends)
        self.client, self.side = client, side

    def takes_more(self, number: int = 3) -> list[bytes]:
        event: Any = TakeMore(number)
        return [command.data for command in self.client._handle_event(event)]


def test_what_a_full_stream_is_owed_comes_back_at_once() -> None:
    origin = Origin(full=True)
    for count in (100, 50):
        origin.client._acknowledge_unless_full(count, 7)
    assert (origin.given, origin.client.owes(7), origin.client.owes(9)) == ([], True, False)
    assert origin.takes_more(5) == []
    assert origin.takes_more() == [b"window"]
    assert (origin.given, origin.client.owes(7)) == ([(150, 7)], False)
    assert origin.takes_more() == []
    assert origin.given == [(150, 7)]
    origin.client._acknowledge_unless_full(5, 7)
    origin.sends = b""
    assert origin.takes_more() == []
    assert origin.given == [(150, 7), (5, 7)]


def test_what_is_owed_comes_back_with_the_next_data() -> None:
    origin = Origin(full=True)
    origin.client._acknowledge_unless_full(100, 7)
    origin.side.server._full.clear()
    origin.client._acknowledge_unless_full(20, 7)
    origin.client._acknowledge_unless_full(3, 9)
    assert (origin.given, origin.client.owes(7)) == ([(120, 7), (3, 9)], False)


@pytest.mark.parametrize("client", ["HTTP/1", "none", "no layer"])
def test_another_client_holds_nothing_back(client: str) -> None:
    origin = Origin(full=True)
    if client == "HTTP/1":
        origin.side.parent.connections["client"] = object()
    elif client == "none":
        origin.side.parent.connections.clear()
    else:
        origin.client.context.layers = [origin.client]
    origin.client._acknowledge_unless_full(100, 7)
    assert origin.given == [(100, 7)]


def test_the_end_of_a_client_lets_all_origins_send_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Http2Server, "_handle_event", lambda *_: iter(()))
    for event, goes_on in ((events.Start(), False), (events.ConnectionClosed(Server(address=("a", 1))), True)):
        side = Side()
        side.waits(MOST_UNSENT + 1)
        side.server.note_unsent(3)
        list(PatientHttp2Server._handle_event(side.server, event))
        assert (side.origin not in PAUSED) is goes_on
        PAUSED.discard(side.origin)
