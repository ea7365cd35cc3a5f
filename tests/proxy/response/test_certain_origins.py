"""Whether an origin is certainly the host of a URL, by what is known of its connection alone."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from mitmproxy.connection import Server
from mitmproxy.proxy import mode_specs

from gatewayfilter.proxy.request.flow_request import read_flow
from gatewayfilter.proxy.response import origin_name
from gatewayfilter.proxy.response.origin_name import is_authenticated, shows_certificate
from tests.proxy.response.test_response_pipeline import flow_to


def test_plain_connections_by_name() -> None:
    flow, request = flow_to(), read_flow(flow_to())
    assert is_authenticated(flow, request)
    flow.server_conn = Server(address=("SITE.example", 80))
    assert is_authenticated(flow, request)
    other = flow_to()
    other.server_conn = Server(address=("other.example", 80))
    assert not is_authenticated(other, request)
    assert not is_authenticated(flow_to(), replace(request, aliases=(request.request,)))
    other.server_conn = Server(address=("bad host", 80))
    assert not is_authenticated(other, request)
    other.server_conn = Server(address=None)
    assert not is_authenticated(other, request)
    encrypted = flow_to()
    encrypted.server_conn.tls = True
    assert not is_authenticated(encrypted, request)


def test_connections_by_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    options = SimpleNamespace(ssl_insecure=False, client_certs=None)
    monkeypatch.setattr(origin_name, "ctx", SimpleNamespace(options=options))
    for tls, at, sni, insecure, expected in (
        (True, 5.0, "site.example", False, True),
        (True, 5.0, "SITE.example", False, True),
        (True, 5.0, "site.example", True, False),
        (True, 5.0, "other.example", False, False),
        (True, None, "site.example", False, False),
        (True, 5.0, None, False, False),
        (False, 5.0, "site.example", False, False),
    ):
        flow = flow_to("https://site.example/")
        server = flow.server_conn
        server.tls, server.timestamp_tls_setup, server.sni = tls, at, sni
        options.ssl_insecure = insecure
        assert is_authenticated(flow, read_flow(flow)) == expected
    assert not shows_certificate()
    options.client_certs = "/some/where"
    assert shows_certificate()
    monkeypatch.setattr(origin_name, "ctx", object())
    assert not shows_certificate()


def test_redirected_connections_to_an_address_of_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[Any] = [(2, 1, 6, "", ("10.0.0.8", 80)), (2, 1, 6, "", ("10.0.0.9", 80))]
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(origin_name, "get_running_loop", lambda: "loop")

    def addresses(*arguments: object) -> object:
        asked.append(arguments)
        return known

    monkeypatch.setattr(origin_name, "known_addresses", addresses)
    request = read_flow(flow_to())
    flow = flow_to()
    flow.server_conn = Server(address=("10.0.0.9", 80))
    flow.server_conn.peername = ("10.0.0.9", 80)
    assert not is_authenticated(flow, request), "by CONNECT"
    flow.client_conn.proxy_mode = mode_specs.ProxyMode.parse("transparent")
    assert is_authenticated(flow, request)
    assert asked == [("loop", "site.example", 80)]
    flow.server_conn.peername = ("10.0.0.7", 80)
    assert not is_authenticated(flow, request)
    flow.server_conn.peername = None
    assert not is_authenticated(flow, request)
    flow.server_conn.peername = ("10.0.0.9", 80)
    monkeypatch.setattr(origin_name, "known_addresses", lambda *_: None)
    assert not is_authenticated(flow, request)
    monkeypatch.setattr(origin_name, "known_addresses", lambda *_: (_ for _ in ()).throw(OSError))
    assert not is_authenticated(flow, request)
