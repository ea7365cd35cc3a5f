"""The network of a client's address: limits per client count it, since a client may take as many IPv6 addresses as it likes."""

from functools import lru_cache
from ipaddress import IPv6Address
from typing import Final

_NETWORK_BITS: Final = 64
_LONGEST: Final = 64


def network_of(address: str) -> str:
    """Returns the /64 network of an IPv6 address, and any other address as it is."""
    return _network(address) if ":" in address and len(address) <= _LONGEST else address


@lru_cache(maxsize=1024)
def _network(address: str) -> str:
    found = IPv6Address(address.partition("%")[0])
    return str(found.ipv4_mapped) if found.ipv4_mapped else f"{int(found) >> _NETWORK_BITS:x}/64"
