"""Readers during swaps see the old state or the new one, never a mix, and need no lock."""

import multiprocessing
import sys
from collections.abc import Iterator
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event as Event_
from pathlib import Path
from threading import Event, Thread

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import Change, ChangeKind, LearnedEntry, ListAction, Reason, Request, Source
from gatewayfilter.urls import parse_url

PAGE = Request(parse_url("http://a.x.example/page"))


def generation(number: int) -> bytes:
    """Lists the host, the page and an advertisement rule under names of this generation alone."""
    builder = SnapshotBuilder(feed_seq=number)
    builder.add_keys(builder.add_source(Source(f"white{number}", ListAction.ALLOW, str(number))), [".x.example"])
    builder.add_adblock_list(builder.add_source(Source(f"ads{number}", ListAction.BLOCK, str(number))), ["||a.x.example^"])
    if number % 2:
        builder.add_keys(builder.add_source(Source(f"black{number}", ListAction.BLOCK, str(number))), ["a.x.example/page"])
    return builder.build()


@pytest.fixture(autouse=True)
def _frequent_thread_switches() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.slow
def test_readers_see_old_or_new_never_a_mix(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path, keep=1)
    blobs = [generation(number) for number in range(2)]
    folder.publish(blobs[0])
    engine = FilterEngine(folder.open_newest()[0])
    stop = Event()
    mixed: list[object] = []
    decisions = [0, 0, 0]

    def read(reader: int) -> None:
        while not stop.is_set():
            explanation = engine.explain(PAGE)
            said = {answer.verdict.category for answer in explanation.answers if answer.verdict and answer.verdict.category}
            verdict = engine.decide(PAGE)
            if len(said) != 1 or verdict.source_list not in {"ads0", "black1"}:
                mixed.append((said, verdict))
            decisions[reader] += 1

    readers = [Thread(target=read, args=(reader,)) for reader in range(3)]
    for reader in readers:
        reader.start()
    swaps = 0
    while swaps < 60 or (not all(decisions) and all(reader.is_alive() for reader in readers)):
        folder.publish(blobs[swaps % 2])
        engine.swap(folder.open_newest()[0])
        swaps += 1
    stop.set()
    for reader in readers:
        reader.join()
    assert mixed == []
    assert all(decisions)


def test_changes_are_seen_whole_while_they_are_applied() -> None:
    """One batch blocks one page and frees another: no reader finds both free."""
    engine = FilterEngine(Snapshot.from_bytes(SnapshotBuilder().build()))
    pages = ("x.example/1", "x.example/2")
    stop = Event()
    wrong: list[object] = []

    def batch(round_: int) -> list[Change]:
        entries = [LearnedEntry(page, ListAction.BLOCK, "c", page, "", 0.0, 1e12) for page in pages]
        kinds = [ChangeKind.LEARNED_ADDED, ChangeKind.LEARNED_REMOVED]
        if round_ % 2:
            kinds.reverse()
        return [Change(2 * round_ + i + 1, kind, learned=item) for i, (kind, item) in enumerate(zip(kinds, entries, strict=True))]

    engine.apply(batch(0))

    def read() -> None:
        while not stop.is_set():
            learned = engine._state.overlay.learned
            if sum(entry is not None for entry in learned.values()) != 1:
                wrong.append(dict(learned))
            engine.decide(Request(parse_url("http://x.example/1")))

    readers = [Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for round_ in range(1, 300):
        engine.apply(batch(round_))
    stop.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert engine.feed_seq == 600


def test_writers_of_two_threads_lose_nothing() -> None:
    engine = FilterEngine(Snapshot.from_bytes(SnapshotBuilder().build()))

    def entry(number: int) -> LearnedEntry:
        return LearnedEntry(f"x.example/{number}", ListAction.BLOCK, "c", "", "", 0.0, 1e12)

    all_changes = [Change(number, ChangeKind.LEARNED_ADDED, learned=entry(number)) for number in range(1, 301)]

    def follow() -> None:
        for number in range(1, 301):
            engine.apply(all_changes[:number])

    writers = [Thread(target=follow) for _ in range(2)]
    for writer in writers:
        writer.start()
    for _ in range(10):
        engine.swap(Snapshot.from_bytes(SnapshotBuilder().build()))
    for writer in writers:
        writer.join()
    asked = [engine.decide(Request(parse_url(f"http://x.example/{number}"))).reason for number in range(1, 301)]
    assert set(asked) == {Reason.LEARNED}


def with_rules(seq: int, rule: str, *, path: Path) -> Snapshot:
    builder = SnapshotBuilder(feed_seq=seq, created_at=float(seq))
    builder.add_keys(builder.add_source(Source("black")), [f".n{seq}.example"])
    builder.add_adblock_list(builder.add_source(Source("ads")), [rule])
    path.write_bytes(builder.build())
    return Snapshot.open(path)


def test_rules_that_stayed_the_same_are_not_opened_again(tmp_path: Path) -> None:
    """Also when the file that they were first read from has gone."""
    engine = FilterEngine(with_rules(1, "||ads.example^", path=tmp_path / "1"))
    first = engine.snapshot.adblock
    for seq in (2, 3):
        engine.swap(with_rules(seq, "||ads.example^", path=tmp_path / str(seq)))
        (tmp_path / str(seq - 1)).unlink()
        assert engine.snapshot.adblock is first
        assert engine.decide(Request(parse_url("http://ads.example/"))).reason is Reason.ADBLOCK
        assert engine.decide(Request(parse_url(f"http://n{seq}.example/"))).reason is Reason.BLACKLIST
        assert engine.decide(Request(parse_url(f"http://n{seq - 1}.example/"))).reason is Reason.UNKNOWN
    engine.swap(with_rules(4, "||other.example^", path=tmp_path / "4"))
    assert engine.snapshot.adblock is not first
    assert engine.decide(Request(parse_url("http://ads.example/"))).reason is Reason.UNKNOWN
    assert engine.decide(Request(parse_url("http://other.example/"))).reason is Reason.ADBLOCK


def read_until(folder: Path, stop: Event_, found: "Queue[int]") -> None:
    """Follows the folder as a worker does. Tells 0 after a first look, then how many snapshots it saw, -1 for a mix."""
    snapshots = SnapshotFolder(folder, keep=2)
    engine = FilterEngine(snapshots.open_newest()[0])
    seen: set[int] = set()
    while not stop.is_set():
        path = snapshots.current()
        if path is None:  # replaced and pruned while it was looked at
            continue
        try:
            engine.swap(Snapshot.open(path))
        except SnapshotError:  # pruned between looking and opening
            continue
        seq = engine.snapshot.info.feed_seq
        is_first = not seen
        seen.add(seq)
        if {answer.verdict.category for answer in engine.explain(PAGE).answers if answer.verdict and answer.verdict.category} != {
            str(seq)
        }:
            found.put(-1)
            return
        if is_first:
            found.put(0)
    found.put(len(seen))


@pytest.mark.slow
def test_readers_in_other_processes_see_old_or_new_never_a_mix(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    folder = SnapshotFolder(tmp_path, keep=2)
    folder.publish(generation(1))
    stop, found = context.Event(), context.Queue()
    readers = [context.Process(target=read_until, args=(tmp_path, stop, found)) for _ in range(2)]
    for reader in readers:
        reader.start()
    assert [found.get(timeout=60) for _ in readers] == [0, 0]
    for number in range(3, 203, 2):
        folder.publish(generation(number))
    stop.set()
    counts = [found.get(timeout=60) for _ in readers]
    for reader in readers:
        reader.join(60)
    assert min(counts) > 0
