"""Change notifications of nftables over netlink: a flushed ruleset is noticed at once."""

import select
import socket
import struct
from collections.abc import Iterator
from typing import Final, Self

_NETFILTER: Final = 12
"""NETLINK_NETFILTER of linux/netlink.h, which Python's socket does not name."""
_GROUP: Final = 1 << 6
"""NFNLGRP_NFTABLES (7) of linux/netfilter/nfnetlink.h, as a bit."""
_DELETED_TABLE: Final = 10 << 8 | 2
"""NFNL_SUBSYS_NFTABLES, NFT_MSG_DELTABLE."""
_HEADER: Final = struct.Struct("=IHHII")
_MOST: Final = 65_536


class NetlinkMonitor:
    """A listener for changes of nftables tables in this network namespace.

    Where the kernel does not permit it, no change is reported and `wait` only waits: callers must poll as well.

    Args:
        line: socket for the kernel's datagrams, in place of its own.
    """

    def __init__(self, line: socket.socket | None = None) -> None:
        self._line = line if line is not None else _subscribed()
        if self._line is not None:
            self._line.setblocking(False)

    def wait(self, timeout_s: float) -> bool:
        """Waits until a table was deleted, or for `timeout_s`. Returns whether one was."""
        if self._line is None:
            select.select([], [], [], timeout_s)
            return False
        ready, _, _ = select.select([self._line], [], [], timeout_s)
        return bool(ready) and self._read(self._line)

    def _read(self, line: socket.socket) -> bool:
        deleted = False
        while True:
            try:
                deleted |= any(kind == _DELETED_TABLE for kind in kinds(line.recv(_MOST)))
            except BlockingIOError:
                return deleted
            except OSError:  # more notifications than the kernel keeps (ENOBUFS): some of it may have been this
                deleted = True

    def close(self) -> None:
        """Closes the socket."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _subscribed() -> socket.socket | None:
    try:
        line = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETFILTER)
    except (OSError, AttributeError):  # no Linux, or no such family in this sandbox
        return None
    try:
        line.bind((0, _GROUP))
    except OSError:  # not allowed
        line.close()
        return None
    return line


def kinds(datagram: bytes) -> Iterator[int]:
    """Yields the type of each message in a netlink datagram; a truncated one is ignored."""
    at = 0
    while at + _HEADER.size <= len(datagram):
        size, kind, *_ = _HEADER.unpack_from(datagram, at)
        if size < _HEADER.size:
            return
        yield kind
        at += (size + 3) & ~3
