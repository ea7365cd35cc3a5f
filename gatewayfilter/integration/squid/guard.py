"""The helper process where it hands squid's own sockets to the daemon, which then reads requests and writes answers by itself.

A question costs one wake-up less, and no copy. The helper keeps the sockets too, and waits beside: when the daemon ends, it
answers what is in the `Journal` and all that comes until there is a daemon again. Nothing that was read gets lost, because the
kernel puts requests where both processes see them. A daemon that answers nothing for as long as a request may wait is left as
well. When it goes on after that, squid drops what it answers: the numbers of channels are not used again.

Where that cannot be told apart, because squid sends no channels, has a part of an answer, or the daemon hangs while it reads
requests, the process shuts the sockets down, which a daemon that hangs has open as well, and ends: squid starts another one and
asks again.
"""

import os
import select
import socket
import stat
import time
from contextlib import suppress
from typing import Final

from gatewayfilter.integration.squid.channels import (
    GO,
    HANDING_OVER,
    LONGEST_LINE,
    READY,
    HelperProtocol,
    RequestLines,
    failure_answer,
    split_channel,
    write_all,
)
from gatewayfilter.integration.squid.journal import Journal

_CHUNK: Final = 65_536
_AGAIN_S: Final = 1.0
"""Between two tries to reach a daemon that is away."""
_LOOKS: Final = 4
"""How often it looks after the daemon in the time that a request may wait."""
_ENDING_S: Final = 0.5
"""How long a daemon that hangs amid a read may take to end, when the requests are taken back from it."""


def can_hand_over(*descriptors: int) -> bool:
    """Returns whether these are sockets, which a daemon can use without waiting for anything."""
    return all(stat.S_ISSOCK(os.fstat(descriptor).st_mode) for descriptor in descriptors)


class Guard:
    """Hands squid's sockets over, and serves by itself while no daemon does.

    Args:
        path: the daemon's socket.
        protocol: which of squid's interfaces.
        allows: whether requests are allowed on which the daemon gives no answer.
        block_url: the block page of `rewrite`.
        timeout_s: how long a request may wait for its answer.
        source, target: descriptors of squid's requests and of the answers.

    Attributes:
        lines: with the beginning of a request, where `run` ends before all are answered.
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
    ) -> None:
        self._path = path
        self._protocol = protocol
        self._allows = allows
        self._block_url = block_url
        self._timeout_s = timeout_s
        self._source = source
        self._target = target
        self._daemon: socket.socket | None = None
        self._journal: Journal | None = None
        self._again_at = 0.0
        self._give_up_at = 0.0
        self._hung = False
        self._open = True
        self.lines = RequestLines()

    def run(self) -> bool:
        """Serves until squid closes the requests. Returns false where the daemon takes no sockets: pass lines on."""
        self._offer(time.monotonic())
        while self._open:
            if self._journal is not None:
                self._watch(self._journal)
            elif not self._serve_alone():
                return False
        if self._daemon is not None:
            self._daemon.close()
        return True

    def _offer(self, now: float) -> bool:
        """Offers the sockets to the daemon. Returns whether it was reached."""
        self._again_at, self._give_up_at = now + _AGAIN_S, now + self._timeout_s
        daemon = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        daemon.setblocking(False)
        try:
            daemon.connect(self._path)
            socket.send_fds(daemon, [HANDING_OVER + self._protocol.value.encode() + b"\n"], [self._source, self._target])
        except OSError:
            daemon.close()
            return False
        self._daemon = daemon
        return True

    def _serve_alone(self) -> bool:
        """Waits for the daemon, or for requests, and answers these. Returns false where the daemon takes no sockets."""
        poll = select.poll()
        holds = self._daemon is not None and not self._hung  # the first requests wait for the daemon
        if self._daemon is not None:
            poll.register(self._daemon, select.POLLIN)
        if not holds:
            poll.register(self._source, select.POLLIN)
        wait_s = max(0.0, self._give_up_at - time.monotonic()) if holds else _AGAIN_S if self._hung else None
        found = {fd for fd, _ in poll.poll(None if wait_s is None else wait_s * 1000)}
        now = time.monotonic()
        if self._daemon is not None:
            if self._daemon.fileno() in found:
                return self._hand_over(self._daemon)
            if now >= self._give_up_at:
                self._hung = True
                self._leave()
        if self._daemon is None and now >= self._again_at and (self._hung or self._source in found):
            holds = self._offer(now) and not self._hung
        if self._source in found and not holds:
            self._answer_all(self._read())
        return True

    def _hand_over(self, daemon: socket.socket) -> bool:
        try:
            told, descriptors, _, _ = socket.recv_fds(daemon, len(READY), 1)
        except OSError:
            told, descriptors = b"", []
        journal = Journal(descriptors[0]) if told == READY and len(descriptors) == 1 else None
        for descriptor in descriptors:
            os.close(descriptor)
        if journal is None:
            self._leave()
            return bool(told or self._hung)
        journal.replace(len(self.lines.partial), self.lines.partial)
        journal.discarding = self.lines.discarding
        self._journal = journal
        self.lines, self._hung = RequestLines(), False
        with suppress(OSError):  # it has ended: the next poll shows it
            daemon.send(GO)
        return True

    def _watch(self, journal: Journal) -> None:
        """Waits until the daemon ends, or answers nothing for too long, and takes the requests back."""
        assert self._daemon is not None
        daemon, requests, answers = select.poll(), select.poll(), select.poll()
        daemon.register(self._daemon, select.POLLIN)
        requests.register(self._source, select.POLLIN)
        answers.register(self._target, select.POLLOUT)
        seen, since = journal.chunks, time.monotonic()
        while not daemon.poll(self._timeout_s / _LOOKS * 1000):
            now, chunks = time.monotonic(), journal.chunks
            idle = journal.is_empty and not requests.poll(0)
            if chunks != seen or idle or (journal.cut and not answers.poll(0)):  # squid takes no answers
                seen, since = chunks, now
            elif now - since > self._timeout_s:
                self._hung = True
                break
        journal.revoke()
        unsure = self._hung and self._reads_on(journal)
        cut, discarding, left = journal.cut, journal.discarding, journal.left()
        journal.close()
        self._journal = None
        self._leave()
        *lines, partial = left.split(b"\n")
        self.lines = RequestLines(partial, discarding=discarding)
        if cut or unsure or not all(split_channel(line)[0] for line in lines):
            self._open = False
            self._shut_down()
        else:
            self._answer_all(lines)

    def _reads_on(self, journal: Journal) -> bool:
        """Returns whether the daemon may yet take a request that the journal does not show; waits a moment for it to end."""
        if not journal.reading:
            return False  # it looks at `revoked` before it reads again
        assert self._daemon is not None
        daemon = select.poll()
        daemon.register(self._daemon, select.POLLIN)
        return not daemon.poll(_ENDING_S * 1000) and journal.reading

    def _shut_down(self) -> None:
        for descriptor in (self._source, self._target):
            with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as one:
                one.shutdown(socket.SHUT_RDWR)

    def _leave(self) -> None:
        if self._daemon is not None:
            self._daemon.close()
        self._daemon = None
        self._again_at = time.monotonic() + _AGAIN_S

    def _read(self) -> list[bytes]:
        data = os.read(self._source, _CHUNK)
        if not data:
            self._open = False
            return []
        return self.lines.cut(data)

    def _answer_all(self, lines: list[bytes]) -> None:
        answers = b"".join(
            failure_answer(
                self._protocol, split_channel(line)[0], self._block_url, allows=self._allows and len(line) <= LONGEST_LINE
            )
            for line in lines
        )
        write_all(self._target, answers)
