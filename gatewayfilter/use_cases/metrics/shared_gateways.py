"""The gateways that keep rules in step, and the crawlers that share a queue, as this machine sees them."""

import time
from dataclasses import dataclass

from gatewayfilter.config import Settings
from gatewayfilter.crawl.frontier.fleet_leases import DEAD_AFTER_S
from gatewayfilter.crawl.frontier.hash_ring import HashRing
from gatewayfilter.interfaces import SITE_SLOTS
from gatewayfilter.store import Store
from gatewayfilter.urls import canonical_host, digest_of, registrable_domain
from gatewayfilter.use_cases.process_facts import process_facts


@dataclass(frozen=True, slots=True)
class SharedGateways:
    """The gateways and crawlers that are alive.

    Attributes:
        gateways: with a heartbeat, by the clock of Redis.
        crawlers: likewise, by the clock of the queue that they share.
        shared: number of rules, policies and sources in common.
        fault: why this gateway is not in step, `""` where it is.
        owner: of the host that was named, `""` for none.
        sentence: the state in words.
    """

    gateways: tuple[str, ...]
    crawlers: tuple[str, ...]
    shared: int
    fault: str
    owner: str
    sentence: str


def shared_gateways(settings: Settings, store: Store, host: str = "") -> SharedGateways:
    """Returns who is alive, and which crawler has a host.

    Raises:
        UrlError: the host cannot be read.
        StoreError: the database refuses.
    """
    status = process_facts(settings, "sync")
    names = status.get("gateways", ())
    gateways = tuple(str(name) for name in names) if isinstance(names, list) else ()
    crawlers = tuple(store.crawlers.alive(time.time() - DEAD_AFTER_S))
    shared, fault = int(status.get("shared", 0)), str(status.get("fault", ""))
    if not settings.sync.url.get_secret_value():
        sentence = "This gateway shares no rules with others (sync.url)."
    elif not status:
        sentence = "The filter does not run."
    elif fault:
        sentence = f"Not in step: {fault}."
    else:
        share = "gateway shares" if len(gateways) == 1 else "gateways share"
        sentence = f"In step: {len(gateways)} {share} {shared:,} rules, policies and sources."
    return SharedGateways(gateways, crawlers, shared, fault, _owner(crawlers, host) if host else "", sentence)


def _owner(crawlers: tuple[str, ...], host: str) -> str:
    name = canonical_host(host)
    slot = int.from_bytes(digest_of(registrable_domain(name) or name)[:4]) % SITE_SLOTS
    return HashRing(crawlers).owner(str(slot)) or ""
