"""Whether `header=` and `ipaddress=` bind a rule to few servers: they are tried on what ordinary ones say and have."""

from collections.abc import Mapping
from types import MappingProxyType

from gatewayfilter.engine.adblock.syntax.response_conditions import address_test, header_test
from gatewayfilter.engine.adblock.syntax.rule import Conditions

_ADDRESSES = (
    *(f"{first}.{(first * 37) % 256}.{(first * 91) % 256}.{first}" for first in range(2, 224, 11) if first != 10),
    *("2001:4860:4860::8888", "2606:4700::6810:84e5", "2a00:1450:4001:82a::200e", "2400:3200::1", "2a03:2880:f12f::1"),
)
"""Addresses all over what is public."""

_EVERY_SERVER = MappingProxyType({"date": "Wed, 01 May 2024 12:00:00 GMT", "content-type": "text/html; charset=utf-8"})
_HEADERS: tuple[Mapping[str, str], ...] = (
    {"server": "nginx", "content-length": "5120", "cache-control": "max-age=600", "vary": "Accept-Encoding", "etag": '"5f-1"'},
    {
        "server": "Apache",
        "transfer-encoding": "chunked",
        "set-cookie": "id=1; path=/",
        "last-modified": "Tue, 30 Apr 2024 08:00:00 GMT",
    },
    {
        "server": "cloudflare",
        "cf-ray": "1",
        "content-encoding": "br",
        "cache-control": "private",
        "strict-transport-security": "max-age=1",
    },
    {
        "server": "gws",
        "content-encoding": "gzip",
        "cache-control": "no-cache",
        "x-frame-options": "SAMEORIGIN",
        "vary": "Accept-Encoding",
    },
)
_SHARE = 0.4


def is_bound_by_response(conditions: Conditions) -> bool:
    """Tells whether most servers do not fulfil what the rule asks of the response."""
    if conditions.address:
        fits = address_test(conditions.address)
        if sum(map(fits, _ADDRESSES)) < _SHARE * len(_ADDRESSES):
            return True
    if conditions.header:
        holds = header_test(conditions.header)
        if sum(holds({**_EVERY_SERVER, **headers}) for headers in _HEADERS) < _SHARE * len(_HEADERS):
            return True
    return False
