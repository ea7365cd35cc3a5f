"""Clients that send slowly, hold connections or send much without a right to: they hold up nobody."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
import uvicorn

from gatewayfilter import wiring
from gatewayfilter.certificates.authority import ensure_ca
from gatewayfilter.web import connections
from gatewayfilter.web.access import gate
from gatewayfilter.web.app import create_app
from gatewayfilter.web.connections import BoundedProtocol
from gatewayfilter.web.services import WebServices
from tests.e2e.e2e_gateway import until
from tests.web.web_fakes import ADMIN, APPROVER, VIEWER, Always, dashboard, loaded_for


@contextmanager
def bounded(data_dir: Path, keep_alive_s: int = 5) -> Iterator[tuple[str, int]]:
    """A dashboard on the product's protocol; yields its address."""
    loaded = loaded_for(data_dir)
    with closing(wiring.open_store(loaded.settings)) as store, socket.create_server(("127.0.0.1", 0)) as listener:
        ensure_ca(data_dir / "ca")
        app = create_app(WebServices(loaded, store), Always(ADMIN))
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=BoundedProtocol,
                log_config=None,
                lifespan="off",
                timeout_graceful_shutdown=1,
                timeout_keep_alive=keep_alive_s,
            )
        )
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield listener.getsockname()
        server.should_exit = True
        thread.join(10)


def ended_after_s(connection: socket.socket, most_s: float = 60.0) -> float:
    """Returns how long the connection is kept, which must end within `most_s`."""
    began = time.monotonic()
    connection.settimeout(most_s)
    while connection.recv(65_536):
        pass
    return time.monotonic() - began


def trickle(connection: socket.socket, for_s: float) -> None:
    """Sends a byte now and then."""
    limit = time.monotonic() + for_s
    while time.monotonic() < limit:
        connection.sendall(b"x")
        time.sleep(0.05)


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"G"])
def test_a_head_that_does_not_end_is_cut_off(sent: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.3)
    with bounded(tmp_path) as address, socket.create_connection(address) as connection:
        connection.sendall(sent)
        with suppress(ConnectionResetError):
            ended_after_s(connection)


def test_bytes_that_trickle_do_not_prolong_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.5)
    with bounded(tmp_path) as address, socket.create_connection(address) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            trickle(connection, 10.0)


@pytest.mark.slow
def test_requests_follow_each_other_on_a_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 15.0)
    with bounded(tmp_path, keep_alive_s=60) as address, socket.create_connection(address) as connection:
        for pause_s in (0.0, 4.0, 4.0, 4.0, 4.0):  # longer than the limit in all
            time.sleep(pause_s)
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            answer = b""
            while not answer.endswith(b"ok\n"):
                part = connection.recv(4096)
                assert part, "it was cut off"
                answer += part


@pytest.mark.slow
def test_a_body_that_stops_on_its_way_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "BODY_PAUSE_S", 0.3)
    with bounded(tmp_path) as address, socket.create_connection(address) as connection:
        head = "POST /api/v1/pauses HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{"
        connection.sendall(head.encode())
        with suppress(ConnectionResetError):
            ended_after_s(connection)


@pytest.mark.parametrize(("who", "status"), [(None, 413), (VIEWER, 413), (APPROVER, 413), (ADMIN, 422)])
def test_who_may_not_restore_sends_no_large_body(who: object, status: int, tmp_path: Path) -> None:
    """It is refused by its length, before any of it is read."""
    with dashboard(tmp_path) as web:
        web.who.identity = who  # type: ignore[assignment]
        assert web.client.post("/api/v1/restore", files={"file": ("x", bytes(2 << 20))}).status_code == status


def test_a_client_has_so_many_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_PER_CLIENT", 3)
    monkeypatch.setattr(connections, "_is_own", lambda _: False)
    with bounded(tmp_path) as address:
        held = [socket.create_connection(address) for _ in range(3)]
        time.sleep(0.2)
        with socket.create_connection(address) as surplus:
            surplus.settimeout(60)
            with suppress(ConnectionResetError):
                assert surplus.recv(1) == b""
        held[0].close()

        def is_served() -> bool:
            with socket.create_connection(address) as later, suppress(ConnectionError):
                later.settimeout(60)
                later.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                return later.recv(4096).startswith(b"HTTP/1.1 200")
            return False

        until("place for another connection", is_served)
        for connection in held:
            connection.close()
