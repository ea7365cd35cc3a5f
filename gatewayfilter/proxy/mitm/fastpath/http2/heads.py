"""A parser of plain HTTP/2 heads, into the same messages as h2 and mitmproxy make.

Only unambiguous heads are parsed: valid names in lower case, no field of HTTP/1's connections, each pseudo field once and first.
For everything else the functions return `None`, and h2 and mitmproxy handle it.

Source: RFC 9113 §8.2 and §8.3.
"""

import re
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from mitmproxy import http
from mitmproxy.net.http import url

from gatewayfilter.proxy.request.header_fields import Fields

type Pairs = Sequence[tuple[bytes, bytes]]

_PSEUDO: Final = frozenset({b":method", b":scheme", b":authority", b":path"})
_BODILESS: Final = frozenset({b"GET", b"HEAD", b"OPTIONS", b"DELETE"})
"""Methods that are parsed here; the others usually have a body."""
_NAME: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]{1,64}")
_VALUE: Final = re.compile(rb"(?:[^\x00\r\n\t ](?:[^\x00\r\n]*[^\x00\r\n\t ])?)?")
_STATUS: Final = re.compile(rb"[2-5][0-9][0-9]")
_LENGTH: Final = re.compile(rb"0|[1-9][0-9]{0,17}")
_OF_CONNECTIONS: Final = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"te", b"transfer-encoding", b"upgrade"})
_NOT_PLAIN: Final = _OF_CONNECTIONS | {b"content-length", b"expect", b"host"}
"""Fields of requests that are left to h2."""
_LENGTH_NAME: Final = b"content-length"
_LONGEST_AUTHORITY: Final = 300
_LONGEST_REPEATED: Final = 256
_MOST_REPEATED: Final = 4096
_SECRET: Final = frozenset({b"authorization", b"cookie", b"proxy-authorization", b"set-cookie"})
_repeated: Final[set[tuple[bytes, bytes]]] = set()
"""Plain fields that were read before, short ones whose names are not those of credentials: a megabyte or two at most."""


@lru_cache(maxsize=4096)
def _is_name(name: bytes) -> bool:
    return _NAME.fullmatch(name) is not None


@lru_cache(maxsize=1024)
def _address(authority: bytes) -> tuple[str, int] | None:
    """Returns host and port of a name as `parse_h2_request_headers` does for HTTPS."""
    try:
        host, port = url.parse_authority(authority, check=True)
    except ValueError:
        return None
    return host, 443 if port is None else port


def _are_plain(fields: Pairs, refused: frozenset[bytes]) -> bool:
    for field in fields:
        if field in _repeated:
            continue
        name, value = field
        if name in refused or not _is_name(name) or _VALUE.fullmatch(value) is None:
            return False
        if len(value) <= _LONGEST_REPEATED and name not in _SECRET and name not in _NOT_PLAIN:
            if len(_repeated) >= _MOST_REPEATED:
                _repeated.clear()
            _repeated.add(field)
    return True


def read_request(fields: Pairs) -> http.Request | None:
    """Reads the head of a request that has no body.

    Args:
        fields: in the order in which they came.
    """
    pseudo = dict(fields[:4])
    authority = pseudo.get(b":authority", b"")
    if pseudo.keys() != _PSEUDO or not 0 < len(authority) <= _LONGEST_AUTHORITY or _VALUE.fullmatch(authority) is None:
        return None
    method, path = pseudo[b":method"], pseudo[b":path"]
    rest = fields[4:]
    if method not in _BODILESS or pseudo[b":scheme"] != b"https" or not _are_plain(rest, _NOT_PLAIN):
        return None
    address = _address(authority)
    if address is None or path[:1] != b"/" or not path.isascii() or b"\0" in path or path != b"".join(path.split()):
        return None
    request = http.Request.__new__(http.Request)
    request.data = http.RequestData(
        b"HTTP/2.0", _headers(rest), None, None, time.time(), None, *address, method, b"https", authority, path
    )
    return request


def read_response(fields: Pairs) -> tuple[http.Response, int | None] | None:
    """Reads the head of a response. Returns it with the length that it announces."""
    if not fields or fields[0][0] != b":status" or _STATUS.fullmatch(fields[0][1]) is None:
        return None
    rest = fields[1:]
    if not _are_plain(rest, _OF_CONNECTIONS):
        return None
    lengths = [value for name, value in rest if name == _LENGTH_NAME]
    if len(lengths) > 1 or (lengths and _LENGTH.fullmatch(lengths[0]) is None):
        return None
    response = http.Response.__new__(http.Response)
    status = int(fields[0][1])
    response.data = http.ResponseData(b"HTTP/2.0", _headers(rest), None, None, time.time(), None, status, b"")
    return response, int(lengths[0]) if lengths else None


def are_lower(fields: Fields) -> bool:
    """Returns whether the names of fields can be sent by HTTP/2 as they are."""
    return all(name.islower() for name, _ in fields)


def _headers(fields: Pairs) -> http.Headers:
    headers = http.Headers.__new__(http.Headers)
    headers.fields = tuple(fields)
    return headers
