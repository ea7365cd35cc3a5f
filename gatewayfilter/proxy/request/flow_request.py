"""`FlowRequest`, read from a mitmproxy flow: which URL is requested, as what, from which page, by which client.

A client may name the host in up to four places (host_names.py). What is judged is what will be contacted; where several names can
decide what the origin serves, each of them is judged (`aliases`).

What is judged is also what is sent: a path in another form than the canonical one, which was judged, is replaced by it, as is a
Host that names the site in another way. Browsers send canonical forms; servers disagree on the others (RFC 3986 §6.2,
RFC 9110 §4.2.3).
"""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from mitmproxy import http
from mitmproxy.connection import Client, Server

from gatewayfilter.errors import UrlError
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.proxy.request.header_fields import OWN, PASSED, holds_breaks, read_roles
from gatewayfilter.proxy.request.host_names import host_header_for, host_names
from gatewayfilter.proxy.request.repeated_request import repeated_of
from gatewayfilter.proxy.request.resource_type import resource_type_of
from gatewayfilter.urls import Url, canonical_host, parse_url, registrable_domain

_READ: Final = frozenset({
    b"accept", b"accept-language", b"authorization", b"connection", b"content-length", b"content-type", b"cookie", b"expect",
    b"host", b"origin", b"ping-to",
    b"proxy-authorization", b"proxy-connection", b"range", b"referer", b"sec-fetch-dest", b"sec-fetch-mode", b"sec-fetch-site",
    b"transfer-encoding", b"upgrade", b"x-requested-with",
})  # fmt: skip
_TELLING: Final = frozenset({
    b"authorization", b"content-length", b"content-type", b"cookie", b"expect", b"origin", b"ping-to", b"range", b"upgrade",
    b"transfer-encoding", b"x-requested-with",
})  # fmt: skip
"""Of `_READ`, what makes a request one of its own."""
_COMMON: Final = frozenset({
    b"accept-charset", b"accept-encoding", b"alt-used", b"cache-control", b"device-memory", b"dnt", b"downlink",
    b"dpr", b"ect", b"if-match", b"if-modified-since", b"if-none-match", b"if-unmodified-since", b"keep-alive", b"pragma",
    b"priority", b"purpose", b"rtt", b"save-data", b"sec-gpc", b"sec-purpose", b"te",
    b"upgrade-insecure-requests", b"user-agent", b"viewport-width",
})  # fmt: skip
"""Besides `_READ`, what any browser may send to any site: nothing that identifies a person or a customer."""
_HINTS: Final = frozenset({b"sec-ch-ua", b"sec-ch-ua-mobile", b"sec-ch-ua-platform", b"sec-fetch-user"})
_ROLES: Final[dict[bytes, bytes]] = {}
"""Of names as they are usually spelt the lower-case name where the proxy reads the field, `PASSED` where any browser may send
it, else `OWN`."""
_METHODS: Final = {
    method.encode(): method for method in ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE")
}
_METHOD: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-zA-Z]+")
_PLAIN_PATH: Final = re.compile(rb"/[\x21-\x24\x26-\x3a\x3c-\x7e]*")
"""Visible ASCII without escapes and parameters: nothing in it is read in two ways."""
_GAP: Final = re.compile(rb"[\x00-\x20\x7f]")
_SLASH: Final = rb"(?:[/\\]|%2f|%5c)"
_ESCAPED_SLASH: Final = rb"(?:%2f|%5c)"
_PARENT: Final = rb"(?:\.|%2e){2}"
_HIDDEN_PARENT: Final = re.compile(
    rb"%(slash)b%(parent)b(?:;|%%3b|%(escaped)b)|%(escaped)b%(parent)b(?:%(slash)b|$)"
    % {b"slash": _SLASH, b"escaped": _ESCAPED_SLASH, b"parent": _PARENT},
    re.IGNORECASE,
)
"""Dot segments that a canonical path keeps, and that some servers resolve once they have cut parameters or undone escapes."""
_SCHEMES: Final = {b"http": "http", b"https": "https"}
_WEBSOCKET_SCHEMES: Final = {"http": "ws", "https": "wss"}
_MAX_SOURCE_LENGTH = 2048
"""A longer Referer is cut to its origin, which bounds the memory of the cache."""


@dataclass(slots=True, eq=False)
class FlowRequest:
    """What a flow requests, and what else of it the proxy reads. Immutable, by type: `frozen` would cost ten calls a request.

    Attributes:
        request: as the engine judges it.
        aliases: the same request under each other host name that can decide what the origin serves; nearly always empty.
        address: the address that the client chose, where neither a name nor a certificate identifies its host; canonical,
            else `""`.
        headers: the request headers that the proxy reads: lower-case name → value, the first of repeated ones.
        private: carries credentials or requests a part: never fetched again by the crawler.
        plain_client: sends no Sec-Fetch headers, so its resource type is guessed.
        anonymous: carries only header fields that any browser sends to any site: all clients get the same response.
        foreign_frame: a frame in a page of another site: its URL was chosen by the author of that page, not by the reader.
        host_header: what Host must be so that the origin serves what was judged, `""` when it is right.
        target: the path and query that were judged, `b""` when the request has them in this form already.
    """

    request: Final[Request]
    aliases: Final[tuple[Request, ...]]
    address: Final[str]
    headers: Final[dict[bytes, str]]
    private: Final[bool]
    plain_client: Final[bool]
    anonymous: Final[bool]
    foreign_frame: Final[bool]
    host_header: Final[str]
    target: Final[bytes]

    def moved(self, url: Url) -> "FlowRequest":
        """Returns the request for another path of its site, under all of its names."""

        def named(request: Request) -> Request:
            own = request.url
            return replace(request, url=Url(own.scheme, own.host, own.port, url.path, url.query))

        return replace(self, request=replace(self.request, url=url), aliases=tuple(map(named, self.aliases)))


def read_flow(flow: http.HTTPFlow, user: str = "") -> FlowRequest:
    """Reads a flow whose request headers have arrived.

    Args:
        flow: of the request.
        user: name of the proxy user, `""` for none.

    Raises:
        UrlError: its target is no canonical URL and cannot be made one, or a field's value has a line break in it.
    """
    repeated = repeated_of(flow.request)
    if repeated is None:
        return _read_flow(flow, user)
    data, client = flow.request.data, flow.client_conn
    read_from = (
        data.headers.fields, data.path, data.method, data.host, data.port, data.scheme, data.authority, data.http_version,
        flow.server_conn.address, client.sni, client.peername, client.proxy_mode, user,
    )  # fmt: skip
    if read_from == repeated.read_from:
        found: FlowRequest = repeated.read_as
        return found
    found = _read_flow(flow, user)
    repeated.read_from, repeated.read_as = read_from, found
    return found


def _read_flow(flow: http.HTTPFlow, user: str) -> FlowRequest:
    data = flow.request.data
    method = _METHODS.get(data.method) or _read_method(data.method)
    path = data.path.decode("latin-1") if _PLAIN_PATH.fullmatch(data.path) is not None else _read_path(data)
    headers, hosts, common = _read_headers(data.headers.fields)
    scheme = _SCHEMES.get(data.scheme) or data.scheme.decode("latin-1").lower()
    websocket = b"upgrade" in headers and headers[b"upgrade"].lower() == "websocket"
    if websocket:
        scheme = _WEBSOCKET_SCHEMES.get(scheme, scheme)
    names, address = host_names(flow, hosts)
    # The arguments are given by position: by name a call takes half as long again.
    url = parse_url(f"{scheme}://{names[0]}:{data.port}{path}")
    kind = resource_type_of(headers, url.path, websocket=websocket)
    client = flow.client_conn.peername
    request = Request(url, _source(headers, url), kind, method, client[0] if client else "", user)
    return FlowRequest(
        request,
        _aliases(request, scheme, names, f"{data.port}{path}") if len(names) > 1 else (),
        address,
        headers,
        b"authorization" in headers or b"range" in headers,
        b"sec-fetch-dest" not in headers,
        common and _TELLING.isdisjoint(headers),
        kind is ResourceType.SUBDOCUMENT and _is_foreign(headers, request),
        "" if hosts == [url.netloc] and not data.authority else host_header_for(data, hosts, url),
        b"" if path == url.path + url.query and len(path) == len(data.path) else _target(data.path, url),
    )


def has_body(flow_request: FlowRequest) -> bool:
    """Returns whether a request may have a body, or a server may think so."""
    return (
        flow_request.request.method != "GET"
        or b"content-length" in flow_request.headers
        or b"transfer-encoding" in flow_request.headers
    )


def read_tunnel(client: Client, server: Server, user: str = "") -> tuple[Request, ...]:
    """Reads a tunnel that carries something other than HTTP: only its target and server name are known.

    Returns:
        One request for each name of the connection, its target first: each of them has to be allowed. `user` is the name of the
        proxy user.

    Raises:
        UrlError: it has no target, or a name is not a host.
    """
    if server.address is None:
        raise UrlError("a tunnel to nowhere")
    target, port = server.address[0], server.address[1]
    address = str(client.peername[0]) if client.peername else ""
    names = dict.fromkeys(canonical_host(name) for name in (target, client.sni) if name)
    return tuple(
        Request(parse_url(f"https://{name}:{port}/"), None, ResourceType.OTHER, "CONNECT", address, user) for name in names
    )


def _read_method(method: bytes) -> str:
    # HTTP/2 can carry what a request line of HTTP/1 cannot: the origin would read another method and path than were judged.
    if _METHOD.fullmatch(method) is None:
        raise UrlError("a method that no request line can hold")
    return method.decode("latin-1").upper()


def _read_path(data: http.RequestData) -> str:
    if _GAP.search(data.path) is not None:
        raise UrlError("a path that no request line can hold")
    before_query = data.path.partition(b"?")[0]
    if b"%00" in before_query:
        raise UrlError("a path with a NUL, at which some servers end it")
    # A block is also looked up by other spellings, but an allow for /a/* would cover /a/..;/b by its own.
    if _HIDDEN_PARENT.search(before_query) is not None:
        raise UrlError("a path with a dot segment that some servers resolve and others do not")
    path = data.path.decode("latin-1")
    if not path.isascii():  # a browser escapes these; escaping them here keeps each byte as it was sent
        path = "".join(mark if mark < "\x80" else f"%{ord(mark):02X}" for mark in path)
    if path.startswith("/"):
        return path
    if not path or (path == "*" and data.method == b"OPTIONS"):  # OPTIONS * is for the server itself
        return "/"
    raise UrlError(f"not a path: {path[:100]!r}")


def _aliases(request: Request, scheme: str, names: list[str], rest: str) -> tuple[Request, ...]:
    return tuple(
        Request(
            parse_url(f"{scheme}://{name}:{rest}"),
            request.source,
            request.resource_type,
            request.method,
            request.client,
            request.user,
        )
        for name in names[1:]
    )


def _read_headers(fields: tuple[tuple[bytes, bytes], ...]) -> tuple[dict[bytes, str], list[str], bool]:
    """Returns the fields that the proxy reads, each Host, and whether the other fields are common ones alone."""
    if holds_breaks(fields):
        raise UrlError("a header field holds a line break or a NUL")
    return read_roles(fields, _ROLES, _role)


def _role(name: bytes) -> bytes:
    lower = name.lower()
    if lower in _READ:
        return lower
    return PASSED if lower in _COMMON or lower.startswith((b"sec-ch-", b"sec-fetch-")) else OWN


def _in_title_case(name: bytes) -> bytes:
    return b"-".join(part.capitalize() for part in name.split(b"-"))


_ROLES.update({spelt: _role(name) for name in (*_READ, *_COMMON, *_HINTS) for spelt in (name, _in_title_case(name))})


def _target(path: bytes, url: Url) -> bytes:
    judged = f"{url.path}{url.query}".encode()
    return b"" if path in {judged, b"*"} else judged


def _source(headers: dict[bytes, str], url: Url) -> Url | None:
    text = headers.get(b"referer") or headers.get(b"origin")
    if text and text != "null" and (found := _page(text if len(text) <= _MAX_SOURCE_LENGTH else _origin(text))) is not None:
        return found
    return url if headers.get(b"sec-fetch-site") == "same-origin" else None


def _is_foreign(headers: dict[bytes, str], request: Request) -> bool:
    """Returns whether a frame is in a page of another site."""
    site = headers.get(b"sec-fetch-site")
    if site is not None and site not in {"same-origin", "same-site"}:
        return True
    return request.source is not None and registrable_domain(request.source.host) != registrable_domain(request.url.host)


def _origin(text: str) -> str:
    return "/".join(text[:_MAX_SOURCE_LENGTH].split("/", 3)[:3])


@lru_cache(maxsize=1024)
def _page(text: str) -> Url | None:
    try:
        return parse_url(text)
    except UrlError:
        return None
