"""The host names that a request carries: in its target or :authority, in Host, in the SNI, in the CONNECT target.

Each name that can decide what the origin serves is judged. Host is replaced where it names the site in another way than was
judged. Source: RFC 9112 §3.2, RFC 3986 §3.2.2.
"""

from functools import lru_cache
from typing import Final

from mitmproxy import http
from mitmproxy.proxy.mode_specs import TransparentMode

from gatewayfilter.errors import UrlError
from gatewayfilter.urls import MAX_HOST_LENGTH, Url, canonical_host, is_ip_literal

_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def host_names(flow: http.HTTPFlow, hosts: list[str]) -> tuple[list[str], str]:
    """Returns the names to judge, and the address that the client chose.

    Args:
        flow: its request headers are here.
        hosts: the value of each Host header.

    Returns:
        The canonical names, the URL's own first; and the canonical address where neither a name nor a certificate
        identifies its host, else `""`.

    Raises:
        UrlError: a name is not a host, or there are several Host headers.
    """
    data = flow.request.data
    if len(hosts) > 1:
        raise UrlError("the request has more than one Host header")
    named = [_read_authority(text) if len(text) <= MAX_HOST_LENGTH else _too_long(text) for text in hosts if text]
    if flow.server_conn.address is None:
        # An explicit proxy and a plain request: the request target names the server (RFC 9112 §3.2.2), Host must follow it.
        return (named if named == [data.host] else [canonical_host(data.host)]), ""
    # Inside a tunnel or behind a redirect: the address may be a bare number, and Host or :authority chooses the site.
    if data.authority:
        authority = data.authority.decode("latin-1")
        named.insert(0, _read_authority(authority) if len(authority) <= MAX_HOST_LENGTH else _too_long(authority))
    sni = flow.client_conn.sni
    if named == [data.host] and (not sni or sni == data.host):  # nearly always: they are all the same
        return named, ""
    if sni:
        named.append(canonical_host(sni))
    address = canonical_host(data.host)
    if not named or not is_ip_literal(address):
        named.append(address)
    # The certificate is verified for the server name. Who is redirected chose no address; a CONNECT to one names it.
    verified = sni and data.scheme == b"https" and type(flow.client_conn.proxy_mode) is TransparentMode
    return list(dict.fromkeys(named)), "" if verified or address in named else address


def host_header_for(data: http.RequestData, hosts: list[str], url: Url) -> str:
    """Returns what Host, or :authority, must be so that it names what was judged, `""` where each of them does.

    The port may be left out: the connection has it. An explicit proxy adds a Host where there is none, which origins refuse
    (RFC 9112 §3.2).
    """
    netloc = url.netloc
    if data.authority:
        present = [*hosts, data.authority.decode("latin-1")]
        complete = bool(hosts) or data.http_version == b"HTTP/2.0"
    else:
        present, complete = hosts, bool(hosts)
    if complete and len(present) == 1 and present[0].lower() == netloc:
        return ""
    right = {netloc, url.host, f"{url.host}:{url.port or _DEFAULT_PORTS[url.scheme]}"}
    return "" if complete and right.issuperset(text.lower() for text in present) else netloc


def _too_long(authority: str) -> str:
    raise UrlError(f"a host of {len(authority)} characters")


@lru_cache(maxsize=2048)
def _read_authority(authority: str) -> str:
    # Names beyond ASCII travel as xn-- (RFC 3986 §3.2.2): a server could read these bytes otherwise than we do.
    if not (authority.isascii() and authority.isprintable()):
        raise UrlError("a host beyond visible ASCII")
    host, colon, port = authority.rpartition(":")
    if colon and port.isdigit() and not (":" in host and not host.endswith("]")):
        return canonical_host(host)
    return canonical_host(authority.removesuffix(":"))
