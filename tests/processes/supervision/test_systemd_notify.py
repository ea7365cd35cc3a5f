import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayfilter.processes.supervision.systemd_notify import ServiceManager


@pytest.fixture
def channel(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as found:
        found.bind(str(tmp_path / "notify"))
        found.settimeout(5)
        yield found


def test_it_says_how_it_is(channel: socket.socket) -> None:
    manager = ServiceManager({"NOTIFY_SOCKET": channel.getsockname(), "WATCHDOG_USEC": "3000000"})
    manager.ready("filtering on 127.0.0.1:8080")
    manager.alive()
    manager.stopping()
    said = [channel.recv(200) for _ in range(3)]
    assert said == [b"READY=1\nSTATUS=filtering on 127.0.0.1:8080\n", b"WATCHDOG=1\n", b"STOPPING=1\nSTATUS=draining\n"]
    assert manager.ping_every_s == 1.5


def test_abstract_sockets() -> None:
    name = f"gatewayfilter-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as found:
        found.bind(f"\0{name}")
        found.settimeout(5)
        ServiceManager({"NOTIFY_SOCKET": f"@{name}"}).ready("x")
        assert found.recv(100).startswith(b"READY=1")


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"NOTIFY_SOCKET": ""},
        {"NOTIFY_SOCKET": "/nowhere/at/all"},
        {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "soon"},
        {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"},
        {"WATCHDOG_USEC": "1000000"},
    ],
)
def test_nobody_to_tell(environ: dict[str, str]) -> None:
    manager = ServiceManager(environ)
    manager.ready("x")
    manager.alive()
    manager.stopping()
    assert manager.ping_every_s is None
