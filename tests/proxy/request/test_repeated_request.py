"""What is kept of a request holds for one that is the same in everything, and for no other."""

from collections.abc import Callable
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.proxy.mode_specs import ProxyMode
from mitmproxy.test import tflow

from gatewayfilter.errors import UrlError
from gatewayfilter.proxy.mitm.fastpath.http1_heads import read_head, request_of
from gatewayfilter.proxy.request.flow_request import FlowRequest, read_flow
from gatewayfilter.proxy.request.repeated_request import RepeatedRequest, note_repeated, repeated_of
from tests.case_tables import all_cases

HEAD = b"GET http://a.example/page?q HTTP/1.1\r\nHost: a.example\r\nReferer: http://b.example/\r\n\r\n"


def read(head: bytes = HEAD) -> RepeatedRequest:
    found = read_head(head)
    assert found is not None
    return found


def flow_of(repeated: RepeatedRequest, *, noted: bool = True) -> http.HTTPFlow:
    request = request_of(repeated)
    if noted:
        note_repeated(request, repeated)
    flow = tflow.tflow(req=request)
    flow.server_conn.address = None
    flow.client_conn.peername = ("192.0.2.7", 5000)
    return flow


def seen(found: FlowRequest) -> tuple[object, ...]:
    return tuple(getattr(found, name) for name in FlowRequest.__slots__)


def test_the_same_request_is_read_once() -> None:
    repeated = read()
    first, second = (read_flow(flow_of(repeated)) for _ in range(2))
    assert first is second
    assert seen(first) == seen(read_flow(flow_of(repeated, noted=False)))
    assert repeated_of(flow_of(repeated, noted=False).request) is None


def name_another_host(flow: http.HTTPFlow) -> None:
    flow.request.data.host = "c.example"


def name_another_port(flow: http.HTTPFlow) -> None:
    flow.request.data.port = 81


def take_tls(flow: http.HTTPFlow) -> None:
    flow.request.data.scheme = b"https"


def change_the_path(flow: http.HTTPFlow) -> None:
    flow.request.data.path = b"/other"


def change_the_method(flow: http.HTTPFlow) -> None:
    flow.request.data.method = b"HEAD"


def name_an_authority(flow: http.HTTPFlow) -> None:
    flow.server_conn.address = ("192.0.2.1", 80)
    flow.request.data.authority = b"d.example"


def lead_to_an_address(flow: http.HTTPFlow) -> None:
    flow.server_conn.address = ("192.0.2.1", 80)
    flow.request.data.host = "192.0.2.1"


def name_a_server(flow: http.HTTPFlow) -> None:
    flow.server_conn.address = ("a.example", 80)
    flow.client_conn.sni = "e.example"


def come_from_elsewhere(flow: http.HTTPFlow) -> None:
    flow.client_conn.peername = ("192.0.2.8", 5000)


def be_redirected(flow: http.HTTPFlow) -> None:
    flow.server_conn.address = ("192.0.2.1", 443)
    flow.request.data.host, flow.request.data.scheme = "192.0.2.1", b"https"
    flow.client_conn.sni = "a.example"
    flow.client_conn.proxy_mode = ProxyMode.parse("transparent")


def remove_a_field(flow: http.HTTPFlow) -> None:
    flow.request.headers.pop("referer")


def add_a_login(flow: http.HTTPFlow) -> None:
    flow.request.headers["authorization"] = "Basic eDp5"


CHANGES: tuple[Callable[[http.HTTPFlow], None], ...] = (
    name_another_host, name_another_port, take_tls, change_the_path, change_the_method, name_an_authority, lead_to_an_address,
    name_a_server, come_from_elsewhere, be_redirected, remove_a_field, add_a_login,
)  # fmt: skip


@all_cases("change", CHANGES)
def test_whatever_differs_is_read_anew(change: Callable[[http.HTTPFlow], None]) -> None:
    repeated = read()
    before = read_flow(flow_of(repeated))
    changed, fresh, again = flow_of(repeated), flow_of(repeated, noted=False), flow_of(repeated)
    change(changed)
    change(fresh)
    found = read_flow(changed)
    assert seen(found) == seen(read_flow(fresh)) != seen(before)
    assert seen(read_flow(again)) == seen(before)


def flow_in_a_tunnel(
    repeated: RepeatedRequest, *, address: tuple[str, int] | None = ("192.0.2.1", 80), sni: str = "", authority: bytes = b""
) -> http.HTTPFlow:
    flow = flow_of(repeated)
    flow.server_conn.address, flow.client_conn.sni = address, sni
    flow.request.data.host, flow.request.data.authority = "192.0.2.1", authority
    return flow


@all_cases(
    "another",
    [{"sni": "e.example"}, {"authority": b"d.example"}, {"address": None}, {"sni": "e.example", "authority": b"d.example"}],
)
def test_each_name_of_a_server_counts_alone(another: dict[str, Any]) -> None:
    repeated = read()
    before = seen(read_flow(flow_in_a_tunnel(repeated)))
    found = seen(read_flow(flow_in_a_tunnel(repeated, **another)))
    assert found == seen(read_flow(flow_in_a_tunnel(read(), **another))) != before


def test_each_user_is_read_anew() -> None:
    repeated = read()
    assert [read_flow(flow_of(repeated), user).request.user for user in ("", "ann", "ann", "", "bob")] == [
        "",
        "ann",
        "ann",
        "",
        "bob",
    ]


def test_what_is_refused_is_refused_again() -> None:
    repeated = read(b"GET http://a.example/..;/b%00 HTTP/1.1\r\nHost: a.example\r\n\r\n")
    for _ in range(2):
        with pytest.raises(UrlError):
            read_flow(flow_of(repeated))


def test_what_a_hook_changes_in_a_request_does_not_reach_the_next_one() -> None:
    repeated = read()
    first = request_of(repeated)
    first.headers["host"] = "c.example"
    first.data.path, first.data.host, first.data.content = b"/other", "c.example", b"x"
    second = request_of(repeated)
    assert (second.data.path, second.data.host, second.data.content) == (b"/page?q", "a.example", None)
    assert second.headers["host"] == "a.example"
