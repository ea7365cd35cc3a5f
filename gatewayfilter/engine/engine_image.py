"""What another process needs to decide exactly as an engine of this one: a snapshot file to map, and the changes since."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import time

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.model import Change


@dataclass(frozen=True, slots=True)
class EngineImage:
    """An engine at rest, small enough to be handed to a process.

    Attributes:
        snapshot: the snapshot's file; processes that map it share its pages.
        changes: steps of the change feed that the snapshot does not hold.
        off_categories: categories whose lists do not count.
    """

    snapshot: Path
    changes: tuple[Change, ...]
    off_categories: frozenset[str]

    @classmethod
    def of(cls, engine: FilterEngine, file: Path) -> "EngineImage":
        """Returns the image of an engine as it is now; its snapshot is written to the file.

        Raises:
            OSError: the file cannot be written.
        """
        state = engine.state  # one assignment swaps it: this is the whole of one moment
        with file.open("xb") as out:
            state.snapshot.write(out)
        return cls(file, tuple(state.overlay.changes.values()), state.lists.off_categories)

    def open(self, *, clock: Callable[[], float] = time) -> FilterEngine:
        """Returns the engine.

        Raises:
            SnapshotError: the file is not there or not what was written.
        """
        engine = FilterEngine(Snapshot.open(self.snapshot), off_categories=self.off_categories, clock=clock)
        engine.apply(self.changes)
        return engine
