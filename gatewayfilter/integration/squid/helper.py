"""The helper process that squid starts: hands squid's sockets to the daemon, or passes requests and answers on.

It imports the standard library alone, so that it starts in some 50 ms and takes little memory; the daemon has the engine once
for all helpers. squid talks to its helpers over sockets, which the daemon can use itself (`guard.py`). Where there are pipes, or
the daemon cannot take sockets, whole chunks of lines are passed to it over its own socket, as this module does. While the daemon
is away, hangs, or ends over a request, the helper answers by itself: allowed or blocked, as it was told.
"""

import argparse
import os
import select
import socket
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Final

from gatewayfilter.integration.squid.channels import (
    GREETING,
    LONGEST_LINE,
    AnswerCache,
    HelperProtocol,
    RequestLines,
    failure_answer,
    split_channel,
    write_all,
)
from gatewayfilter.integration.squid.guard import Guard, can_hand_over

_CHUNK: Final = 65_536
_AGAIN_S: Final = 1.0
"""Between two tries to reach a daemon that is away."""
_MOST_UNSENT: Final = 1_000_000
"""Bytes that wait for the daemon; then squid waits."""


class Helper:
    """Passes lines between squid and the daemon.

    Args:
        path: the daemon's socket.
        protocol: which of squid's interfaces.
        allows: whether requests are allowed on which the daemon gives no answer.
        block_url: the block page of `rewrite`.
        timeout_s: how long a request may wait for its answer.
        source, target: descriptors of squid's requests and of the answers.
        lines: with what of a request was read already.
    """

    def __init__(
        self,
        path: str,
        protocol: HelperProtocol,
        *,
        allows: bool,
        block_url: str = "",
        timeout_s: float = 2.0,
        source: int = 0,
        target: int = 1,
        lines: RequestLines | None = None,
    ) -> None:
        self._path = path
        self._protocol = protocol
        self._allows = allows
        self._block_url = block_url
        self._timeout_s = timeout_s
        self._source = source
        self._target = target
        self._daemon: socket.socket | None = None
        self._again_at = 0.0
        self._unsent = b""
        self._lines = lines or RequestLines()
        self._answers = b""
        # Requests at the daemon: by channel, and without one in their order.
        self._waiting: dict[bytes, tuple[float, bytes]] = {}
        self._in_order: deque[tuple[float, bytes]] = deque()
        self._cache = AnswerCache()

    def run(self) -> None:
        """Serves until squid closes the requests, then answers what is under way."""
        open_ = True
        while open_ or self._waits():
            readable, writable = self._poll(requests=open_ and len(self._unsent) < _MOST_UNSENT)
            if self._daemon is not None and self._daemon.fileno() in writable:
                self._send()
            if self._daemon is not None and self._daemon.fileno() in readable:
                self._take_answers()
            if self._source in readable:
                open_ = self._take_requests()
            self._give_up_late()
        if self._daemon is not None:
            self._daemon.close()

    def _waits(self) -> bool:
        return bool(self._waiting or self._in_order)

    def _poll(self, *, requests: bool) -> tuple[set[int], set[int]]:
        poll = select.poll()
        if requests:
            poll.register(self._source, select.POLLIN)
        if self._daemon is not None:
            poll.register(self._daemon, select.POLLIN | (select.POLLOUT if self._unsent else 0))
        found = poll.poll(100 if self._waits() else None)
        readable = {fd for fd, event in found if event & ~select.POLLOUT}
        return readable, {fd for fd, event in found if event & select.POLLOUT}

    def _take_requests(self) -> bool:
        data = os.read(self._source, _CHUNK)
        if not data:
            return False
        now = time.monotonic()
        ours: list[bytes] = []
        passed = [line for line in self._lines.cut(data) if not self._answer_here(line, now, ours)]
        if ours:
            write_all(self._target, b"".join(ours))
        if passed:
            self._unsent += b"\n".join(passed) + b"\n"
            self._send()
        return True

    def _answer_here(self, line: bytes, now: float, ours: list[bytes]) -> bool:
        """Returns whether a request is answered without the daemon; else it is noted as passed on."""
        channel, key = split_channel(line)
        if len(line) > LONGEST_LINE:
            ours.append(self._fail(channel, allows=False))
            return True
        cached = self._cache.get(key, now)
        if cached is not None:
            ours.append(channel + cached)
            return True
        if self._daemon is None and not self._connect(now):
            ours.append(self._fail(channel, allows=self._allows))
            return True
        if channel:
            self._waiting[channel] = now, key
        else:
            self._in_order.append((now, key))
        return False

    def _take_answers(self) -> None:
        assert self._daemon is not None
        try:
            data = self._daemon.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose_daemon()
            return
        whole, newline, self._answers = (self._answers + data).rpartition(b"\n")
        if not newline:
            return
        now = time.monotonic()
        for line in whole.split(b"\n"):
            channel, answer = split_channel(line)
            asked = self._waiting.pop(channel, None) if channel else self._in_order.popleft() if self._in_order else None
            if asked is not None and b" ttl=" in answer:
                self._cache.put(asked[1], answer + b"\n", now)
        write_all(self._target, whole + b"\n")

    def _give_up_late(self) -> None:
        oldest = min(
            next(iter(self._waiting.values()))[0] if self._waiting else float("inf"),
            self._in_order[0][0] if self._in_order else float("inf"),
        )
        if time.monotonic() - oldest > self._timeout_s:
            self._lose_daemon()

    def _connect(self, now: float) -> bool:
        if now < self._again_at:
            return False
        self._again_at = now + _AGAIN_S
        daemon = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        daemon.setblocking(False)
        try:
            daemon.connect(self._path)
        except OSError:
            daemon.close()
            return False
        self._daemon = daemon
        self._unsent = GREETING + self._protocol.value.encode() + b"\n"
        return True

    def _send(self) -> None:
        if self._daemon is None:
            return
        try:
            sent = self._daemon.send(self._unsent)
        except BlockingIOError:
            return
        except OSError:
            self._lose_daemon()
            return
        self._unsent = self._unsent[sent:]

    def _lose_daemon(self) -> None:
        """Ends the connection, and answers what was asked over it."""
        if self._daemon is not None:
            self._daemon.close()
        self._daemon, self._unsent, self._answers = None, b"", b""
        self._again_at = time.monotonic() + _AGAIN_S
        channels = [*self._waiting, *(b"" for _ in self._in_order)]
        self._waiting.clear()
        self._in_order.clear()
        if channels:
            write_all(self._target, b"".join(self._fail(channel, allows=self._allows) for channel in channels))

    def _fail(self, channel: bytes, *, allows: bool) -> bytes:
        return failure_answer(self._protocol, channel, self._block_url, allows=allows)


def main(arguments: list[str] | None = None) -> int:
    """Runs a helper until squid ends it."""
    parser = argparse.ArgumentParser(prog="gatewayfilter helper squid")
    parser.add_argument("--socket", required=True)
    parser.add_argument("--protocol", choices=[protocol.value for protocol in HelperProtocol], default="acl")
    parser.add_argument("--on-error", choices=["allow", "block"], default="allow")
    parser.add_argument("--block-url", default="")
    parser.add_argument("--timeout-ms", type=int, default=2000)
    given = parser.parse_args(arguments)
    protocol, allows, timeout_s = HelperProtocol(given.protocol), given.on_error == "allow", given.timeout_ms / 1000
    lines = RequestLines()
    with suppress(BrokenPipeError, ConnectionResetError, KeyboardInterrupt):  # squid has ended
        if can_hand_over(0, 1):
            guard = Guard(given.socket, protocol, allows=allows, block_url=given.block_url, timeout_s=timeout_s)
            if guard.run():
                return 0
            lines = guard.lines
        Helper(given.socket, protocol, allows=allows, block_url=given.block_url, timeout_s=timeout_s, lines=lines).run()
    return 0


def helper_command(path: Path, protocol: str, on_error: str, block_url: str, timeout_ms: int) -> list[str]:
    """Returns the command line of a helper process."""
    return [
        sys.executable,
        "-I",
        "-m",
        "gatewayfilter.integration.squid.helper",
        f"--socket={path}",
        f"--protocol={protocol}",
        f"--on-error={on_error}",
        f"--block-url={block_url}",
        f"--timeout-ms={timeout_ms}",
    ]


if __name__ == "__main__":
    sys.exit(main())
