"""The hook for the filter's own pages, on real flows of mitmproxy."""

import pytest
from mitmproxy.test import tflow, tutils

from gatewayfilter.config import OnError, ProxySettings, Settings
from gatewayfilter.interfaces import InternalAnswer, InternalRequest
from gatewayfilter.proxy.addon import GatewayAddon
from gatewayfilter.proxy.filter_services import FilterServices
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import Url
from tests.proxy.proxy_fakes import Gateway


class OneHost:
    """Answers for one host; fails at `/fault`."""

    def __init__(self) -> None:
        self.asked: list[InternalRequest] = []

    def answers(self, url: Url) -> bool:
        return url.host == "own.example"

    def respond(self, request: InternalRequest) -> InternalAnswer:
        self.asked.append(request)
        if "fault" in request.url.text:
            raise RuntimeError("a broken page")
        return InternalAnswer(200, {"content-type": "text/plain"}, b"hello")


def addon_with(pages: OneHost, gateway: Gateway) -> GatewayAddon:
    return GatewayAddon(Settings(), FilterServices(gateway.decide, internal_pages=pages), Counters())


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_an_own_page_is_answered_without_a_decision(method: str) -> None:
    pages, gateway = OneHost(), Gateway()
    flow = tflow.tflow(
        req=tutils.treq(method=method.encode(), host="own.example", port=80, path=b"/a?b", headers=((b"host", b"own.example"),))
    )
    addon_with(pages, gateway).requestheaders(flow)
    assert flow.response is not None
    assert (flow.response.status_code, flow.response.content) == (200, b"" if method == "HEAD" else b"hello")
    (asked,) = pages.asked
    assert (asked.url.text, asked.method, asked.headers["host"]) == ("http://own.example/a?b", method, "own.example")
    assert asked.client == "127.0.0.1"
    assert gateway.decide.asked == []


def test_other_hosts_are_decided() -> None:
    pages, gateway = OneHost(), Gateway()
    flow = tflow.tflow(req=tutils.treq(host="other.example", port=80, headers=((b"host", b"other.example"),)))
    addon_with(pages, gateway).requestheaders(flow)
    assert flow.response is None
    assert pages.asked == []
    assert gateway.decide.asked[0].url.host == "other.example"


def test_a_broken_page_never_reaches_an_origin_when_the_filter_is_to_block() -> None:
    pages, gateway = OneHost(), Gateway()
    settings = Settings(proxy=ProxySettings(on_error=OnError.BLOCK))
    addon = GatewayAddon(settings, FilterServices(gateway.decide, internal_pages=pages), Counters())
    flow = tflow.tflow(req=tutils.treq(host="own.example", port=80, path=b"/fault", headers=((b"host", b"own.example"),)))
    addon.requestheaders(flow)
    assert flow.response is not None
    assert flow.response.status_code == 503


def test_a_page_gets_the_first_field_of_each_name_and_the_address_that_was_reached() -> None:
    pages, gateway = OneHost(), Gateway()
    for reached, local in (
        (("2001:db8::1", 8080, 0, 0), ("2001:db8::1", 8080)),
        (("192.0.2.1", 80), ("192.0.2.1", 80)),
        (None, ("", 0)),
    ):
        fields = ((b"Host", b"own.example"), (b"X-A", b"first"), (b"x-a", b"second"))
        flow = tflow.tflow(req=tutils.treq(host="own.example", port=80, headers=fields))
        flow.client_conn.sockname = reached  # type: ignore[assignment]
        addon_with(pages, gateway).requestheaders(flow)
        assert (pages.asked[-1].local, pages.asked[-1].headers) == (local, {"host": "own.example", "x-a": "first"})
