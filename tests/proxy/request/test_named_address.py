"""Requests to an address that the client chose, with a Host of its choice."""

import ssl
from pathlib import Path

import pytest
from mitmproxy import platform
from mitmproxy.proxy.mode_specs import ProxyMode

from gatewayfilter.config import UnknownRule
from gatewayfilter.model import Verdict
from gatewayfilter.proxy.request.flow_request import read_flow
from gatewayfilter.proxy.request.named_address import NamedAddresses
from tests.case_tables import all_cases
from tests.proxy.connection_fakes import NAMED, wire_gateway
from tests.proxy.proxy_fakes import ALLOW, BLOCK, UNKNOWN, FakeDecide
from tests.proxy.request.test_flow_request import make_flow
from tests.proxy.split_clients import channel, site


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(("mode", "sni"), [("regular", ""), ("regular", "ok.test"), ("transparent", "")])
async def test_a_blocked_address_is_blocked_under_any_name(
    mode: str, sni: str, state: Path, client_tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with site() as target, wire_gateway(state, {"127.0.0.1": NAMED}, mode=mode) as gateway:
        monkeypatch.setattr(platform, "original_addr", lambda _: ("127.0.0.1", target.port))
        for scheme in ("http", "https"):
            gateway.decide.table[f"{scheme}://127.0.0.1:{target.port}/page"] = BLOCK
        async with channel(gateway.port, f"127.0.0.1:{target.port}" if mode == "regular" else "") as client:
            if sni:
                await client.begin_tls(client_tls, sni)
            await client.send(b"GET /page HTTP/1.1\r\nHost: ok.test\r\n\r\n")
            assert await client.status() == "403 blacklist"
        assert target.heard == []


@all_cases(
    ("scheme", "sni", "mode", "address"),
    [
        ("http", None, "regular", "192.0.2.1"),
        ("http", None, "transparent", "192.0.2.1"),
        ("http", "outer.example", "transparent", "192.0.2.1"),  # of TLS to the proxy
        ("https", None, "transparent", "192.0.2.1"),
        ("https", "site.example", "regular", "192.0.2.1"),
        ("https", "site.example", "transparent", ""),
    ],
)
def test_which_address_no_certificate_speaks_for(scheme: str, sni: str | None, mode: str, address: str) -> None:
    port = 80 if scheme == "http" else 443
    flow = make_flow(f"{scheme}://x/p", {"Host": "site.example"}, address=("192.0.2.1", port), sni=sni)
    flow.client_conn.proxy_mode = ProxyMode.parse(mode)
    assert read_flow(flow).address == address


@all_cases("sni", [None, "known.example"])
@all_cases("literal", [ALLOW, UNKNOWN])
@all_cases("address", ["8.8.8.8", "10.0.0.8", "2001:4860:4860::8888"])
@all_cases("verdict", [ALLOW, UNKNOWN])
@all_cases("rule", list(UnknownRule))
def test_a_known_name_leads_to_its_own_server(
    rule: UnknownRule, verdict: Verdict, address: str, literal: Verdict, sni: str | None
) -> None:
    scheme, port = ("https", 443) if sni else ("http", 80)
    flow = make_flow(f"{scheme}://x/p", {"Host": "known.example"}, address=(address, port), sni=sni)
    asked = read_flow(flow)
    decide = FakeDecide()
    decide.table[f"{scheme}://{asked.address}/p"] = literal
    NamedAddresses(decide, None, rule).lead(flow, asked, verdict)
    moved = rule is not UnknownRule.ALLOW and verdict is ALLOW and literal is UNKNOWN and address != "10.0.0.8" and not sni
    assert flow.request.data.host == ("known.example" if moved else address)
