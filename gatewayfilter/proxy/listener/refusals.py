"""The answers of the listener to connections that it refuses, as bytes."""

from typing import Final

from gatewayfilter.model import Reason
from gatewayfilter.proxy.listener.connect_request import ConnectRequest
from gatewayfilter.proxy.pages.block_page import BlockPages
from gatewayfilter.proxy.pages.upstream_errors import read_fault

_DENIED: Final = (
    b"HTTP/1.1 403 Forbidden\r\nX-GatewayFilter: block; reason=%b\r\nContent-Length: 0\r\nCache-Control: no-store\r\n"
    b"Connection: close\r\n\r\n"
)
UNRECOGNIZED_NAME: Final = bytes.fromhex("15 03 03 00 02 02 70")
"""A fatal TLS alert (RFC 6066 §3): the client ends at once, and shows no certificate warning."""

BUSY: Final = bytes.fromhex("15 03 03 00 02 02 50")
"""A fatal TLS alert, internal_error, to a redirected connection during an overload."""
_BUSY_TEXT: Final = "The filter is overloaded. Try again in a few seconds.\n过滤器繁忙。请在几秒后重试。\n".encode()
OVERLOADED: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nX-GatewayFilter: error; reason=overloaded\r\nRetry-After: 3\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n%b"
) % (len(_BUSY_TEXT), _BUSY_TEXT)
"""To the first request of a connection, or its CONNECT, during an overload."""


def denied(reason: Reason) -> bytes:
    """Returns the answer to a CONNECT to a blocked host."""
    return _DENIED % reason.value.encode()


def unreachable(pages: BlockPages, error: OSError, request: ConnectRequest) -> bytes:
    """Returns the answer to a CONNECT whose origin could not be reached, with an error page."""
    response = pages.error(
        read_fault(502, str(error)), str(error), url=f"https://{request.host}/", accept_language=request.accept_language
    )
    body = response.raw_content or b""
    fields = b"".join(b"%b: %b\r\n" % field for field in response.headers.fields if field[0].lower() != b"content-length")
    status = b"HTTP/1.1 %d %b\r\n" % (response.status_code, response.data.reason)
    return status + fields + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body
