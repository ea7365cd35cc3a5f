"""Well-known servers of DNS over HTTPS, and whether the filter blocks them."""

from typing import Final

from gatewayfilter.interfaces import Decide
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import parse_url

WELL_KNOWN: Final = (
    "chrome.cloudflare-dns.com", "cloudflare-dns.com", "dns.adguard-dns.com", "dns.alidns.com", "dns.google", "dns.nextdns.io",
    "dns.quad9.net", "doh.cleanbrowsing.org", "doh.opendns.com", "doh.pub", "mozilla.cloudflare-dns.com",
)  # fmt: skip
"""Servers offered in the settings of Chrome, Firefox, Edge and Android, and the two most used ones of China."""
_ASKING: Final = tuple(Request(parse_url(f"https://{host}/dns-query"), None, ResourceType.XMLHTTPREQUEST) for host in WELL_KNOWN)


def blocked_resolvers(decide: Decide) -> tuple[int, int]:
    """Returns the number of well-known servers that are blocked, and their total. Some 100 µs."""
    return sum(decide.decide(request).blocked for request in _ASKING), len(_ASKING)
