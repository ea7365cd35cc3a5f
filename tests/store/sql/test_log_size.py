import random
from contextlib import closing
from functools import partial

import pytest
from sqlalchemy import delete

from gatewayfilter.model import LogRecord
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.traffic import log_rows
from gatewayfilter.store.sql import log_size
from gatewayfilter.store.sql.database import Area
from gatewayfilter.store.sql.log_size import measure_log
from gatewayfilter.store.sql.schema import DECISIONS

DRAW = random.Random(2)
TEXT = "".join(DRAW.choices("abcdefghijklmnopqrstuvwxyz/._-=?&0123456789", k=100_000))


def record(length: int) -> LogRecord:
    return LogRecord(
        7.0,
        "192.0.2.1",
        "GET",
        TEXT[(at := DRAW.randrange(40_000)) : at + length],
        "document",
        "block",
        "blacklist",
        "ut1",
        ".a.example",
        "gambling",
        7,
    )


def used_bytes(store: Store) -> int:
    with store._database.read() as connection:
        pages, free, page = (
            int(connection.exec_driver_sql(f"PRAGMA {name}").scalar() or 0)
            for name in ("page_count", "freelist_count", "page_size")
        )
    return (pages - free) * page


@pytest.mark.slow
@pytest.mark.parametrize("lengths", [[30], [250], [1_000], [1_800], [2_100], [60_000], [30, 30, 30, 1_800]])
def test_the_estimate_is_what_the_file_takes(sqlite_url: str, lengths: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_rows, "_LONGEST_S", 60.0)  # on a busy machine the index has more and smaller parts
    monkeypatch.setattr(log_size, "STRATA", 100_000)  # every row
    store = Store.open(sqlite_url)
    empty = used_bytes(store)
    draw = random.Random(1)
    count = min(6_000, 20_000_000 // max(lengths))
    for _ in range(0, count, 500):
        store.log.write([record(draw.choice(lengths)) for _ in range(500)])
    while store.log_counter.step() or store.log_indexer.step():
        pass
    with store._database.read() as connection:
        found = measure_log(connection, 1)
    store.close()
    assert found.size_bytes == pytest.approx(used_bytes(store) - empty, rel=0.2, abs=40_000)


def test_a_sample_stands_for_the_whole(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(1)
    store.log.write([record(draw.choice([30, 30, 30, 1_800])) for _ in range(6_000)])
    with store._database.read() as connection:
        monkeypatch.setattr(log_size, "STRATA", 6_000)
        whole = measure_log(connection, 1).size_bytes
        monkeypatch.undo()
        for seed in range(10):
            monkeypatch.setattr(log_size, "SystemRandom", partial(random.Random, seed))
            assert measure_log(connection, 1).size_bytes == pytest.approx(whole, rel=0.1)


def test_an_empty_log_takes_nothing(store: Store) -> None:
    with store._database.read() as connection:
        found = measure_log(connection, 1)
    assert (found.size_bytes, found.surplus_up_to) == (0, 0)


@pytest.mark.parametrize("count", [1, 10, 3_000])
def test_everything_is_surplus_where_nothing_may_stay(store: Store, count: int) -> None:
    store.log.write([record(50)] * count)
    ((newest, _),) = store.log.tail(1)
    with store._database.read() as connection:
        assert measure_log(connection, 0).surplus_up_to == newest
        assert measure_log(connection, 1_000_000_000).surplus_up_to == 0


def test_of_a_log_that_grew_in_a_flood_the_newest_rows_stay(store: Store) -> None:
    """Short rows, then long ones that nobody can hide between the rows that are looked at."""
    store.log.write([record(30)] * 4_000)
    for _ in range(10):
        store.log.write([record(1_700)] * 100)
    assert 0 < store.log.shrink(1_500_000) <= 4_700
    left = [len(found.url) for _, found in store.log.tail(10_000)]
    assert set(left) == {1_700}
    assert 350 <= len(left) <= 1_000
    assert store.log.shrink(1_500_000) == 0


def test_it_is_measured_again_only_when_so_much_was_written_that_it_can_matter(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[float] = []

    def counted(*arguments: float) -> object:
        measured.append(arguments[1])
        return measure_log(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("gatewayfilter.store.repositories.traffic.decision_log.measure_log", counted)
    most = 4_096.0 * 10
    store.log.write([record(20)])
    for _ in range(3):
        assert store.log.shrink(most) == 0
    assert len(measured) == 1
    store.log.write([record(20)] * 8)
    store.log.shrink(most)
    assert len(measured) == 1
    store.log.write([record(20)] * 2)
    store.log.shrink(most)
    assert len(measured) == 2


@pytest.mark.parametrize(
    ("most", "kept", "surplus"),
    [(10.0, None, 0), (9.9, None, 1), (9.0, None, 1), (9.9, 5.0, 5), (9.9, 4.9, 6), (10.0, 1.0, 0), (0.0, 0.0, 10)],
)
def test_the_excess_is_of_the_oldest_rows(sqlite_url: str, most: float, kept: float | None, surplus: int) -> None:
    with closing(Store.open(sqlite_url)) as store:
        written = record(100)
        store.log.write([written] * 10)
        with store._database.read() as connection:
            whole = measure_log(connection, 1e9)
            one = whole.size_bytes / 10
            found = measure_log(connection, most * one, None if kept is None else kept * one)
    assert whole == log_size.LogSize(10 * log_size._of_sqlite(sum(len(text) for text in written if isinstance(text, str))), 0)
    assert found == log_size.LogSize(whole.size_bytes, surplus)


def test_rows_that_are_gone_take_nothing(sqlite_url: str) -> None:
    with closing(Store.open(sqlite_url)) as store:
        store.log.write([record(100)] * 3)
        with store._database.write(Area.LOG) as connection:
            whole = measure_log(connection, 1e9).size_bytes
            connection.execute(delete(DECISIONS).where(DECISIONS.c.id == 2))
            assert measure_log(connection, 1e9).size_bytes == whole * 2 // 3


def test_ranges_are_of_one_width_and_the_newest_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert log_size._ranges(5, 7) == [(7, 8), (6, 7), (5, 6)]
    monkeypatch.setattr(log_size, "STRATA", 3)
    assert log_size._ranges(1, 10) == [(7, 11), (4, 7), (1, 4)]
    assert log_size._ranges(9, 9) == [(9, 10)]


@pytest.mark.parametrize(
    ("length", "in_pages", "sqlite", "postgres"),
    [
        (0, 48, 88, 240),
        (100, 4_096 // 27, 4_096 // 27 + 150 + 40, 100 + 120 + 300 + 120),
        (600, 4_096 // 6, 4_096 // 6 + 900 + 40, 600 + 120 + 1_800 + 120),
        (601, 4_096 // 6, 4_096 // 6 + 900 + 40, 601 + 120 + 1_800 + 120),
        (4_013, 4_096, 4_096 + 940, 4_013 + 2_040),
        (4_014, 4_096, 4_096 + 940, 4_014 + 2_040),
        (4_048, 8_192, 8_192 + 940, 4_048 + 2_040),
        (10_000, 3 * 4_096, 3 * 4_096 + 940, 10_000 + 2_040),
    ],
)
def test_what_a_row_takes(length: int, in_pages: int, sqlite: int, postgres: int) -> None:
    assert log_size._in_pages(length) == in_pages
    assert (log_size._of_sqlite(length), log_size._of_postgres(length)) == (sqlite, postgres)
