"""Calls the filter's own pages, which do not depend on mitmproxy, for a flow."""

from mitmproxy import http

from gatewayfilter.interfaces import InternalPages, InternalRequest
from gatewayfilter.model import Request


def internal_response(pages: InternalPages, asked: Request, flow: http.HTTPFlow) -> http.Response:
    """Returns the response of the filter's own pages to a flow."""
    headers: dict[str, str] = {}
    for name, value in flow.request.headers.items(multi=True):
        headers.setdefault(name.lower(), value)
    answer = pages.respond(
        InternalRequest(
            url=asked.url,
            method=asked.method,
            headers=headers,
            client=asked.client,
            local=flow.client_conn.sockname[:2] if flow.client_conn.sockname else ("", 0),
        )
    )
    content = b"" if asked.method == "HEAD" else answer.content
    return http.Response.make(answer.status, content, dict(answer.headers))
