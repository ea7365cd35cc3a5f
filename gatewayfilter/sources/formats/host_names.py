"""The validation of host names in lists: which are accepted at once, which are parsed in full, which are refused."""

from functools import lru_cache
from importlib.resources import files

from publicsuffixlist import PublicSuffixList

from gatewayfilter.errors import RuleError, UrlError
from gatewayfilter.urls import canonical_host, domain_key, host_key, is_ip_literal, is_public_suffix

OWN_NAMES = frozenset(
    {
        "0.0.0.0",  # noqa: S104  a name in a list, nothing is bound to it
        "broadcasthost",
        "ip6-allhosts",
        "ip6-allnodes",
        "ip6-allrouters",
        "ip6-localhost",
        "ip6-localnet",
        "ip6-loopback",
        "ip6-mcastprefix",
        "local",
        "localhost",
        "localhost.localdomain",
    }
)
"""What hosts files hold for the machine itself."""

SINKS = frozenset({"0.0.0.0", "0", "127.0.0.1", "::", "::0", "::1", "255.255.255.255", "fe80::1%lo0"})  # noqa: S104  nothing is bound
"""Addresses that lead nowhere: a name that a list sends there is meant to be blocked."""

HOST_NAME = r"(?:(?!xn--)[a-z0-9_][a-z0-9_-]{0,62}+(?<!-)\.)++[a-z]{2,24}"
HOST_PATTERN = rf"({HOST_NAME})"
"""A host name that is canonical as it stands, unless it is longer than 253 characters: no IDN, no address, no single label."""

MAX_HOST_LENGTH = 253


@lru_cache(maxsize=1)
def _suffix_rules() -> tuple[frozenset[str], frozenset[str]]:
    """Returns the rules of the public suffix list without wildcard, and the names that have a wildcard under them."""
    text = (files("publicsuffixlist") / "public_suffix_list.dat").read_text("utf-8")
    rules = {line.split()[0] for line in text.splitlines() if line.strip() and not line.startswith("//")}
    wildcards = frozenset(rule.removeprefix("*.") for rule in rules if rule.startswith("*."))
    return frozenset(rules) | wildcards | OWN_NAMES, wildcards


@lru_cache(maxsize=1)
def _registry_suffixes() -> PublicSuffixList:
    return PublicSuffixList(only_icann=True)


def all_ordinary(hosts: list[str]) -> bool:
    """Returns whether none of these names (all of `HOST_PATTERN`) needs a full check. About 0.2 µs a name."""
    names, wildcards = _suffix_rules()
    return (
        names.isdisjoint(hosts)
        and max(map(len, hosts), default=0) <= MAX_HOST_LENGTH
        and wildcards.isdisjoint([host.partition(".")[2] for host in hosts])
    )


def _listed_host(text: str) -> str:
    if "*" in text:
        raise RuleError("a wildcard in the middle of a name")
    try:
        return canonical_host(text)
    except UrlError as error:
        raise RuleError("not a host name") from error


def exact_host_key(text: str) -> str:
    """Returns the key for exactly this host.

    Raises:
        RuleError: not a host name, a single label, or a registry's suffix such as `co.uk`.
    """
    host = _listed_host(text)
    if not is_ip_literal(host) and ("." not in host or _registry_suffixes().privatesuffix(host) is None):
        raise RuleError("a public suffix or a name without a dot")
    return host_key(host)


def whole_domain_key(text: str) -> str:
    """Returns the key for a host and its subdomains.

    An IP address has none, and below a company's suffix (`github.io`, `compute-1.amazonaws.com`) lie the sites of strangers:
    both get the key for exactly themselves.

    Raises:
        RuleError: as `exact_host_key`.
    """
    host = exact_host_key(text)
    return host_key(host) if is_ip_literal(host) or is_public_suffix(host) else domain_key(host)
