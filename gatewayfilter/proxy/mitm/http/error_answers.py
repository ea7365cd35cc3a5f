"""Error responses for unreadable requests and failed origins, as pages and as bytes."""

from mitmproxy import http
from mitmproxy.net.http.http1 import assemble_response

from gatewayfilter.proxy.pages.block_page import BlockPages
from gatewayfilter.proxy.pages.upstream_errors import Fault, read_fault


class ErrorAnswers:
    """Makes the answers to requests that cannot be read, or whose origin cannot be reached.

    Args:
        pages: of the process.
    """

    def __init__(self, pages: BlockPages) -> None:
        self._pages = pages

    def unreadable_request(self, status_code: int, message: str = "") -> bytes:
        """Returns the response to a request that cannot be read. Stands in for mitmproxy's `make_error_response`."""
        return self.closing(read_fault(status_code, message), message)

    def closing(self, fault: Fault, message: str = "") -> bytes:
        """Returns the answer to a fault that ends the connection, as bytes of HTTP/1."""
        return assemble(self._pages.error(fault, message))

    def page(self, request: http.Request | None, status: int, message: str) -> http.Response:
        """Returns the error page for a request without a response of its origin."""
        fault = read_fault(status, message)
        if request is None:
            return self._pages.error(fault, message)
        language = request.headers.get("accept-language", "")
        return self._pages.error(fault, message, url=request.pretty_url, method=request.method, accept_language=language)


def assemble(response: http.Response) -> bytes:
    """Returns a response that ends its connection, as bytes of HTTP/1."""
    response.headers["connection"] = "close"
    return bytes(assemble_response(response))
