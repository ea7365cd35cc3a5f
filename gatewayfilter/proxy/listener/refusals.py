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
