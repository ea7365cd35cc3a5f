"""One client asks for as many distinct and long URLs as it can: the log stays near the bound that the operator gave it."""

import socket
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from tests.e2e.e2e_gateway import ANSWER_S, GatewayProcess, until

_BOUND = 8_000_000
_SLACK = 24_000_000
"""Pages that stay free for the rows to come, and the write-ahead log."""
_FLOOD_S = 6.0
_CLIENTS = 3


def _ask(address: tuple[str, int], length: int, stop: threading.Event, counted: list[int]) -> None:
    with socket.create_connection(address, timeout=ANSWER_S) as connection:
        number = 0
        while not stop.is_set():
            number += 1
            filler = f"{threading.get_ident()}{number:08}".ljust(length, "x")
            connection.sendall(f"GET http://blocked.test/{filler} HTTP/1.1\r\nHost: blocked.test\r\n\r\n".encode())
            answer = b""
            while b"\r\n\r\n" not in answer:
                answer += _some(connection)
            head, _, body = answer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 403"), head
            size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            while len(body) < size:
                body += _some(connection)
            counted.append(1)


def _some(connection: socket.socket) -> bytes:
    data = connection.recv(65_536)
    assert data, "the connection has ended"
    return data


def _disk(state: Path) -> int:
    return sum(found.stat().st_size for found in state.glob("gatewayfilter.sqlite3*"))


def _log_bytes(state: Path) -> int:
    with sqlite3.connect(f"file:{state}/gatewayfilter.sqlite3?mode=ro", uri=True) as database:
        return int(database.execute("SELECT coalesce(sum(length(url) + length(rule) + 100), 0) FROM decisions").fetchone()[0])


@pytest.mark.slow
@pytest.mark.parametrize("length", [1_700, 60_000])
def test_a_flood_of_urls_stays_below_the_bound_of_the_log(state: Path, length: int) -> None:
    gateway = GatewayProcess(state, log__retention_mb=str(_BOUND / 1_000_000), log__level="warning", learn__enabled="false")
    assert gateway.cli("list", "add", "--block", "blocked.test").returncode == 0
    with gateway:
        at_first = _disk(state)
        host, _, port = gateway.address.rpartition(":")
        stop, counted = threading.Event(), list[int]()
        clients = [
            threading.Thread(target=_ask, args=((host, int(port)), length, stop, counted), daemon=True) for _ in range(_CLIENTS)
        ]
        for client in clients:
            client.start()
        most = 0
        deadline = time.monotonic() + _FLOOD_S
        while time.monotonic() < deadline:
            most = max(most, _disk(state) - at_first)
            time.sleep(0.1)
        stop.set()
        for client in clients:
            client.join(20)
        assert counted
        assert most <= 2 * _BOUND + _SLACK
        until("log within its bound", lambda: _log_bytes(state) <= _BOUND, 15)
