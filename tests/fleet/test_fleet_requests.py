"""The requests of a follower and what a publisher makes of them at its bounds; no sockets."""

import asyncio
import hashlib
import http.client
import os
import ssl
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from email.message import Message
from pathlib import Path
from typing import Any, cast

import pytest

from gatewayfilter import __version__
from gatewayfilter.errors import FleetError
from gatewayfilter.fleet import endpoint, transport
from gatewayfilter.fleet.endpoint import MOST_TRANSFERS, FleetEndpoint
from gatewayfilter.fleet.follower_state import Fault
from gatewayfilter.fleet.health import HealthBoard, Report, write_report
from gatewayfilter.fleet.members import Members
from gatewayfilter.fleet.transport import Transport, TransportError, _reason
from gatewayfilter.telemetry import Counters

REPORT = write_report(Report("1.0", 7, 60, 1_000, 0, 0, 0, Fault.OK, 2))
NAME = hashlib.sha256(b"0123456789").hexdigest()


class Publisher:
    """The endpoint of a publisher with one follower; `messages` are what it was sent."""

    def __init__(self, home: Path) -> None:
        (home / "export" / "blobs").mkdir(parents=True)
        self.blob = home / "export" / "blobs" / NAME
        self.blob.write_bytes(b"0123456789")
        members = Members(home / "followers.json")
        self.token = members.add("north")
        self.counters, self.board = Counters(), HealthBoard(home / "health.json")
        self.endpoint = FleetEndpoint(home / "export", members, self.board, self.counters, lambda: 7.0)
        self.messages: list[Any] = []

    async def ask(self, path: str, receive: Callable[[], Any], method: str = "GET") -> int:
        """Asks, and returns the status."""
        messages: list[Any] = []

        async def send(message: Any) -> None:
            messages.append(message)

        headers = [(b"Authorization", f"Bearer {self.token}".encode())]
        await self.endpoint({"type": "http", "path": path, "method": method, "headers": headers}, receive, send)
        self.messages = messages
        return int(messages[0]["status"])


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    return Publisher(tmp_path)


async def never() -> Any:
    return await asyncio.Future()


def told(*messages: dict[str, object]) -> Callable[[], Any]:
    coming = iter(messages)

    async def receive() -> dict[str, object]:
        return next(coming)

    return receive


def test_a_follower_has_so_many_transfers_at_once(publisher: Publisher) -> None:
    async def asked() -> list[int]:
        waiting = [asyncio.create_task(publisher.ask("/health", never, "POST")) for _ in range(MOST_TRANSFERS - 1)]
        await asyncio.sleep(0)
        statuses = [publisher.endpoint.transfers("north"), await publisher.ask(f"/blobs/{NAME}", never)]
        waiting.append(asyncio.create_task(publisher.ask("/health", never, "POST")))
        await asyncio.sleep(0)
        statuses += [publisher.endpoint.transfers("north"), await publisher.ask(f"/blobs/{NAME}", never)]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return [*statuses, publisher.endpoint.transfers("north")]

    assert asyncio.run(asked()) == [MOST_TRANSFERS - 1, 200, MOST_TRANSFERS, 429, 0]


def test_reports_are_taken_in_and_counted(publisher: Publisher) -> None:
    first = {"type": "http.request", "body": REPORT[:9], "more_body": True}
    assert asyncio.run(publisher.ask("/health", told(first, {"type": "http.request", "body": REPORT[9:]}), "POST")) == 204
    assert publisher.messages[-1] == {"type": "http.response.body", "body": b""}
    assert (publisher.counters["fleet_reports"], publisher.counters["fleet_refused"]) == (1, 0)
    whole = told({"type": "http.request", "body": REPORT})
    assert asyncio.run(publisher.ask("/health", whole, "POST")) == 429
    assert (publisher.counters["fleet_reports"], publisher.counters["fleet_refused"]) == (1, 1)
    cut = told(first, {"type": "http.disconnect"})
    assert asyncio.run(publisher.ask("/health", cut, "POST")) == 413
    assert not publisher.board.take("north", Report("1.0", 7, 60, 1_000, 0, 0, 0, Fault.OK, 2)), "the first one was kept"


def test_files_are_sent_in_chunks_until_the_follower_is_gone(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_CHUNK", 4)
    assert asyncio.run(publisher.ask(f"/blobs/{NAME}", never)) == 200
    assert [(part["body"], part.get("more_body")) for part in publisher.messages[1:]] == [
        *((b"0123", True), (b"4567", True), (b"89", True), (b"", None)),
    ]
    assert publisher.counters["fleet_bytes"] == 10
    others: tuple[dict[str, object], ...] = ({"type": "http.request"}, {"type": "http.disconnect"})
    assert asyncio.run(publisher.ask(f"/blobs/{NAME}", told(*others))) == 200
    assert len(publisher.messages) < 5, "it left"


def test_nothing_is_left_of_a_request(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    open_file, close_file = os.open, os.close

    def close(descriptor: int) -> None:
        close_file(descriptor)
        if descriptor in opened:
            opened.remove(descriptor)

    monkeypatch.setattr(os, "close", close)

    def note(path: Any, *flags: int) -> int:
        opened.append(open_file(path, *flags))
        return opened[-1]

    monkeypatch.setattr(os, "open", note)

    async def asked(path: str) -> tuple[int, int]:
        status = await publisher.ask(path, never)
        await asyncio.sleep(0)
        return status, len(asyncio.all_tasks())

    for path, status in ((f"/blobs/{NAME}", 200), ("/manifest", 404)):
        assert asyncio.run(asked(path)) == (status, 1)
    assert opened == []


def test_a_file_that_shrinks_ends_its_transfer(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "_CHUNK", 4)
    sizes = iter([4, 0])
    monkeypatch.setattr("gatewayfilter.fleet.endpoint.os.pread", lambda *_: b"x" * next(sizes))
    assert asyncio.run(publisher.ask(f"/blobs/{NAME}", never)) == 200
    assert [part["body"] for part in publisher.messages[1:]] == [b"xxxx"], "what is missing is not made up for"
    assert publisher.endpoint.transfers("north") == 0


def test_what_is_no_request_gets_no_answer(publisher: Publisher) -> None:
    async def send(message: Any) -> None:
        raise AssertionError(message)

    asyncio.run(publisher.endpoint({"type": "lifespan"}, never, send))
    assert publisher.counters["fleet_requests"] == 0


class Response:
    """An answer of a publisher."""

    def __init__(self, status: int, body: bytes = b"", *, closed: bool = True, **headers: str) -> None:
        self.status, self.body, self.closed = status, body, closed
        self.headers = Message()
        for name, value in headers.items():
            self.headers[name.replace("_", "-")] = value

    def read(self, most: int) -> bytes:
        piece, self.body = self.body[:most], self.body[most:]
        return piece

    def isclosed(self) -> bool:
        return self.closed


class Connection:
    """A connection that answers what it is told to."""

    made: list["Connection"]
    answers: Iterator[Response]

    def __init__(self, host: str, port: int | None, timeout: float, context: object = None) -> None:
        self.place, self.context, self.sock = (host, port, timeout), context, self
        self.asked: list[tuple[object, ...]] = []
        self.timeouts: list[float] = []
        self.closed = 0
        self.made.append(self)

    def connect(self) -> None:
        pass

    def settimeout(self, seconds: float) -> None:
        self.timeouts.append(seconds)

    def request(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> None:
        self.asked.append((method, path, body, headers))

    def getresponse(self) -> Response:
        return next(self.answers)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    Connection.made = []
    monkeypatch.setattr("http.client.HTTPConnection", Connection)
    monkeypatch.setattr("http.client.HTTPSConnection", Connection)
    return Connection.made


def answers(*responses: Response) -> None:
    Connection.answers = iter(responses)


def test_what_a_follower_sends(connections: list[Connection]) -> None:
    answers(Response(200, b"a", ETag="t"), Response(304), Response(200, b"b"), Response(206, b"cd", Content_Range="bytes 3-4/9"))
    with closing(Transport("http://filter.example:81/path/", "token", answer_s=3.0)) as sender:
        assert sender.manifest("", 5) == transport.Answer(200, "t", b"a")
        assert sender.manifest("t", 5) == transport.Answer(304, "", b"")
        assert sender.blob("x", 5) == b"b"
        assert b"".join(sender.span("x", 3, 2)) == b"cd"
        answers(Response(204, closed=False), Response(501))
        assert (sender.report(b"{}"), len(connections), connections[0].closed) == (204, 1, 1), (
            "its answer was not read to the end"
        )
        assert (sender.report(b"{}"), len(connections), connections[1].closed) == (501, 2, 0)
    plain = {
        "User-Agent": f"GatewayFilter/{__version__}",
        "Accept-Encoding": "identity",
        "Authorization": "Bearer token",
    }
    assert connections[0].asked == [
        ("GET", "/path/manifest", None, plain),
        ("GET", "/path/manifest", None, plain | {"If-None-Match": "t"}),
        ("GET", "/path/blobs/x", None, plain),
        ("GET", "/path/blobs/x", None, plain | {"Range": "bytes=3-4"}),
        ("POST", "/path/health", b"{}", plain | {"Content-Type": "application/json"}),
    ]
    assert (connections[0].place, connections[0].timeouts) == (("filter.example", 81, transport.CONNECT_S), [3.0])
    assert (connections[0].context, connections[1].closed) == (None, 1)


def test_without_a_token_none_is_sent(connections: list[Connection]) -> None:
    answers(Response(200, b"a"))
    with closing(Transport("https://filter.example", "")) as sender:
        assert sender.blob("x", 1) == b"a"
    (connection,) = connections
    assert "Authorization" not in connection.asked[0][3]  # type: ignore[operator]
    assert isinstance(connection.context, ssl.SSLContext)
    assert connection.place == ("filter.example", None, 10.0)
    with pytest.raises(FleetError, match=r"cannot read the certificates in /nowhere \(fleet.ca_file\)"):
        Transport("https://filter.example", "", Path("/nowhere"))


@pytest.mark.parametrize(
    ("response", "words", "status"),
    [
        (Response(304), "status 304: no answer of a publisher", 304),
        (Response(299), "no answer of a publisher", 299),
        (Response(300), "a redirect, which is not followed", 300),
        (Response(399), "a redirect", 399),
        (Response(400), "no answer of a publisher", 400),
        (Response(206), "no answer", 206),
        (Response(200, Content_Encoding="br"), "compresses", 200),
        (Response(200, b"abcdef"), "longer than 5 bytes", 200),
        (Response(200, b"abc", Content_Length="4"), "was cut off", 0),
        (Response(200, b"abc", Content_Length="2"), "was cut off", 0),
    ],
)
def test_answers_that_are_refused_close_the_connection(
    connections: list[Connection], response: Response, words: str, status: int
) -> None:
    answers(response)
    with pytest.raises(TransportError, match=f"^the publisher.*{words}") as failed:
        Transport("http://filter.example", "").manifest("", 5)
    assert (failed.value.status, connections[0].closed) == (status, 1)


def test_answers_that_are_taken(connections: list[Connection]) -> None:
    for response in (
        Response(200, b"abcde", Content_Length="5"),
        Response(200, b"abcde", Content_Length="x"),
        Response(200, b"abcde", Content_Encoding="IDENTITY"),
    ):
        answers(response)
        assert Transport("http://filter.example", "").manifest("", 5).body == b"abcde"
    answers(Response(304, Content_Length="5"), Response(200, b"new", ETag="y"))
    with closing(Transport("http://filter.example", "")) as sender:
        assert sender.manifest("x", 5).status == 304
        assert sender.manifest("x", 5) == transport.Answer(200, "y", b"new")
        assert [connection.closed for connection in connections] == [0] * 4


def test_a_connection_is_closed_after_the_part_of_a_whole_file_alone(connections: list[Connection]) -> None:
    part = {"Content_Range": "bytes 0-1/9"}
    for response, closed in (
        (Response(206, b"ab", closed=False, **part), 0),
        (Response(206, b"ab", closed=True, **part), 0),
        (Response(200, b"abc", closed=True), 0),
        (Response(200, b"abc", closed=False), 1),
    ):
        answers(response)
        assert b"".join(Transport("http://filter.example", "").span("x", 0, 2)) == b"ab"
        assert connections[-1].closed == closed


def test_a_part_ends_where_it_was_asked_to(connections: list[Connection], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_CHUNK", 2)
    answers(Response(200, b"abcdef", closed=False))
    assert list(Transport("http://filter.example", "").span("x", 0, 3)) == [b"ab", b"c"]
    answers(Response(200, b"abcdef"))
    sender = Transport("http://filter.example", "")
    pieces = cast("Generator[bytes]", sender.span("x", 0, 6))
    assert next(pieces) == b"ab"
    pieces.close()
    assert connections[-1].closed == 1, "the rest would be taken for the next answer"


def test_a_connection_that_the_publisher_closed_is_made_again(connections: list[Connection]) -> None:
    answers(*(Response(200, b"a") for _ in range(3)))
    with closing(Transport("http://filter.example", "")) as sender:
        for made in (1, 1, 2):
            assert sender.blob("x", 1) == b"a"
            assert len(connections) == made
            if len(connections[0].asked) == 2:
                cast("Any", connections[0]).sock = None


@pytest.mark.parametrize("fault", [OSError(5, "broken"), http.client.HTTPException(), ValueError("a\nb" + "x" * 300)])
def test_faults_of_the_library(connections: list[Connection], fault: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise fault

    why = {OSError: "broken$", ValueError: r"a bx{197}$"}.get(type(fault), "HTTPException$")
    monkeypatch.setattr(Connection, "getresponse", fail)
    with pytest.raises(TransportError, match=f"^the publisher's answer cannot be used: {why}"):
        Transport("http://filter.example", "").manifest("", 5)
    assert connections[0].closed == 1
    assert _reason(OSError()) == "OSError"
    if not isinstance(fault, ValueError):
        monkeypatch.setattr(Connection, "connect", fail)
        with pytest.raises(TransportError, match=r"^cannot reach the publisher: "):
            Transport("http://filter.example", "").manifest("", 5)
        assert connections[1].closed == 1


def test_an_answer_that_takes_too_long_is_ended(connections: list[Connection], monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the head of an answer was cut, which looks empty to the library, or where reading fails."""
    waits: list[float] = []

    class Watchdog:
        daemon = False

        def __init__(self, seconds: float, call: Callable[..., None], arguments: tuple[Any, ...]) -> None:
            waits.append(seconds)
            self.late = arguments[1]
            assert call.__name__ == "_shut"

        def start(self) -> None:
            assert self.daemon
            call = transport._shut
            call(None, self.late)

        def cancel(self) -> None:
            waits.append(0.0)

    monkeypatch.setattr("threading.Timer", Watchdog)
    answers(Response(200))
    with pytest.raises(TransportError, match="it took too long"):
        Transport("http://filter.example", "", answer_s=3.0).manifest("", 32_768)
    monkeypatch.setattr(Connection, "getresponse", lambda _: (_ for _ in ()).throw(OSError(5, "broken")))
    with pytest.raises(TransportError, match="it took too long"):
        Transport("http://filter.example", "", answer_s=3.0).report(bytes(16_384))
    assert waits == [5.0, 0.0, 4.0, 0.0]
    assert [connection.closed for connection in connections] == [1, 1]
