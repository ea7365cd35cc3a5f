"""The gateway plan: the settings, validated and in the form that the firewall needs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_network

from gatewayfilter.config import Settings, split_address
from gatewayfilter.errors import GatewayError

_INTERFACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}")
"""IFNAMSIZ is 16 with the end."""
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_SSH = 22


@dataclass(frozen=True, slots=True)
class GatewayPlan:
    """The plan of a gateway.

    Attributes:
        lan: interfaces with web traffic that is filtered.
        proxy_port: where the workers listen.
        transparent: whether web traffic is redirected to the filter; otherwise devices are configured to use the proxy, and
            other web traffic is rejected.
        ipv6: whether they listen for IPv6 as well; otherwise IPv6 web connections are rejected.
        ports: TCP ports that are redirected; on UDP they are QUIC.
        reject_quic: reject QUIC, so that browsers fall back to TCP.
        reject_dot: reject DNS over TLS and QUIC (port 853).
        filter_private: redirect connections to private networks too.
        own_port_80: the gateway's own port 80 serves the filter's pages.
        free_macs, free4, free6: devices that bypass the filter.
        past4, past6: destinations that bypass the filter.
        fail_open: whether traffic bypasses the filter while no worker listens or answers.
    """

    lan: tuple[str, ...]
    proxy_port: int
    transparent: bool = True
    ipv6: bool = True
    ports: tuple[int, ...] = (80, 443)
    reject_quic: bool = True
    reject_dot: bool = False
    filter_private: bool = False
    own_port_80: bool = False
    free_macs: tuple[str, ...] = ()
    free4: tuple[str, ...] = ()
    free6: tuple[str, ...] = ()
    past4: tuple[str, ...] = ()
    past6: tuple[str, ...] = ()
    fail_open: bool = False


def make_plan(settings: Settings) -> GatewayPlan:
    """Returns the plan of the settings.

    Raises:
        GatewayError: no gateway is configured, or an impossible one, or one that would lock the operator out.
    """
    gateway = settings.gateway
    host, port = split_address(settings.proxy.listen)
    if not gateway.lan:
        raise GatewayError("no interface of the LAN is named: set gateway.lan or give --lan")
    if host in {"127.0.0.1", "::1", "localhost"}:
        raise GatewayError(
            f"the LAN does not reach the filter on {settings.proxy.listen}: set proxy.listen to [::]:{port} in "
            f"{settings.data_dir / 'config.toml'}; with sudo, name your own state folder or file: --data-dir, --config"
        )
    if port == 0:
        raise GatewayError("the gateway needs to know the port: set proxy.listen to one that is not 0")
    _keep_reachable(port, gateway.ports)
    macs, free4, free6 = _devices(gateway.bypass_devices)
    past4, past6 = _networks(gateway.bypass_destinations, "gateway.bypass_destinations")
    return GatewayPlan(
        lan=_interfaces(gateway.lan),
        proxy_port=port,
        transparent=settings.proxy.mode == "transparent",
        ipv6=":" in host,
        ports=tuple(sorted(set(gateway.ports))),
        reject_quic=gateway.reject_quic,
        reject_dot=gateway.reject_dot,
        filter_private=gateway.filter_private,
        own_port_80=gateway.own_port_80,
        free_macs=macs,
        free4=free4,
        free6=free6,
        past4=past4,
        past6=past6,
        fail_open=gateway.fail_open,
    )


def _keep_reachable(port: int, redirected: Sequence[int]) -> None:
    """The filter's port is closed to all but redirected connections: it must not be the port of another service."""
    if port == _SSH:
        raise GatewayError("proxy.listen is on port 22, which is SSH's: nobody could log in any more")
    if port in redirected:
        raise GatewayError(f"port {port} is redirected to itself: take another for proxy.listen, or out of gateway.ports")
    if _SSH in redirected:
        raise GatewayError("gateway.ports contains 22: SSH through the gateway would end in the filter")


def _interfaces(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if not _INTERFACE.fullmatch(name):
            raise GatewayError(f"gateway.lan: {name!r} is no name of an interface")
        if name in {"lo", "*"}:
            raise GatewayError(f"gateway.lan: {name!r} would send the filter's own traffic through the filter")
    return tuple(dict.fromkeys(names))


def _devices(items: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    macs = [item.lower().replace("-", ":") for item in items]
    networks = [item for item, mac in zip(items, macs, strict=True) if not _MAC.fullmatch(mac)]
    return tuple(dict.fromkeys(mac for mac in macs if _MAC.fullmatch(mac))), *_networks(networks, "gateway.bypass_devices")


def _networks(items: Sequence[str], key: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    both: dict[int, list[str]] = {4: [], 6: []}
    for item in items:
        try:
            network = ip_network(item, strict=False)
        except ValueError as error:
            kinds = "an address, a network" + (" or a hardware address" if key.endswith("devices") else "")
            raise GatewayError(f"{key}: {item!r} is not {kinds}") from error
        if network.prefixlen == 0:
            raise GatewayError(f"{key}: {item!r} is everything; gateway down opens the way for all")
        text = str(network.network_address) if network.prefixlen == network.max_prefixlen else str(network)
        both[network.version].append(text)
    return tuple(dict.fromkeys(both[4])), tuple(dict.fromkeys(both[6]))
