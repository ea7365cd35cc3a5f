"""What the helper process and the daemon both use of squid's helper protocols. Imports the standard library alone."""

from enum import StrEnum
from typing import Final
from urllib.parse import quote

GREETING: Final = b"gatewayfilter-squid 1 "
"""What a helper process sends first, with its protocol behind it."""
LONGEST_LINE: Final = 65_536
BLOCKED_PAGE: Final = "http://blocked.invalid/"
"""Where blocked requests of url_rewrite lead without `helper.block_url`: a name that resolves nowhere (RFC 6761)."""
FAILURE: Final = "failure"
_LONGEST_CHANNEL: Final = 10


class HelperProtocol(StrEnum):
    """Which of squid's helper interfaces is used."""

    ACL = "acl"
    REWRITE = "rewrite"


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
