"""gRPC, with rules at work: HTTP/2 on both sides, messages as they come in both directions, the status in the trailers."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.events
import pytest
import trustme

from gatewayfilter.model import Action, Reason, RequestChange, ResponseChange, Verdict
from tests.proxy.conftest import StartGateway
from tests.proxy.mitm.http.test_http2 import Http2Client
from tests.proxy.proxy_fakes import Gateway

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

CALL = {"content-type": "application/grpc", "te": "trailers", "x-ad": "1"}


class Loud:
    @staticmethod
    def apply(text: str) -> str:
        return text.upper()


RULES = ResponseChange(
    csp=("script-src 'none'",), remove_headers=("x-track", "trailer"), edits=(Loud(),), style="p{}", remove_elements=(".ad",)
)


def message(text: bytes) -> bytes:
    return struct.pack(">?I", False, len(text)) + text


@dataclass
class Service(asyncio.Protocol):
    """A gRPC server that returns each message at once, and says in its trailers how many there were."""

    asked: list[dict[str, str]] = field(default_factory=list)
    messages: int = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self._connection.initiate_connection()
        transport.write(self._connection.data_to_send())

    def data_received(self, data: bytes) -> None:
        for event in self._connection.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                assert event.stream_id is not None
                self.asked.append({str(name): str(value) for name, value in event.headers or ()})
                head = [(":status", "200"), ("content-type", "application/grpc"), ("x-track", "1"), ("trailer", "grpc-status")]
                self._connection.send_headers(event.stream_id, head)
            elif isinstance(event, h2.events.DataReceived):
                assert event.stream_id is not None
                if event.data:
                    self.messages += 1
                    self._connection.send_data(event.stream_id, event.data)
            elif isinstance(event, h2.events.StreamEnded):
                trailers = [("grpc-status", "0"), ("grpc-message", f"{self.messages} messages"), ("set-cookie", "a=b")]
                self._connection.send_headers(event.stream_id, trailers, end_stream=True)
        self._transport.write(self._connection.data_to_send())


class Caller(Http2Client):
    """A gRPC client: what comes of a stream, event by event."""

    async def next(self, stream: int) -> tuple[str, object]:
        """Returns the next thing that happens to a call."""
        async with asyncio.timeout(10):
            while True:
                while self._happened:
                    event = self._happened.pop(0)
                    if isinstance(event, h2.events.ResponseReceived | h2.events.TrailersReceived) and event.stream_id == stream:
                        kind = "head" if isinstance(event, h2.events.ResponseReceived) else "trailers"
                        return kind, {str(name): str(value) for name, value in event.headers or ()}
                    if isinstance(event, h2.events.DataReceived) and event.stream_id == stream and event.data:
                        return "data", event.data
                    if isinstance(event, h2.events.StreamEnded | h2.events.StreamReset) and event.stream_id == stream:
                        return type(event).__name__, None
                data = await self._reader.read(65536)
                assert data, "the connection ended"
                self._happened += self._connection.receive_data(data)
                self._writer.write(self._connection.data_to_send())

    _happened: list[h2.events.Event]


@pytest.fixture
async def service(authority: trustme.CA) -> AsyncIterator[tuple[Service, str]]:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.set_alpn_protocols(["h2"])
    authority.issue_cert("localhost").configure_cert(tls)
    found = Service()
    server = await asyncio.get_running_loop().create_server(lambda: found, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield found, f"https://localhost:{server.sockets[0].getsockname()[1]}"


async def call(gateway: Gateway, origin: str, client_tls: ssl.SSLContext) -> Caller:
    client_tls.set_alpn_protocols(["h2"])
    caller = await Caller.connect(gateway, origin, client_tls)
    assert isinstance(caller, Caller)
    caller._happened = []
    return caller


@pytest.mark.parametrize("rules", [None, RULES], ids=["no-rules", "rules"])
@pytest.mark.parametrize("unknown", ["allow", "inspect"])
async def test_messages_pass_one_by_one_and_the_status_follows(
    rules: ResponseChange | None,
    unknown: str,
    start_gateway: StartGateway,
    service: tuple[Service, str],
    client_tls: ssl.SSLContext,
) -> None:
    theirs, origin = service
    async with start_gateway(unknown=unknown) as gateway:
        if rules is not None:
            gateway.changes.requests["/unknown.Service/Echo"] = RequestChange(remove_headers=("x-ad", "te"))
            gateway.changes.responses["/unknown.Service/Echo"] = rules
        caller = await call(gateway, origin, client_tls)
        stream = caller.ask("POST", "/unknown.Service/Echo", body=True, **CALL)
        for text in (b"one", b"two", b"<p class=ad>three"):
            caller.send(stream, message(text))
            if text == b"one":
                kind, head = await caller.next(stream)
                assert (kind, isinstance(head, dict) and head[":status"]) == ("head", "200")
                assert isinstance(head, dict)
                assert ("x-track" in head, "content-security-policy" in head) == ((rules is None), (rules is not None))
                assert head["trailer"] == "grpc-status"  # says how to read the message: no rule takes it away
            assert await caller.next(stream) == ("data", message(text))
        caller.send(stream, b"", end=True)
        trailers = {"grpc-status": "0", "grpc-message": "3 messages"}  # without the cookie: it belongs into a head
        assert await caller.next(stream) == ("trailers", trailers)
        assert await caller.next(stream) == ("StreamEnded", None)
        caller.close()
    assert theirs.asked[0][":path"] == "/unknown.Service/Echo"
    assert theirs.asked[0]["te"] == "trailers"
    assert ("x-ad" in theirs.asked[0]) == (rules is None)


async def test_calls_share_a_connection_with_blocked_ones(
    gateway: Gateway, service: tuple[Service, str], client_tls: ssl.SSLContext
) -> None:
    theirs, origin = service
    gateway.changes.responses["/late"] = ResponseChange(verdict=Verdict(Action.BLOCK, Reason.ADBLOCK, rule="x$header=y"))
    caller = await call(gateway, origin, client_tls)
    for path, status in (
        ("/a.Service/Echo", "200"),
        ("/blocked.Service/Echo", "403"),
        ("/late", "403"),
        ("/a.Service/Echo", "200"),
    ):
        stream = caller.ask("POST", path, body=True, **CALL)
        if "blocked" not in path:
            caller.send(stream, message(b"x"))
        kind, head = await caller.next(stream)
        assert (kind, isinstance(head, dict) and head[":status"]) == ("head", status)
        if status == "200":
            assert await caller.next(stream) == ("data", message(b"x"))
            caller.send(stream, b"", end=True)
            kind, trailers = await caller.next(stream)
            assert (kind, isinstance(trailers, dict) and trailers["grpc-status"]) == ("trailers", "0")
    caller.close()
    assert [asked[":path"] for asked in theirs.asked] == ["/a.Service/Echo", "/late", "/a.Service/Echo"]
