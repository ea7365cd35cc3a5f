"""The detection of a connection's protocol from its first bytes.

What is taken for another protocol than HTTP or TLS is never read, so the answer is `NEITHER` only for bytes with which no
server could begin to read an HTTP request or a ClientHello. A client chooses how its bytes are cut into segments: a beginning is
`UNDECIDED` until every continuation of it has the same answer.
"""

import re
from enum import Enum
from typing import Final

MOST_BLANK_BYTES: Final = 64
"""Most line ends and spaces before a request. RFC 9112 §2.2 has servers pass over one empty line; clients send two at most."""
_MOST_SSH_BYTES: Final = 255
"""RFC 4253 §4.2: length of an identification string, its line end included."""
_LINE_ENDS: Final = b"\r\n"
_BLANK: Final = b"\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0"
"""What servers pass over before a method: RFC 9112 §2.2 has line ends; some split at whatever counts as space."""
_TOKEN: Final = frozenset(b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
"""RFC 9110 §5.6.2: of these a method consists."""
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""RFC 9113 §3.4."""
_HANDSHAKE: Final = 0x16
_TLS_MAJOR: Final = 3
_RECORD_HEAD_BYTES: Final = 5
_SSL2_MARK: Final = 0x80
_SSL2_HELLO: Final = bytes((1, _TLS_MAJOR))
"""Third and fourth byte of a ClientHello in the form of SSL 2.0, which some servers still take for TLS (RFC 5246 §E.2)."""
_SSH: Final = re.compile(rb"SSH-(?:1\.99|2\.0)-[!-~]+(?: (?!/)[ -~]*)?\r?\n")


class Protocol(Enum):
    """The protocol of a connection."""

    UNDECIDED = "undecided"
    """More bytes are needed."""
    HTTP1 = "http/1"
    """HTTP/1, or what some server could take for it: to be read as HTTP or refused."""
    HTTP2 = "http/2"
    """The connection preface of HTTP/2."""
    TLS = "tls"
    """A TLS record with a handshake message."""
    NEITHER = "neither"


def detect(data: bytes) -> Protocol:
    """Returns the protocol of a connection that begins with `data`. Undecided for 255 bytes at most."""
    if not data:
        return Protocol.UNDECIDED
    if data[0] == _HANDSHAKE:
        return _tls(data)
    if data[0] & _SSL2_MARK and data[2:4] == _SSL2_HELLO[: len(data[2:4])]:
        return Protocol.TLS if len(data) >= 4 else Protocol.UNDECIDED
    start = len(data) - len(data.lstrip(_BLANK)) if data[0] in _BLANK else 0
    if start > MOST_BLANK_BYTES:
        return Protocol.HTTP1
    if start == len(data):
        return Protocol.UNDECIDED
    if data[start] not in _TOKEN:
        return Protocol.NEITHER
    if start:
        return Protocol.HTTP1
    if data.startswith(b"SSH-"[: len(data)]):
        return _ssh(data)
    if data.startswith(_PREFACE[: len(data)]):
        return Protocol.HTTP2 if len(data) >= len(_PREFACE) else Protocol.UNDECIDED
    return Protocol.HTTP1


def count_line_ends(data: bytes | bytearray) -> int:
    """Returns how many bytes of line ends precede a request."""
    return len(data) - len(data.lstrip(_LINE_ENDS))


def _tls(data: bytes) -> Protocol:
    if len(data) > 1 and data[1] != _TLS_MAJOR:
        return Protocol.NEITHER
    return Protocol.TLS if len(data) >= _RECORD_HEAD_BYTES else Protocol.UNDECIDED


def _ssh(data: bytes) -> Protocol:
    """Distinguishes an SSH identification string from a request with a method that begins like one."""
    line, end, _ = data.partition(b"\n")
    if not end and len(line) < _MOST_SSH_BYTES:
        return Protocol.UNDECIDED
    line += end
    if len(line) > _MOST_SSH_BYTES or _SSH.fullmatch(line) is None or b"HTTP/" in line.upper() or b"://" in line:
        return Protocol.HTTP1
    return Protocol.NEITHER
