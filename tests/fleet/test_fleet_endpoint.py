"""The endpoint and the transport over real sockets, and publishers that do not behave."""

import asyncio
import hashlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import uvicorn

from gatewayfilter.config import load
from gatewayfilter.errors import FleetError, MissingFollowerError
from gatewayfilter.fleet.endpoint import FleetEndpoint
from gatewayfilter.fleet.export import copy_export
from gatewayfilter.fleet.follower_state import Fault
from gatewayfilter.fleet.health import HealthBoard, Report, read_board, read_report, write_report
from gatewayfilter.fleet.members import Members, read_token
from gatewayfilter.fleet.transport import Transport, TransportError
from gatewayfilter.processes.fleet_server import fleet_server
from gatewayfilter.telemetry import Counters

NAME = "a" * 64
BLOB = bytes(range(256)) * 1_000
REPORT = Report("1.0", 7, 60, 1_000, 0, 0, 0, Fault.OK, 2)


class Served:
    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "export" / "blobs").mkdir(parents=True)
        (home / "export" / "manifest").write_bytes(b"signed")
        (home / "export" / "blobs" / NAME).write_bytes(BLOB)
        self.members = Members(home / "followers.json")
        self.token = self.members.add("north")
        self.board = HealthBoard(home / "health.json")
        self.counters = Counters()
        self.endpoint = FleetEndpoint(home / "export", self.members, self.board, self.counters)
        config = uvicorn.Config(self.endpoint, log_config=None, lifespan="off", access_log=False)
        self.server = uvicorn.Server(config)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=lambda: asyncio.run(self.server.serve([self.listener])), daemon=True)

    def transport(self, token: str | None = None) -> Transport:
        return Transport(self.address, self.token if token is None else token, answer_s=60.0)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("served"))
    made.thread.start()
    while not made.server.started:
        time.sleep(0.01)
    yield made
    made.server.should_exit = True
    made.thread.join(5)


def test_manifest_and_parts_of_files(served: Served) -> None:
    with closing(served.transport()) as transport:
        first = transport.manifest("", 100)
        assert (first.status, first.body) == (200, b"signed")
        assert transport.manifest(first.etag, 100).status == 304
        assert transport.blob(NAME, len(BLOB)) == BLOB
        assert b"".join(transport.span(NAME, 1_000, 70_000)) == BLOB[1_000:71_000]


@pytest.mark.parametrize("token", ["", "gwfleet_" + "x" * 43, "x" * 9_000])
def test_without_a_token_nothing_is_served(served: Served, token: str) -> None:
    with closing(served.transport(token)) as transport, pytest.raises(TransportError) as caught:
        transport.manifest("", 100)
    assert caught.value.status in {401, 400, 431}


@pytest.mark.parametrize("path", ["/", "/login", "/api/v1/status", "/blobs/../../signing.key", "/blobs/" + "b" * 64, "/metrics"])
def test_nothing_else_is_served(served: Served, path: str) -> None:
    with closing(served.transport()) as transport, pytest.raises(TransportError) as caught:
        transport._get(path, {}, 100, {200})
    assert caught.value.status == 404


def test_reports_are_taken_once_a_minute(served: Served) -> None:
    with closing(served.transport()) as transport:
        assert transport.report(b"{}") == 400
        assert transport.report(b"x" * 5_000) == 413
        assert transport.report(write_report(REPORT)) == 204
        assert transport.report(write_report(REPORT)) == 429
    with closing(served.transport()) as transport:
        connections = []
        for _ in range(3):
            assert transport.report(b"{}") == 400
            connections.append(transport._connection)
        assert connections[0] is not None
        assert connections == [connections[0]] * 3  # one is enough
    served.board.write({"north"})
    assert read_board(served.board._path)["north"][1] == REPORT


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        write_report(REPORT).replace(b'"sequence":7', b'"sequence":1e400'),
        write_report(REPORT).replace(b'"1.0"', b'"\\u202e"'),
        write_report(REPORT).replace(b'"ok"', b'"fine"'),
        write_report(REPORT).replace(b'"workers":2', b'"workers":true'),
        b"[" * 2_000,
    ],
)
def test_reports_that_are_none(data: bytes) -> None:
    with pytest.raises(FleetError):
        read_report(data)


def test_members(tmp_path: Path) -> None:
    members = Members(tmp_path / "followers.json")
    token = members.add("north")
    assert token not in (tmp_path / "followers.json").read_text()
    assert (tmp_path / "followers.json").stat().st_mode & 0o777 == 0o600
    assert Members(tmp_path / "followers.json").find(read_token(f" {token}\n")) == "north"
    for name in ("north", "", "a/b", "é", "x" * 65):
        with pytest.raises(FleetError):
            members.add(name)
    members.remove("north")
    assert members.find(token) is None
    with pytest.raises(MissingFollowerError):
        members.remove("north")
    with pytest.raises(FleetError):
        read_token("gwfleet_short")


def test_an_export_is_copied_for_a_web_server(tmp_path: Path) -> None:
    name = hashlib.sha256(BLOB).hexdigest()
    (tmp_path / "export" / "blobs").mkdir(parents=True)
    (tmp_path / "export" / "manifest").write_bytes(b"signed")
    (tmp_path / "export" / "blobs" / name).write_bytes(BLOB)
    assert copy_export(tmp_path / "export", tmp_path / "www") == len(BLOB) + 6
    assert copy_export(tmp_path / "export", tmp_path / "www") == 6
    assert (tmp_path / "www" / "blobs" / name).read_bytes() == BLOB


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that reads a request and answers as it likes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            try:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65_536)
                    answer(connection)
            except OSError:
                return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(5)


def dripping(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-")
    for _ in range(100):
        connection.sendall(b"a")
        time.sleep(0.05)


def plain(text: bytes) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(text)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (dripping, "too long|closed|cannot be used"),
        (plain(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"), "redirect"),
        (plain(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n\x1f\x8b\x08aaaaaa"), "compresses"),
        (plain(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\ncut"), "cut off|cannot be used"),
        (plain(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5_000), "longer than"),
        (plain(b"SSH-2.0-OpenSSH\r\n"), "cannot be used"),
        (plain(b""), "cannot be used"),
    ],
)
def test_publishers_that_do_not_behave(answer: Callable[[socket.socket], None], words: str) -> None:
    began = time.monotonic()
    with (
        answering(answer) as address,
        closing(Transport(address, "", answer_s=0.5 if answer is dripping else 60.0)) as transport,
        pytest.raises(TransportError, match=words),
    ):
        transport.manifest("", 1_000)
    assert time.monotonic() - began < 20


def test_a_server_without_ranges_is_told() -> None:
    whole = plain(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b"x" * 100)
    with answering(whole) as address, closing(Transport(address, "")) as transport, pytest.raises(TransportError, match="ranges"):
        list(transport.span(NAME, 10, 10))


def raw_request(served: Served, path: str, extra: str = "", method: str = "GET") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {served.token}\r\n{extra}\r\n".encode()


def connected(served: Served) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", served.listener.getsockname()[1]))
    connection.settimeout(60)
    return connection


def test_a_follower_that_leaves_is_sent_nothing_more(served: Served) -> None:
    name, size = "c" * 64, 4_000_000_000
    with (served.home / "export" / "blobs" / name).open("wb") as file:
        file.truncate(size)
    before = served.counters.as_dict().get("fleet_bytes", 0)
    with connected(served) as connection:
        connection.sendall(raw_request(served, f"/blobs/{name}"))
        assert connection.recv(100)
    deadline = time.monotonic() + 60
    while served.endpoint.transfers("north") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not served.endpoint.transfers("north")
    assert served.counters.as_dict().get("fleet_bytes", 0) - before < size / 10


def test_a_report_that_drips_gets_an_answer(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, connected(served) as connection:
        patch.setattr("gatewayfilter.fleet.endpoint._BODY_S", 0.1)
        connection.sendall(raw_request(served, "/health", "Content-Length: 50\r\n", "POST") + b"{")
        assert connection.recv(100).startswith(b"HTTP/1.1 408 ")
    with connected(served) as connection:
        connection.sendall(
            raw_request(served, "/health", "Transfer-Encoding: chunked\r\n", "POST") + b"ffffff\r\n" + b"[" * 9_000
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


def test_malformed_requests_leave_no_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "uvicorn.error")  # for the level to be put back afterwards
    settings = load(options={"data_dir": tmp_path}, environ={}).settings
    settings = settings.model_copy(update={"fleet": settings.fleet.model_copy(update={"listen": "127.0.0.1:1"})})
    fleet_server(settings, None)
    assert not logging.getLogger("uvicorn.error").isEnabledFor(logging.WARNING)
    assert logging.getLogger("uvicorn.error").isEnabledFor(logging.ERROR)
