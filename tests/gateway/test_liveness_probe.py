"""Whether the filter answers, asked of sockets that do what workers do."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from gatewayfilter.gateway.liveness_probe import LINES, LivenessProbe
from tests.held_ports import HOST, hold_port, port_of

SHORT_S = 0.3


@contextmanager
def worker(port: int = 0, *, says: bytes | None = None) -> Iterator[int]:
    """Listens; with `says` answers that and closes, without never accepts. Several share a port."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
        if says is not None:
            answer = says

            def serve() -> None:
                while True:
                    try:
                        line, _ = listener.accept()
                    except OSError:
                        return
                    with line:
                        line.recv(4096)
                        line.sendall(answer)

            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            stack.callback(thread.join, 10)
            stack.callback(listener.shutdown, socket.SHUT_RDWR)
        yield int(listener.getsockname()[1])


@pytest.mark.parametrize("says", [b"HTTP/1.1 200 OK\r\n\r\n", b""])
def test_an_answer_or_an_end_is_a_sign_of_life(says: bytes) -> None:
    with worker(says=says) as port:
        assert LivenessProbe(f"127.0.0.1:{port}")() is True
        assert LivenessProbe(f"0.0.0.0:{port}")() is True
        assert LivenessProbe(f"127.0.0.1:{port}", 0.9)() is True


def test_who_only_has_connections_accepted_by_the_kernel_does_not_answer() -> None:
    with worker() as port:
        assert LivenessProbe(f"127.0.0.1:{port}", SHORT_S)() is False


def test_nobody_listens() -> None:
    with hold_port() as held:
        port = port_of(held)
        assert LivenessProbe(f"{HOST}:{port}", 3_600.0)() is False  # at once, however long it may take
        assert LivenessProbe(f"[::1]:{port}", 3_600.0)() is False


@pytest.mark.parametrize(
    ("answers", "asked", "found"),
    [([True], [1], True), ([False, True], [1, LINES], True), ([False, False], [1, LINES], False)],
)
def test_more_lines_are_tried_when_one_gets_no_answer(
    monkeypatch: pytest.MonkeyPatch, answers: list[bool], asked: list[int], *, found: bool
) -> None:
    tried: list[int] = []

    def ask(_: LivenessProbe, lines: int) -> bool:
        tried.append(lines)
        return answers[len(tried) - 1]

    monkeypatch.setattr(LivenessProbe, "_ask", ask)
    assert LivenessProbe("127.0.0.1:1")() is found
    assert tried == asked


@pytest.mark.slow
def test_one_worker_that_serves_is_found_beside_one_that_hangs() -> None:
    with worker() as port, worker(port, says=b"x"):
        asked = [LivenessProbe(f"127.0.0.1:{port}", 1.5)() for _ in range(6)]
    assert sum(asked) >= 4  # each misses it once in 512 times
