"""The reader of plain CONNECT requests; any other is left to mitmproxy."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from gatewayfilter.errors import UrlError
from gatewayfilter.urls import canonical_host

_HEAD: Final = re.compile(
    rb"CONNECT ([!-~]{1,512}):([0-9]{1,5}) HTTP/1\.[01]\r\n((?:[!#-'*+\-.^-z|~0-9A-Z]+:[^\r\n\0]*\r\n)*)\r\n"
)
_FIELD: Final = re.compile(rb"([^:\r\n]+):[ \t]*([^\r\n]*)\r\n")
_SHORT_BYTES: Final = 1024
_MOST_REMEMBERED: Final = 512
_VERBATIM: Final = re.compile(rb"CONNECT ([a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63}){0,15}):[0-9]{1,5} HTTP/1\.1\r\n")
_INTERNATIONAL: Final = b"xn--"
_BODY_FIELDS: Final = frozenset({b"content-length", b"transfer-encoding"})


@dataclass(frozen=True, slots=True)
class ConnectRequest:
    """A CONNECT request.

    Attributes:
        host: canonical, IPv6 in brackets.
        authorization: the value of Proxy-Authorization, `""` without one.
        accept_language: likewise.
        verbatim: mitmproxy would read the host just so; it decodes international names, for one.
    """

    host: str
    port: int
    authorization: str = ""
    accept_language: str = ""
    verbatim: bool = False


def read_connect(head: bytes) -> ConnectRequest | None:
    """Returns the request of a head that ends with an empty line, `None` for anything unusual.

    A program opens several connections to a host in a row, with the same head each time: short ones are remembered.
    """
    return _remembered(head) if len(head) <= _SHORT_BYTES else _read(head)


def _read(head: bytes) -> ConnectRequest | None:
    found = _HEAD.fullmatch(head)
    if found is None:
        return None
    port = int(found[2])
    fields: dict[bytes, bytes] = {}
    for name, value in _FIELD.findall(found[3]):
        fields.setdefault(name.lower(), value.strip())
    try:
        host = canonical_host(found[1].decode("ascii"))
    except UrlError:
        return None
    if not 0 < port < 65536 or fields.keys() & _BODY_FIELDS:
        return None
    return ConnectRequest(
        host,
        port,
        fields.get(b"proxy-authorization", b"").decode("latin-1"),
        fields.get(b"accept-language", b"").decode("latin-1"),
        _is_verbatim(head, host),
    )


def _is_verbatim(head: bytes, host: str) -> bool:
    found = _VERBATIM.match(head)
    return found is not None and found[1] == host.encode() and _INTERNATIONAL not in found[1]


_remembered = lru_cache(maxsize=_MOST_REMEMBERED)(_read)
