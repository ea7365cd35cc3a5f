"""The preparation of an allowed request for its origin: it names the host that was judged, and carries no hop-by-hop fields."""

from typing import Final

from mitmproxy import http

from gatewayfilter.proxy.request.flow_request import FlowRequest

_FOR_A_PROXY: Final = (b"proxy-connection", b"proxy-authorization")
CONNECTION_FIELDS: Final = frozenset({b"connection", *_FOR_A_PROXY})
"""Without one of these, and with the right Host, a request is ready as it is."""
_USUAL_OPTIONS: Final = frozenset({"keep-alive", "close", "upgrade", "te"})
"""Of Connection. What else it names is a field for this hop, and is not sent on (RFC 9110 §7.6.1)."""
_FOR_EVERY_HOP: Final = frozenset({"connection", "content-length", "host", "transfer-encoding"})
"""Fields that Connection must not name: without them the request would be another one."""
_STAYING: Final = {option.encode() for option in _USUAL_OPTIONS | _FOR_EVERY_HOP}


def make_ready(request: http.Request, flow_request: FlowRequest, *, has_parent: bool) -> None:
    """Changes the fields of a request before it is sent to its origin.

    Args:
        request: is allowed.
        flow_request: the same, as it was read.
        has_parent: it is sent to another proxy, which the fields for proxies are for.
    """
    if flow_request.host_header:
        _name_host(request, flow_request.host_header)
    if not has_parent:  # they were for us, and the second one is a password (RFC 9110 §11.7.1)
        for name in _FOR_A_PROXY:
            if name in flow_request.headers:
                del request.headers[name]
    options = flow_request.headers.get(b"connection")
    if options is not None and options.lower() not in _USUAL_OPTIONS:
        _end_connection_fields(request)


def _name_host(request: http.Request, host: str) -> None:
    if request.data.authority:
        request.data.authority = host.encode()
    if not (request.data.authority and request.is_http2) or "Host" in request.headers:
        request.headers["Host"] = host


def _end_connection_fields(request: http.Request) -> None:
    # One walk over the fields: clients choose how many there are, and how many of them are named here.
    options = [option.strip() for option in request.headers.get("connection", "").split(",")]
    kept = [option for option in options if option.lower() in _USUAL_OPTIONS]
    named = {option.encode("utf-8", "surrogateescape").lower() for option in options} - _STAYING | {b"connection"}
    fields = [(name, value) for name, value in request.headers.fields if name.lower() not in named]
    if kept:
        fields.append((b"connection", ", ".join(kept).encode()))
    request.headers.fields = tuple(fields)
