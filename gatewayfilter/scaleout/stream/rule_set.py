"""Rule sets: a snapshot file with its version, opened once a process, and the folder in which the current one is found."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from gatewayfilter.engine.batches.batch_decider import BatchDecider
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.errors import SnapshotError
from gatewayfilter.scaleout.stream.deciding import RecordDecider

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules that a batch is decided by. It does not change; newer rules are another rule set.

    Attributes:
        version: identifies the rules: the snapshot's file and its mark.
        decider: decides records by them.
        batches: decides most records of a batch together; the others are left to `decider`.
    """

    version: str
    decider: RecordDecider = field(repr=False)
    batches: BatchDecider = field(repr=False)

    @classmethod
    def of_engine(cls, engine: FilterEngine, version: str = "") -> RuleSet:
        """Returns the rules of an engine as they are now."""
        return cls(version or version_of(engine.snapshot), RecordDecider.over(engine), BatchDecider(engine))


@dataclass(frozen=True, slots=True)
class RuleFile:
    """Where a rule set is: small enough to be sent to other processes.

    Attributes:
        path: the snapshot file.
        version: of the rules in it.
        off_categories: categories of lists that are switched off.
    """

    path: str
    version: str
    off_categories: tuple[str, ...] = ()

    def open(self) -> RuleSet:
        """Returns the rule set; each process opens a version once, and keeps the last two.

        Raises:
            SnapshotError: the file is damaged or missing, or holds another version.
        """
        return _opened(self)


@lru_cache(maxsize=2)
def _opened(file: RuleFile) -> RuleSet:
    snapshot = Snapshot.open(Path(file.path), verify=True)
    found = version_of(snapshot, Path(file.path).stem)
    if found != file.version:
        raise SnapshotError(f"the snapshot {Path(file.path).name} holds rules {found}, not {file.version}")
    return RuleSet.of_engine(FilterEngine(snapshot, off_categories=file.off_categories), found)


def version_of(snapshot: Snapshot, name: str = "rules") -> str:
    """Returns the version of a snapshot's rules: the name of its file, and eight bytes of its mark."""
    return f"{name}-{snapshot.mark[:8].hex()}"


class RuleFolder:
    """The rules in force: the current snapshot of a folder that a publisher or a follower writes, or one fixed file.

    Args:
        path: a folder of snapshots, or a snapshot file.
        off_categories: categories of lists that are switched off.
        on_refused: called with the reason when a newer snapshot cannot be used.
    """

    def __init__(
        self, path: Path, off_categories: tuple[str, ...] = (), on_refused: Callable[[str], object] = _log.warning
    ) -> None:
        self._path = path
        self._off = off_categories
        self._on_refused = on_refused
        self._folder = SnapshotFolder(path) if path.is_dir() else None
        self._seen: tuple[int, ...] | None = None
        self._current: RuleFile | None = None

    def current(self) -> RuleFile:
        """Returns the newest rules that can be used. Costs one lstat while nothing has changed.

        A newer snapshot that is damaged is refused once with its reason, and the one before stays in use.

        Raises:
            SnapshotError: there is none, and none was before.
        """
        mark = self._mark()
        if self._current is not None and mark == self._seen:
            return self._current
        self._seen = mark
        try:
            self._current = self._newest()
        except SnapshotError as error:
            if self._current is None:
                raise
            self._on_refused(f"rules stay at {self._current.version}: {error}")
        return self._current

    def _mark(self) -> tuple[int, ...] | None:
        if self._folder is not None:
            return self._folder.pointing()
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _newest(self) -> RuleFile:
        path = self._folder.current() if self._folder is not None else self._path
        if path is None:
            raise SnapshotError(f"there is no snapshot in {self._path}")
        snapshot = Snapshot.open(path, verify=True)
        try:
            return RuleFile(str(path.absolute()), version_of(snapshot, path.stem), self._off)
        finally:
            snapshot.close()
