"""Clients of public networks, refused as mitmproxy refuses them."""

import pytest
from mitmproxy.addons import block
from mitmproxy.connection import Client
from mitmproxy.test import taddons

from gatewayfilter.proxy.auth import refused_networks
from gatewayfilter.proxy.auth.refused_networks import RefusedNetworks

ADDRESSES = (
    "127.0.0.1", "::1", "192.168.1.5", "10.0.0.1", "8.8.8.8", "100.64.0.1", "169.254.1.1", "0.0.0.0", "192.0.2.1", "224.0.0.1",
    "2001:4860:4860::8888", "fe80::1%eth0", "fd00::1", "::ffff:8.8.8.8", "::ffff:192.168.1.5", "2001:db8::1", "::ffff:127.0.0.1",
)  # fmt: skip


@pytest.mark.parametrize("block_private", [False, True])
@pytest.mark.parametrize("block_global", [False, True])
async def test_clients_are_refused_as_by_mitmproxy(*, block_private: bool, block_global: bool) -> None:
    refused_networks._is_local.cache_clear()
    found = {}
    for kind in (block.Block, RefusedNetworks):
        addon = kind()
        with taddons.context(addon) as context:
            context.configure(addon, block_private=block_private, block_global=block_global)
            for _ in range(2):  # the second time from memory
                clients = [Client(peername=(address, 5), sockname=("", 8080)) for address in ADDRESSES]
                for client in clients:
                    addon.client_connected(client)
                found[kind] = [client.error for client in clients]
    assert found[RefusedNetworks] == found[block.Block]
    assert any(found[block.Block]) == (block_private or block_global)
