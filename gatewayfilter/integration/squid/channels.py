"""What the helper process and the daemon both use of squid's helper protocols. Imports the standard library alone."""

import os
import select
from collections import OrderedDict
from enum import StrEnum
from typing import Final
from urllib.parse import quote

GREETING: Final = b"gatewayfilter-squid 1 "
"""What a helper process sends first, with its protocol behind it, where it passes requests on."""
HANDING_OVER: Final = b"gatewayfilter-squid 2 "
"""The same where it hands over squid's own sockets, which come with it."""
READY: Final = b"ready\n"
"""What the daemon answers then; the descriptor of a `Journal` comes with it."""
GO: Final = b"go\n"
"""What the helper sends when it reads squid's requests no longer."""
LONGEST_LINE: Final = 65_536
BLOCKED_PAGE: Final = "http://blocked.invalid/"
"""Where blocked requests of url_rewrite lead without `helper.block_url`: a name that resolves nowhere (RFC 6761)."""
FAILURE: Final = "failure"
_LONGEST_CHANNEL: Final = 10
_MOST_CACHED: Final = 4_096
_LONGEST_CACHED: Final = 2_048


class HelperProtocol(StrEnum):
    """Which of squid's helper interfaces is used."""

    ACL = "acl"
    REWRITE = "rewrite"


class RequestLines:
    """Cuts what squid sends into lines.

    Attributes:
        partial: the beginning of a line that has not come whole.
        discarding: what comes next is the rest of a long line, which is passed over.
    """

    def __init__(self, partial: bytes = b"", *, discarding: bool = False) -> None:
        self.partial = partial
        self.discarding = discarding

    def cut(self, data: bytes) -> list[bytes]:
        """Returns the lines that are whole now. Of one beyond `LONGEST_LINE`, which squid does not send, the beginning is one."""
        *lines, self.partial = (self.partial + data).split(b"\n")
        if self.discarding and lines:
            self.discarding = False
            del lines[0]
        if self.discarding or len(self.partial) > LONGEST_LINE:
            if not self.discarding:
                lines.append(self.partial)
            self.discarding, self.partial = True, b""
        return lines


def write_all(target: int, data: bytes) -> None:
    """Writes to squid; waits where it is slow."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:
            poll = select.poll()
            poll.register(target, select.POLLOUT)
            poll.poll()


class AnswerCache:
    """Answers that the daemon lets be reused (`ttl=`), by the line of the request without its channel."""

    def __init__(self) -> None:
        self._answers: OrderedDict[bytes, tuple[float, bytes]] = OrderedDict()
        self._mark: object = None

    def hold_under(self, mark: object) -> None:
        """Drops all answers that were given under another mark of lists and policies."""
        if mark != self._mark:
            self._answers.clear()
            self._mark = mark

    def get(self, key: bytes, now: float) -> bytes | None:
        """Returns the answer without its channel, `None` without one that is still good.

        Its `ttl=` is what remains in whole seconds: squid keeps it for as long again.
        """
        found = self._answers.get(key)
        if found is None:
            return None
        until, answer = found
        remaining_s = int(until - now)
        if remaining_s < 1:
            del self._answers[key]
            return None
        return b"%b ttl=%d\n" % (answer, remaining_s)

    def put(self, key: bytes, answer: bytes, now: float) -> None:
        """Keeps an answer for the seconds of its `ttl=`; one without that is not kept."""
        bare, found, ttl = answer.rpartition(b" ttl=")
        ttl = ttl.strip()
        if not found or not ttl.isdigit() or len(key) > _LONGEST_CACHED:
            return
        self._answers[key] = now + int(ttl), bare
        if len(self._answers) > _MOST_CACHED:
            self._answers.popitem(last=False)


def split_channel(line: bytes) -> tuple[bytes, bytes]:
    """Returns the channel number with the blank behind it (`b""` without one), and the rest of a line."""
    first, blank, rest = line.partition(b" ")
    return (first + b" ", rest) if blank and first.isdigit() and len(first) <= _LONGEST_CHANNEL else (b"", line)


def failure_answer(protocol: HelperProtocol, channel: bytes, block_url: str, *, allows: bool) -> bytes:
    """Returns the answer to a request on which no decision can be had."""
    if allows:
        return channel + (b"OK\n" if protocol is HelperProtocol.ACL else b"ERR\n")
    if protocol is HelperProtocol.ACL:
        return b"%bERR message=%b\n" % (channel, FAILURE.encode())
    return b'%bOK status=302 url="%b"\n' % (channel, block_page_url(block_url, {"reason": FAILURE}).encode())


def block_page_url(page: str, facts: dict[str, str]) -> str:
    """Returns the address of a block page with facts in its query; empty ones are left out.

    Args:
        page: address without them, `""` for `BLOCKED_PAGE`.
        facts: name → value.
    """
    page = page or BLOCKED_PAGE
    query = "&".join(f"{name}={quote(value.encode('utf-8', 'replace'), safe='')}" for name, value in facts.items() if value)
    return f"{page}{'&' if '?' in page else '?'}{query}"
