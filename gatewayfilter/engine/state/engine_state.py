"""The engine state: all data that a decision reads, replaced by one assignment, so that no decision mixes old and new data."""

from copy import copy

from gatewayfilter.engine.policies.client_policies import ClientPolicies
from gatewayfilter.engine.policies.effective_policy import ListSelection
from gatewayfilter.engine.policies.service_index import NO_SERVICES, ServiceIndex
from gatewayfilter.engine.snapshot.reader import Snapshot, giving_turns
from gatewayfilter.engine.state.host_cache import HostFacts
from gatewayfilter.engine.state.host_marks import HostMarks
from gatewayfilter.engine.state.list_view import ListView
from gatewayfilter.engine.state.lru_cache import LruCache
from gatewayfilter.engine.state.manual_rules import HostRules
from gatewayfilter.engine.state.overlay import Overlay
from gatewayfilter.model import HostVerdict, Verdict


class EngineState:
    """A snapshot, the changes since, and caches for recently seen hosts.

    Only the caches change; a cached value is the one that any reader of this state would compute.

    Attributes:
        lists: the view for look-ups of keys.
        sources: of the snapshot, by index; `off_sources` those that are switched off.
        hosts: facts by host and port.
        adblock_verdicts: verdicts by source and line of the rule, and stub.
        host_marks: the snapshot's markers by host, without the overlay.
        host_verdicts: decisions on connections by host, each with the Unix seconds until which it is valid.
        policies: the policies of clients, `None` when there are none. A view of the lists for some of them has none.
        views: the same state with other lists switched off, by the numbers of `policies`.
        services: the catalogue of services, `NO_SERVICES` while no policy concerns any.
        policy_verdicts: verdicts of lists, and as policies treat them, by the first one's identity, the reason, and the schedule.
        scoped_hosts: the manual rules of a scope that may cover a host, by scope and host with port.
    """

    __slots__ = (
        "adblock",
        "adblock_verdicts",
        "effects",
        "host_marks",
        "host_verdicts",
        "hosts",
        "lists",
        "off_sources",
        "overlay",
        "policies",
        "policy_verdicts",
        "scoped_hosts",
        "services",
        "snapshot",
        "source_names",
        "sources",
        "views",
    )

    def __init__(
        self, snapshot: Snapshot, overlay: Overlay, selection: ListSelection, services: ServiceIndex = NO_SERVICES
    ) -> None:
        """Creates a state; opens the compiled Adblock rules if they are not open yet."""
        self.snapshot = snapshot
        self.overlay = overlay
        self.lists = ListView.of(snapshot, overlay, selection)
        self.sources = snapshot.sources
        self.off_sources = self.lists.off_sources
        self.adblock = snapshot.adblock
        self.effects = snapshot.effects
        self.source_names = tuple(source.name for source in snapshot.sources)
        with giving_turns():
            self.effects.prepare(self.off_sources)
        self.hosts: LruCache[str, HostFacts] = LruCache()
        self.adblock_verdicts: LruCache[tuple[int, int, str], Verdict] = LruCache()
        self.host_marks: LruCache[str, HostMarks] = LruCache()
        self.host_verdicts: LruCache[str, tuple[float, HostVerdict]] = LruCache()
        self.policies: ClientPolicies | None = None
        self.views: tuple[EngineState, ...] = ()
        self.services = services
        self.policy_verdicts: LruCache[tuple[int, str, str], tuple[Verdict, Verdict]] = LruCache()
        self.scoped_hosts: LruCache[tuple[str, str], HostRules] = LruCache()

    def with_overlay(self, overlay: Overlay, *, hosts_hold: bool) -> "EngineState":
        """Returns the state with another overlay.

        Args:
            overlay: replaces this one.
            hosts_hold: the overlay changes no facts about hosts, so the cache can be shared.
        """
        state = copy(self)
        state.overlay = overlay
        state.lists = self.lists.over(overlay)
        state.host_verdicts = LruCache()
        if not hosts_hold:
            state.hosts = LruCache()
            state.scoped_hosts = LruCache()
        state.views = tuple(view.with_overlay(overlay, hosts_hold=hosts_hold) for view in self.views)
        return state

    def with_policies(self, policies: ClientPolicies | None) -> "EngineState":
        """Returns the state with other policies of clients. Views of the lists are kept where the policies still need them."""
        state = copy(self)
        services = policies.services if policies is not None else NO_SERVICES
        known = {view.lists.selection: view for view in self.views} if services is self.services else {}
        selections = policies.selections if policies is not None else ()
        if services is not self.services:
            state.services = services
            state.hosts = LruCache()
        state.policies = policies
        state.views = tuple(
            known.get(selection) or EngineState(self.snapshot, self.overlay, selection, services) for selection in selections
        )
        return state
