"""The helper that squid starts: passes lines on, answers by itself without a daemon, and keeps what may be kept."""

import fcntl
import os
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.integration.squid import helper
from gatewayfilter.integration.squid.channels import GREETING, LONGEST_LINE, AnswerCache, HelperProtocol
from gatewayfilter.integration.squid.helper import Helper, helper_command


class Pipes:
    """squid's ends of a helper, which runs in a thread, and the daemon's socket."""

    def __init__(self, path: Path, *, allows: bool, protocol: HelperProtocol = HelperProtocol.ACL, timeout_s: float = 20) -> None:
        self.path = path
        requests, self.to_helper = os.pipe()
        self.from_helper, answers = os.pipe()
        self.helper = Helper(str(path), protocol, allows=allows, timeout_s=timeout_s, source=requests, target=answers)
        self.thread = threading.Thread(target=self.helper.run, daemon=True)
        self.listener: socket.socket | None = None
        self._fds = (requests, answers)

    def listen(self) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.settimeout(20)
        self.listener.bind(str(self.path))
        self.listener.listen()

    def accept(self) -> socket.socket:
        assert self.listener is not None
        connection, _ = self.listener.accept()
        connection.settimeout(20)
        return connection

    def ask(self, lines: bytes) -> None:
        os.write(self.to_helper, lines)

    def answer(self) -> bytes:
        return os.read(self.from_helper, 65_536)

    def unread(self) -> int:
        """How many bytes of requests the helper has not read."""
        size = fcntl.ioctl(self._fds[0], termios.FIONREAD, bytes(4))
        return int.from_bytes(size, sys.byteorder)

    def end(self) -> None:
        os.close(self.to_helper)
        self.thread.join(20)
        assert not self.thread.is_alive()
        for fd in (self.from_helper, *self._fds):
            os.close(fd)
        if self.listener is not None:
            self.listener.close()


@pytest.fixture
def pipes(tmp_path: Path) -> Iterator[Pipes]:
    made = Pipes(tmp_path / "d.sock", allows=False)
    made.thread.start()
    yield made
    made.end()


def test_lines_and_answers_pass_and_answers_are_kept_as_long_as_they_may(pipes: Pipes) -> None:
    pipes.listen()
    pipes.ask(b"1 a - GET http://x.test/\n2 a - GET http://y.te")
    daemon = pipes.accept()
    assert _read(daemon, b"x.test/\n") == GREETING + b"acl\n1 a - GET http://x.test/\n"
    pipes.ask(b"st/\n")
    assert _read(daemon, b"y.test/\n") == b"2 a - GET http://y.test/\n"
    daemon.sendall(b"2 OK ttl=60\n1 E")
    assert pipes.answer() == b"2 OK ttl=60\n"
    daemon.sendall(b"RR message=blacklist\n")
    assert pipes.answer() == b"1 ERR message=blacklist\n"
    pipes.ask(b"7 a - GET http://y.test/\n")
    assert pipes.answer().startswith(b"7 OK ttl=")
    pipes.ask(b"8 a - GET http://z.test/\n")
    assert _read(daemon, b"z.test/\n") == b"8 a - GET http://z.test/\n", "what is kept is not asked again"
    daemon.close()


def test_without_a_daemon_and_when_it_ends_the_helper_answers(pipes: Pipes) -> None:
    pipes.ask(b"1 a - GET http://x.test/\na - GET http://y.test/\n")
    assert pipes.answer() == b"1 ERR message=failure\nERR message=failure\n"


def test_what_a_daemon_leaves_open_is_answered_when_it_ends(tmp_path: Path) -> None:
    pipes = Pipes(tmp_path / "d.sock", allows=True, protocol=HelperProtocol.REWRITE)
    pipes.listen()
    pipes.thread.start()
    pipes.ask(b"5 http://x.test/ a/- - GET\n")
    daemon = pipes.accept()
    _read(daemon, b"GET\n")
    daemon.close()
    assert pipes.answer() == b"5 ERR\n"
    pipes.end()


def test_what_a_daemon_answers_before_it_ends_is_the_answer(tmp_path: Path) -> None:
    pipes = Pipes(tmp_path / "d.sock", allows=False)
    pipes.listen()
    pipes.ask(b"1 a - GET http://x.test/\n2 a - GET http://y.test/\n")
    assert pipes.helper._take_requests()
    daemon = pipes.accept()
    _read(daemon, b"y.test/\n")
    daemon.sendall(b"1 OK\n")
    daemon.close()  # before the helper looks again
    pipes.thread.start()
    assert _read_pipe(pipes, 2) == [b"1 OK", b"2 ERR message=failure"]
    pipes.end()


def test_a_daemon_that_hangs_is_given_up(tmp_path: Path) -> None:
    pipes = Pipes(tmp_path / "d.sock", allows=True, timeout_s=0.05)
    pipes.listen()
    pipes.thread.start()
    pipes.ask(b"a - GET http://x.test/\n")
    assert pipes.answer() == b"OK\n"
    pipes.end()


def test_a_line_without_an_end_is_refused_and_passed_over(pipes: Pipes) -> None:
    pipes.listen()
    threading.Thread(target=pipes.ask, args=(b"3 " + b"x" * (LONGEST_LINE + 100_000) + b"\n4 a - GET http://x.test/\n",)).start()
    assert pipes.answer() == b"3 ERR message=failure\n"
    daemon = pipes.accept()
    assert _read(daemon, b"x.test/\n") == GREETING + b"acl\n4 a - GET http://x.test/\n"
    daemon.sendall(b"4 OK\n")
    assert pipes.answer() == b"4 OK\n"
    daemon.close()


def test_answers_without_channels_are_those_of_the_oldest_requests(pipes: Pipes) -> None:
    pipes.listen()
    pipes.ask(b"a - GET http://x.test/\na - GET http://y.test/\n")
    daemon = pipes.accept()
    _read(daemon, b"y.test/\n")
    daemon.sendall(b"9 OK ttl=60\nOK ttl=60\nERR message=no ttl=60\nOK ttl=60\n")  # the first one and the last were not asked
    _read_pipe(pipes, 4)
    pipes.ask(b"7 a - GET http://y.test/\n8 a - GET http://x.test/\n")
    answers = _read_pipe(pipes, 2)
    assert answers[0].startswith(b"7 ERR message=no ttl=")
    assert answers[1].startswith(b"8 OK ttl=")
    daemon.close()


def test_what_a_daemon_had_said_of_an_answer_is_forgotten_with_it(pipes: Pipes) -> None:
    pipes.listen()
    for number in (b"1", b"2"):
        pipes.ask(number + b" a - GET http://x.test/\n")
        daemon = pipes.accept()
        assert _read(daemon, b"x.test/\n") == GREETING + b"acl\n" + number + b" a - GET http://x.test/\n"
        daemon.sendall(number + b" OK and the beginning of more")
        daemon.close()
        assert _read_pipe(pipes, 1) == [number + b" ERR message=failure"]
        pipes.helper._again_at = 0.0


def test_a_daemon_that_is_away_is_tried_again_after_a_second(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(helper, "time", SimpleNamespace(monotonic=lambda: now[0]))
    pipes.ask(b"1 a - GET http://x.test/\n")
    _read_pipe(pipes, 1)
    pipes.listen()
    now[0] = 100.9
    pipes.ask(b"2 a - GET http://x.test/\n")
    assert _read_pipe(pipes, 1) == [b"2 ERR message=failure"]
    now[0] = 101.0
    pipes.ask(b"3 a - GET http://x.test/\n4 a - GET http://y.test/\n")
    daemon = pipes.accept()
    _read(daemon, b"y.test/\n")
    daemon.sendall(b"4 OK\n3 OK\n")
    assert _read_pipe(pipes, 2) == [b"4 OK", b"3 OK"]
    daemon.close()


def test_a_daemon_that_has_ended_is_tried_again_after_a_second(pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(helper, "time", SimpleNamespace(monotonic=lambda: now[0]))
    pipes.listen()
    pipes.ask(b"1 a - GET http://x.test/\n")
    pipes.accept().close()
    assert _read_pipe(pipes, 1) == [b"1 ERR message=failure"]
    now[0] = 100.9
    pipes.ask(b"2 a - GET http://x.test/\n")
    assert _read_pipe(pipes, 1) == [b"2 ERR message=failure"]
    now[0] = 101.0
    pipes.ask(b"3 a - GET http://x.test/\n")
    daemon = pipes.accept()
    assert _read(daemon, b"x.test/\n") == GREETING + b"acl\n3 a - GET http://x.test/\n"
    daemon.sendall(b"3 OK\n")
    assert _read_pipe(pipes, 1) == [b"3 OK"]
    daemon.close()


def test_a_request_may_wait_as_long_as_is_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, looks = [100.0], [0]

    def monotonic() -> float:
        looks[0] += 1
        return now[0]

    monkeypatch.setattr(helper, "time", SimpleNamespace(monotonic=monotonic))
    pipes = Pipes(tmp_path / "d.sock", allows=False, timeout_s=4.0)
    pipes.listen()
    pipes.thread.start()
    pipes.ask(b"1 a - GET http://x.test/\n")
    daemon = pipes.accept()
    _read(daemon, b"x.test/\n")
    now[0], seen = 104.0, looks[0]
    while looks[0] < seen + 2:
        time.sleep(0.001)
    daemon.sendall(b"1 OK\n")
    assert _read_pipe(pipes, 1) == [b"1 OK"]
    pipes.end()
    assert daemon.recv(10) == b"", "the connection ends with the helper"


class _Stuck(socket.socket):
    """A socket of a daemon that takes nothing until it is told to."""

    takes = False
    tries = 0

    def send(self, *arguments: Any) -> int:
        type(self).tries += 1
        if not self.takes:
            raise BlockingIOError
        return super().send(*arguments)


@pytest.mark.parametrize("room", [0, 1])
def test_squid_waits_where_too_much_waits_for_the_daemon(room: int, pipes: Pipes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Stuck, "takes", False)
    monkeypatch.setattr(helper, "socket", SimpleNamespace(socket=_Stuck, AF_UNIX=socket.AF_UNIX, SOCK_STREAM=socket.SOCK_STREAM))
    lines = b"1 a - GET http://x.test/\n", b"2 a - GET http://x.test/\n"
    monkeypatch.setattr(helper, "_MOST_UNSENT", len(GREETING + b"acl\n" + lines[0]) + room)
    pipes.listen()
    pipes.ask(lines[0])
    daemon = pipes.accept()
    _until(lambda: not pipes.unread())
    pipes.ask(lines[1])
    if room:
        _until(lambda: not pipes.unread())
    else:
        tries = _Stuck.tries
        _until(lambda: _Stuck.tries > tries + 3)
        assert pipes.unread() == len(lines[1])
    monkeypatch.setattr(_Stuck, "takes", True)
    assert _read(daemon, b"2 a - GET http://x.test/\n") == GREETING + b"acl\n" + b"".join(lines)
    daemon.sendall(b"2 OK\n1 OK\n")
    assert _read_pipe(pipes, 2) == [b"2 OK", b"1 OK"]
    daemon.close()


def _until(state: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not state():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_all_that_waits_is_answered_when_the_oldest_request_is_late(tmp_path: Path) -> None:
    for first, second in ((b"5 a - GET http://x.test/\n", b"a - GET http://y.test/\n"), (b"a - GET /\n", b"5 a - GET /\n")):
        pipes = Pipes(tmp_path / "d.sock", allows=True, timeout_s=0.05)
        pipes.listen()
        pipes.thread.start()
        pipes.ask(first)
        pipes.ask(second)
        assert sorted(_read_pipe(pipes, 2)) == [b"5 OK", b"OK"]
        pipes.end()
        (tmp_path / "d.sock").unlink()


def test_the_longest_line_is_passed_on(pipes: Pipes) -> None:
    pipes.listen()
    line = b"3 " + b"x" * (LONGEST_LINE - 2)
    threading.Thread(target=pipes.ask, args=(line + b"\n",)).start()
    daemon = pipes.accept()
    assert _read(daemon, b"x\n") == GREETING + b"acl\n" + line + b"\n"
    daemon.sendall(b"3 OK\n")
    assert _read_pipe(pipes, 1) == [b"3 OK"]
    daemon.close()


def _read_pipe(pipes: Pipes, lines: int) -> list[bytes]:
    data = b""
    while data.count(b"\n") < lines:
        data += pipes.answer()
    return data.splitlines()


def test_kept_answers_are_bounded_and_end() -> None:
    cache = AnswerCache()
    for number in range(5_000):
        cache.put(b"%d" % number, b"OK ttl=10\n", 100.0)
    cache.put(b"x", b"OK\n", 100.0)
    cache.put(b"y", b"OK ttl=ever\n", 100.0)
    cache.put(b"z" * 5_000, b"OK ttl=10\n", 100.0)
    assert [cache.get(key, 105.0) for key in (b"0", b"4999", b"x", b"y", b"z" * 5_000)] == [
        None,
        b"OK ttl=5\n",
        None,
        None,
        None,
    ]
    assert cache.get(b"4999", 108.5) == b"OK ttl=1\n"
    assert cache.get(b"4999", 109.5) is None
    assert cache.get(b"4999", 105.0) is None


def test_the_process_imports_the_standard_library_alone(tmp_path: Path) -> None:
    command = helper_command(tmp_path / "nobody.sock", "acl", "block", "", 2000)
    assert command[1:4] == ["-I", "-m", "gatewayfilter.integration.squid.helper"]
    program = (
        "import sys; from gatewayfilter.integration.squid import helper; helper.main(sys.argv[1:]); "
        "print([name for name in sys.modules if name.startswith(('pydantic', 'gatewayfilter'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *command[4:]],
        input=b"1 a - GET http://x.test/\n",
        capture_output=True,
        check=True,
    )
    answer, modules = done.stdout.decode().splitlines()
    assert answer == "1 ERR message=failure"
    assert modules.count("gatewayfilter") == 7
    assert "pydantic" not in modules


def _read(connection: socket.socket, end: bytes) -> bytes:
    data = b""
    while not data.endswith(end):
        data += connection.recv(65_536)
    return data
