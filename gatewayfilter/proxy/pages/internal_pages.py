"""The adapter between flows and the filter's internal pages, which do not depend on mitmproxy."""

from mitmproxy import http

from gatewayfilter.interfaces import InternalPages, InternalRequest
from gatewayfilter.model import Request


def internal_response(pages: InternalPages, flow_request: Request, flow: http.HTTPFlow) -> http.Response:
    """Returns the response of the filter's own pages to a flow."""
    headers: dict[str, str] = {}
    for name, value in flow.request.headers.items(multi=True):
        headers.setdefault(name.lower(), value)
    answer = pages.respond(
        InternalRequest(
            url=flow_request.url,
            method=flow_request.method,
            headers=headers,
            client=flow_request.client,
            local=flow.client_conn.sockname[:2] if flow.client_conn.sockname else ("", 0),
        )
    )
    content = b"" if flow_request.method == "HEAD" else answer.content
    return http.Response.make(answer.status, content, dict(answer.headers))
