"""Counting, indexing and forgetting: what another process did meanwhile, what is merged, and which hours and days go."""

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select

from gatewayfilter.model import LogDimension, LogQuery, LogRecord
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.traffic import decision_log, log_counts, log_terms_table
from gatewayfilter.store.repositories.traffic.log_counts import DAY_S, HOUR_S, drop_counts_before, trim_counts
from gatewayfilter.store.sql.database import Area
from gatewayfilter.store.sql.schema import LOG_COUNTS, LOG_DEVICES, LOG_HOURS

RECORD = LogRecord(0.0, "192.0.2.1", "GET", "http://a.example/page", "document", "block", "blacklist")


@pytest.fixture
def store_url(sqlite_url: str) -> str:
    """SQLite alone: PostgreSQL keeps its index by itself."""
    return sqlite_url


def records(*moments: float) -> list[LogRecord]:
    return [RECORD._replace(at=at, client=f"192.0.2.{number}") for number, at in enumerate(moments)]


def counted(store: Store) -> None:
    while store.log_counter.step():
        pass


def rows(store: Store, *columns: Any) -> list[tuple[Any, ...]]:
    with store._database.read() as connection:
        return [tuple(row) for row in connection.execute(select(*columns).distinct().order_by(*columns))]


def starts(store: Store) -> list[tuple[Any, ...]]:
    return rows(store, LOG_COUNTS.c.period_s, LOG_COUNTS.c.start)


def meanwhile(monkeypatch: pytest.MonkeyPatch, module: Any, act: Callable[[], object]) -> None:
    """Has something happen once, after records were read and before they are written down."""
    read = module.records_after

    def reading(*asked: Any) -> Any:
        found = read(*asked)
        monkeypatch.setattr(module, "records_after", read)
        act()
        return found

    monkeypatch.setattr(module, "records_after", reading)


@pytest.mark.parametrize("module", [log_counts, log_terms_table], ids=["counted", "indexed"])
def test_another_process_that_is_faster_is_left_alone(
    module: Any, open_store: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = open_store(), open_store()
    ours.log.write(records(1.0, 2.0))
    theirs.log_indexer.step()  # so that there is an index
    ours.log.write(records(3.0))
    ours_step, theirs_step = (
        getattr(store, "log_counter" if module is log_counts else "log_indexer").step for store in (ours, theirs)
    )
    meanwhile(monkeypatch, module, theirs_step)
    assert ours_step() == (3 if module is log_counts else 1)
    assert ours_step() == 0
    counted(ours)
    assert ours.log_stats.summary().decisions == 3
    assert len(ours.log_search.page(LogQuery(text="page")).records) == 3


@pytest.mark.parametrize(("takes_s", "sizes"), [(0.0, [250, 500, 150, 0]), (9.0, [250, 125, 62, 50])])
@pytest.mark.parametrize("module", [log_counts, log_terms_table], ids=["counted", "indexed"])
def test_a_step_takes_as_many_records_as_the_one_before_had_time_for(
    module: Any, takes_s: float, sizes: list[int], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.log.write(records(*[1.0] * 900))
    now = itertools.count(1_000.0, takes_s)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(now)))
    job = store.log_counter if module is log_counts else store.log_indexer
    assert [job.step() for _ in sizes] == sizes


def test_records_that_were_deleted_meanwhile_are_not_counted(
    open_store: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = open_store(), open_store()
    ours.log.write(records(1.0, 2.0, 3.0))
    meanwhile(monkeypatch, log_counts, lambda: theirs.log.purge_clients(frozenset({"192.0.2.1"})))
    meanwhile(monkeypatch, log_terms_table, lambda: theirs.log.purge_clients(frozenset({"192.0.2.2"})))
    assert (ours.log_counter.step(), ours.log_counter.step()) == (3, 0)
    assert ours.log_stats.summary().decisions == 2
    assert (ours.log_indexer.step(), ours.log_indexer.step()) == (2, 0)
    assert [found.client for _, found in ours.log_search.page(LogQuery(text="page")).records] == ["192.0.2.0"]
    ours.log.write(records(4.0))
    meanwhile(monkeypatch, log_counts, lambda: theirs.log.purge(9.0))
    assert (ours.log_counter.step(), ours.log_counter.step()) == (1, 0)
    assert ours.log_stats.covered() == (4, 0)


def test_an_index_of_another_version_is_made_anew_and_none_where_there_can_be_none(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store.log.write(records(1.0, 2.0))
    assert (store.log_indexer.step(), store.log_indexer.step()) == (2, 0)
    monkeypatch.setattr(log_terms_table, "TERMS_VERSION", 2)
    assert (store.log_indexer.step(), store.log_indexer.step()) == (2, 0)
    monkeypatch.setattr(log_terms_table, "TERMS_VERSION", 3)
    monkeypatch.setattr(log_terms_table, "_MAKE", "CREATE VIRTUAL TABLE log_terms USING no_such_module(a)")
    assert (store.log_indexer.step(), store.log_indexer.step()) == (0, 0)
    assert [record.getMessage() for record in caplog.records] == [
        "the log cannot have a search index (no such module: no_such_module): searches read the newest decisions only"
    ]  # fmt: skip
    assert len(store.log_search.page(LogQuery(text="page")).records) == 2
    monkeypatch.undo()
    assert store.log_indexer.step() == 0  # until the process starts again


@pytest.mark.parametrize(("names", "left"), [(4, 4), (5, 3), (6, 3)])
def test_the_rarest_names_are_merged_until_half_are_left(
    names: int, left: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_counts, "MOST_NAMES", 4)
    monkeypatch.setattr(log_counts, "MOST_OF_CLIENTS", 4)
    written = [RECORD._replace(url=f"http://h{number}.example/") for number in range(names) for _ in range(number + 1)]
    store.log.write(written)
    counted(store)
    hosts = (LOG_COUNTS.c.dimension == int(LogDimension.HOST)) & (LOG_COUNTS.c.period_s == HOUR_S)
    with store._database.read() as connection:
        for client in ("", "192.0.2.1"):
            found = select(LOG_COUNTS.c.name, LOG_COUNTS.c.decisions).where(hosts, LOG_COUNTS.c.client == client)
            kept = dict(map(tuple, connection.execute(found)))
            assert (len(kept), sum(kept.values())) == (left, len(written))
            assert kept[f"h{names - 1}.example"] == names
            assert ("" in kept) is (names > 4)


def test_hours_and_days_that_are_over_are_forgotten(store: Store) -> None:
    store.log.write(records(3_599.0, 3_600.0, 7_200.0, DAY_S - 1.0, DAY_S + 3_600.0))
    counted(store)
    drop_counts_before(store._database, 7_199.0)
    hours = [(HOUR_S, start) for start in (3_600, 7_200, DAY_S - HOUR_S, DAY_S + HOUR_S)]
    assert starts(store) == [*hours, (DAY_S, 0), (DAY_S, DAY_S)]
    assert rows(store, LOG_HOURS.c.start) == [(start,) for _, start in hours]
    assert rows(store, LOG_DEVICES.c.client) == [("192.0.2.2",), ("192.0.2.3",), ("192.0.2.4",)]
    drop_counts_before(store._database, 7_200.0)
    assert starts(store) == [*hours[1:], (DAY_S, 0), (DAY_S, DAY_S)]
    assert rows(store, LOG_DEVICES.c.client) == [("192.0.2.2",), ("192.0.2.3",), ("192.0.2.4",)]
    drop_counts_before(store._database, DAY_S)
    assert starts(store) == [hours[-1], (DAY_S, DAY_S)]
    assert rows(store, LOG_DEVICES.c.client) == [("192.0.2.4",)]


def test_deleted_records_are_taken_off_what_is_not_over(store: Store) -> None:
    kept = records(0.0, 3_600.0, 3_700.0, DAY_S)
    store.log.write(kept)
    counted(store)
    with store._database.write(Area.LOG_COUNTS) as connection:
        log_counts.subtract_counts(connection, [], 3_600.0)
        log_counts.subtract_counts(connection, [kept[0], kept[1], kept[3]], 3_600.0)
    of_reason = (LOG_COUNTS.c.dimension == int(LogDimension.REASON)) & (LOG_COUNTS.c.client == "")
    with store._database.read() as connection:
        found = connection.execute(select(LOG_COUNTS.c.period_s, LOG_COUNTS.c.start, LOG_COUNTS.c.decisions).where(of_reason))
        assert sorted(map(tuple, found)) == [(HOUR_S, 0, 1), (HOUR_S, 3_600, 1), (DAY_S, 0, 1)]


def test_the_oldest_hours_and_then_days_go_while_there_are_too_many_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    paused: list[float] = []
    monkeypatch.setattr("gatewayfilter.store.repositories.traffic.log_counts.time.sleep", paused.append)
    store.log.write([RECORD._replace(at=at) for at in (0.0, 3_600.0, DAY_S + 0.0)])
    counted(store)
    every = [(HOUR_S, 0), (HOUR_S, 3_600), (HOUR_S, DAY_S), (DAY_S, 0), (DAY_S, DAY_S)]
    assert starts(store) == every
    each = 5  # rows of an hour or day: the client, and reason and host for everybody and for it
    for most, left, pauses in (
        (5 * each, every, 0), (5 * each - 1, every[1:], 1), (3 * each, every[2:], 2), (each + 1, every[4:], 4), (0, [], 5),
        (0, [], 5),
    ):  # fmt: skip
        trim_counts(store._database, most)
        assert (starts(store), len(paused)) == (left, pauses), most


def test_of_two_processes_that_remove_the_oldest_counts_one_gives_up(
    open_store: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = open_store(), open_store()
    ours.log.write([RECORD._replace(at=at) for at in (0.0, 3_600.0, DAY_S + 0.0)])
    counted(ours)
    write = ours._database.write

    def second(area: Area) -> Any:
        trim_counts(theirs._database, 4 * 5)
        return write(area)

    monkeypatch.setattr(ours._database, "write", second)
    trim_counts(ours._database, 1)
    assert starts(ours) == [(HOUR_S, 3_600), (HOUR_S, DAY_S), (DAY_S, 0), (DAY_S, DAY_S)], "no days before the hours"


def test_a_search_goes_on_where_a_page_ended(store: Store) -> None:
    store.log.write(records(*range(5)))
    page = store.log_search.page(LogQuery(text="page"), 2)
    assert [number for number, _ in page.records] == [5, 4]
    assert (page.before, page.timed_out) == (4, False)
    rest = store.log_search.page(LogQuery(text="page"), 9, before=page.before)
    assert ([number for number, _ in rest.records], rest.before, rest.timed_out) == ([3, 2, 1], None, False)
    assert store.log_search.page(LogQuery(text="page"), before=1).records == ()
    assert store.log_search.page(LogQuery(text="none\0\ud800")).records == ()


def test_many_records_are_written_in_few_statements() -> None:
    for count, sizes in ((0, []), (1, [1]), (9, [8, 1]), (170, [128, 32, 8, 1, 1]), (256, [128, 128])):
        found = list(decision_log._batches_of_values([(number,) for number in range(count)]))
        assert [len(values) for _, values in found] == sizes
        assert [value for _, values in found for value in values] == list(range(count))
        assert [statement.count("(?, ") for statement, _ in found] == sizes


def test_text_that_no_database_takes_is_replaced() -> None:
    texts = ("plain", "é字", "a\0b", "\ud800x", "é\0\udfff")
    assert [decision_log._is_storable(text) for text in texts] == [True, True, False, False, False]
    assert [decision_log._storable(text) for text in texts] == ["plain", "é字", "a?b", "?x", "é??"]


@pytest.mark.parametrize(("count", "pauses"), [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)])
def test_others_may_write_between_the_parts_of_a_purge(
    count: int, pauses: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_log, "_PURGE_CHUNK", 2)
    slept: list[float] = []
    monkeypatch.setattr("gatewayfilter.store.repositories.traffic.decision_log.time.sleep", slept.append)
    store.log.write(records(*range(count)))
    assert store.log.purge(count) == count
    assert slept == [0.01] * pauses
    assert (store.log.tail(9), store.log.newest()) == ([], 0)
    store.log.write([])
    store.log.write(records(*range(4)))
    assert [record.at for _, record in store.log.tail(2)] == [2.0, 3.0]
    assert [number for number, _ in store.log.tail(9, after=count + 3)] == [count + 4]
    assert store.log.newest() == count + 4
    clients = frozenset({"192.0.2.0", "192.0.2.1", "192.0.2.2", "user:kim"})
    assert store.log.purge_clients(clients, before=2.0) == 2
    assert store.log.purge_clients(clients) == 1
