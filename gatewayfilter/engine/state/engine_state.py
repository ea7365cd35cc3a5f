"""All that a decision reads, in one object: it is replaced whole, by one assignment, so that no decision sees old and new."""

from copy import copy

from gatewayfilter.engine.blocked_parts import HostMarks
from gatewayfilter.engine.snapshot.reader import Snapshot, giving_turns
from gatewayfilter.engine.state.host_cache import HostFacts
from gatewayfilter.engine.state.lru_cache import LruCache
from gatewayfilter.engine.state.overlay import Overlay
from gatewayfilter.model import HostVerdict, ListAction, Verdict


class EngineState:
    """A snapshot, the changes since, and what was worked out for the hosts seen lately.

    Only the caches change, and they only ever gain what any reader of this state would work out anew.

    Attributes:
        off_categories: categories whose lists do not block.
        off_sources: indices of the snapshot's sources that are off for that reason.
        tables: by what being in one means.
        on_sets: number of a source set → its sources that are on, ascending.
        hosts: facts by host and port.
        adblock_verdicts: verdicts by source and line of the rule, and stub.
        learned_blocks: categories of the snapshot's learned blocks that are on.
        host_marks: what the snapshot's markers say of hosts; holds whatever the overlay.
        host_verdicts: what becomes of connections, by host, each with the Unix seconds until which it holds.
    """

    __slots__ = (
        "adblock",
        "adblock_verdicts",
        "bloom",
        "effects",
        "host_marks",
        "host_verdicts",
        "hosts",
        "learned_blocks",
        "off_categories",
        "off_sources",
        "on_sets",
        "overlay",
        "snapshot",
        "source_names",
        "sources",
        "tables",
    )

    def __init__(self, snapshot: Snapshot, overlay: Overlay, off_categories: frozenset[str]) -> None:
        """Makes a state; opens the compiled Adblock rules when the snapshot has not yet."""
        self.snapshot = snapshot
        self.overlay = overlay
        self.off_categories = off_categories
        self.sources = snapshot.sources
        self.bloom = snapshot.bloom
        self.tables = snapshot.tables
        self.adblock = snapshot.adblock
        self.effects = snapshot.effects
        self.source_names = tuple(source.name for source in snapshot.sources)
        self.off_sources = frozenset(
            index
            for index, source in enumerate(snapshot.sources)
            if source.action is not ListAction.ALLOW and source.category in off_categories
        )
        self.learned_blocks = tuple(
            source.category
            for source in snapshot.sources
            if source.learned and source.action is ListAction.BLOCK and source.category not in off_categories
        )
        with giving_turns():
            self.effects.prepare(self.off_sources)
        self.on_sets = tuple(
            tuple(index for index in members if index not in self.off_sources) for members in snapshot.source_sets
        )
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
        state.host_verdicts = LruCache()
        if not hosts_hold:
            state.hosts = LruCache()
        return state
