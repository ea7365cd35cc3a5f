"""Who listens, as the real kernel tells it."""

import socket
from contextlib import ExitStack

import pytest

from gatewayfilter.errors import GatewayError
from gatewayfilter.gateway.nft import Kernel


@pytest.mark.parametrize(("host", "families"), [("127.0.0.1", {4}), ("::1", {6}), ("0.0.0.0", {4})], ids=["v4", "v6", "any"])
def test_a_listener_is_seen_in_its_family(host: str, families: set[int]) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:
        port = server.getsockname()[1]
        assert Kernel().listens(port) == families
    assert Kernel().listens(port) == frozenset()


def test_connections_and_sockets_that_only_hold_a_port_are_no_listeners() -> None:
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        client = stack.enter_context(socket.create_connection(server.getsockname()))
        stack.enter_context(server.accept()[0])
        holder = stack.enter_context(socket.socket())
        holder.bind(("127.0.0.1", 0))
        for held in (client, holder):
            assert Kernel().listens(held.getsockname()[1]) == frozenset()


def test_many_connections_do_not_hide_a_listener() -> None:
    with ExitStack() as stack:
        busy = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=300))
        for _ in range(200):
            stack.enter_context(socket.create_connection(busy.getsockname()))
        late = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        assert Kernel().listens(late.getsockname()[1]) == {4}
        assert Kernel().listens(busy.getsockname()[1]) == {4}


def test_switches_are_read_and_a_strange_one_is_refused() -> None:
    assert Kernel().switch("net/ipv4/ip_forward") in {"0", "1"}
    assert Kernel().switch("net/ipv4/no_such_switch") is None
    with pytest.raises(GatewayError, match=r"cannot set net\.ipv4\.no_such_switch to 1"):
        Kernel().set_switch("net/ipv4/no_such_switch", "1")
    assert "lo" in Kernel().interfaces()


def test_a_missing_nft_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.gateway.nft._SBIN", "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(GatewayError, match="install the package nftables"):
        Kernel().has_table()
