"""Steps of a stream by themselves: the connection that it asks for, once or twice, and when its client is ahead of it."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from mitmproxy.connection import Client, ConnectionState, Server
from mitmproxy.proxy.layers import http as http_layers
from mitmproxy.proxy.layers.http import GetHttpConnection, HttpStream
from mitmproxy.proxy.layers.http._base import HttpEvent
from mitmproxy.proxy.layers.http._events import ErrorCode, ResponseData
from mitmproxy.test import tflow

from gatewayfilter.proxy.mitm.http import upload_flow
from gatewayfilter.proxy.mitm.http.http_stream import GatewayHttpStream, StreamOverride
from gatewayfilter.proxy.mitm.http.upload_flow import AHEAD, MOST_QUEUED, caught_up, note_upload
from gatewayfilter.proxy.mitm.stale_retry import NO_PROTOCOL
from tests.case_tables import all_cases


class Stream:
    """A stream that gets connections to its origin, or errors."""

    def __init__(self, *, retried: bool = False, scheme: str = "https") -> None:
        made: Any = object.__new__(GatewayHttpStream)
        made.stream_id, made.flow, made.retried, made.context = 3, tflow.tflow(), retried, SimpleNamespace(server=None)
        made.flow.request.host, made.flow.request.port, made.flow.request.scheme = "site.example", 8443, scheme
        made.flow.server_conn = Server(address=None, via=("http", ("parent.example", 3128)))
        made.handle_protocol_error = lambda event: iter([event])
        self.layer = made
        self.asked: list[GetHttpConnection] = []
        self.failed: list[Any] = []

    def gets(self, *replies: tuple[Server | None, str | None]) -> object:
        """Answers what it asks for. Returns what came of it."""
        coming, left = self.layer.make_server_connection(), list(replies)
        reply: Any = None
        while True:
            try:
                command = coming.send(reply)
            except StopIteration as end:
                assert left == []
                return end.value
            reply = None
            if isinstance(command, GetHttpConnection):
                self.asked.append(command)
                reply = left.pop(0)
            else:
                self.failed.append(command)


class Own(StreamOverride):
    """Replaces one step."""

    def consume_response_body(self, event: HttpEvent) -> Any:
        return iter([("own", event)])


def test_steps_that_nothing_replaces_are_those_of_mitmproxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("start_request_stream", "start_response_stream", "state_consume_response_body"):
        monkeypatch.setattr(HttpStream, name, lambda self, *event, name=name: iter([(name, self, *event)]))
    stream = Stream().layer
    event = ResponseData(3, b"x")
    usual = [("start_request_stream", stream), ("start_response_stream", stream), ("state_consume_response_body", stream, event)]
    for override, last in ((None, usual[-1]), (StreamOverride(stream), usual[-1]), (Own(stream), ("own", event))):
        stream.override = override
        done = [*stream.start_request_stream(), *stream.start_response_stream(), *stream.state_consume_response_body(event)]
        assert done == [*usual[:-1], last]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_connection_that_a_stream_gets(scheme: str) -> None:
    one, server = Stream(scheme=scheme), Server(address=("site.example", 8443))
    assert one.gets((server, None)) is True
    assert one.layer.context.server is one.layer.flow.server_conn is server
    (asked,) = one.asked
    assert (asked.address, asked.tls, asked.via) == (
        ("site.example", 8443),
        scheme == "https",
        ("http", ("parent.example", 3128)),
    )
    assert (one.layer.retried, one.failed) == (False, [])


def test_an_origin_that_has_http2_alone_is_asked_again_once() -> None:
    server = Server(address=("site.example", 8443))
    one = Stream()
    assert one.gets((None, f"handshake: {NO_PROTOCOL}"), (server, None)) is True
    assert (one.layer.context.server, one.layer.retried, one.failed) == (server, True, [])
    for retried, replies, why in (
        (False, [NO_PROTOCOL, NO_PROTOCOL], NO_PROTOCOL),
        (False, [NO_PROTOCOL, "refused"], "refused"),
        (True, [NO_PROTOCOL], NO_PROTOCOL),
        (False, ["refused"], "refused"),
    ):
        one = Stream(retried=retried)
        assert one.gets(*((None, error) for error in replies)) is False
        (event,) = one.failed
        assert (event.stream_id, event.message, event.code) == (3, why, ErrorCode.CONNECT_FAILED)
        assert one.layer.context.server is None


def http_layer(**streams: object) -> Any:
    made: Any = object.__new__(http_layers.HttpLayer)
    made.streams = {int(name[1:]): stream for name, stream in streams.items()}
    return made


def waiting(count: int, *, paused: bool = True) -> SimpleNamespace:
    return SimpleNamespace(_paused=paused, _paused_event_queue=[object()] * count)


FULL = MOST_QUEUED + 1


@all_cases(
    ("layers", "number", "open_", "ahead"),
    [
        ([http_layer(_3=waiting(FULL))], 3, True, True),
        ([http_layer(_3=waiting(MOST_QUEUED))], 3, True, False),
        ([http_layer(_3=waiting(FULL, paused=False))], 3, True, False),
        ([http_layer(_3=waiting(FULL))], 5, True, False),
        ([http_layer(_3=waiting(FULL))], None, True, False),
        ([http_layer(_3=waiting(FULL))], 3, False, False),
        ([http_layer(_3=waiting(0)), http_layer(_3=waiting(FULL)), object()], 3, True, True),
        ([http_layer(_3=waiting(FULL)), http_layer(_3=waiting(0)), object()], 3, True, False),
        ([object()], 3, True, False),
        ([], 3, True, False),
    ],
)
def test_when_a_client_is_ahead_of_its_stream(layers: list[object], number: int | None, *, open_: bool, ahead: bool) -> None:
    client = Client(peername=("192.0.2.1", 1), sockname=("192.0.2.2", 2))
    client.state = ConnectionState.OPEN if open_ else ConnectionState.CAN_WRITE
    context: Any = SimpleNamespace(client=client, layers=layers)
    note_upload(context, number)
    assert (AHEAD.pop(client, None) is not None) is ahead


@pytest.mark.parametrize("how", ["goes on", "has nothing that waits"])
async def test_a_client_is_read_when_its_stream_goes_on(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_flow, "_LOOK_S", 0)
    client, stream = Client(peername=("192.0.2.1", 1), sockname=("192.0.2.2", 2)), waiting(1)
    await caught_up(client)
    AHEAD[client] = stream
    reading = asyncio.create_task(caught_up(client))
    for _ in range(5):
        await asyncio.sleep(0)
    assert (reading.done(), client in AHEAD) == (False, True)
    if how == "goes on":
        stream._paused = False
    else:
        stream._paused_event_queue.clear()
    async with asyncio.timeout(10):
        await reading
    assert client not in AHEAD
