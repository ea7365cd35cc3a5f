"""Settings of section `[icap]`."""

from gatewayfilter.settings.base import Listen, Networks, Section


class IcapSettings(Section):
    """The ICAP server."""

    listen: Listen = ""
    """Address of the ICAP server, as `127.0.0.1:1344`; empty means that nothing listens."""
    allow_networks: Networks = ()
    """Networks whose proxies may use it besides this machine, as `192.0.2.0/28`."""
