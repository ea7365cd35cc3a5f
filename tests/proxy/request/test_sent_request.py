"""What is taken out of a request before it is sent."""

from dataclasses import replace

from mitmproxy import http
from mitmproxy.test import tflow

from gatewayfilter.proxy.request.flow_request import read_flow
from gatewayfilter.proxy.request.sent_request import make_ready
from tests.case_tables import all_cases


def _sent(fields: list[tuple[bytes, bytes]], *, has_parent: bool = False) -> tuple[tuple[bytes, bytes], ...]:
    flow = tflow.tflow(req=http.Request.make("GET", "http://example.test/a"))
    flow.request.headers = http.Headers([(b"Host", b"example.test"), *fields])
    flow.server_conn.address = None
    make_ready(flow.request, read_flow(flow), has_parent=has_parent)
    return flow.request.headers.fields


def test_many_named_fields_take_no_time() -> None:
    """No stopwatch: a walk over the fields for each name would not end within the test's time limit."""
    count = 15_000
    named = b",".join(b"x%d" % number for number in range(count))
    fields = [(b"Connection", named), *((b"X%d" % number, b"y") for number in range(count))]
    assert _sent(fields) == ((b"Host", b"example.test"),)


def test_only_what_is_named_ends() -> None:
    fields = [
        (b"X-One", b"1"),
        (b"connection", b"X-ONE, , te"),
        (b"X-Two", b"2"),
        (b"Connection", b"coo\xe2\x84\xaaie, host, connection"),
    ]
    fields.append((b"Cookie", b"c"))
    assert set(_sent(fields)) == {(b"Host", b"example.test"), (b"X-Two", b"2"), (b"Cookie", b"c"), (b"connection", b"te")}


def test_fields_for_a_proxy_are_sent_to_a_parent_alone() -> None:
    fields = [(b"Proxy-Connection", b"keep-alive"), (b"Proxy-Authorization", b"Basic eA=="), (b"Accept", b"*/*")]
    for has_parent, sent in ((False, fields[2:]), (True, fields)):
        assert _sent(fields, has_parent=has_parent) == ((b"Host", b"example.test"), *sent)


@all_cases(
    ("version", "authority", "host", "sent"),
    [
        ("HTTP/1.1", b"", b"b.example", (b"", "a.example")),
        ("HTTP/1.1", b"", None, (b"", "a.example")),
        ("HTTP/1.1", b"b.example", None, (b"a.example", "a.example")),
        ("HTTP/2.0", b"b.example", None, (b"a.example", None)),
        ("HTTP/2.0", b"b.example", b"b.example", (b"a.example", "a.example")),
        ("HTTP/2.0", b"", None, (b"", "a.example")),
    ],
)
def test_where_the_host_that_was_judged_is_named(
    version: str, authority: bytes, host: bytes | None, sent: tuple[bytes, str | None]
) -> None:
    flow = tflow.tflow(req=http.Request.make("GET", "http://example.test/a"))
    flow.request.headers = http.Headers([] if host is None else [(b"Host", host)])
    flow.request.data.authority, flow.request.http_version = authority, version
    flow.server_conn.address = None
    make_ready(flow.request, replace(read_flow(flow), host_header="a.example"), has_parent=False)
    assert (flow.request.data.authority, flow.request.headers.get("host")) == sent
