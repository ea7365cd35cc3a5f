"""The nftables ruleset of a plan. It is loaded in one transaction."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

from gatewayfilter.gateway.plan import GatewayPlan

TABLE: Final = "gatewayfilter"
DIVERT: Final = "divert"
"""The chain that redirects connections to the filter, and nothing else: flushed, they bypass it."""
STRAYS: Final = "strays"
"""The chain that rejects connections that bypass the filter already, and nothing else."""
_TRIED: Final = f"{TABLE}-check"
"""The table of a dry run. The kernel shows a table that is created, deleted and created again while it rolls a dry run back (nft
-c of nftables 1.0.6 on Linux 6.18): under its real name `nft list tables` would list rules that are not loaded."""
_PRIVATE4: Final = (
    "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "224.0.0.0/3",
)  # fmt: skip
_PRIVATE6: Final = ("::1", "fc00::/7", "fe80::/10", "ff00::/8")
_NEVER4: Final = ("127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3")
_NEVER6: Final = ("::1", "fe80::/10", "ff00::/8")
"""Loopback, link-local and multicast are never redirected."""
_DOT: Final = 853


def ruleset(plan: GatewayPlan) -> str:
    """Returns the input of `nft -f`: the whole table, which replaces the loaded one."""
    return f"{unload()}\n{_table(plan, TABLE)}"


def tried_ruleset(plan: GatewayPlan) -> str:
    """Returns the same rules in a table of another name, for a check by the kernel without side effects."""
    return _table(plan, _TRIED)


def _table(plan: GatewayPlan, name: str) -> str:
    return "\n".join([f"table inet {name} {{", *_sets(plan), "", *_chains(plan), "}", ""])


def unload() -> str:
    """Returns the commands that remove the table, whether or not it is loaded."""
    return f"table inet {TABLE}\ndelete table inet {TABLE}\n"


def open_way() -> str:
    """Returns the commands that let web traffic bypass the filter, and change nothing else."""
    return f"flush chain inet {TABLE} {DIVERT}\nflush chain inet {TABLE} {STRAYS}\n"


def close_way(plan: GatewayPlan) -> str:
    """Returns the commands that send web traffic through the filter again."""
    chains = ((DIVERT, _divert(plan)), (STRAYS, _strays(plan)))
    return open_way() + "".join(f"add rule inet {TABLE} {chain} {rule}\n" for chain, rules in chains for rule in rules)


def digest(plan: GatewayPlan) -> str:
    """Returns the digest of a ruleset: SHA-256, hexadecimal, 16 characters."""
    return sha256(ruleset(plan).encode()).hexdigest()[:16]


def _sets(plan: GatewayPlan) -> Iterator[str]:
    yield from _set("lan", "ifname", [f'"{name}"' for name in plan.lan], interval=False)
    yield "    # Not redirected: other networks of this house, such as a NAS behind a second interface."
    yield from _set("private4", "ipv4_addr", _NEVER4 if plan.filter_private else _PRIVATE4)
    yield from _set("private6", "ipv6_addr", _NEVER6 if plan.filter_private else _PRIVATE6)
    yield "    # Sites and devices that go past the filter (gateway.bypass_destinations, gateway.bypass_devices)."
    yield from _set("past4", "ipv4_addr", plan.past4)
    yield from _set("past6", "ipv6_addr", plan.past6)
    yield from _set("free4", "ipv4_addr", plan.free4)
    yield from _set("free6", "ipv6_addr", plan.free6)
    yield from _set("free_macs", "ether_addr", plan.free_macs, interval=False)


def _set(name: str, kind: str, elements: Sequence[str], *, interval: bool = True) -> Iterator[str]:
    parts = [f"type {kind}"]
    if interval:
        parts += ["flags interval", "auto-merge"]
    if elements:
        parts.append(f"elements = {{ {', '.join(elements)} }}")
    yield f"    set {name} {{"
    yield from (f"        {part}" for part in parts)
    yield "    }"


def _chains(plan: GatewayPlan) -> Iterator[str]:
    yield from _chain("prerouting", "nat hook prerouting priority dstnat", _prerouting(plan))
    yield from _chain(DIVERT, "", _divert(plan))
    yield from _chain(STRAYS, "", _strays(plan))
    yield from _chain("forward", "filter hook forward priority filter", _forward(plan))
    yield from _chain("input", "filter hook input priority filter", _input(plan))
    yield from _chain("exempt", "", _exempt())


def _chain(name: str, hook: str, rules: Iterator[str]) -> Iterator[str]:
    yield f"    chain {name} {{"
    if hook:
        yield f"        type {hook}; policy accept;"
    yield from (f"        {rule}" for rule in rules)
    yield "    }"


def _prerouting(plan: GatewayPlan) -> Iterator[str]:
    yield "iifname != @lan accept"
    if plan.own_port_80:
        yield f'tcp dport 80 fib daddr type local redirect to :{plan.proxy_port} comment "the filter\'s own pages"'
    yield 'fib daddr type local accept comment "SSH, DNS, DHCP and all else of the gateway itself"'
    yield "jump exempt"
    yield "ip daddr @private4 accept"
    yield "ip6 daddr @private6 accept"
    if plan.transparent:
        yield f"jump {DIVERT}"


def _divert(plan: GatewayPlan) -> Iterator[str]:
    if not plan.transparent:  # devices are configured to use the proxy: other traffic bypasses it
        yield f'tcp dport {_ports(plan.ports)} counter reject with tcp reset comment "around the filter"'
        return
    # Rejected by the kernel where nothing listens, so there is no bypass of a filter that serves only IPv4, or is down.
    yield f"tcp dport {_ports(plan.ports)} counter redirect to :{plan.proxy_port}"


def _strays(plan: GatewayPlan) -> Iterator[str]:
    if plan.transparent:
        # Redirected connections end in the gateway and are never forwarded: this one was opened while there were no rules,
        # or while the bypass was open. Addresses are translated at a connection's first packet only, so it would bypass the
        # filter for
        # its whole life.
        yield f'tcp dport {_ports(plan.ports)} ct status & dnat == 0 counter reject with tcp reset comment "made past the filter"'


def _forward(plan: GatewayPlan) -> Iterator[str]:
    yield "iifname != @lan accept"
    yield "jump exempt"
    if plan.transparent:
        yield f"ip daddr != @private4 jump {STRAYS}"
        yield f"ip6 daddr != @private6 jump {STRAYS}"
    else:
        yield "ip daddr @private4 accept"
        yield "ip6 daddr @private6 accept"
        yield f"jump {DIVERT}"
    if plan.reject_quic:
        # Rejected, not dropped: browsers fall back to TCP without waiting.
        yield f'udp dport {_ports(plan.ports)} counter reject with icmpx port-unreachable comment "QUIC"'
    if plan.reject_dot:
        yield f'tcp dport {_DOT} counter reject with tcp reset comment "DNS over TLS"'
        yield f'udp dport {_DOT} counter reject with icmpx port-unreachable comment "DNS over QUIC"'


def _input(plan: GatewayPlan) -> Iterator[str]:
    # The filter's port is open to the LAN, for redirected connections only; this table does not affect other ports.
    yield 'iifname "lo" accept'
    yield f"iifname != @lan tcp dport {plan.proxy_port} drop"
    if plan.transparent:
        yield f"tcp dport {plan.proxy_port} ct status & dnat == 0 drop"


def _exempt() -> Iterator[str]:
    yield "ether saddr @free_macs accept"
    yield "ip saddr @free4 accept"
    yield "ip6 saddr @free6 accept"
    yield "ip daddr @past4 accept"
    yield "ip6 daddr @past6 accept"


def _ports(ports: Sequence[int]) -> str:
    return f"{{ {', '.join(str(port) for port in ports)} }}"
