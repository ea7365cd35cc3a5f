"""The reader of TLS ClientHellos: the server name, from bytes that may still be incomplete.

Only what the decision needs is read, and every length is checked against what is there: a client chooses each byte. RFC 8446
§4.1.2 and §5.1 for the layout, RFC 6066 §3 for the name, RFC 9849 for the encrypted one.
"""

from dataclasses import dataclass
from struct import Struct
from typing import Final

from gatewayfilter.errors import UrlError
from gatewayfilter.urls import canonical_host

MAX_HELLO_BYTES: Final = 65_536
"""Longest first flight that is waited for. Post-quantum key shares make real ones 2 kB long; none needs more than 16 kB."""
_SERVER_NAME: Final = 0
_ENCRYPTED_CLIENT_HELLO: Final = 0xFE0D
_EXTENSION: Final = Struct("!HH")
"""Its kind, and how many bytes it has."""
_MAX_RECORD: Final = 16_384
_MAX_RECORDS: Final = 64
"""A record may hold as little as one byte; no real client needs more of them than this."""


@dataclass(frozen=True, slots=True)
class ClientHello:
    """What a client sends before anything is encrypted.

    Attributes:
        name: the canonical server name, `""` when the client names none.
        encrypted: there is an `encrypted_client_hello` extension, a real one or the decoy that browsers always send. With a
            real one `name` is that of the front, not of the site.
    """

    name: str
    encrypted: bool = False


class NotTls(Exception):  # noqa: N818  an answer of the parser, not a fault
    """The bytes are no ClientHello, or one with which no server would go on."""


class _Incomplete(Exception):  # noqa: N818  an answer of the parser, not a fault
    pass


def read_client_hello(data: bytes | bytearray) -> ClientHello | None:
    """Returns the content of a ClientHello, `None` while more bytes are needed.

    Raises:
        NotTls: this will never be one.
    """
    try:
        message = _whole(data) or _message(data)
    except _Incomplete:
        if len(data) >= MAX_HELLO_BYTES:
            raise NotTls from None
        return None
    try:
        return _read(message)
    except _Incomplete:  # the message is whole, so a length inside it is wrong
        raise NotTls from None


def _whole(data: bytes | bytearray) -> bytes:
    """Returns the message of a hello that one record holds, as nearly all do; nothing for every other."""
    if len(data) < 9 or data[0] != 22 or data[1] != 3 or data[5] != 1:
        return b""
    length = data[3] << 8 | data[4]
    end = 9 + int.from_bytes(data[6:9])
    return bytes(data[9:end]) if end <= length + 5 <= _MAX_RECORD + 5 and end <= len(data) else b""


def _message(data: bytes | bytearray) -> bytes:
    """Joins the handshake message from its records."""
    message = b""
    position = 0
    for _ in range(_MAX_RECORDS):
        length = _record_length(data, position)
        message += data[position + 5 : position + 5 + length]
        if message[:1] not in {b"", b"\x01"}:  # a handshake message, but another one
            raise NotTls
        end = 4 + int.from_bytes(message[1:4]) if len(message) >= 4 else MAX_HELLO_BYTES
        if end > MAX_HELLO_BYTES:
            raise NotTls
        if len(message) >= end:
            return message[4:end]
        position += 5 + length
    raise NotTls


def _record_length(data: bytes | bytearray, position: int) -> int:
    """Reads the head of a record."""
    head = bytes(data[position : position + 5])
    if head[:1] not in {b"", b"\x16"} or head[1:2] not in {b"", b"\x03"}:
        raise NotTls
    if len(head) < 5:
        raise _Incomplete
    length = int.from_bytes(head[3:])
    if not 0 < length <= _MAX_RECORD:
        raise NotTls
    return length


class _Reader:
    """Takes fields off the front of a message."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) < count:
            raise _Incomplete
        self._at += count
        return found

    def vector(self, length_bytes: int) -> bytes:
        return self.take(int.from_bytes(self.take(length_bytes)))

    def __bool__(self) -> bool:
        return self._at < len(self._data)


def _read(message: bytes) -> ClientHello:
    end = len(message)
    at = 2 + 32  # legacy_version, random
    for width in (1, 2, 1):  # legacy_session_id, cipher_suites, legacy_compression_methods
        at += width + int.from_bytes(message[at : at + width])
    if at > end:
        raise _Incomplete
    if at == end:  # extensions may be missing before TLS 1.3
        return ClientHello("")
    stop = at + 2 + int.from_bytes(message[at : at + 2])
    at += 2
    if stop > end:
        raise _Incomplete
    return _read_extensions(message, at, stop)


def _read_extensions(message: bytes, at: int, stop: int) -> ClientHello:
    name = ""
    seen = encrypted = False
    unpack = _EXTENSION.unpack_from
    while at + 4 <= stop:
        kind, length = unpack(message, at)
        at += 4 + length
        if kind == _SERVER_NAME:
            if seen or at > stop:  # RFC 8446 §4.2: no two of a kind; servers differ in which of them they would take
                raise NotTls
            seen = True
            name = _server_name(message[at - length : at])
        elif kind == _ENCRYPTED_CLIENT_HELLO:
            encrypted = True
    if at != stop:
        raise _Incomplete
    return ClientHello(name, encrypted)


def _server_name(body: bytes) -> str:
    length = len(body)
    if length > 5 and not body[2] and (body[0] << 8 | body[1]) == length - 2 and (body[3] << 8 | body[4]) == length - 5:
        found: bytes | None = body[5:]  # one host name and nothing else, as all common clients send it
    else:
        found = _host_name(body)
    if found is None:
        return ""
    try:
        return canonical_host(found.decode("ascii"))
    except (UnicodeDecodeError, UrlError):
        raise NotTls from None


def _host_name(body: bytes) -> bytes | None:
    names = _Reader(_Reader(body).vector(2))
    found: bytes | None = None
    while names:
        kind = names.take(1)[0]
        value = names.vector(2)
        if kind == 0:
            if found is not None:
                raise NotTls
            found = value
    return found
