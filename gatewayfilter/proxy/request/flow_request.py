"""From a mitmproxy flow to a `Request`: which URL is asked for, as what, from which page, by whom.

A client may name the host in up to four places: the request target, the Host header, the SNI and the CONNECT target. What is
judged is what will be contacted; where several of them can decide what the origin serves, each name is judged (`aliases`).

What is judged is also what is sent: a path in another form than the canonical one, which was judged, is replaced by it, as is a
Host that names the site in another way. Browsers send canonical forms; servers disagree on the others (RFC 3986 §6.2,
RFC 9110 §4.2.3).
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from mitmproxy import http
from mitmproxy.connection import Client, Server
from mitmproxy.proxy.mode_specs import TransparentMode

from gatewayfilter.errors import UrlError
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.proxy.request.header_sanitizer import holds_breaks
from gatewayfilter.urls import MAX_HOST_LENGTH, Url, canonical_host, is_ip_literal, parse_url, registrable_domain

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
"""Besides `_READ`, what any browser may send to any site: nothing that an origin would know a person or a customer by."""
_METHOD: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-zA-Z]+")
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
_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_MAX_SOURCE_LENGTH = 2048
"""A longer Referer is no page that anybody could have typed; it is cut to its origin, which bounds the memory of the cache."""

_BY_DESTINATION: Final = {
    "document": ResourceType.DOCUMENT,
    "iframe": ResourceType.SUBDOCUMENT,
    "frame": ResourceType.SUBDOCUMENT,
    "fencedframe": ResourceType.SUBDOCUMENT,
    "object": ResourceType.OBJECT,
    "embed": ResourceType.OBJECT,
    "script": ResourceType.SCRIPT,
    "worker": ResourceType.SCRIPT,
    "sharedworker": ResourceType.SCRIPT,
    "serviceworker": ResourceType.SCRIPT,
    "audioworklet": ResourceType.SCRIPT,
    "paintworklet": ResourceType.SCRIPT,
    "style": ResourceType.STYLESHEET,
    "xslt": ResourceType.STYLESHEET,
    "image": ResourceType.IMAGE,
    "font": ResourceType.FONT,
    "audio": ResourceType.MEDIA,
    "video": ResourceType.MEDIA,
    "track": ResourceType.MEDIA,
    "report": ResourceType.PING,
    "websocket": ResourceType.WEBSOCKET,
    "empty": ResourceType.XMLHTTPREQUEST,
    "json": ResourceType.XMLHTTPREQUEST,
    "manifest": ResourceType.OTHER,
    "webidentity": ResourceType.OTHER,
}
"""Sec-Fetch-Dest (Fetch Standard §3.2.7) in the words of Adblock options."""

_BY_ACCEPT: Final = (
    ("text/html", ResourceType.DOCUMENT),
    ("application/xhtml", ResourceType.DOCUMENT),
    ("text/css", ResourceType.STYLESHEET),
    ("image/", ResourceType.IMAGE),
    ("video/", ResourceType.MEDIA),
    ("audio/", ResourceType.MEDIA),
    ("font/", ResourceType.FONT),
    ("application/font", ResourceType.FONT),
    ("text/javascript", ResourceType.SCRIPT),
    ("application/javascript", ResourceType.SCRIPT),
    ("application/json", ResourceType.XMLHTTPREQUEST),
    ("text/event-stream", ResourceType.XMLHTTPREQUEST),
)
"""What the first media type of Accept says of a client without Sec-Fetch headers."""

_BY_EXTENSION: Final = {
    extension: kind
    for kind, extensions in (
        (ResourceType.DOCUMENT, "htm html php asp aspx jsp shtml xhtml"),
        (ResourceType.SCRIPT, "js mjs"),
        (ResourceType.STYLESHEET, "css"),
        (ResourceType.IMAGE, "png jpg jpeg gif webp avif svg ico bmp apng jxl"),
        (ResourceType.FONT, "woff woff2 ttf otf eot"),
        (ResourceType.MEDIA, "mp4 webm mp3 m4a m4v ogg oga ogv wav flac m3u8 mpd ts m4s mov aac opus"),
        (ResourceType.XMLHTTPREQUEST, "json"),
        (ResourceType.OBJECT, "swf"),
    )
    for extension in extensions.split()
}


@dataclass(frozen=True, slots=True)
class FlowRequest:
    """What a flow asks for, and what else of it matters to the proxy.

    Attributes:
        aliases: the same request under each other host name that can decide what the origin serves; nearly always empty.
        address: the address that the client chose, where neither a name nor a certificate says whose it is; canonical, else `""`.
        headers: the request headers that the proxy reads: lower-case name → value, the first of repeated ones.
        private: carries credentials or asks for a part: never looked at again by the crawler.
        plain_client: sends no Sec-Fetch headers, so its resource type is a guess.
        anonymous: carries header fields alone that any browser sends to any site: what is answered, anybody is answered.
        foreign_frame: a frame in a page of another site: whoever wrote that page chose its URL, and not the person who reads it.
        host_header: what Host must be so that the origin serves what was judged, `""` when it is right.
        target: the path and query that were judged, `b""` when the request has them in this form already.
    """

    request: Request
    aliases: tuple[Request, ...]
    address: str
    headers: dict[bytes, str]
    private: bool
    plain_client: bool
    anonymous: bool
    foreign_frame: bool
    host_header: str
    target: bytes


def read_flow(flow: http.HTTPFlow) -> FlowRequest:
    """Reads a flow whose request headers have arrived.

    Raises:
        UrlError: what it asks for cannot be written as a canonical URL, or a field's value has a line break in it.
    """
    data = flow.request.data
    # HTTP/2 can say what a request line of HTTP/1 cannot: the origin would read another method and path than were judged.
    if _METHOD.fullmatch(data.method) is None or _GAP.search(data.path) is not None:
        raise UrlError("a method or path that no request line can hold")
    if b"%" in data.path or b";" in data.path:
        _refuse_doubtful(data.path.partition(b"?")[0])
    headers, hosts, common = _read_headers(data.headers.fields)
    websocket = headers.get(b"upgrade", "").lower() == "websocket"
    scheme = data.scheme.decode("latin-1").lower()
    if websocket and scheme in {"http", "https"}:
        scheme = "ws" if scheme == "http" else "wss"
    names, address = _host_names(flow, hosts)
    path = _path(data)
    url = _url(scheme, names[0], data.port, path)
    request = Request(
        url=url,
        source=_source(headers, url),
        resource_type=_resource_type(headers, url, websocket=websocket),
        method=data.method.decode("latin-1").upper(),
        client=flow.client_conn.peername[0] if flow.client_conn.peername else "",
    )
    aliases: tuple[Request, ...] = ()
    if len(names) > 1:
        aliases = tuple(
            Request(_url(scheme, name, data.port, path), request.source, request.resource_type, request.method, request.client)
            for name in names[1:]
        )
    return FlowRequest(
        request=request,
        aliases=aliases,
        address=address,
        headers=headers,
        private=b"authorization" in headers or b"range" in headers,
        plain_client=b"sec-fetch-dest" not in headers,
        anonymous=common and _TELLING.isdisjoint(headers),
        foreign_frame=request.resource_type is ResourceType.SUBDOCUMENT and _is_foreign(headers, request),
        host_header="" if hosts == [url.netloc] and not data.authority else _host_header(data, hosts, url),
        target=b"" if path == url.path + url.query and len(path) == len(data.path) else _target(data.path, url),
    )


def read_tunnel(client: Client, server: Server) -> tuple[Request, ...]:
    """Reads a connection in which something other than HTTP goes on: all that is known is where it leads.

    Returns:
        One request for each name that the connection carries, where it leads first: each of them has to be allowed.

    Raises:
        UrlError: it leads nowhere, or a name is none.
    """
    if server.address is None:
        raise UrlError("a tunnel to nowhere")
    target, port = server.address[0], server.address[1]
    address = str(client.peername[0]) if client.peername else ""
    names = dict.fromkeys(canonical_host(name) for name in (target, client.sni) if name)
    return tuple(Request(_url("https", name, port, "/"), None, ResourceType.OTHER, "CONNECT", address) for name in names)


def _refuse_doubtful(path: bytes) -> None:
    if b"%00" in path:
        raise UrlError("a path with a NUL, at which some servers end it")
    # A block is also looked up by other spellings, but an allow for /a/* would take /a/..;/b in by its own.
    if _HIDDEN_PARENT.search(path) is not None:
        raise UrlError("a path with a dot segment that some servers resolve and others do not")


def _read_headers(fields: tuple[tuple[bytes, bytes], ...]) -> tuple[dict[bytes, str], list[str], bool]:
    """Returns the fields that the proxy reads, each Host, and whether the other fields are common ones alone."""
    if holds_breaks(fields):
        raise UrlError("a header field holds a line break or a NUL")
    # One walk over the fields: mitmproxy's own look-up decodes and compares all of them for each name.
    headers: dict[bytes, str] = {}
    hosts: list[str] = []
    common = True
    for name, value in fields:
        lower = name.lower()
        if lower in _READ:
            text = value.decode("latin-1")
            if headers.setdefault(lower, text) is not text and lower == b"connection":
                headers[lower] = f"{headers[lower]}, {text}"
            if lower == b"host":
                hosts.append(text)
        elif common and lower not in _COMMON:
            common = lower.startswith((b"sec-ch-", b"sec-fetch-"))
    return headers, hosts, common


def _host_names(flow: http.HTTPFlow, hosts: list[str]) -> tuple[list[str], str]:
    """Returns the canonical names to judge, the URL's own first, and the `address` of a `FlowRequest`."""
    data = flow.request.data
    if len(hosts) > 1:
        raise UrlError("the request has more than one Host header")
    named = [_host_of(text) for text in hosts if text]
    if flow.server_conn.address is None:
        # An explicit proxy and a plain request: the request target names the server (RFC 9112 §3.2.2), Host must follow it.
        return [canonical_host(data.host)], ""
    # Inside a tunnel or behind a redirect: the address may be a bare number, and Host or :authority chooses the site.
    if data.authority:
        named.insert(0, _host_of(data.authority.decode("latin-1")))
    sni = flow.client_conn.sni
    if named == [data.host] and (not sni or sni == data.host):  # nearly always: all say the same
        return named, ""
    if sni:
        named.append(canonical_host(sni))
    address = canonical_host(data.host)
    if not named or not is_ip_literal(address):
        named.append(address)
    # The certificate is verified for the server name. Who is redirected chose no address; a CONNECT to one names it.
    told = sni and data.scheme == b"https" and type(flow.client_conn.proxy_mode) is TransparentMode
    return list(dict.fromkeys(named)), "" if told or address in named else address


def _host_of(authority: str) -> str:
    if len(authority) > MAX_HOST_LENGTH:
        raise UrlError(f"a host of {len(authority)} characters")
    return _read_authority(authority)


@lru_cache(maxsize=2048)
def _read_authority(authority: str) -> str:
    # Names beyond ASCII travel as xn-- (RFC 3986 §3.2.2): a server could read these bytes otherwise than we do.
    if not (authority.isascii() and authority.isprintable()):
        raise UrlError("a host beyond visible ASCII")
    host, colon, port = authority.rpartition(":")
    if colon and port.isdigit() and not (":" in host and not host.endswith("]")):
        return canonical_host(host)
    return canonical_host(authority.removesuffix(":"))


def _host_header(data: http.RequestData, hosts: list[str], url: Url) -> str:
    """Returns what Host, or :authority, must be so that it names what was judged, `""` where each that is there does.

    The port may be left out: the connection has it. An explicit proxy adds a Host where there is none, which origins refuse
    (RFC 9112 §3.2).
    """
    netloc = url.netloc
    if data.authority:
        said = [*hosts, data.authority.decode("latin-1")]
        complete = bool(hosts) or data.http_version == b"HTTP/2.0"
    else:
        said, complete = hosts, bool(hosts)
    if complete and len(said) == 1 and said[0].lower() == netloc:
        return ""
    right = {netloc, url.host, f"{url.host}:{url.port or _DEFAULT_PORTS[url.scheme]}"}
    return "" if complete and right.issuperset(text.lower() for text in said) else netloc


def _path(data: http.RequestData) -> str:
    path = data.path.decode("latin-1")
    if not path.isascii():  # a browser escapes these; escaping them here keeps each byte as it was sent
        path = "".join(mark if mark < "\x80" else f"%{ord(mark):02X}" for mark in path)
    if path.startswith("/"):
        return path
    if not path or (path == "*" and data.method == b"OPTIONS"):  # OPTIONS * asks the server itself
        return "/"
    raise UrlError(f"not a path: {path[:100]!r}")


def _target(path: bytes, url: Url) -> bytes:
    judged = f"{url.path}{url.query}".encode()
    # An empty query is sent by browsers, too, and has no other meaning than none.
    return b"" if path in {judged, judged + b"?", b"*"} else judged


def _url(scheme: str, host: str, port: int, path: str) -> Url:
    return parse_url(f"{scheme}://{host}:{port}{path}")


def _source(headers: dict[bytes, str], url: Url) -> Url | None:
    text = headers.get(b"referer") or headers.get(b"origin")
    if text and text != "null" and (found := _page(text if len(text) <= _MAX_SOURCE_LENGTH else _origin(text))) is not None:
        return found
    return url if headers.get(b"sec-fetch-site") == "same-origin" else None


def _is_foreign(headers: dict[bytes, str], request: Request) -> bool:
    """Tells whether a frame is in a page of another site."""
    said = headers.get(b"sec-fetch-site")
    if said is not None and said not in {"same-origin", "same-site"}:
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


def _resource_type(headers: dict[bytes, str], url: Url, *, websocket: bool) -> ResourceType:
    if websocket:
        return ResourceType.WEBSOCKET
    if b"ping-to" in headers or headers.get(b"content-type", "").startswith("text/ping"):
        return ResourceType.PING
    destination = headers.get(b"sec-fetch-dest")
    if destination is not None:
        mode = headers.get(b"sec-fetch-mode")
        if destination == "empty" and mode == "no-cors":  # navigator.sendBeacon and fetch(…, {keepalive, no-cors})
            return ResourceType.PING
        fallback = ResourceType.DOCUMENT if mode == "navigate" else ResourceType.OTHER
        return _BY_DESTINATION.get(destination, fallback)
    return _guess(headers, url)


def _guess(headers: dict[bytes, str], url: Url) -> ResourceType:
    if headers.get(b"x-requested-with", "").lower() == "xmlhttprequest":
        return ResourceType.XMLHTTPREQUEST
    accept = headers.get(b"accept", "").lstrip()
    for prefix, kind in _BY_ACCEPT:
        if accept.startswith(prefix):
            return kind
    name = url.path.rpartition("/")[2]
    _, dot, extension = name.rpartition(".")
    if dot and (known := _BY_EXTENSION.get(extension.lower())) is not None:
        return known
    if b"origin" in headers:
        return ResourceType.XMLHTTPREQUEST
    return ResourceType.OTHER if b"referer" in headers else ResourceType.DOCUMENT
