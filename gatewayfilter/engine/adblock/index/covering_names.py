"""The names that cover a host in a list, and whether two hosts are of one site: for pairs of hosts, most of which are new."""

from functools import lru_cache

from gatewayfilter.compiled import load
from gatewayfilter.urls import host_suffixes, is_ip_literal, registrable_by, registrable_domain, suffix_rules

_compiled = load("gatewayfilter._urls")


@lru_cache(maxsize=2_048)  # a host of many labels takes kilobytes, and results by host and page are cached elsewhere
def host_names(host: str) -> tuple[str, ...]:
    """Returns every name that covers a host in a list: the host, its parent domains, and their entities (`google.*`)."""
    if is_ip_literal(host):
        return (host,)
    return (_names if host.isascii() else names_by)(host, *suffix_rules())


def names_by(host: str, rules: dict[str, int], deepest: int) -> tuple[str, ...]:
    """Returns the names of a host that is no IP literal, by the rules of `suffix_rules`."""
    suffixes = host_suffixes(host)
    public_suffix = registrable_by(host, rules, deepest).partition(".")[2]
    if not public_suffix:
        return suffixes
    tail = len(public_suffix)
    return suffixes + tuple(f"{name[:-tail]}*" for name in suffixes if len(name) > tail + 1)


_names = names_by if _compiled is None else _compiled.names


def is_same_site(host: str, other: str) -> bool:
    """Returns whether two canonical hosts have the same registrable domain. An IP literal has only itself."""
    if host == other:
        return True
    if is_ip_literal(host) or is_ip_literal(other):
        return False
    return (_same_site if host.isascii() and other.isascii() else same_site_by)(host, other, *suffix_rules())


def same_site_by(host: str, other: str, _rules: dict[str, int], _deepest: int) -> bool:
    """Returns whether two hosts that are no IP literals have the same registrable domain."""
    return registrable_domain(host) == registrable_domain(other)


_same_site = same_site_by if _compiled is None else _compiled.same_site
