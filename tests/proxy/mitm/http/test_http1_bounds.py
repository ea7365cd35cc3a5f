"""The bound on what one side of an HTTP/1 connection keeps unread."""

from mitmproxy.connection import Client
from mitmproxy.options import Options
from mitmproxy.proxy.context import Context

from gatewayfilter.proxy.mitm.http.head_budget import FREE_BYTES
from gatewayfilter.proxy.mitm.http.http1_bounds import MAX_HEADER_BYTES
from gatewayfilter.proxy.mitm.http.http1_client import GatewayHttp1Client
from tests.case_tables import all_cases

OPTIONS = Options()


@all_cases(
    ("sizes", "too_much"),
    [
        ([0, FREE_BYTES], False),
        ([FREE_BYTES + 1], False),
        ([MAX_HEADER_BYTES], False),
        ([MAX_HEADER_BYTES + 1], True),
        ([FREE_BYTES, MAX_HEADER_BYTES + 1], True),
        ([MAX_HEADER_BYTES + 1, MAX_HEADER_BYTES], False),
        ([MAX_HEADER_BYTES + 1, 0], False),
    ],
)
def test_so_much_may_be_kept_unread(sizes: list[int], *, too_much: bool) -> None:
    side = GatewayHttp1Client(Context(Client(peername=("192.0.2.1", 1), sockname=("192.0.2.2", 8080)), OPTIONS))
    found = False
    for size in sizes:
        side.buf.maybe_extract_at_most(len(side.buf))
        side.buf += bytes(size)
        found = side.keeps_too_much()
    assert found is too_much
