"""Liveness probe of the filter's port. A hanging worker still listens: the kernel accepts connections that are not served."""

import selectors
import socket
import time
from contextlib import ExitStack
from typing import Final

from gatewayfilter.config import split_address

_REQUEST: Final = b"GET / HTTP/1.1\r\nHost: gatewayfilter.internal\r\nConnection: close\r\n\r\n"
"""Any answer counts, also a close: in transparent mode the filter closes connections that were not redirected."""
_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  compared, not listened on
WAIT_S: Final = 2.0
LINES: Final = 8
"""Connections that are tried when the first gets no answer: the kernel spreads them over the workers, and a hanging worker gets
only its share. With one worker of two serving, all eight miss it once in 256 times."""


class LivenessProbe:
    """A probe of the filter over loopback.

    Args:
        listen: the filter's address, `HOST:PORT`.
        wait_s: maximum time for an answer.
    """

    def __init__(self, listen: str, wait_s: float = WAIT_S) -> None:
        host, self._port = split_address(listen)
        self._host = _ANY.get(host, host)
        self._wait_s = wait_s

    def __call__(self) -> bool:
        """Returns whether any worker answers, after `wait_s` at most twice."""
        return self._ask(1) or self._ask(LINES)

    def _ask(self, lines: int) -> bool:
        until = time.monotonic() + self._wait_s
        with ExitStack() as stack, selectors.DefaultSelector() as waiting:
            for _ in range(lines):
                line = stack.enter_context(socket.socket(socket.AF_INET6 if ":" in self._host else socket.AF_INET))
                line.setblocking(False)
                line.connect_ex((self._host, self._port))
                waiting.register(line, selectors.EVENT_WRITE)
            while waiting.get_map() and (left_s := until - time.monotonic()) > 0:
                for key, ready in waiting.select(left_s):
                    if ready & selectors.EVENT_READ:
                        return True
                    if _sent(key.fileobj):
                        waiting.modify(key.fileobj, selectors.EVENT_READ)
                    else:
                        waiting.unregister(key.fileobj)
        return False


def _sent(line: object) -> bool:
    assert isinstance(line, socket.socket)
    try:
        line.send(_REQUEST)
    except OSError:  # nothing listens there
        return False
    return True
