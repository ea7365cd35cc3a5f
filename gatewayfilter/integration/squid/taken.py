"""squid's own sockets in the daemon, as helper processes hand them over (`guard.py`)."""

import asyncio
import socket
from collections.abc import Callable
from typing import Final

from gatewayfilter.integration.squid.channels import LONGEST_LINE, HelperProtocol, failure_answer, split_channel
from gatewayfilter.integration.squid.journal import Journal

_NO_WAIT: Final = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL


class TakenSockets:
    """Reads squid's requests, and writes the answers. No call waits, whatever mode the sockets are in.

    Args:
        protocol: which of squid's interfaces.
        answers: returns the answers to lines, in their order.
        requests, target: squid's requests, and where the answers go; closed at the end.
        journal: shared with the helper; closed at the end.
        ended: called when squid has ended.
        block_url: the block page of `rewrite`.
    """

    def __init__(
        self,
        protocol: HelperProtocol,
        answers: Callable[[list[bytes]], bytes],
        requests: socket.socket,
        target: socket.socket,
        journal: Journal,
        ended: Callable[[], None],
        *,
        block_url: str = "",
    ) -> None:
        self._protocol = protocol
        self._answers = answers
        self._requests = requests
        self._target = target
        self._journal = journal
        self._ended = ended
        self._block_url = block_url
        self._length = 0
        self._rest = b""
        self._unsent = b""
        self._loop = asyncio.get_running_loop()
        self._is_open = True

    def begin(self) -> None:
        """Reads from now on; what the helper has read of a request stands in the journal."""
        self._length = len(self._journal.left())
        self._loop.add_reader(self._requests.fileno(), self._take)

    def close(self) -> None:
        """Leaves the sockets to the helper."""
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._requests.fileno())
            self._loop.remove_writer(self._target.fileno())
            self._requests.close()
            self._target.close()
            self._journal.close()

    def _end(self) -> None:
        self.close()
        self._ended()

    def _take(self) -> None:
        journal = self._journal
        journal.reading = True
        try:
            length = 0 if journal.revoked else self._requests.recv_into(journal.room(self._length), 0, _NO_WAIT)
        except BlockingIOError:
            journal.reading = False
            return
        except OSError:
            length = 0
        journal.reading = False
        if not length:
            self._end()
            return
        self._length += length
        *lines, self._rest = journal.take(self._length).split(b"\n")
        if lines and journal.discarding:
            journal.discarding = False
            del lines[0]
        answers = self._answers_to(lines)
        if len(self._rest) > LONGEST_LINE or journal.discarding:
            if not journal.discarding:
                answers += self._refusal(self._rest)
            journal.discarding, self._rest = True, b""
        self._send(answers)

    def _answers_to(self, lines: list[bytes]) -> bytes:
        if self._length <= LONGEST_LINE:
            return self._answers(lines) if lines else b""
        return b"".join(self._answers([line]) if len(line) <= LONGEST_LINE else self._refusal(line) for line in lines)

    def _refusal(self, line: bytes) -> bytes:
        return failure_answer(self._protocol, split_channel(line)[0], self._block_url, allows=False)

    def _send(self, answers: bytes) -> None:
        """Sends answers. The requests stay in the journal until all are sent; meanwhile no others are read."""
        waited = bool(self._unsent)
        self._journal.cut = bool(answers)
        if self._journal.revoked:
            self._journal.cut = waited
            self._end()
            return
        try:
            sent = self._target.send(answers, _NO_WAIT) if answers else 0
        except BlockingIOError:
            sent = 0
        except OSError:
            self._end()
            return
        self._unsent = answers[sent:]
        if not self._unsent:
            self._journal.replace(self._length, self._rest)
            self._length = len(self._rest)
            self._journal.cut = False
        if waited != bool(self._unsent):
            if waited:
                self._loop.remove_writer(self._target.fileno())
                self._loop.add_reader(self._requests.fileno(), self._take)
            else:
                self._loop.remove_reader(self._requests.fileno())
                self._loop.add_writer(self._target.fileno(), lambda: self._send(self._unsent))
