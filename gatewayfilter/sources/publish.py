"""Publication: compiles sources, manual rules and learned entries into a snapshot, and puts it into use.

Where no list from outside changed since the snapshot in use, the new one follows from it (engine/snapshot/patch.py): the lists
are not read again, however long they are. Everything is built again when a list changed, came or went; when the program or the
public suffix list is another; when the snapshot in use or its counters are missing or damaged; and when a patch is due.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from publicsuffixlist import PSLFILE

from gatewayfilter import __version__
from gatewayfilter.engine.snapshot.builder import SnapshotBuilder
from gatewayfilter.engine.snapshot.folder import PutIntoUse, SnapshotFolder
from gatewayfilter.engine.snapshot.format import VERSION
from gatewayfilter.engine.snapshot.patch import RebuildDueError, learned_changes, patch_snapshot
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.engine.tables.kept_gate import KeptGate
from gatewayfilter.errors import SnapshotError, StoreError
from gatewayfilter.interfaces import ListStore, PolicyStore, PublisherFeed
from gatewayfilter.model import LearnedEntry, ManualRule, PolicySet, Source
from gatewayfilter.sources.formats.list_format import ListFormat, ParseReport
from gatewayfilter.sources.formats.parse import parse_list
from gatewayfilter.sources.subscription import SourceFile
from gatewayfilter.sources.subscriptions import Progress, Subscriptions
from gatewayfilter.urls import digest_of

_log = logging.getLogger(__name__)

_READERS = 2
"""Raised when the readers of lists take or refuse what they did not before: lists that are stored are then read again."""


@dataclass(frozen=True, slots=True)
class SourceReport:
    """What a source gave to a snapshot.

    Attributes:
        report: `None` when it was left out.
        error: why it was left out, else `""`.
    """

    source: Source
    report: ParseReport | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class PublishReport:
    """A published snapshot.

    Attributes:
        path: its file.
        size_bytes: its length.
        feed_seq: the newest list change in it.
        manual_rules, learned: how many of each are in it.
        sources: the subscriptions in it, and those that were left out.
        rebuilt: why everything was built again, `""` when the snapshot follows from the one before.
        elapsed_s: from reading the first list to the snapshot in use.
    """

    path: Path
    size_bytes: int
    feed_seq: int
    manual_rules: int
    learned: int
    sources: tuple[SourceReport, ...]
    elapsed_s: float
    rebuilt: str = ""

    @property
    def skipped(self) -> tuple[SourceReport, ...]:
        """The sources that could not be read."""
        return tuple(source for source in self.sources if source.error)


def build_snapshot(
    sources: Sequence[SourceFile],
    rules: Iterable[ManualRule] = (),
    learned: Iterable[LearnedEntry] = (),
    *,
    feed_seq: int = 0,
    progress: Progress | None = None,
) -> tuple[bytes, tuple[SourceReport, ...]]:
    """Builds a snapshot file in memory; a source that cannot be read is left out and reported.

    Args:
        sources: the lists; among several that list a key the first is named in verdicts.
        rules: manual rules.
        learned: learned entries.
        feed_seq: the newest list change that rules and learned entries include.
        progress: called before each source, and before the tables are built.

    Raises:
        SnapshotError: more entries than the format can hold.
    """
    builder = SnapshotBuilder(feed_seq=feed_seq)
    builder.set_rules(rules)
    builder.add_learned(learned)
    reports = _read_sources(builder, sources, progress)
    return builder.build(), reports


def _read_sources(builder: SnapshotBuilder, sources: Sequence[SourceFile], progress: Progress | None) -> tuple[SourceReport, ...]:
    reports: list[SourceReport] = []
    for number, item in enumerate(sources):
        if progress:
            progress(f"reading {item.source.name}", number, len(sources) + 1)
        try:
            with item.path.open("rb") as file:
                number_of = builder.add_source(item.source)
                report = parse_list(file, item.list_format, builder, number_of, action=item.source.action)
        except OSError as error:
            reports.append(SourceReport(item.source, None, f"cannot read {item.path}: {error.strerror}"))
        else:
            reports.append(SourceReport(item.source, report))
    if progress:
        progress("building the tables", len(sources), len(sources) + 1)
    return tuple(reports)


def publish(
    folder: SnapshotFolder,
    subscriptions: Subscriptions,
    lists: ListStore,
    feed: PublisherFeed,
    *,
    policies: PolicyStore | None = None,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.time,
    full: bool = False,
) -> PublishReport:
    """Makes the snapshot of everything that is enabled now and puts it into use.

    Everything is read after the publishers' lock was taken: a change that was made before is in use afterwards.

    Args:
        folder: where it goes.
        subscriptions: the lists from outside.
        lists: manual rules and learned entries.
        feed: read first, so that what changes while we read is in the snapshot, or in the overlay, or in both.
        policies: clients, groups, policies, schedules and pauses; `None` for none.
        progress: called with what is being done, how much is done and how much there is.
        clock: Unix seconds, by which learned entries have expired and are left out.
        full: builds everything again even where the snapshot could follow from the one in use.

    Raises:
        SnapshotError: it could not be written; the last one stays in use.
        StoreError: the database could not be read.
    """

    def make(put_into_use: PutIntoUse) -> tuple[_Publication, _Done, str]:
        publication = _Publication(folder, lists, feed, policies, subscriptions.files(), feed.last_seq(), clock(), progress)
        rebuilt = "on request" if full else ""
        if not rebuilt:
            try:
                return publication, publication.follow(put_into_use), ""
            except RebuildDueError as error:
                rebuilt = str(error)
        _log.info("rebuilding everything: %s", rebuilt)
        return publication, publication.build(put_into_use), rebuilt

    return _published(folder, lists, progress, make)


def publish_base(
    folder: SnapshotFolder, base: Path, lists: ListStore, feed: PublisherFeed, policies: PolicyStore
) -> PublishReport:
    """Makes the snapshot of a fleet's publisher with what is local, and puts it into use; as `publish`.

    Args:
        folder: where it goes.
        base: the publisher's snapshot, whose lists stand in for the subscriptions.
        lists: manual rules and learned entries.
        feed: read first.
        policies: of this machine.

    Raises:
        SnapshotError: it could not be written, or the publisher's cannot be used; the last one stays in use.
        StoreError: the database could not be read.
    """

    def make(put_into_use: PutIntoUse) -> tuple[_Publication, _Done, str]:
        made = _Publication(folder, lists, feed, policies, (), feed.last_seq(), time.time(), None)
        return made, made.extend(base, put_into_use), ""

    return _published(folder, lists, None, make)


def _published(
    folder: SnapshotFolder,
    lists: ListStore,
    progress: Progress | None,
    make: "Callable[[PutIntoUse], tuple[_Publication, _Done, str]]",
) -> PublishReport:
    """Holds the publishers' lock while a snapshot is made, and compacts the change feed after it."""

    def waiting() -> None:
        if progress:
            progress("waiting for another publisher to finish", 0, 0)

    with folder.publishing(waiting) as put_into_use:
        started = time.monotonic()
        last_seq = _seq_in_use(folder)
        publication, done, rebuilt = make(put_into_use)
        _compact(lists, min(last_seq, publication.feed_seq))
    if progress:
        progress("published", len(publication.files) + 1, len(publication.files) + 1)
    return PublishReport(
        done.path,
        done.path.stat().st_size,
        publication.feed_seq,
        done.manual_rules,
        done.learned,
        done.reports,
        time.monotonic() - started,
        rebuilt,
    )


@dataclass(frozen=True, slots=True)
class _Done:
    path: Path
    manual_rules: int
    learned: int
    reports: tuple[SourceReport, ...]


@dataclass(frozen=True, slots=True)
class _Publication:
    """The input of one publication, read in this order: lists first, so that a change while they are read is seen next time."""

    folder: SnapshotFolder
    lists: ListStore
    feed: PublisherFeed
    policies: PolicyStore | None
    files: Sequence[SourceFile]
    feed_seq: int
    now: float
    progress: Progress | None

    def follow(self, put_into_use: PutIntoUse) -> _Done:
        """Publishes the snapshot that follows from the one in use.

        Raises:
            RebuildDueError: none does.
        """
        path = self.folder.current()
        if path is None:
            raise RebuildDueError("there is no snapshot yet")
        self._say("checking the snapshot in use", 0)
        try:
            old = Snapshot.open(path, verify=True)
        except SnapshotError as error:
            raise RebuildDueError(str(error)) from error
        try:
            return self._follow(old, path, put_into_use)
        finally:
            old.close()

    def _follow(self, old: Snapshot, path: Path, put_into_use: PutIntoUse) -> _Done:
        notes = old.meta["notes"]
        if notes.get("inputs") != mark_of_inputs(self.files):
            raise RebuildDueError("the set of lists has changed")
        if self.feed_seq < old.info.feed_seq:
            raise RebuildDueError("the database is older than the snapshot")
        if not notes.get("feed_mark") or notes["feed_mark"] != self.feed.mark(old.info.feed_seq):
            raise RebuildDueError("the database is not the one that the snapshot was made from, or of another time")
        try:
            counters = self.folder.counters_of(path, old.mark)
        except SnapshotError as error:
            raise RebuildDueError(str(error)) from error
        changes = learned_changes(self.feed.learned_between(old.info.feed_seq, self.feed_seq), self.now)
        rules = self._rules()
        self._say("changing the tables", len(self.files))
        image = patch_snapshot(
            old,
            counters,
            changes,
            rules,
            policies=self._policies(),
            feed_seq=self.feed_seq,
            created_at=self.now,
            notes=self._feed_note(),
        )
        reports = tuple(
            SourceReport(item.source, _report_of(row)) for item, row in zip(self.files, notes["reports"], strict=True)
        )
        return _Done(put_into_use(image), len(rules), image.learned, reports)

    def extend(self, base: Path, put_into_use: PutIntoUse) -> _Done:
        """Publishes the snapshot of a fleet's publisher with the rules, policies and learned entries of this machine.

        Raises:
            SnapshotError: the publisher's snapshot cannot be used.
        """
        old = Snapshot.open(base, verify=True)
        try:
            learned = {digest_of(entry.key): entry for entry in self.lists.learned() if entry.expires_at > self.now}
            rules = self._rules()
            notes = {"inputs": f"fleet:{old.mark.hex()}", "reports": [], **self._feed_note()}
            image = patch_snapshot(
                old,
                KeptGate.of(old.bloom),
                learned,
                rules,
                policies=self._policies(),
                feed_seq=self.feed_seq,
                created_at=self.now,
                notes=notes,
            )
            return _Done(put_into_use(image), len(rules), len(learned), ())
        finally:
            old.close()

    def build(self, put_into_use: PutIntoUse) -> _Done:
        """Publishes a snapshot of everything, read again."""
        inputs = mark_of_inputs(self.files)
        builder = SnapshotBuilder(feed_seq=self.feed_seq, created_at=self.now)
        rules = self._rules()
        builder.set_rules(rules)
        builder.set_policies(self._policies())
        builder.add_learned(entry for entry in self.lists.learned() if entry.expires_at > self.now)
        reports = _read_sources(builder, self.files, self.progress)
        if not any(item.error for item in reports):  # what could not be read is tried again next time
            rows = [_report_row(item.report) for item in reports if item.report]
            builder.notes = {"inputs": inputs, "reports": rows, **self._feed_note()}
        image = builder.image(counting=True)
        del builder
        return _Done(put_into_use(image), len(rules), image.learned, reports)

    def _rules(self) -> list[ManualRule]:
        return [rule for rule in self.lists.rules() if rule.expires_at is None or rule.expires_at > self.now]

    def _policies(self) -> PolicySet:
        return self.policies.read() if self.policies is not None else PolicySet()

    def _feed_note(self) -> dict[str, str]:
        return {"feed_mark": self.feed.mark(self.feed_seq)}

    def _say(self, step: str, done: int) -> None:
        if self.progress:
            self.progress(step, done, len(self.files) + 1)


_COUNTS = ("accepted", "duplicates", "comments", "cosmetic", "rejected")


def _report_row(report: ParseReport) -> list[object]:
    return [report.list_format, *(getattr(report, name) for name in _COUNTS)]


def _report_of(row: Sequence[Any]) -> ParseReport:
    return ParseReport(ListFormat(row[0]), **dict(zip(_COUNTS, row[1:], strict=True)))


def mark_of_inputs(files: Sequence[SourceFile]) -> str:
    """Returns a text that is another one when any of these lists, or what reads them, is another.

    A list counts as the same when its file has the same length, time of change and inode: copies are replaced whole.
    """
    parts: list[object] = [__version__, VERSION, _READERS, _stamp(Path(PSLFILE))]
    parts += [
        (item.source.name, item.source.action, item.source.category, item.list_format, str(item.path), _stamp(item.path))
        for item in files
    ]
    return blake2b(repr(parts).encode(errors="surrogateescape"), digest_size=16).hexdigest()


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_size, found.st_mtime_ns, found.st_ino


def _seq_in_use(folder: SnapshotFolder) -> int:
    try:
        snapshot, _ = folder.open_newest(verify=False)
    except SnapshotError:
        return 0
    try:
        return snapshot.info.feed_seq
    finally:
        snapshot.close()


def _compact(lists: ListStore, up_to: int) -> None:
    """Forgets the steps that the snapshot before this one holds: a process that falls back to it misses nothing."""
    try:
        lists.compact_feed(up_to)
    except StoreError as error:
        _log.warning("the change feed was not compacted: %s", error)
