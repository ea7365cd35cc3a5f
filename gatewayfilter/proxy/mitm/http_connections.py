"""HTTP connections as mitmproxy makes them, with the bounds, trailers and error pages that it lacks.

`install` puts our classes in the place of mitmproxy's own; tests/proxy/mitm/test_mitmproxy_pin.py watches the version.
"""

from functools import partial

from mitmproxy.proxy.layers import http as http_layers
from mitmproxy.proxy.layers.http import _http1

from gatewayfilter.proxy.mitm import stale_retry
from gatewayfilter.proxy.mitm.http.error_answers import ErrorAnswers
from gatewayfilter.proxy.mitm.http.http1_client import GatewayHttp1Client
from gatewayfilter.proxy.mitm.http.http1_server import GatewayHttp1Server
from gatewayfilter.proxy.mitm.http.http2_flow import PatientHttp2Client
from gatewayfilter.proxy.mitm.http.http2_server import GatewayHttp2Server
from gatewayfilter.proxy.pages.block_page import BlockPages


def install(pages: BlockPages) -> None:
    """Makes this process's mitmproxy use these connections. Idempotent; the pages given last are used.

    Args:
        pages: of the process.
    """
    errors = ErrorAnswers(pages)
    http_layers.Http1Server = partial(GatewayHttp1Server, errors)  # type: ignore[attr-defined, assignment]
    http_layers.Http1Client = GatewayHttp1Client  # type: ignore[attr-defined]
    http_layers.Http2Server = partial(GatewayHttp2Server, errors)  # type: ignore[attr-defined, assignment]
    http_layers.Http2Client = PatientHttp2Client  # type: ignore[attr-defined, assignment]
    _http1.make_error_response = errors.unreadable_request
    stale_retry.install()
