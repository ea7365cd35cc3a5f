"""The host cache: facts that hold for all URLs of a host, namely its list entries and the rules that may cover it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gatewayfilter.engine.policies.service_index import NO_SERVICES, ServiceIndex
from gatewayfilter.engine.state.list_lookup import find_listing, is_marked, may_be_listed
from gatewayfilter.engine.state.list_view import ListView
from gatewayfilter.engine.state.manual_rules import HostRules, hosts_of_prefixes, netloc_of
from gatewayfilter.model import ListAction, Verdict
from gatewayfilter.urls import Url, digest_of, domain_key, host_key, host_suffixes

_NO_RULES = HostRules((), ())


@dataclass(frozen=True, slots=True)
class HostFacts:
    """Facts about a host and port.

    Attributes:
        manual: the manual rules that may cover its URLs.
        black, white: the verdict of the most specific host or domain entry in force.
        splice: likewise of the lists of hosts with spliced connections; no URL is decided by it.
        prefix_hosts: the hosts with prefix entries that may cover its URLs.
        services: ids of the services that it belongs to, where policies concern any; `media` of them those of which it sends what
            is played.
        until: Unix seconds at which the facts are recomputed, because a learned entry expires.
    """

    manual: HostRules
    black: Verdict | None
    white: Verdict | None
    splice: Verdict | None
    prefix_hosts: tuple[str, ...]
    until: float
    services: tuple[str, ...] = ()
    media: tuple[str, ...] = ()


def host_keys(url: Url) -> Iterator[str]:
    """Yields the host and domain keys that cover a URL, the most specific first."""
    yield host_key(url.host)
    for suffix in host_suffixes(url.host):
        yield domain_key(suffix)


def work_out(lists: ListView, url: Url, now: float, services: ServiceIndex = NO_SERVICES) -> HostFacts:
    """Returns the facts for the host and port of a URL: two look-ups for each label of the host that passes the gate."""
    found: dict[ListAction, Verdict] = {}
    until = math.inf
    for key in host_keys(url):
        digest = digest_of(key)
        if not may_be_listed(lists, digest):
            continue
        for action in ListAction:
            if action not in found and (listing := find_listing(lists, key, digest, action, now)) is not None:
                found[action] = listing.verdict
                until = min(until, listing.until)
    return HostFacts(
        manual=lists.rules.for_host(url) if lists.rules is not None else _NO_RULES,
        black=found.get(ListAction.BLOCK),
        white=found.get(ListAction.ALLOW),
        splice=found.get(ListAction.SPLICE),
        prefix_hosts=tuple(host for host in hosts_of_prefixes(url) if _has_prefixes(lists, netloc_of(host, url))),
        until=until,
        services=services.of(url) if services else (),
        media=services.media_of(url.host) if services else (),
    )


def _has_prefixes(lists: ListView, netloc: str) -> bool:
    return netloc in lists.prefix_netlocs or is_marked(lists, digest_of(f"{netloc}**"))
