"""Which addresses a client of the proxy may reach through it.

A proxy must not be a way into networks that its clients cannot reach themselves: to services of its own machine, and, by a public
name whose owner answers with an internal address (DNS rebinding), to services of the network. What a client may reach depends on
where it is and on how it named the target:

| client, target                                       | public | private         | reserved | this machine |
|------------------------------------------------------|--------|-----------------|----------|--------------|
| on loopback, by address or by a local name           | yes    | yes             | yes      | yes          |
| on loopback, by another name                         | yes    | no              | no       | no           |
| elsewhere, by address or by a local name             | yes    | on its own link | no       | no           |
| elsewhere, by another name                           | yes    | no              | no       | no           |
| elsewhere, at the address that it connected to       | yes    | yes             | no       | no           |

The columns are `Kind`. A program on loopback reaches all of it without the proxy, and so does a device the addresses on its own
link. The last line is transparent mode: the connection was on its way to that address, whatever name it carries. A local name is
one that the public DNS has no answer for, so that no stranger decides where it leads. `proxy.allow_networks` opens the rest.
"""

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Final

from gatewayfilter.addresses.kinds import Kind, plain
from gatewayfilter.addresses.links import Address, Links

_LOCAL_TOP_LEVELS: Final = frozenset({
    "localhost", "test", "example", "invalid",  # RFC 6761
    "local", "intranet", "internal", "private", "corp", "home", "lan",  # RFC 6762, also its appendix G
})  # fmt: skip
_PLAIN_NAME: Final = re.compile(r"[a-z0-9_.-]+")


class Target(Enum):
    """How a client named what it wants to reach."""

    ADDRESS = "address"
    """By a literal, or by a local name."""
    NAME = "name"
    DESTINATION = "destination"
    """Not at all: its connection to this address was redirected to the proxy."""


_LOOPBACK_CLIENTS: Final[Mapping[Target, Kind]] = {
    Target.ADDRESS: Kind.OWN, Target.NAME: Kind.PUBLIC, Target.DESTINATION: Kind.OWN,
}  # fmt: skip
_OTHER_CLIENTS: Final[Mapping[Target, Kind]] = {
    Target.ADDRESS: Kind.PUBLIC, Target.NAME: Kind.PUBLIC, Target.DESTINATION: Kind.PRIVATE,
}  # fmt: skip
"""The innermost kind that may be reached, the own link aside."""


class Reach:
    """The table above, with the networks that the operator opens.

    Args:
        allowed: `proxy.allow_networks`. A network opens addresses of this machine only where it is one address alone or lies
            within loopback: who opens `10.0.0.0/8` for the servers in it does not mean this machine.
    """

    def __init__(self, allowed: Sequence[str] = ()) -> None:
        self._allowed = tuple(ip_network(text) for text in allowed)

    def admits(self, client: str, target: Target, address: str, kind: Kind, links: Links) -> bool:
        """Returns whether a client may be connected to an address.

        Args:
            client: its address; `""` for one that is not known, which is treated as the most remote one.
            target: how it named what it wants.
            address: what is about to be connected to, numeric.
            kind: the kind of it.
            links: the interfaces of this machine.
        """
        if kind is Kind.PUBLIC:
            return True
        source, goal = _address(client), _address(address)
        if goal is None:
            return False
        innermost = _LOOPBACK_CLIENTS if source is not None and source.is_loopback else _OTHER_CLIENTS
        if kind <= innermost[target] or self._opens(goal, kind):
            return True
        by_address = target is Target.ADDRESS and kind is Kind.PRIVATE
        return by_address and source is not None and links.share_a_link(source, goal)

    def _opens(self, address: Address, kind: Kind) -> bool:
        return any(
            address in network and (kind is not Kind.OWN or network.num_addresses == 1 or network.is_loopback)
            for network in self._allowed
        )


def target_of(host: str) -> Target:
    """Returns how a host is named: a name, or a literal in any spelling that resolvers take (`[::1]`, `127.1`, `0x7f000001`)."""
    bare = host.strip("[]").removesuffix(".").lower()
    last = bare.rpartition(".")[2]
    # A name has no numeric top level: what looks like one is read as an IPv4 address, or fails.
    if ":" in bare or last.isdigit() or last.startswith("0x"):
        return Target.ADDRESS
    if not _PLAIN_NAME.fullmatch(bare):  # a resolver may read it as another name: there are dots beyond ASCII
        return Target.NAME
    is_local = last == bare or last in _LOCAL_TOP_LEVELS or bare == "home.arpa" or bare.endswith(".home.arpa")
    return Target.ADDRESS if is_local else Target.NAME


@lru_cache(maxsize=1024)
def _address(text: str) -> Address | None:
    try:
        return plain(ip_address(text))
    except ValueError:
        return None
