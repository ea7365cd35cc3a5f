"""The sanitizer of header sections: line breaks in values, framing without a body, trailers that must not be merged.

mitmproxy passes a lone CR, a NUL and a folded line on as they came. A server that takes the CR for the end of a line reads
fields, and whole requests, that were not judged. A request with one is refused; in a response it is replaced, as the standards
require.

Source: RFC 9110 §5.5 and §6.5.1, RFC 9112 §2.2, §4, §5.2 and §6.1.
"""

import re
from typing import Final

from mitmproxy import http

from gatewayfilter.proxy.request.header_fields import has_name, holds_breaks

_BREAKS: Final = re.compile(rb"(?<![ \t])[ \t]*+[\r\n\0][ \t\r\n\0]*+")
"""Begins where blanks begin: a search from each of many blanks would take time by the square of their number."""
_NAME: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-zA-Z]+")
_BODILESS: Final = frozenset({204, 304})

_NO_TRAILERS: Final = frozenset({
    # framing and connections
    b"connection", b"content-length", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade",
    # routing
    b"forwarded", b"host", b"max-forwards", b"origin", b"referer", b"via", b"x-host", b"x-original-url", b"x-real-ip",
    b"x-rewrite-url",
    # what modifies a request
    b"cache-control", b"expect", b"pragma", b"range", b"x-http-method", b"x-http-method-override", b"x-method-override",
    # authentication and cookies
    b"authentication-info", b"authorization", b"cookie", b"set-cookie", b"www-authenticate",
    # what controls a response
    b"age", b"alt-svc", b"clear-site-data", b"date", b"expires", b"link", b"location", b"refresh", b"retry-after",
    b"strict-transport-security", b"vary", b"warning",
    # how content is to be read
    b"content-disposition", b"content-encoding", b"content-language", b"content-location", b"content-range",
    b"content-security-policy", b"content-security-policy-report-only", b"content-type", b"x-content-type-options",
    b"x-frame-options",
})  # fmt: skip
_NO_TRAILER_BEGINS: Final = (b"access-control-", b"cross-origin-", b"if-", b"proxy-", b"sec-", b"x-forwarded-")


def without_breaks(value: bytes) -> bytes:
    """Returns a value with a space in the place of each line break and NUL."""
    return _BREAKS.sub(b" ", value)


def sanitize_response(data: http.ResponseData) -> None:
    """Removes from a response's head what must not reach the client.

    That is what could be read as the end of a line, or as the framing of a body that is not there: mitmproxy would end a body in
    chunks where the head promises one, also behind responses that have none (RFC 9112 §6.1). And Alt-Svc: HTTP/3 would go past
    the filter.
    """
    headers = data.headers
    if holds_breaks(headers.fields):
        headers.fields = tuple((name, without_breaks(value)) for name, value in headers.fields)
    if has_name(headers.fields, "alt-svc"):
        headers.pop("alt-svc", None)
    reason = data.reason
    if not reason.isalnum() and _BREAKS.search(reason) is not None:
        data.reason = without_breaks(reason)
    if data.status_code in _BODILESS:
        headers.pop("transfer-encoding", None)
        if data.status_code == 204:
            headers.pop("content-length", None)


def leave_trailers(message: http.RequestData | http.ResponseData) -> None:
    """Removes the trailers of a message that must not be sent on.

    Framing, routing, authentication and how content is read were judged by the headers, and some servers merge trailers into
    those (RFC 9110 §6.5.1).
    """
    if message.trailers:
        fields = [(name, without_breaks(value)) for name, value in message.trailers.fields if _may_trail(name.lower())]
        message.trailers = http.Headers(fields) if fields else None


def _may_trail(name: bytes) -> bool:
    return name not in _NO_TRAILERS and not name.startswith(_NO_TRAILER_BEGINS) and _NAME.fullmatch(name) is not None
