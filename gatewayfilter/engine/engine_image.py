"""The engine image: a snapshot file to map and the changes since, from which another process builds an identical engine."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import time

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.model import Change, Service


@dataclass(frozen=True, slots=True)
class EngineImage:
    """The serialised state of an engine, small enough to be passed to a process.

    Attributes:
        snapshot: the snapshot's file; processes that map it share its pages.
        changes: steps of the change feed that the snapshot does not hold.
        off_categories: categories of lists that are switched off.
        services: the catalogue of services.
    """

    snapshot: Path
    changes: tuple[Change, ...]
    off_categories: frozenset[str]
    services: Mapping[str, Service] = field(default_factory=dict)

    @classmethod
    def of(cls, engine: FilterEngine, file: Path) -> "EngineImage":
        """Returns the image of an engine's current state; its snapshot is written to the file.

        Raises:
            OSError: the file cannot be written.
        """
        state = engine.state  # swapped by one assignment: this is a consistent state
        with file.open("xb") as out:
            state.snapshot.write(out)
        return cls(file, tuple(state.overlay.changes.values()), engine.off_categories, dict(engine.services))

    def open(self, *, clock: Callable[[], float] = time) -> FilterEngine:
        """Returns the engine.

        Raises:
            SnapshotError: the file is missing or not as it was written.
        """
        engine = FilterEngine(
            Snapshot.open(self.snapshot), off_categories=self.off_categories, clock=clock, services=self.services
        )
        engine.apply(self.changes)
        return engine
