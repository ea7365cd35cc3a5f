"""A deadline and a bound of bytes for a whole operation on Redis, whatever the server sends how slowly.

The library bounds each wait for bytes: a server that sends one byte within each wait, or an endless answer, would hold its caller
for ever. Sockets of this module share what is left of the operation's time, and of its bytes.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from redis.connection import Connection, ConnectionPool, SSLConnection

MOST_BYTES: Final = 256 << 20
"""Of the answers of one operation: a look-up of 2,000 of the longest values has 64 MB."""


class OperationLimit(threading.local):
    """What is left of the operation of this thread.

    Args:
        most_bytes: of all answers of an operation.
        clock: monotonic seconds.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._most_bytes = most_bytes
        self._until: float | None = None
        self._bytes = most_bytes

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Bounds what is done meanwhile."""
        self._until, self._bytes = self._clock() + seconds, self._most_bytes
        try:
            yield
        finally:
            self._until = None

    def wait_s(self, wanted: float | None) -> float | None:
        """Returns how long a socket may wait: as wanted, or what is left.

        Raises:
            TimeoutError: nothing is left.
        """
        if self._until is None:
            return wanted
        left = self._until - self._clock()
        if left <= 0:
            raise TimeoutError("the operation took too long")
        return left if wanted is None else min(wanted, left)

    def received(self, size: int) -> None:
        """Counts bytes.

        Raises:
            TimeoutError: the answers of the operation are too long.
        """
        self._bytes -= size
        if self._until is not None and self._bytes < 0:
            raise TimeoutError("the answer is too long")


class BoundedSocket:
    """A connected socket whose waits end with the operation."""

    def __init__(self, connected: socket.socket, limit: OperationLimit) -> None:
        self._socket = connected
        self._limit = limit
        self._timeout_s = connected.gettimeout()

    def __getattr__(self, name: str) -> Any:
        """Everything else is the socket's own."""
        return getattr(self._socket, name)

    def settimeout(self, seconds: float | None) -> None:
        """Sets the longest single wait."""
        self._timeout_s = seconds

    def recv(self, size: int) -> bytes:
        """Returns what comes next.

        Raises:
            TimeoutError: see `OperationLimit`.
        """
        self._arm()
        found = self._socket.recv(size)
        self._limit.received(len(found))
        return found

    def recv_into(self, buffer: Any) -> int:
        """Likewise, into a buffer."""
        self._arm()
        count = self._socket.recv_into(buffer)
        self._limit.received(count)
        return count

    def sendall(self, data: bytes) -> None:
        """Sends all; the time is that of all bytes together.

        Raises:
            TimeoutError: see `OperationLimit`.
        """
        self._arm()
        self._socket.sendall(data)

    def _arm(self) -> None:
        self._socket.settimeout(self._limit.wait_s(self._timeout_s))


class _Bounded(Connection):
    def __init__(self, *, limit: OperationLimit, **options: Any) -> None:
        begin: Callable[..., None] = super().__init__
        begin(**options)
        self._limit = limit
        self._longest_s = self.socket_connect_timeout

    def _connect(self) -> Any:
        connect: Callable[[], socket.socket] = super()._connect
        self.socket_connect_timeout = self._limit.wait_s(self._longest_s)
        return BoundedSocket(connect(), self._limit)


class _BoundedTls(SSLConnection):
    def __init__(self, *, limit: OperationLimit, **options: Any) -> None:
        begin: Callable[..., None] = super().__init__
        begin(**options)
        self._limit = limit
        self._longest_s = self.socket_connect_timeout

    def _connect(self) -> Any:
        connect: Callable[[], socket.socket] = super()._connect
        self.socket_connect_timeout = self._limit.wait_s(self._longest_s)
        return BoundedSocket(connect(), self._limit)


class BoundedPools:
    """Makes pools of connections that end with the operation; what the library calls in place of its own class.

    Args:
        limit: of operations.
    """

    def __init__(self, limit: OperationLimit) -> None:
        self._limit = limit

    def __call__(self, **options: Any) -> ConnectionPool:
        """Returns a pool.

        Args:
            options: of the library's pool.
        """
        pool = ConnectionPool(**options)
        pool.connection_class = _BoundedTls if issubclass(pool.connection_class, SSLConnection) else _Bounded
        pool.connection_kwargs["limit"] = self._limit
        return pool
