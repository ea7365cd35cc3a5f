"""ClientHellos for mitmproxy's TLS layer: server name and protocols in one pass, everything else when it is asked for.

mitmproxy's parser makes an object of each extension through a generic stream: 680 of the 6,300 calls of a new connection. What is
not plain here (several records, several names, wrong lengths) is left to it.

Source: RFC 8446 §4.1.2, RFC 6066 §3, RFC 7301 §3.1. tests/proxy/mitm/fastpath/test_hello_reader.py compares with mitmproxy's.
"""

from functools import lru_cache
from struct import Struct
from typing import Any, Final

from mitmproxy import tls
from mitmproxy.net import check
from mitmproxy.proxy.layers import tls as tls_layers

_HEAD_BYTES: Final = 9
"""Of the record and of the message."""
_BEFORE_VECTORS: Final = 2 + 32
"""Version and random."""
_SERVER_NAME: Final = 0
_ALPN: Final = 16
_LONGEST_NAME: Final = 255
_EXTENSION: Final = Struct("!HH")
"""Its kind, and how many bytes it has."""
_original: Final = tls_layers.parse_client_hello


class FastClientHello(tls.ClientHello):
    """A ClientHello whose name and protocols are known; mitmproxy parses the rest where something reads it.

    Args:
        message: without its head.
        name: what `sni` returns.
        protocols: what `alpn_protocols` returns.
    """

    def __init__(self, message: bytes, name: str | None, protocols: list[bytes]) -> None:
        self._raw_bytes = message
        self._name = name
        self._protocols = protocols

    def __getattr__(self, name: str) -> Any:
        if name != "_client_hello":
            raise AttributeError(name)
        self._client_hello = found = tls.ClientHello(self._raw_bytes)._client_hello  # noqa: SLF001  what mitmproxy's other properties read
        return found

    @property
    def sni(self) -> str | None:
        """The server name, `None` where there is no valid one."""
        return self._name

    @property
    def alpn_protocols(self) -> list[bytes]:
        """The protocols that the client offers."""
        return self._protocols[:]


def parse_client_hello(data: bytes | bytearray) -> tls.ClientHello | None:
    """Stands in for `mitmproxy.proxy.layers.tls.parse_client_hello`.

    Returns:
        The ClientHello, `None` while it is incomplete.

    Raises:
        ValueError: it is none.
    """
    if len(data) > _HEAD_BYTES and data[0] == 22 and data[1] == 3 and data[2] <= 3:
        end = _HEAD_BYTES + int.from_bytes(data[6:9])
        if end <= 5 + int.from_bytes(data[3:5]) <= len(data):  # the first record holds all of it
            message = bytes(data[_HEAD_BYTES:end])
            found = _read(message)
            if found is not None:
                return FastClientHello(message, *found)
    return _original(data)  # type: ignore[arg-type]


def _read(message: bytes) -> tuple[str | None, list[bytes]] | None:
    """Returns name and protocols, `None` where the message is not plain."""
    end, at = len(message), _BEFORE_VECTORS
    for width in (1, 2, 1):  # session, ciphers, compression methods
        size = int.from_bytes(message[at : at + width])
        if width == 2 and size % 2:
            return None
        at += width + size
    if int.from_bytes(message[at : at + 2]) != end - at - 2:
        return None
    at += 2
    unpack = _EXTENSION.unpack_from
    name: bytes | None = None
    protocols: list[bytes] | None = None
    last = end - _EXTENSION.size
    while at <= last:
        kind, size = unpack(message, at)
        begin = at + 4
        at = begin + size
        if kind == _ALPN:
            if protocols is not None or (protocols := _protocols(message[begin:at])) is None:
                return None
        elif kind == _SERVER_NAME and (name is not None or (name := _host_name(message[begin:at])) is None):
            return None
    if at != end:  # the last one is cut off, or something follows it
        return None
    return (_valid_name(name) if name is not None else None), protocols or []


def _host_name(body: bytes) -> bytes | None:
    """Returns the name of a list with one host name, as all common clients send it."""
    size = len(body)
    if not 5 < size <= _LONGEST_NAME or body[:3] != (size - 2).to_bytes(2) + b"\0" or int.from_bytes(body[3:5]) != size - 5:
        return None
    return body[5:]


def _protocols(body: bytes) -> list[bytes] | None:
    end = len(body)
    if int.from_bytes(body[:2]) != end - 2:
        return None
    found: list[bytes] = []
    at = 2
    while at < end:
        begin = at + 1
        at = begin + body[at]
        if at > end:
            return None
        found.append(body[begin:at])
    return found


@lru_cache(maxsize=4096)
def _valid_name(name: bytes) -> str | None:
    return name.decode("ascii") if check.is_valid_host(name) else None
