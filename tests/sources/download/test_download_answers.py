"""Answers of servers that end early, ask for patience, or are long."""

from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from gatewayfilter.config import SourceSettings
from gatewayfilter.errors import SourceError
from gatewayfilter.sources import Subscriptions, UpdateStatus
from tests.sources.list_server import BUNDLED, Clock, ListServer
from tests.sources.test_subscriptions import LIST, copy_of


def _unannounced(server: ListServer, body: bytes) -> str:
    def serve(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(body)

    server.answers["/a.txt"] = serve
    return f"{server.base}/a.txt"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (LIST[: len(LIST) // 2 - 3], UpdateStatus.KEPT_BACK),
        (b"\n".join(LIST.splitlines()[:60]) + b"\n", UpdateStatus.UPDATED),  # ends with a line
        (LIST + b"more.example.com", UpdateStatus.UPDATED),  # grew
    ],
)
def test_an_answer_of_unknown_length_that_ends_within_a_line_is_kept_back(
    server: ListServer, subscriptions: Subscriptions, body: bytes, status: UpdateStatus
) -> None:
    subscriptions.add(_unannounced(server, LIST))
    _unannounced(server, body)
    (result,) = subscriptions.update(["a"])
    assert result.status is status
    assert ("may be cut off" in result.error) is (status is UpdateStatus.KEPT_BACK)
    assert subscriptions.update(["a"], force=True)[0].status is UpdateStatus.UPDATED


@pytest.mark.parametrize("end", [b"", b"5\r\nabc"])
def test_a_chunked_answer_that_breaks_off_is_an_error(server: ListServer, subscriptions: Subscriptions, end: bytes) -> None:
    def serve(handler: BaseHTTPRequestHandler) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(LIST), LIST) + end)

    subscriptions.add(server.serve("/a.txt", LIST + b"last.example\n"))
    server.answers["/a.txt"] = serve
    (result,) = subscriptions.update(["a"])
    assert result.status is UpdateStatus.FAILED
    assert "cut off" in result.error
    assert copy_of(subscriptions, "a") == LIST + b"last.example\n"


@pytest.mark.parametrize(("header", "least_s", "most_s"), [("5", 300, 330), ("7200", 7200, 7920), ("99999999", 604_800, 665_280)])
def test_a_server_is_left_alone_as_long_as_it_asks(
    server: ListServer, subscriptions: Subscriptions, clock: Clock, header: str, least_s: float, most_s: float
) -> None:
    subscriptions.add(server.serve("/a.txt", LIST))
    server.serve("/a.txt", b"", status=429, Retry_After=header)
    asked = len(server.requests)
    (result,) = subscriptions.update(["a"])
    assert result.status is UpdateStatus.FAILED
    assert len(server.requests) - asked == (3 if header == "5" else 1)
    assert least_s <= subscriptions.get("a").next_due_at - clock.now <= most_s
    server.serve("/a.txt", LIST + b"new.example\n")
    subscriptions.update(["a"])
    assert subscriptions.get("a").state.retry_after_s == 0


def test_waits_between_tries_grow_and_are_spread(server: ListServer, tmp_path: Path) -> None:
    waits: list[float] = []
    known = Subscriptions(tmp_path / "sources", SourceSettings(), BUNDLED, sleep=waits.append)
    server.serve("/a.txt", b"", status=503)
    for _ in range(8):
        with pytest.raises(SourceError, match="answers 503"):
            known.add(f"{server.base}/a.txt")
    first, second = waits[::2], waits[1::2]
    assert all(1 <= wait <= 1.5 for wait in first)
    assert all(2 <= wait <= 3 for wait in second)
    assert len(set(waits)) > 8


def test_progress_counts_bytes(server: ListServer, subscriptions: Subscriptions) -> None:
    steps: list[tuple[str, int, int]] = []
    subscriptions.add(server.serve("/a.txt", LIST), progress=lambda *step: steps.append(step))
    assert steps[-1] == ("downloading a", len(LIST), len(LIST))
