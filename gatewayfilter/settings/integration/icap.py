"""Settings of section `[icap]`."""

from ipaddress import ip_network

from pydantic import field_validator

from gatewayfilter.settings.base import Listen, Section


class IcapSettings(Section):
    """The ICAP server."""

    listen: Listen = ""
    """Address of the ICAP server, as `127.0.0.1:1344`; empty means that nothing listens."""
    allow_networks: tuple[str, ...] = ()
    """Networks whose proxies may use it besides this machine, as `192.0.2.0/28`."""

    @field_validator("allow_networks")
    @classmethod
    def _are_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for network in value:
            ip_network(network)
        return value
