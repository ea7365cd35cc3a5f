"""A parser of plain HTTP/1.1 heads in one pass, into the same messages as mitmproxy's own parser.

Only unambiguous heads are parsed: whole lines, valid names, no folding, framing that is given once. For everything else the
functions return `None`, and mitmproxy's parser handles it.

Source: RFC 9112 §2 to §6. tests/proxy/mitm/fastpath/test_http1_heads.py holds the messages against those of mitmproxy's parser.
"""

import re
import time
from functools import lru_cache
from typing import Any, Final

from mitmproxy import http
from mitmproxy.net.http.http1 import read as http1

from gatewayfilter.proxy.mitm.sharing import UNBOUND_SCHEMES
from gatewayfilter.proxy.request.header_fields import COMPILED, Fields
from gatewayfilter.proxy.request.repeated_request import RepeatedRequest

type _Lines = tuple[Fields, dict[bytes, bytes]] | None

LONGEST_HEAD: Final = 65_536
"""Bytes; a longer head is left to mitmproxy."""
_LONGEST_NAME: Final = 64
_LONGEST_ORIGIN: Final = 300
"""Bytes; what is longer is left to mitmproxy as well, so that these caches stay small."""
_BODILESS: Final = frozenset({b"GET", b"HEAD", b"OPTIONS", b"DELETE"})
"""Methods that are parsed here when no field announces a body."""
_NO_CONTENT: Final = frozenset({204, 304})
_TOKEN: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-zA-Z]+")
_STATUS: Final = re.compile(rb"HTTP/1\.1 ([2-5][0-9][0-9])(?: ([^\x00-\x20\x7f][^\x00-\x1f\x7f]*)?)?")
_LENGTH: Final = re.compile(rb"0|[1-9][0-9]{0,17}")
_FRAMING: Final = frozenset({b"connection", b"content-length", b"expect", b"transfer-encoding", b"upgrade"})
"""Fields that delimit a message, or that announce something else than a response."""
_LOGIN: Final = b"authorization"
_REPEATING: Final = frozenset({
    b"accept", b"accept-encoding", b"accept-language", b"accept-ranges", b"access-control-allow-origin", b"cache-control",
    b"content-encoding", b"content-type", b"host", b"origin", b"pragma", b"priority", b"referer", b"sec-ch-ua",
    b"sec-ch-ua-mobile", b"sec-ch-ua-platform", b"sec-fetch-dest", b"sec-fetch-mode", b"sec-fetch-site", b"sec-fetch-user",
    b"server", b"strict-transport-security", b"timing-allow-origin", b"upgrade-insecure-requests", b"user-agent", b"vary",
    b"x-content-type-options", b"x-frame-options",
})  # fmt: skip
"""Fields whose lines come again and again. None of them delimits a message or is a credential."""
_LONGEST_REPEATED: Final = 256
_MOST_REPEATED: Final = 4096
_repeated: Final[dict[bytes, tuple[bytes, bytes]]] = {}
"""Lines that were read before: a megabyte or two at most."""
_LONGEST_STATUS: Final = 80
"""Bytes of a status line that is remembered."""
CHUNKED: Final = -1
"""Stands for the length of a body in chunks."""


@lru_cache(maxsize=4096)
def _kind(name: bytes) -> bytes | None:
    """Returns `b""` for a plain field name, the lower-case name of one that matters here, `None` for what is no name."""
    if _TOKEN.fullmatch(name) is None:
        return None
    lower = name.lower()
    return lower if lower in _FRAMING or lower == _LOGIN else b""


def read_lines(head: bytes, begin: int, end: int) -> _Lines:
    """Reads header fields, each behind a CRLF. Returns them, and the values of those of framing but for `Connection`.

    Args:
        head: has them.
        begin: of the first CRLF.
        end: behind the last line.
    """
    lines = head[begin:end].split(b"\r\n")
    if lines.pop(0) or head.count(b"\n", begin, end) != len(lines):
        return None
    fields: list[tuple[bytes, bytes]] = []
    framing: dict[bytes, bytes] = {}
    for line in lines:
        field = _repeated.get(line)
        if field is None:
            name, colon, value = line.partition(b":")
            field = (name, value.strip())
            kind = _kind(name) if colon and len(name) <= _LONGEST_NAME else None
            if kind is None or (kind and not _notes(kind, field[1], framing)):
                return None
            if not kind:
                _remember(line, field)
        fields.append(field)
    return (tuple(fields), framing) if framing.pop(b"connection", b"keep-alive").lower() == b"keep-alive" else None


def _notes(kind: bytes, value: bytes, framing: dict[bytes, bytes]) -> bool:
    """Notes a field that delimits a message, or refuses it."""
    if kind == _LOGIN:
        return value.partition(b" ")[0].lower() in UNBOUND_SCHEMES
    if kind in framing:
        return False
    framing[kind] = value
    return True


def _remember(line: bytes, field: tuple[bytes, bytes]) -> None:
    if len(line) <= _LONGEST_REPEATED and field[0].lower() in _REPEATING:
        if len(_repeated) >= _MOST_REPEATED:
            _repeated.clear()
        _repeated[line] = field


def _read_compiled(head: bytes, begin: int, end: int) -> _Lines:
    compiled: Any = COMPILED
    read: _Lines = compiled.read_lines(head, begin, end, _repeated, _MOST_REPEATED, _kind, _REPEATING, UNBOUND_SCHEMES)
    return read


_read_fields: Final = read_lines if COMPILED is None else _read_compiled


@lru_cache(maxsize=1024)
def _target(origin: bytes) -> tuple[str, int, bytes, bytes] | None:
    """Reads what stands before the path of an absolute target; mitmproxy's parser takes 60 µs for it."""
    try:
        host, port, _, scheme, authority, _, _ = http1._read_request_line(b"GET %b/ HTTP/1.1" % origin)  # noqa: SLF001  it has no public name
    except ValueError:
        return None
    return (host, port, scheme, authority) if scheme in {b"http", b"https"} else None


@lru_cache(maxsize=256)
def _status(line: bytes) -> tuple[int, bytes] | None:
    """Reads a status line."""
    found = _STATUS.fullmatch(line)
    return None if found is None else (int(found[1]), found[2] or b"")


def read_request(data: bytes) -> http.Request | None:
    """Reads a request that consists of its head alone.

    Args:
        data: all that has come of it.
    """
    read = read_head(data)
    return None if read is None else request_of(read)


def request_of(read: RepeatedRequest) -> http.Request:
    """Returns a request as a head had it."""
    request = http.Request.__new__(http.Request)
    request.data = meant = http.RequestData.__new__(http.RequestData)
    meant.__dict__ = {
        "http_version": b"HTTP/1.1", "headers": _headers(read.fields), "content": None, "trailers": None,
        "timestamp_start": time.time(), "timestamp_end": None, "host": read.host, "port": read.port, "method": read.method,
        "scheme": read.scheme, "authority": read.authority, "path": read.path,
    }  # fmt: skip
    return request


def read_head(data: bytes) -> RepeatedRequest | None:
    """Reads the head of a request that has nothing else.

    Args:
        data: all that has come of it.
    """
    if not data.endswith(b"\r\n\r\n") or len(data) > LONGEST_HEAD:
        return None
    end = data.index(b"\r\n")
    parts = data[:end].split(b" ")
    if len(parts) != 3:
        return None
    method, target, version = parts
    if method not in _BODILESS or version != b"HTTP/1.1" or not target.isascii() or target != b"".join(target.split()):
        return None
    if target.startswith(b"/"):
        host, port, scheme, authority, path = "", 0, b"", b"", target
    else:
        begin, mark, rest = target.partition(b"://")
        named, _, path = rest.partition(b"/")
        where = _target(begin + mark + named) if len(begin) + len(named) <= _LONGEST_ORIGIN else None  # it is remembered
        if where is None:
            return None
        (host, port, scheme, authority), path = where, b"/" + path
    read = _read_fields(data, end, len(data) - 4)
    if read is None or read[1]:
        return None
    return RepeatedRequest(data, read[0], host, port, method, scheme, authority, path)


def read_response(head: bytes, method: bytes) -> tuple[http.Response, int] | None:
    """Reads the head of a response.

    Args:
        head: without the empty line at its end.
        method: of the request.

    Returns:
        The response, and the bytes of its body or `CHUNKED`.
    """
    end = head.find(b"\r\n")
    if end < 0:
        end = len(head)
    status = (_status if end <= _LONGEST_STATUS else _status.__wrapped__)(head[:end])
    if status is None:
        return None
    read = _read_fields(head, end, len(head))
    if read is None:
        return None
    fields, framing = read
    code, reason = status
    length = framing.pop(b"content-length", None)
    coding = framing.pop(b"transfer-encoding", None)
    bodiless = code in _NO_CONTENT or method == b"HEAD"
    if framing or (length is None and coding is None and not bodiless):  # without a length it ends with the connection
        return None
    if length is not None and (coding is not None or _LENGTH.fullmatch(length) is None):
        return None
    if coding is not None and (coding != b"chunked" or code == 204):
        return None
    response = http.Response.__new__(http.Response)
    response.data = data = http.ResponseData.__new__(http.ResponseData)
    data.__dict__ = {
        "http_version": b"HTTP/1.1", "headers": _headers(fields), "content": None, "trailers": None,
        "timestamp_start": time.time(), "timestamp_end": None, "status_code": code, "reason": reason,
    }  # fmt: skip
    if bodiless:
        return response, 0
    return response, CHUNKED if length is None else int(length)


def _headers(fields: Fields) -> http.Headers:
    headers = http.Headers.__new__(http.Headers)
    headers.fields = fields
    return headers


def keeps_open(fields: Fields) -> bool:
    """Returns whether the fields leave a connection open."""
    for name, value in fields:
        if len(name) == 10 and name.lower() == b"connection" and value.lower() != b"keep-alive":
            return False
    return True
