"""A read-only view of the lists in force: the data of the snapshot and of the entries learned since, for look-ups of keys."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

from gatewayfilter.engine.policies.effective_policy import ListSelection
from gatewayfilter.engine.snapshot.learned_records import LearnedRecords
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.engine.state.manual_rules import ManualRules
from gatewayfilter.engine.state.overlay import Overlay
from gatewayfilter.engine.tables.bitmap_table import BitmapTable
from gatewayfilter.engine.tables.bloom import BloomFilter
from gatewayfilter.model import LearnedEntry, ListAction, Source


@dataclass(frozen=True, slots=True)
class ListView:
    """The data that look-ups read. Replaced as a whole with the overlay or the snapshot.

    Attributes:
        bloom: the gate over the keys of all tables.
        tables: action → digest → number of a source set.
        sources: by index, as named in verdicts.
        source_sets: number of a source set → its sources, ascending.
        on_sets: the same without the sources that are switched off.
        selection: which sources count.
        off_sources: indices of the sources that are switched off.
        off_categories: categories of which learned blocks are switched off.
        records: the learned entries of the snapshot.
        learned: digest → the entry learned since, `None` when it was removed. Hides the entry in `records`.
        prefix_netlocs: hosts (with port) under which `learned` has prefix entries.
        rules: manual rules, `None` when there is none to apply, and where only some categories count.
    """

    bloom: BloomFilter
    tables: Mapping[ListAction, BitmapTable]
    sources: tuple[Source, ...]
    source_sets: tuple[tuple[int, ...], ...]
    on_sets: tuple[tuple[int, ...], ...]
    off_sources: frozenset[int]
    off_categories: Container[str]
    selection: ListSelection
    records: LearnedRecords
    learned: Mapping[bytes, LearnedEntry | None]
    prefix_netlocs: frozenset[str]
    rules: ManualRules | None

    @classmethod
    def of(cls, snapshot: Snapshot, overlay: Overlay, selection: ListSelection) -> "ListView":
        """Returns the view of a snapshot and the changes since.

        Args:
            snapshot: read in place.
            overlay: the changes since.
            selection: which lists count.
        """
        off_sources = frozenset(
            index
            for index, source in enumerate(snapshot.sources)
            if source.action is not ListAction.ALLOW and selection.is_off(source)
        )
        return cls(
            bloom=snapshot.bloom,
            tables=snapshot.tables,
            sources=snapshot.sources,
            source_sets=snapshot.source_sets,
            on_sets=tuple(tuple(index for index in members if index not in off_sources) for members in snapshot.source_sets),
            off_sources=off_sources,
            off_categories=selection.without,
            selection=selection,
            records=snapshot.records,
            learned=overlay.learned,
            prefix_netlocs=overlay.prefix_netlocs,
            rules=None if selection.only is not None else overlay.rules or None,
        )

    def over(self, overlay: Overlay) -> "ListView":
        """Returns the view of the same snapshot with other changes since."""
        rules = None if self.selection.only is not None else overlay.rules or None
        return replace(self, learned=overlay.learned, prefix_netlocs=overlay.prefix_netlocs, rules=rules)
