"""The state of an engine: all that a decision reads, replaced whole by one assignment, so that no decision sees old and new."""

from copy import copy

from gatewayfilter.engine.snapshot.reader import Snapshot, giving_turns
from gatewayfilter.engine.state.host_cache import HostFacts
from gatewayfilter.engine.state.host_marks import HostMarks
from gatewayfilter.engine.state.list_view import ListView
from gatewayfilter.engine.state.lru_cache import LruCache
from gatewayfilter.engine.state.overlay import Overlay
from gatewayfilter.model import HostVerdict, Verdict


class EngineState:
    """A snapshot, the changes since, and what was found for the hosts seen lately.

    Only the caches change, and they only ever gain what any reader of this state would find itself.

    Attributes:
        lists: what look-ups of keys read.
        sources: the snapshot's, by index; `off_sources` those that are switched off.
        hosts: facts by host and port.
        adblock_verdicts: verdicts by source and line of the rule, and stub.
        host_marks: what the snapshot's markers tell about hosts, whatever the overlay.
        host_verdicts: what becomes of connections, by host, each with the Unix seconds until which it holds.
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
        "snapshot",
        "source_names",
        "sources",
    )

    def __init__(self, snapshot: Snapshot, overlay: Overlay, off_categories: frozenset[str]) -> None:
        """Makes a state; opens the compiled Adblock rules when the snapshot has not yet."""
        self.snapshot = snapshot
        self.overlay = overlay
        self.lists = ListView.of(snapshot, overlay, off_categories)
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

    def with_overlay(self, overlay: Overlay, *, hosts_hold: bool) -> "EngineState":
        """Returns the state with another overlay.

        Args:
            overlay: stands in for this one.
            hosts_hold: nothing in it changes what is known of hosts, so that the cache can be shared.
        """
        state = copy(self)
        state.overlay = overlay
        state.lists = self.lists.over(overlay)
        state.host_verdicts = LruCache()
        if not hosts_hold:
            state.hosts = LruCache()
        return state
