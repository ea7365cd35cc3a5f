"""squid's end of a helper that hands its sockets over, and a daemon that takes them."""

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from gatewayfilter.integration.squid.channels import GO, HANDING_OVER, READY, HelperProtocol
from gatewayfilter.integration.squid.guard import Guard
from gatewayfilter.integration.squid.journal import Journal


class Squid:
    """squid's end of a helper, which runs in a thread."""

    def __init__(
        self, path: Path, *, allows: bool = False, timeout_s: float = 20, protocol: HelperProtocol = HelperProtocol.ACL
    ) -> None:
        self.end, helper = socket.socketpair()
        self.end.settimeout(20)
        self._helper = helper
        self.guard = Guard(
            str(path),
            protocol,
            allows=allows,
            timeout_s=timeout_s,
            source=helper.fileno(),
            target=helper.fileno(),
        )
        self.served: list[bool] = []
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        self.served.append(self.guard.run())
        self._helper.close()

    def read(self, lines: int = 1) -> list[bytes]:
        data = b""
        while data.count(b"\n") < lines:
            data += self.end.recv(65_536) or pytest.fail(f"squid's socket was closed after {data!r}")
        return data.splitlines()

    def close(self) -> None:
        self.end.close()
        self.thread.join(20)
        assert not self.thread.is_alive()


class Daemon:
    """A daemon that takes sockets, and then does what a test wants."""

    def __init__(self, path: Path) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.settimeout(20)
        self._listener.bind(str(path))
        self._listener.listen()

    def accept(self) -> tuple[socket.socket, list[int]]:
        control, _ = self._listener.accept()
        control.settimeout(20)
        greeting, descriptors, _, _ = socket.recv_fds(control, 100, 2)
        assert greeting == HANDING_OVER + b"acl\n"
        return control, descriptors

    def take(self) -> tuple[socket.socket, socket.socket, Journal]:
        control, descriptors = self.accept()
        os.close(descriptors[1])
        memory = Journal.create()
        socket.send_fds(control, [READY], [memory])
        journal = Journal(memory)
        os.close(memory)
        assert control.recv(100) == GO
        return control, socket.socket(fileno=descriptors[0]), journal

    def close(self) -> None:
        self._listener.close()


async def comes(state: Callable[[], bool]) -> None:
    """Returns when a state holds."""
    async with asyncio.timeout(20):
        for _ in iter(state, True):
            await asyncio.sleep(0.001)
