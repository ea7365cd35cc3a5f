"""Counting, indexing and deleting never keep a writer waiting for long, and a locked database only delays them."""

import threading
import time
from collections.abc import Callable
from contextlib import closing

import pytest
from sqlalchemy import create_engine, text

from gatewayfilter.errors import StoreError
from gatewayfilter.model import LogQuery, LogRecord
from gatewayfilter.store import Store


def records(count: int, at: float = 1e9) -> list[LogRecord]:
    return [
        LogRecord(
            at + number, "192.0.2.1", "GET", f"http://h{number % 900}.example/{number}/page", "document", "block", "blacklist"
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("job", ["count", "index", "purge"])
def test_a_job_over_many_rows_is_many_short_transactions(job: str, sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Store.open(sqlite_url)) as store:
        for _ in range(4):
            store.log.write(records(1_000))
        if job == "purge":
            while store.log_counter.step() or store.log_indexer.step():
                pass
        held: list[int] = []
        write = store._database.write

        def counted(area: object) -> object:
            held.append(1)
            return write(area)  # type: ignore[arg-type]

        monkeypatch.setattr(store._database, "write", counted)
        if job == "purge":
            assert store.log.purge(9e9) == 4_000
            assert len(held) >= 8
        else:
            step = store.log_counter.step if job == "count" else store.log_indexer.step
            assert 0 < step() <= 250  # the first transaction is small: what a row costs here is not known yet


@pytest.mark.parametrize("job", [lambda store: store.log_counter.step(), lambda store: store.log_indexer.step()])
def test_a_locked_database_loses_nothing(job: Callable[[Store], int], sqlite_url: str) -> None:
    with closing(Store.open(sqlite_url, busy_timeout_s=0.1)) as store:
        store.log.write(records(100))
        engine = create_engine(sqlite_url, isolation_level="AUTOCOMMIT")
        with engine.connect() as other:
            other.execute(text("BEGIN IMMEDIATE"))
            with pytest.raises(StoreError):
                job(store)
            other.execute(text("ROLLBACK"))
        engine.dispose()
        while store.log_counter.step() or store.log_indexer.step():
            pass
        assert store.log_stats.summary().decisions == 100
        assert len(store.log_search.page(LogQuery(text="page"), 200).records) == 100


def test_a_full_disk_loses_no_count(sqlite_url: str) -> None:
    with closing(Store.open(sqlite_url)) as store:
        store.log.write(records(200))
        with store._database.read() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        step = store.log_counter.step
        write = store._database.write

        def full(area: object) -> object:
            manager = write(area)  # type: ignore[arg-type]
            return _Full(manager, int(pages or 0))

        store._database.write = full  # type: ignore[method-assign, assignment]
        with pytest.raises(StoreError):
            step()
        store._database.write = write  # type: ignore[method-assign]
        while step():
            pass
        assert store.log_stats.summary().decisions == 200


class _Full:
    """A transaction in which the file cannot grow."""

    def __init__(self, manager: object, pages: int) -> None:
        self._manager, self._pages = manager, pages

    def __enter__(self) -> object:
        self._connection = self._manager.__enter__()  # type: ignore[attr-defined]
        self._connection.exec_driver_sql(f"PRAGMA max_page_count = {self._pages}")
        return self._connection

    def __exit__(self, *error: object) -> object:
        self._connection.exec_driver_sql("PRAGMA max_page_count = 1073741823")
        return self._manager.__exit__(*error)  # type: ignore[attr-defined]


def test_writers_go_on_while_a_large_log_is_indexed_and_purged(sqlite_url: str) -> None:
    with closing(Store.open(sqlite_url)) as store, closing(Store.open(sqlite_url)) as other:
        store.log.write(records(3_000))
        done = threading.Event()

        def work() -> None:
            while other.log_counter.step() or other.log_indexer.step():
                time.sleep(0.001)
            other.log.purge(1e9 + 1_500)
            done.set()

        thread = threading.Thread(target=work)
        thread.start()
        written = 0
        while not done.is_set() and written < 4_000:  # on a busy machine the index would never catch up
            store.log.write(records(20, 2e9))
            written += 20
            time.sleep(0.01)
        thread.join()
        while store.log_counter.step() or store.log_indexer.step():
            pass
        assert store.log_stats.summary().decisions == 1_500 + written
        assert len(store.log_search.page(LogQuery(text="page"), 100_000, budget_s=60.0).records) == 1_500 + written
