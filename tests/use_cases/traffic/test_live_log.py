"""The live log: every record once and in order for each reader, one read of the database for all of them."""

import threading
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.model import LogQuery, LogRecord
from gatewayfilter.store import Store
from gatewayfilter.use_cases.traffic.live_log import EVERY_S, FIRST, LiveLog


def record(number: int) -> LogRecord:
    action = "block" if number % 2 else "allow"
    return LogRecord(1e9 + number, "192.0.2.1", "GET", f"http://a.example/{number}", "document", action, "unknown")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(f"sqlite:///{tmp_path / 'a.sqlite3'}")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_each_reader_gets_every_record_once(store: Store) -> None:
    clock = Clock()
    live = LiveLog(store.log, clock, kept=1_000)
    reached = [0, 0, live.newest()]
    seen: list[list[int]] = [[], [], []]
    for step in range(8):
        store.log.write([record(number) for number in range(step * 20, step * 20 + 20)])
        clock.now += 1.0
        for reader in range(3):
            if step % (reader + 1) == 0:
                continue
            batch = live.after(reached[reader], most=30)
            assert batch.skipped == 0
            seen[reader] += [number for number, _ in batch.records]
            reached[reader] = batch.reached
    for reader in range(3):
        while rest := live.after(reached[reader]).records:
            seen[reader] += [number for number, _ in rest]
            reached[reader] = rest[-1][0]
        assert seen[reader] == list(range(1, 161))


def test_many_readers_cost_one_read_of_the_database(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.log.write([record(number) for number in range(100)])
    clock, reads = Clock(), 0
    newest = store.log.newest

    def counted() -> int:
        nonlocal reads
        reads += 1
        return newest()

    monkeypatch.setattr(store.log, "newest", counted)
    live = LiveLog(store.log, clock)
    for _ in range(500):
        assert len(live.after(0).records) == 100
    assert reads == 1
    clock.now = EVERY_S - 0.01
    live.after(100)
    assert reads == 1
    clock.now = EVERY_S
    live.after(100)
    assert reads == 2


def test_conditions_leave_out_and_the_reader_goes_on(store: Store) -> None:
    store.log.write([record(number) for number in range(10)])
    live = LiveLog(store.log)
    batch = live.after(4, LogQuery(action="block"))
    assert [number for number, _ in batch.records] == [6, 8, 10]
    assert live.after(0, LogQuery(action="none")).reached == 10


def test_a_reader_that_was_away_skips(store: Store) -> None:
    store.log.write([record(number) for number in range(100)])
    live = LiveLog(store.log, kept=30)
    batch = live.after(10)
    assert (batch.skipped, len(batch.records), batch.reached) == (60, 30, 100)
    assert live.after(5_000).reached == 100  # of an older database


def test_removed_records_are_shown_no_more(store: Store) -> None:
    clock = Clock()
    store.log.write([record(number) for number in range(10)])
    live = LiveLog(store.log, clock)
    assert live.newest() == 10
    store.log.purge(9e9)
    clock.now = 1.0
    assert live.after(0) == live.after(5)
    assert (live.after(0).records, live.newest()) == ((), 0)
    store.log.write([record(1)])
    live.clear()
    assert [number for number, _ in live.after(0).records] == [11]


def test_threads_share_it(store: Store) -> None:
    live = LiveLog(store.log, kept=10_000, every_s=0.0)
    assert live.newest() == 0
    done = threading.Event()
    found: list[list[int]] = [[] for _ in range(4)]

    def follow(mine: list[int]) -> None:
        reached = 0
        while True:
            ended = done.is_set()
            batch = live.after(reached)
            mine += [number for number, _ in batch.records]
            reached = batch.reached
            if ended and not batch.records:
                return

    threads = [threading.Thread(target=follow, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for number in range(50):
        store.log.write([record(number)] * 20)
    done.set()
    for thread in threads:
        thread.join()
    assert found == [list(range(1, 1_001))] * 4


def test_an_empty_log(store: Store) -> None:
    with closing(store):
        live = LiveLog(store.log)
        assert live.newest() == 0
        assert live.after(0).records == ()


def test_what_is_left_after_a_removal_is_read_again(store: Store) -> None:
    clock = Clock()
    live = LiveLog(store.log, clock)
    store.log.write([record(1)])
    assert live.newest() == 1
    live.clear()
    batch = live.after(0)
    assert ([number for number, _ in batch.records], batch.reached, batch.skipped) == ([1], 1, 0)


def test_records_are_read_once_and_the_first_time_only_the_newest(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, asked = Clock(), list[tuple[int, int]]()
    tail = store.log.tail

    def noted(most: int, after: int) -> list[tuple[int, LogRecord]]:
        asked.append((most, after))
        return tail(most, after)

    monkeypatch.setattr(store.log, "tail", noted)
    store.log.write([record(number) for number in range(300)])
    live = LiveLog(store.log, clock, kept=1_000)
    batch = live.after(0, most=1_000)
    assert (len(batch.records), batch.skipped, batch.reached) == (FIRST, 300 - FIRST, 300)
    clock.now = 1.0
    assert live.after(300).records == ()
    store.log.write([record(number) for number in range(400)])
    clock.now = 2.0
    batch = live.after(300, most=1_000)
    assert (len(batch.records), batch.skipped, batch.reached) == (400, 0, 700)
    assert asked == [(FIRST, 0), (1_000, 300)]
