"""Origin authentication: whether it is certain that a response comes from the host in its URL.

The client chooses the Host header, the server name and, on a redirected connection, the address. What a server answers is learned
for a host only where something that the client does not choose ties that server to it: the certificate that was verified on this
very connection, or the filter's own resolution of the name.

| connection to the origin | certain where |
|---|---|
| TLS | the certificate was verified for the URL's host |
| plain, made by name (absolute-form, CONNECT with a name) | that name is the URL's host: the filter resolved it |
| plain, redirected (transparent mode) | the filter's resolver has the name at hand, with the peer's address |
| plain, CONNECT with an address | nowhere |
| through a parent proxy | as above: the name is given to the parent, which resolves it in the filter's place |

Where a request names several hosts it is certain of none of them.

Nor is it certain to which request a response belongs, once the connection has carried a request with a body: a server that
passes over the body reads it as the next request, and the client chose it. From then on nothing is learned of that connection.
"""

from asyncio import get_running_loop
from functools import lru_cache

from mitmproxy import ctx, http
from mitmproxy.connection import Server
from mitmproxy.proxy import mode_specs

from gatewayfilter.errors import UrlError
from gatewayfilter.proxy.request.flow_request import FlowRequest
from gatewayfilter.proxy.tunnel.resolver import known_addresses
from gatewayfilter.urls import canonical_host


def is_authenticated(flow: http.HTTPFlow, flow_request: FlowRequest) -> bool:
    """Returns whether the origin connection of a flow certainly leads to the host of its URL. Does no I/O.

    A connection that is used again carries the name it was verified or made for, so each response is held against that.
    """
    url, server = flow_request.request.url, flow.server_conn
    if flow_request.aliases:
        return False
    if url.scheme == "https":
        return _is_verified(server, url.host)
    if server.tls or server.address is None:
        return False
    if _canonical(server.address[0]) == url.host:
        return True
    # A client that names an address itself, in a CONNECT, has chosen not to have the name resolved.
    redirected = isinstance(flow.client_conn.proxy_mode, mode_specs.TransparentMode)
    return redirected and server.peername is not None and _is_resolved(server.peername[0], url.host, flow.request.port)


def _is_verified(server: Server, host: str) -> bool:
    # mitmproxy verifies the certificate for `sni`, which it sets before the handshake and leaves alone then.
    if not server.tls or server.timestamp_tls_setup is None or server.sni is None:
        return False
    return _canonical(server.sni) == host and not _option("ssl_insecure")


def _is_resolved(address: str, host: str, port: int) -> bool:
    try:
        known = known_addresses(get_running_loop(), host, port)
    except (OSError, RuntimeError):
        return False
    return any(info[4][0] == address for info in known or ())


def shows_certificate() -> bool:
    """Returns whether origins may be shown a client certificate, and answer its owner: a stock mitmproxy can be set up so."""
    return bool(_option("client_certs"))


def _option(name: str) -> object:
    return getattr(getattr(ctx, "options", None), name, None)


@lru_cache(maxsize=1024)
def _canonical(host: str) -> str:
    try:
        return canonical_host(host)
    except UrlError:
        return ""
