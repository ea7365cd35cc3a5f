"""Breadth check of `header=` and `ipaddress=`: the conditions are tried on headers and addresses of ordinary servers."""

from collections.abc import Mapping
from types import MappingProxyType

from gatewayfilter.engine.adblock.syntax.response_conditions import address_test, header_test
from gatewayfilter.engine.adblock.syntax.rule import Conditions

_ADDRESSES = (
    *(f"{first}.{(first * 37) % 256}.{(first * 91) % 256}.{first}" for first in range(2, 224, 11) if first != 10),
    *("2001:4860:4860::8888", "2606:4700::6810:84e5", "2a00:1450:4001:82a::200e", "2400:3200::1", "2a03:2880:f12f::1"),
)
"""Sample addresses from the whole public range."""

_KINDS = (
    "text/html; charset=utf-8",
    "text/css",
    "text/javascript",
    "application/javascript",
    "image/jpeg",
    "application/json",
    "video/mp4",
)
"""Typical responses by kind. A rule that matches one kind on most servers matches the web."""

_SECURE = {
    "content-security-policy": "upgrade-insecure-requests",
    "referrer-policy": "same-origin",
    "strict-transport-security": "max-age=1",
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",
    "x-xss-protection": "1; mode=block",
}
_CACHED = {
    "accept-ranges": "bytes",
    "age": "7",
    "alt-svc": 'h3=":443"',
    "cache-control": "max-age=600",
    "cf-cache-status": "HIT",
    "cf-ray": "1",
    "etag": '"5f-1"',
    "expires": "Wed, 01 May 2024 13:00:00 GMT",
    "last-modified": "Tue, 30 Apr 2024 08:00:00 GMT",
    "via": "1.1 cache",
    "x-cache": "HIT",
}
_PAGE = {
    "access-control-allow-origin": "*",
    "connection": "keep-alive",
    "content-encoding": "gzip",
    "content-language": "en",
    "link": "</a.css>; rel=preload",
    "location": "/",
    "pragma": "no-cache",
    "set-cookie": "id=1; path=/",
    "transfer-encoding": "chunked",
    "vary": "Accept-Encoding",
    "x-powered-by": "PHP/8.2",
}
_HEADERS: tuple[Mapping[str, str], ...] = (
    {"server": "nginx", "content-length": "5120", **_SECURE, **_CACHED},
    {"server": "cloudflare", **_SECURE, **_PAGE},
    {"server": "nginx", **_CACHED, **_PAGE},
    {"server": "Apache", "content-length": "734", "cache-control": "private", **_PAGE},
    {"server": "cloudflare", "content-length": "91", "cache-control": "no-cache", **_CACHED},
)
_DATE = MappingProxyType({"date": "Wed, 01 May 2024 12:00:00 GMT"})
_SHARE = 0.4


def is_bound_by_response(conditions: Conditions) -> bool:
    """Returns whether the rule's conditions on the response fail for most servers."""
    if conditions.address:
        fits = address_test(conditions.address)
        if sum(map(fits, _ADDRESSES)) < _SHARE * len(_ADDRESSES):
            return True
    if conditions.header:
        holds = header_test(conditions.header)
        most = max(sum(holds({**_DATE, "content-type": kind, **headers}) for headers in _HEADERS) for kind in _KINDS)
        return most < _SHARE * len(_HEADERS)
    return False
