"""The networks that a server without a log-in serves: this machine, and those that the operator names."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address

from gatewayfilter.addresses.kinds import plain


class ServedNetworks:
    """Tells which clients are served.

    Args:
        networks: besides loopback.
    """

    def __init__(self, networks: Sequence[IPv4Network | IPv6Network] = ()) -> None:
        self._networks = tuple(networks)

    def admits(self, address: str) -> bool:
        """Returns whether a client with this address, as a socket names it, is served; False for what is no IP address."""
        try:
            found = plain(ip_address(address))
        except ValueError:
            return False
        return found.is_loopback or any(found in network for network in self._networks)
