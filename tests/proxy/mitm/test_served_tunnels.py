"""Tunnels and connections as mitmproxy's server gets them from the listener: what is noted of them, and who closes them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from mitmproxy.connection import Client
from mitmproxy.options import Options
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.mode_servers import ProxyConnectionHandler

from gatewayfilter.proxy.listener.listener import OpenTunnel
from gatewayfilter.proxy.mitm import server as server_module
from gatewayfilter.proxy.mitm.fastpath.connection_handler import FastConnectionHandler
from gatewayfilter.proxy.mitm.fastpath.hook_runner import HookRunner
from gatewayfilter.proxy.mitm.fastpath.tunnel_layer import TunnelLayer
from gatewayfilter.proxy.mitm.origin_pool import FairSemaphore
from gatewayfilter.proxy.mitm.server import GatewayProxyserver
from tests.proxy.mitm.test_gateway_server import server

TUNNEL = OpenTunnel(("site.example", 443), answered=True)


class Served:
    """A server whose handler notes what it gets, and does what a test says.

    Attributes:
        done: what was done, in order.
        handler: of the connection.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, peer: object = ("10.0.0.2", 5), fault: Exception | None = None
    ) -> None:
        self.done: list[str] = []
        self.handler: Any = None
        self.reader = asyncio.StreamReader()
        self.fault = fault
        self.client: Any = SimpleNamespace(close=lambda: self.done.append("closed"))
        transport = SimpleNamespace(abort=lambda: self.done.append("aborted"))
        self.writer: Any = SimpleNamespace(get_extra_info=lambda _: peer, transport=transport)
        self.server: Any = server("regular", {"http_connected": 1})
        self.server.manager = SimpleNamespace(register_connection=self._register)
        monkeypatch.setattr(server_module, "ctx", SimpleNamespace(master="the master"))
        monkeypatch.setattr(server_module, "_open_stream", lambda _: (self.reader, self.writer))
        monkeypatch.setattr(server_module, "FastConnectionHandler", self._make)

    def _make(self, *given: object) -> Any:
        assert given[:3] == ("the master", self.reader, self.writer)
        client = Client(peername=("10.0.0.2", 5), sockname=("10.0.0.1", 8080))
        layer = SimpleNamespace(context=Context(client, Options()))
        self.handler = SimpleNamespace(client=client, layer=layer, in_tunnel=False, handle_client=self._handle)
        return self.handler

    async def _handle(self) -> None:
        self.done.append("served")
        if self.fault is not None:
            raise self.fault

    @contextmanager
    def _register(self, number: str, handler: Any) -> Iterator[None]:
        assert (number, handler) == (self.handler.client.id, self.handler)
        self.done.append("registered")
        yield

    async def gets(self, data: bytes = b"") -> None:
        await self.server._handle_tunnel(self.client, data, TUNNEL)


async def test_what_is_inside_a_tunnel_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Served(monkeypatch)
    await one.gets(b"behind the CONNECT")
    assert one.done == ["registered", "served"]
    top: Any = one.handler.layer
    assert (type(top), type(top.top), one.handler.in_tunnel) == (HookRunner, TunnelLayer, True)
    assert top.context.server.address == ("site.example", 443)
    assert await one.reader.read(18) == b"behind the CONNECT"


async def test_a_tunnel_without_data_waits_for_some(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Served(monkeypatch)
    await one.gets()
    one.reader.feed_data(b"later")
    assert await one.reader.read(18) == b"later"


async def test_a_tunnel_that_fails_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Served(monkeypatch, fault=RuntimeError("a fault"))
    with pytest.raises(RuntimeError, match="a fault"):
        await one.gets()
    assert one.done == ["registered", "served", "aborted"]


async def test_a_tunnel_that_was_reset_meanwhile_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Served(monkeypatch, peer=None)
    await one.gets(b"data")
    assert (one.done, one.handler) == (["aborted"], None)


async def test_a_socket_that_cannot_be_served_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Served(monkeypatch)

    def fail(_: object) -> None:
        raise OSError("gone")

    monkeypatch.setattr(server_module, "_open_stream", fail)
    with pytest.raises(OSError, match="gone"):
        await one.gets()
    assert (one.done, one.handler) == (["closed"], None)


@pytest.mark.parametrize(("fast", "in_tunnel", "begun"), [(True, True, True), (True, False, False), (False, True, False)])
def test_a_connection_is_kept_while_it_is_served(
    monkeypatch: pytest.MonkeyPatch, *, fast: bool, in_tunnel: bool, begun: bool
) -> None:
    asked: list[tuple[object, object, bool]] = []
    monkeypatch.setattr(server_module, "read_directly", lambda handler, of, *, begun: asked.append((handler, of, begun)))
    handler: Any = object.__new__(FastConnectionHandler if fast else ProxyConnectionHandler)
    handler.client, handler.in_tunnel, handler.max_conns = "the client", in_tunnel, None
    kept: Any = object.__new__(GatewayProxyserver)
    kept.connections = {}
    with kept.register_connection("its id", handler):
        assert (kept.connections, asked) == ({"its id": handler}, [(handler, "the client", begun)])
        assert type(handler.max_conns["site.example", 443]) is FairSemaphore
        assert handler.max_conns["site.example", 443] is handler.max_conns["site.example", 443]
    assert kept.connections == {}
