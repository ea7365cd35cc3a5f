"""How a helper guards a daemon that has squid's sockets: when it offers them, how long it waits, when it goes on alone."""

import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from gatewayfilter.integration.squid import guard
from gatewayfilter.integration.squid.channels import GO, LONGEST_LINE, READY
from gatewayfilter.integration.squid.journal import Journal
from tests.integration.squid.squid_ends import Daemon, Squid

X = b" a - GET http://x.test/\n"


class Clock:
    """Monotonic seconds that stand still until a test sets them; counts the looks at them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.looks = 0
        monkeypatch.setattr(guard, "time", SimpleNamespace(monotonic=self.monotonic))

    def monotonic(self) -> float:
        self.looks += 1
        return self.now

    def set(self, now: float) -> None:
        """Sets the time, and returns when the guard has looked at it a few times."""
        self.now, looks = now, self.looks
        _until(lambda: self.looks > looks + 3)


def _until(state: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not state():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_daemon_that_is_away_is_offered_the_sockets_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, squid = Clock(monkeypatch), Squid(tmp_path / "d.sock")
    squid.thread.start()
    squid.end.sendall(b"1" + X)
    assert squid.read() == [b"1 ERR message=failure"]
    daemon = Daemon(tmp_path / "d.sock")
    clock.now = 100.9
    squid.end.sendall(b"2" + X)
    assert squid.read() == [b"2 ERR message=failure"]
    clock.now = 101.0
    squid.end.sendall(b"3" + X)
    control, requests, _ = daemon.take()
    assert requests.recv(100) == b"3" + X
    clock.now = 105.0
    control.close()
    squid.end.sendall(b"4" + X)
    assert squid.read() == [b"4 ERR message=failure"], "it has only just ended"
    requests.close()
    daemon.close()
    squid.close()


def test_requests_wait_for_a_daemon_as_long_as_they_may(tmp_path: Path, daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, squid = Clock(monkeypatch), Squid(tmp_path / "d.sock", timeout_s=0.0625)
    squid.thread.start()
    control, _ = daemon.accept()
    squid.end.sendall(b"1" + X)
    clock.now = 100.0625
    assert squid.read() == [b"1 ERR message=failure"]
    assert control.recv(10) == b""
    squid.close()


def test_a_daemon_may_take_as_long_as_a_request_may_wait(tmp_path: Path, daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_LOOKS", 4_000)
    clock, squid = Clock(monkeypatch), Squid(tmp_path / "d.sock", timeout_s=4.0)
    squid.thread.start()
    control, requests, journal = daemon.take()
    clock.set(150.0)  # it has nothing to do
    squid.end.sendall(b"1" + X)
    requests.recv_into(journal.room(0))
    clock.set(150.0)
    clock.set(154.0)
    assert not journal.revoked
    clock.now = 154.1
    assert squid.read() == [b"1 ERR message=failure"]
    control.close()
    requests.close()
    squid.close()


@pytest.mark.usefixtures("quick")
def test_a_daemon_that_hung_is_found_again_though_squid_asks_nothing(daemon: Daemon, squid: Squid) -> None:
    squid.thread.start()
    left, _, _ = daemon.take()
    squid.guard._timeout_s = 0.05
    squid.end.sendall(b"1" + X)
    assert squid.read() == [b"1 ERR message=failure"]
    squid.guard._timeout_s = 20
    assert left.recv(10) == b""
    _, requests, _ = daemon.take()
    assert requests.fileno() >= 0


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("ends", [False, True])
def test_a_daemon_that_hung_and_does_not_take_the_sockets_again_is_left(ends: bool, tmp_path: Path, daemon: Daemon) -> None:  # noqa: FBT001  a case
    squid = Squid(tmp_path / "d.sock", timeout_s=0.05)
    squid.thread.start()
    first, _ = daemon.accept()
    squid.end.sendall(b"1" + X)
    assert squid.read() == [b"1 ERR message=failure"]
    squid.guard._timeout_s = 20
    assert first.recv(10) == b""
    second, _ = daemon.accept()
    if ends:
        second.close()
        squid.end.sendall(b"2" + X)
        assert squid.read() == [b"2 ERR message=failure"]
    squid.close()
    assert squid.served == [True]
    assert ends or second.recv(10) == b"", "though the helper's process may go on"


@pytest.mark.parametrize(("said", "descriptors"), [(READY, 0), (b"later\n", 1), (b"later\n", 0)])
def test_a_daemon_of_another_release_is_left(said: bytes, descriptors: int, daemon: Daemon, squid: Squid) -> None:
    squid.thread.start()
    control, _ = daemon.accept()
    memory = Journal.create()
    socket.send_fds(control, [said], [memory] * descriptors)
    assert control.recv(10) == b""
    assert _open_as(memory) == 1, "only the test's own"
    os.close(memory)
    squid.end.sendall(b"1" + X)
    assert squid.read() == [b"1 ERR message=failure"]


def test_the_memory_that_a_daemon_shares_is_open_once(daemon: Daemon, squid: Squid) -> None:
    squid.thread.start()
    control, _ = daemon.accept()
    memory = Journal.create()
    socket.send_fds(control, [READY], [memory])
    assert control.recv(10) == GO
    assert _open_as(memory) == 2, "the test's own, and that of the mapping"
    os.close(memory)


def _open_as(descriptor: int) -> int:
    """How many of this process's descriptors are of the same file."""
    wanted, found = os.fstat(descriptor), 0
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # that of the listing is closed
            found += os.path.samestat(one.stat(), wanted)
    return found


def test_the_longest_line_is_answered_as_set(tmp_path: Path) -> None:
    squid = Squid(tmp_path / "nobody.sock", allows=True)
    squid.thread.start()
    squid.end.sendall(b"1 " + b"x" * (LONGEST_LINE - 2) + b"\n2 " + b"x" * (LONGEST_LINE - 1) + b"\n")
    assert squid.read(2) == [b"1 OK", b"2 ERR message=failure"]
    squid.close()
