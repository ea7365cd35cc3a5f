"""Search in the log: what is found is what a comparison with every record finds, indexed or not, in both databases."""

import dataclasses
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import ColumnElement, event, literal_column, or_

import gatewayfilter.store.repositories.traffic.log_search as log_search_module
from gatewayfilter.model import LogQuery, LogRecord
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.traffic import log_rows
from tests.store.postgres_cluster import why_not

HOSTILE = [
    'http://a.example/"quoted" NEAR(x y) * AND OR NOT %25_',
    "http://a.example/100%_sure'--;drop table decisions",
    "http://a.example/\x1b[2J\u202egpj.exe",
    "http://例え.example/パス?q=ABC",
    "http://[2001:db8::1]:8080/x",
    "https://Sub.Shop.Example/CART",
    "shop.example",
    "",
    "http://long.example/" + "ab" * 900 + "tail",
]


def record(number: int, **changes: object) -> LogRecord:
    url = f"http://site{number % 7}.example/page{number}"
    found = LogRecord(1_000_000.0 + number, f"192.0.2.{number % 3}", "GET", url, "document", "allow", "unknown")
    return found._replace(**changes)  # type: ignore[arg-type]


def fill(store: Store) -> list[LogRecord]:
    draw = random.Random(5)
    records = [record(number) for number in range(300)]
    for number, url in enumerate(HOSTILE):
        records[number * 20] = record(number * 20, url=url)
    for number in range(0, 300, 5):
        records[number] = records[number]._replace(
            action="block", reason="blacklist", source_list="ut1", category=draw.choice(["ads", "gambling"]), user="kim"
        )
    store.log.write(records)
    return records


def index(store: Store) -> None:
    while store.log_counter.step():
        pass
    while store.log_indexer.step():
        pass


def all_pages(store: Store, query: LogQuery, limit: int = 7) -> list[LogRecord]:
    found: list[LogRecord] = []
    before: int | None = None
    while True:
        page = store.log_search.page(query, limit, before=before)
        assert len(page.records) <= limit
        found += [one for _, one in page.records]
        if page.before is None:
            return found
        assert before is None or page.before < before
        before = page.before


QUERIES = [
    LogQuery(),
    LogQuery(text="PAGE12"),
    LogQuery(text="site3.example/page"),
    LogQuery(text="nowhere"),
    LogQuery(text='"quoted"'),
    LogQuery(text="NEAR(x y) *"),
    LogQuery(text="%25_"),
    LogQuery(text="%"),
    LogQuery(text="100%_sure'--"),
    LogQuery(text="\u202egpj"),
    LogQuery(text="http://例え.example/パス"),
    LogQuery(text="shop.example/cart"),
    LogQuery(text="si"),
    LogQuery(text="ab" * 100),
    LogQuery(text="tail"),
    LogQuery(text="\udc80\0x"),
    LogQuery(action="block"),
    LogQuery(action="block", category="gambling", text="page"),
    LogQuery(reason="unknown", clients=frozenset({"192.0.2.1"})),
    LogQuery(clients=frozenset({"user:kim"})),
    LogQuery(clients=frozenset({"user:kim", "192.0.2.2"}), source_list="ut1"),
    LogQuery(clients=frozenset()),
    LogQuery(host="shop.example"),
    LogQuery(host="example"),
    LogQuery(host="2001:db8::1"),
    LogQuery(since=1_000_100.0, until=1_000_150.0),
    LogQuery(since=1_000_290.0),
    LogQuery(until=1_000_003.0, text="page"),
    LogQuery(since=9e9),
    LogQuery(until=1_000_000.0),
    LogQuery(since=1_000_100.0, until=1_000_800.0),
    LogQuery(until=1_000_800.0, action="block"),
    LogQuery(since=1_000_150.0, until=1_000_150.0),
    LogQuery(since=1_000_160.0, until=1_000_150.0),
]


@pytest.mark.parametrize("indexed", [0, 150, 300])
def test_search_finds_what_a_comparison_with_all_records_finds(
    indexed: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = fill(store)[:indexed]
    monkeypatch.setattr(log_search_module, "_FOUND", 5)
    monkeypatch.setattr(log_search_module, "_SCANNED", 50)
    monkeypatch.setattr(log_search_module, "_POSTGRES_NEWEST", 40)
    monkeypatch.setattr(log_search_module, "_READ", 2)
    monkeypatch.setattr(log_search_module, "_FIRST_SPAN", 20)
    monkeypatch.setattr(log_search_module, "_LEAST_SPAN", 7)
    if records:
        index(store)
    if indexed == 150:
        store.log.write([record(number) for number in range(300, 400)])
    everything = [one for _, one in store.log.tail(1_000)]
    for query in QUERIES:
        clean = dataclasses.replace(query, text=query.text.encode(errors="replace").decode().replace("\0", "?"))
        expected = [one for one in reversed(everything) if clean.matches(one)]
        assert all_pages(store, query) == expected, query


def test_a_page_ends_in_time_and_the_next_goes_on(store: Store) -> None:
    fill(store)
    page = store.log_search.page(LogQuery(text="nowhere"), budget_s=0.0)
    assert page.records == ()
    assert page.before is None  # 300 records are one chunk


def test_pages_stop_at_their_budget(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store)
    monkeypatch.setattr(log_search_module, "_SCANNED", 10)
    monkeypatch.setattr(log_search_module, "_POSTGRES_NEWEST", 10)
    page = store.log_search.page(LogQuery(text="page1"), budget_s=0.0)
    assert page.before is not None
    assert page.searched_to is not None
    assert page.timed_out
    assert not store.log_search.page(LogQuery(), 5).timed_out


def test_a_slow_disk_makes_pages_shorter_and_not_later(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements that take 60 ms each: a page of 150 ms has three of them at most, and the pages together find all."""
    store = Store.open(sqlite_url)
    records = fill(store)
    index(store)
    monkeypatch.setattr(log_search_module, "_READ", 10)
    monkeypatch.setattr(log_search_module, "_FIRST_SPAN", 40)
    monkeypatch.setattr(log_search_module, "_LEAST_SPAN", 40)
    statements = 0
    read = store._database.read

    @contextmanager
    def counted() -> Iterator[Any]:
        with read() as connection:
            event.listen(connection, "before_cursor_execute", count)
            yield connection
            event.remove(connection, "before_cursor_execute", count)

    def count(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        nonlocal statements
        statements += "log_terms MATCH" in statement or "id IN" in statement

    monkeypatch.setattr(store._database, "read", counted)
    search = log_search_module.SqlLogSearch(store._database, lambda: statements * 0.06)
    found, before = [], None
    for _ in range(100):
        begun = statements
        page = search.page(LogQuery(text="page"), 50, before=before, budget_s=log_search_module.PAGE_S)
        assert statements - begun <= 3
        found += [one for _, one in page.records]
        before = page.before
        if before is None:
            break
        assert page.timed_out
    assert found == [one for one in reversed(records) if "page" in one.url]
    store.close()


def test_parts_become_longer_where_reading_takes_no_time(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.open(sqlite_url)
    fill(store)
    index(store)
    monkeypatch.setattr(log_search_module, "_FIRST_SPAN", 10)
    monkeypatch.setattr(log_search_module, "_LEAST_SPAN", 10)
    parts: list[tuple[int, int]] = []

    def searched(_connection: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
        if "log_terms MATCH" in statement:
            parts.append((values[2], values[1]))

    search = log_search_module.SqlLogSearch(store._database, lambda: 1_000_000.0)
    with store._database.read() as connection:
        event.listen(connection.engine, "before_cursor_execute", searched)
    assert search.page(LogQuery(text="nowhere")).records == ()
    assert parts == [(290, 300), (209, 289), (1, 208)]
    store.close()


def test_the_first_record_is_found_when_it_alone_is_indexed(store: Store) -> None:
    for number in range(3):
        store.log.write([record(number)])
        assert [one for _, one in store.log_search.page(LogQuery(text="page")).records] == [
            record(before) for before in range(number, -1, -1)
        ]
        if not number:
            index(store)


@pytest.mark.real
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_postgresql_cancels_a_statement_at_the_end_of_the_time(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.open(postgres_url)
    fill(store)
    monkeypatch.setattr(log_search_module, "_POSTGRES_NEWEST", 40)
    slow: ColumnElement[bool] = literal_column(
        "(SELECT count(pg_sleep(0.05)) FROM generate_series(1, 40 + 0 * decisions.id)) > 0"
    )
    conditions = log_search_module._conditions

    def asked(query: LogQuery) -> list[ColumnElement[bool]]:
        return [*conditions(query), or_(log_search_module._COLUMNS.id > 260, slow)]

    monkeypatch.setattr(log_search_module, "_conditions", asked)
    limits: list[str] = []

    def noted(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("SET LOCAL statement_timeout"):
            limits.append(statement.rpartition(" ")[2])

    with store._database.read() as connection:
        event.listen(connection.engine, "before_cursor_execute", noted)
    search = log_search_module.SqlLogSearch(store._database, lambda: 1_000_000.0)  # no time passes but in the server
    begun = time.monotonic()
    page = search.page(LogQuery(text="page"), 500, budget_s=log_search_module.PAGE_S)
    assert limits == ["151"], "ms, and it was not taken back: the statement was cancelled"
    assert time.monotonic() - begun < 60, "all of it would take 2 s for each of 260 records"
    assert page.timed_out
    assert page.before == 261
    assert search.page(LogQuery(text="page"), 3, budget_s=log_search_module.PAGE_S).records[0][0] == 300
    store.close()


def test_a_page_of_the_past_reads_no_newer_records(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither those of the rest of the hour, nor those between the span and the ones that are not counted yet."""
    store = Store.open(sqlite_url)
    store.log.write([record(number, at=3_600.0 * 1_000 + number * 10) for number in range(2_000)])
    index(store)
    store.log.write([record(number, at=3_600.0 * 1_010) for number in range(30)])
    monkeypatch.setattr(log_search_module, "_SCANNED", 10)
    looked_at: list[float] = []
    matches = LogQuery.matches

    def counted(self: LogQuery, one: LogRecord) -> bool:
        looked_at.append(one.at)
        return matches(self, one)

    monkeypatch.setattr(LogQuery, "matches", counted)
    until = 3_600.0 * 1_001 + 1_005
    for query in (LogQuery(until=until), LogQuery(until=until, reason="unknown")):
        looked_at.clear()
        page = store.log_search.page(query, 20, budget_s=9.0)
        assert [one.at for _, one in page.records] == [until - 5 - 10 * number for number in range(20)]
        assert len([at for at in looked_at if at >= until]) == 30
    store.close()


def test_a_page_goes_on_from_what_is_not_counted_to_what_is(store: Store) -> None:
    store.log.write([record(number) for number in range(10)])
    index(store)
    store.log.write([record(number) for number in range(10, 20)])
    page = store.log_search.page(LogQuery(since=1_000_005.0, until=1_000_015.0), 50)
    assert [one.at for _, one in page.records] == [1_000_000.0 + number for number in range(14, 4, -1)]
    assert (page.before, page.timed_out) == (None, False)


def test_clocks_that_jump_hide_nothing(store: Store) -> None:
    """A machine that starts without a clock battery, and one that was a year ahead for a while."""
    times = [5e8, 1e9, 1e9 + 1, 2e9, 2e9 + 1, 1e9 + 4_000, 1e9 + 8_000, 0.0]
    store.log.write([record(number, at=at) for number, at in enumerate(times)])
    index(store)
    found = [one.at for one in all_pages(store, LogQuery(since=1e9, until=1e9 + 5_000))]
    assert sorted(found) == [1e9, 1e9 + 1, 1e9 + 4_000]
    assert sorted(one.at for one in all_pages(store, LogQuery(since=1.9e9))) == [2e9, 2e9 + 1]


@pytest.mark.parametrize(
    "delete", [lambda store: store.log.purge(1_000_100.0), lambda store: store.log.purge_clients(frozenset({"192.0.2.1"}))]
)
def test_deleted_records_leave_the_index(delete: Callable[[Store], int], store: Store) -> None:
    fill(store)
    index(store)
    removed = delete(store)
    assert removed == 100
    everything = [one for _, one in store.log.tail(1_000)]
    assert len(everything) == 300 - removed
    for query in QUERIES:
        clean = dataclasses.replace(query, text=query.text.encode(errors="replace").decode().replace("\0", "?"))
        assert all_pages(store, query) == [one for one in reversed(everything) if clean.matches(one)]


def test_a_purge_leaves_no_terms(sqlite_url: str) -> None:
    store = Store.open(sqlite_url)
    fill(store)
    index(store)
    store.log.purge(9e9)
    with store._database.read() as connection:
        connection.exec_driver_sql("INSERT INTO log_terms (log_terms) VALUES ('optimize')")
        assert connection.exec_driver_sql("SELECT count(*) FROM log_terms WHERE log_terms MATCH '\"age\"'").scalar() == 0
    store.close()


def test_an_index_of_another_version_is_made_again(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_rows, "_LONGEST_S", 60.0)  # on a busy machine a step takes fewer records
    store = Store.open(sqlite_url)
    fill(store)
    index(store)
    monkeypatch.setattr("gatewayfilter.store.repositories.traffic.log_terms_table.TERMS_VERSION", 99)
    assert store.log_indexer.step() >= 250
    index(store)
    assert len(all_pages(store, LogQuery(text="page"))) == len([one for _, one in store.log.tail(500) if "page" in one.url])
    store.close()
