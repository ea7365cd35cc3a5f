"""Compiles sources, people's rules and learned entries into a snapshot, and puts it into use."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from gatewayfilter.config import bundled_folder
from gatewayfilter.engine.snapshot import Snapshot
from gatewayfilter.engine.snapshot_builder import SnapshotBuilder
from gatewayfilter.engine.snapshot_folder import SnapshotFolder
from gatewayfilter.errors import ListError, SnapshotError, SourceError, StoreError
from gatewayfilter.interfaces import ChangeFeed, ListStore
from gatewayfilter.model import LearnedEntry, ListAction, PersonRule, Source
from gatewayfilter.sources.categories import Categories
from gatewayfilter.sources.list_format import ListFormat, ParseReport
from gatewayfilter.sources.parse import parse_list
from gatewayfilter.sources.sniff import HEAD_SIZE, sniff
from gatewayfilter.sources.subscription import SourceFile
from gatewayfilter.sources.subscriptions import Progress, Subscriptions
from gatewayfilter.sources.unpack import unpack

_log = logging.getLogger(__name__)

_LARGEST_LIST = 4_000_000_000
"""Bound for files that a person names on the command line, in bytes, plain: it only stops decompression bombs."""


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
        person_rules, learned: how many of each are in it.
        sources: the subscriptions in it, and those that were left out.
        elapsed_s: from reading the first list to the snapshot in use.
    """

    path: Path
    size_bytes: int
    feed_seq: int
    person_rules: int
    learned: int
    sources: tuple[SourceReport, ...]
    elapsed_s: float

    @property
    def skipped(self) -> tuple[SourceReport, ...]:
        """The sources that could not be read."""
        return tuple(source for source in self.sources if source.error)


def build_snapshot(
    sources: Sequence[SourceFile],
    rules: Iterable[PersonRule] = (),
    learned: Iterable[LearnedEntry] = (),
    *,
    feed_seq: int = 0,
    progress: Progress | None = None,
) -> tuple[bytes, tuple[SourceReport, ...]]:
    """Builds a snapshot; a source that cannot be read is left out and reported.

    Args:
        sources: the lists; among several that list a key the first is named in verdicts.
        rules: people's rules.
        learned: learned entries.
        feed_seq: the newest list change that rules and learned entries include.
        progress: called before each source, and before the tables are built.

    Raises:
        SnapshotError: more entries than the format can hold.
    """
    builder = SnapshotBuilder(feed_seq=feed_seq)
    builder.set_rules(rules)
    builder.add_learned(learned)
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
    return builder.build(), tuple(reports)


def publish(
    folder: SnapshotFolder,
    subscriptions: Subscriptions,
    lists: ListStore,
    feed: ChangeFeed,
    *,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.time,
) -> PublishReport:
    """Builds the snapshot of everything that is enabled now and puts it into use.

    Everything is read after the publishers' lock was taken: who changes a list and then publishes finds it in use afterwards,
    whoever else publishes at the same time.

    Args:
        folder: where it goes.
        subscriptions: the lists from outside.
        lists: people's rules and learned entries.
        feed: read first, so that what changes while we read is in the snapshot, or in the overlay, or in both.
        progress: called with what is being done, how much is done and how much there is.
        clock: Unix seconds, by which learned entries have expired and are left out.

    Raises:
        SnapshotError: it could not be written; the last one stays in use.
        StoreError: the database could not be read.
    """

    def waiting() -> None:
        if progress:
            progress("waiting for another publisher to finish", 0, 0)

    with folder.publishing(waiting) as put_into_use:
        started = time.monotonic()
        feed_seq = feed.last_seq()
        last_seq = _seq_in_use(folder)
        now = clock()
        rules = [rule for rule in lists.rules() if rule.expires_at is None or rule.expires_at > now]
        learned = [entry for entry in lists.learned() if entry.expires_at > now]
        files = subscriptions.files()
        data, reports = build_snapshot(files, rules, learned, feed_seq=feed_seq, progress=progress)
        path = put_into_use(data)
        _compact(lists, min(last_seq, feed_seq))
    if progress:
        progress("published", len(files) + 1, len(files) + 1)
    return PublishReport(path, len(data), feed_seq, len(rules), len(learned), reports, time.monotonic() - started)


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
    """Forgets the steps that the snapshot before this one holds: whoever must fall back to it misses nothing."""
    try:
        lists.compact_feed(up_to)
    except StoreError as error:
        _log.warning("the change feed was not compacted: %s", error)


def load_lists(files: Sequence[Path], *, categories: Categories | None = None) -> Snapshot:
    """Returns a snapshot of these list files alone, in memory; sources carry the files' names, without folder.

    A file may be of any format, compressed, or a UT1 folder or archive. Its category is guessed from its path, and says
    whether its entries block or allow.

    Raises:
        ListError: one cannot be read, or is no list.
        SnapshotError: more entries than the format can hold.
    """
    known = categories or Categories.load(bundled_folder() / "categories.toml")
    with TemporaryDirectory(prefix="gatewayfilter-") as work:
        sources = [_as_source(path, Path(work) / str(number), known) for number, path in enumerate(files)]
        data, reports = build_snapshot(sources)
    for item in reports:
        if item.error:
            raise ListError(item.error)
    return Snapshot.from_bytes(data)


def _as_source(path: Path, plain: Path, categories: Categories) -> SourceFile:
    category = categories.guess(str(path))
    try:
        is_ut1 = unpack(path, plain, {category, *categories.get(category).aliases}, _LARGEST_LIST)
        with plain.open("rb") as file:
            list_format = ListFormat.UT1 if is_ut1 else sniff(file.read(HEAD_SIZE))
    except OSError as error:
        raise ListError(f"cannot read {path}: {error.strerror}") from error
    except (ListError, SourceError) as error:
        raise ListError(f"cannot use {path}: {error}") from error
    action = ListAction.BLOCK if list_format is ListFormat.ADBLOCK else categories.get(category).action
    return SourceFile(Source(path.name, action, category), plain, list_format)
