"""mitmproxy's addon that refuses clients of public networks, with a memory of addresses that are none.

It parses the address of each new connection, which takes as long as a decision.
"""

from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final

from mitmproxy import ctx
from mitmproxy.addons import block
from mitmproxy.connection import Client

_refuse: Final[Callable[[block.Block, Client], None]] = block.Block.client_connected


class RefusedNetworks(block.Block):
    """Refuses clients by their address, as the options `block_global` and `block_private` have it."""

    name = "block"

    def client_connected(self, client: Client) -> None:
        """Refuses a client, or does not."""
        if ctx.options.block_private or not _is_local(client.peername[0]):
            _refuse(self, client)


@lru_cache(maxsize=4096)
def _is_local(address: str) -> bool:
    found = ip_address(address.rpartition("%")[0] or address)
    if isinstance(found, IPv6Address):
        found = found.ipv4_mapped or found
    return not found.is_global
