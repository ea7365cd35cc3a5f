"""The proxy auto-configuration file: which requests a browser sends to the filter, and which directly.

It resolves no names: that would delay every request of the browser, and expose each name to the network's DNS.
"""

import json
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

from gatewayfilter.config import GatewaySettings
from gatewayfilter.urls import canonical_host, is_ip_literal

PAC_TYPE: Final = "application/x-ns-proxy-autoconfig"
_LOCAL_NAMES: Final = ("localhost", "local", "home.arpa")
"""Names that no DNS on the internet has (RFC 6761 §6.3, RFC 6762 §3, RFC 8375)."""
_LOCAL_NETWORKS: Final = ("127.0.0.0/8", "169.254.0.0/16", "::1/128", "fe80::/10")
_PRIVATE_NETWORKS: Final = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")


def pac_file(settings: GatewaySettings, proxy: str, *, own_hosts: Sequence[str] = ()) -> str:
    """Returns the file.

    Args:
        settings: `pac_bypass`, `filter_private` and `fail_open` count here.
        proxy: `HOST:PORT` as reachable for the requesting device, `""` when devices need no proxy (transparent mode).
        own_hosts: hosts that always go through the filter, because only the filter serves them.
    """
    answer = "DIRECT" if not proxy else f"PROXY {proxy}; DIRECT" if settings.fail_open else f"PROXY {proxy}"
    lines = [
        "// GatewayFilter: gateway.pac_bypass in its settings adds hosts that go past it.",
        "function FindProxyForURL(url, host) {",
        f"  var filter = {json.dumps(answer)};",
        '  host = host.toLowerCase().replace(/^\\[|\\]$/g, "");',
        *(f"  {line}" for line in _rules(settings, own_hosts)),
        "  return filter;",
        "}",
        "",
    ]
    return "\n".join(lines)


def _rules(settings: GatewaySettings, own_hosts: Sequence[str]) -> Iterator[str]:
    names, networks = _split([*settings.pac_bypass, *_LOCAL_NAMES, *_LOCAL_NETWORKS])
    if not settings.filter_private:
        networks += [ip_network(item) for item in _PRIVATE_NETWORKS]
    for host in own_hosts:
        yield f"if (host === {json.dumps(host.strip('[]'))}) return filter;"
    yield 'if (isPlainHostName(host) && host.indexOf(":") < 0) return "DIRECT";'
    for name in names:
        yield f'if (host === {json.dumps(name)} || dnsDomainIs(host, {json.dumps(f".{name}")})) return "DIRECT";'
    yield "if (/^[0-9]+\\.[0-9]+\\.[0-9]+\\.[0-9]+$/.test(host)) {"
    for network in networks:
        if isinstance(network, IPv4Network):
            yield f'  if (isInNet(host, "{network.network_address}", "{network.netmask}")) return "DIRECT";'
    yield '} else if (host.indexOf(":") >= 0) {'
    for network in networks:
        if isinstance(network, IPv6Network):
            yield f'  if ({_in_network6(network)}) return "DIRECT";'
    yield "}"


def _in_network6(network: IPv6Network) -> str:
    if network.prefixlen == network.max_prefixlen:
        return f"host === {json.dumps(str(network.network_address))}"
    # isInNetEx is Microsoft's, and Chromium's; elsewhere the literal goes through the filter.
    return f'typeof isInNetEx === "function" && isInNetEx(host, {json.dumps(str(network))})'


def _split(items: Sequence[str]) -> tuple[list[str], list[IPv4Network | IPv6Network]]:
    names: list[str] = []
    networks: list[IPv4Network | IPv6Network] = []
    for item in items:
        host = item if "/" in item else canonical_host(item.removeprefix("*").removeprefix("."))
        if "/" in item or is_ip_literal(host):
            networks.append(ip_network(host.strip("[]")))
        else:
            names.append(host)
    return names, networks
