"""Page capture: which passing pages may be judged instead of being fetched again, and how they are copied.

A page for one visitor alone is never copied: no page that was requested with a header field that not every browser sends to
every site, that sets cookies, that is `no-store` or `private`, or that comes from an address that the crawler may not fetch from.
Nor is a page in a frame of another site. The host of the page must be certain as well (origin_name.py).
"""

from collections.abc import Callable, Sequence
from ipaddress import ip_address, ip_network
from typing import Final

from mitmproxy import http

from gatewayfilter.addresses.kinds import Kind, is_near, kind_of, plain
from gatewayfilter.addresses.link_watch import PerLinks, current_links
from gatewayfilter.addresses.links import Links
from gatewayfilter.content_encoding import media_type
from gatewayfilter.interfaces import PassedResponse
from gatewayfilter.model import PAGE_TYPES
from gatewayfilter.proxy.request.flow_request import FlowRequest

MOST_COPIED: Final = 2_000_000
"""Bytes before content decoding; the URL of a longer page is queued instead."""
_NOT_SHOWN: Final = frozenset({204, 205})
"""Successes whose body a browser does not show. It shows that of any other, even where the status has no meaning."""
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_MOST_ECHOABLE: Final = 4096
"""Bytes of header fields; a browser sends some 500, and a long Referer."""
_KEPT: Final = ("content-type", "content-encoding", "content-language")
_PERSONAL: Final = frozenset({"*", "cookie", "authorization"})


def is_html(headers: http.Headers) -> bool:
    """Returns whether a response is an HTML page by its Content-Type."""
    return media_type(str(headers.get("content-type", ""))) in _HTML


def is_page(flow_request: FlowRequest, response: http.Response) -> bool:
    """Returns whether a response is an HTML page with a body that is shown."""
    return (
        (flow_request.request.resource_type in PAGE_TYPES or flow_request.plain_client)
        and flow_request.request.method in {"GET", "POST"}
        and 200 <= response.status_code < 300
        and response.status_code not in _NOT_SHOWN
        and is_html(response.headers)
    )


def is_public(flow_request: FlowRequest, response: http.Response) -> bool:
    """Returns whether every client gets the same response and may store it."""
    headers = response.headers
    if (
        flow_request.request.method != "GET"
        or response.status_code != 200
        or not flow_request.anonymous
        or flow_request.foreign_frame
    ):
        return False
    if "set-cookie" in headers or "www-authenticate" in headers:
        return False
    control = {part.partition("=")[0].strip().lower() for part in headers.get("cache-control", "").split(",")}
    if control & {"no-store", "private"}:
        return False
    return not _PERSONAL & {part.strip().lower() for part in headers.get("vary", "").split(",")}


class OpenNetworks:
    """The addresses that pages may be learned from: those that the crawler may fetch from.

    Args:
        allowed: private ranges that are open to it (`crawl.allow_networks`).
        links: returns the interfaces of this machine.
    """

    def __init__(self, allowed: Sequence[str], links: Callable[[], Links] = current_links) -> None:
        self._networks = tuple(ip_network(text) for text in allowed)
        self._is_open = PerLinks(self._look_up, links)

    def __contains__(self, address: str) -> bool:
        return self._is_open(address)

    def _look_up(self, address: str, links: Links) -> bool:
        try:
            found = plain(ip_address(address))
        except ValueError:
            return False
        if any(found in network for network in self._networks):
            return True
        return kind_of(found) is Kind.PUBLIC and not is_near(found, links)


def passed_response(flow_request: FlowRequest, response: http.Response, echoable: str | None) -> PassedResponse:
    """Returns what of a response leaves the proxy, without its body as yet: the headers by which it is read.

    Args:
        flow_request: the request.
        response: the origin's.
        echoable: as `echoable_text` returns it, `None` when the page is not public.
    """
    headers = {name: str(response.headers[name]) for name in _KEPT if name in response.headers}
    return PassedResponse(flow_request.request.url.text, response.status_code, headers, b"", echoable is not None, echoable or "")


def echoable_text(request: http.Request) -> str | None:
    """Returns the field values of an anonymous request, which a page may echo, `None` when they are too long."""
    fields = ((name.lower(), value) for name, value in request.data.headers.fields)
    texts = [name + b" " + value if name.startswith(b"sec-") else value for name, value in fields if name != b"host"]
    return b"\n".join(texts).decode(errors="replace") if sum(map(len, texts)) <= _MOST_ECHOABLE else None


class PassedCopy:
    """Copies a body while it streams, before it is changed. What mitmproxy calls with each chunk, and with `b""` at the end.

    Args:
        then: what else is done with the body, `None` to pass it on as it is.
        done: called once with the copy when the body is at its end, or with `None` as soon as it is too long.
        limit: most bytes to copy.
    """

    def __init__(
        self, then: Callable[[bytes], list[bytes]] | None, done: Callable[[bytes | None], None], limit: int = MOST_COPIED
    ) -> None:
        self._then = then
        self._done: Callable[[bytes | None], None] | None = done
        self._limit = limit
        self._copy = bytearray()

    def __call__(self, data: bytes) -> list[bytes]:
        """Returns what goes on to the client."""
        if self._done is not None:
            self._copy += data
            if not data or len(self._copy) > self._limit:
                done, self._done = self._done, None
                copy, self._copy = self._copy, bytearray()
                done(bytes(copy) if not data else None)
        if self._then is not None:
            return self._then(data)
        return [data] if data else []
