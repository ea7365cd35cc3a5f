"""Settings of section `[gateway]`."""

from ipaddress import ip_network
from typing import Annotated

from pydantic import Field, field_validator

from gatewayfilter.settings.base import Section
from gatewayfilter.urls import canonical_host


class GatewaySettings(Section):
    """This machine as the gateway of a LAN, and the PAC file."""

    lan: tuple[str, ...] = ()
    """LAN interfaces; `gateway up` redirects their web traffic, e.g. `["lan0"]`."""
    ports: tuple[Annotated[int, Field(ge=1, le=65535)], ...] = (80, 443)
    """TCP ports that are redirected; on UDP they are QUIC."""
    reject_quic: bool = True
    """Whether QUIC (HTTP/3), which the filter cannot see, is refused, so that browsers turn to TCP."""
    reject_dot: bool = False
    """Whether DNS over TLS and over QUIC (port 853) are refused, so that devices use the network's own DNS."""
    filter_private: bool = False
    """Whether connections to other private networks are redirected too."""
    own_port_80: bool = False
    """Whether port 80 of the gateway itself is the filter's set-up page and `/wpad.dat`; nothing else may use it then."""
    bypass_devices: tuple[str, ...] = ()
    """Devices that go past the filter: addresses, networks or hardware addresses."""
    bypass_destinations: tuple[str, ...] = ()
    """Destinations that go past the filter: addresses or networks."""
    fail_open: bool = False
    """Whether web traffic goes past the filter while no worker listens or answers, instead of nowhere."""
    hosts: tuple[str, ...] = ("gatewayfilter.internal", "192.0.2.80", "2001:db8::80")
    """Names and addresses under which the filter serves its set-up page to all clients behind it."""
    pac_bypass: tuple[str, ...] = ()
    """Hosts that the PAC file sends past the filter: `bank.example` (with all below it), addresses, networks."""

    @field_validator("hosts")
    @classmethod
    def _are_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(canonical_host(item) for item in value)

    @field_validator("pac_bypass")
    @classmethod
    def _are_hosts_or_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for item in value:
            if "/" in item:
                ip_network(item)
            else:
                canonical_host(item.removeprefix("*").removeprefix("."))
        return value
