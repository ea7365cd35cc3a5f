import random

import pytest

from gatewayfilter.model import LogRecord
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.traffic import log_rows
from gatewayfilter.store.sql.log_size import measure_log

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
