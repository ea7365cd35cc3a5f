"""Small parts of the store: what PostgreSQL is given, what is closed with a store, a database that is lost amid its use."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.dialects import postgresql, sqlite

from gatewayfilter.errors import StoreUnavailableError
from gatewayfilter.model import LogRecord
from gatewayfilter.store import Store, reconnecting_store
from gatewayfilter.store.reconnecting_store import ReconnectingStore
from gatewayfilter.store.repositories.traffic.decision_log import _batch_of_json
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import CRAWLERS
from gatewayfilter.store.sql.upsert import upsert


def test_postgresql_takes_a_batch_as_json() -> None:
    record = LogRecord(1.5, "192.0.2.1", "GET", "http://例え.example/", "document", "block", "blacklist")
    ((statement, (rows,)),) = _batch_of_json([record])
    assert statement.endswith(" FROM json_array_elements(%s::json) AS r")
    assert rows.startswith('[[1.5,"192.0.2.1","GET","http://例え')
    assert json.loads(rows) == [list(record)]


@pytest.mark.parametrize(("path", "dialect"), [("a.sqlite3", sqlite), ("", postgresql)])
def test_an_upsert_is_one_statement_in_both_languages(path: str, dialect: Any) -> None:
    database: Any = type("_", (), {"path": path})
    statement = upsert(database, CRAWLERS, lambda new: new.seen_at > CRAWLERS.c.seen_at)
    text = str(statement.compile(dialect=dialect.dialect()))
    assert "ON CONFLICT (name) DO UPDATE SET seen_at = excluded.seen_at" in text
    assert text.endswith("WHERE excluded.seen_at > crawlers.seen_at")


class Asked:
    """A connection that keeps what it is asked."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def execute(self, statement: Any) -> None:
        self.statements.append(str(statement.compile(compile_kwargs={"literal_binds": True})))


@pytest.mark.parametrize(
    ("path", "asks"), [("a.sqlite3", []), ("", [f"SELECT pg_advisory_xact_lock({int(Area.LOG)}) AS pg_advisory_xact_lock_1"])]
)
def test_writers_of_the_log_are_awaited_in_postgresql_alone(path: str, asks: list[str]) -> None:
    database: Any = type("_", (), {"path": path})
    connection: Any = Asked()
    Database.await_writers(database, connection, Area.LOG)
    assert connection.statements == asks


def test_what_is_closed_with_a_store(sqlite_url: str) -> None:
    closed: list[str] = []
    store = Store.open(sqlite_url)
    store.also_close(lambda: closed.append("one"))
    store.also_close(lambda: closed.append("two"))
    store.before_close(lambda: closed.append("counts"))
    store.limit_memory(1 << 24)
    with store._database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA soft_heap_limit").scalar() == 1 << 24
    store.limit_memory(0)
    log = Path(f"{sqlite_url.removeprefix('sqlite:///')}-wal")
    assert log.exists()
    store.close_idle()
    assert not log.exists(), "SQLite removes it with the last connection"
    assert store.lists.rules() == []
    store.log.write([LogRecord(1.5, "", "GET", "http://a/", "document", "allow", "unknown")] * 3)
    assert store.log_stats.covered() == (0, 3)
    while store.log_counter.step():
        pass
    assert store.log_stats.covered() == (3, 3)
    assert closed == []
    store.close()
    assert closed == ["counts", "one", "two"]
    store.close()
    assert closed.count("counts") == 1, "they are written"


class Opened:
    """A store whose database is lost."""

    def __init__(self) -> None:
        self.feed = self
        self.closes = 0
        self.lost = False

    def last_seq(self) -> int:
        if self.lost:
            raise StoreUnavailableError("it is away")
        return 7

    def close(self) -> None:
        self.closes += 1


def test_a_database_that_is_lost_is_closed_and_opened_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now, opened = [100.0], list[Opened]()
    monkeypatch.setattr("gatewayfilter.store.reconnecting_store.time.monotonic", lambda: now[0])
    monkeypatch.setattr(reconnecting_store, "_RETRY_AFTER_S", 5.0)

    def open_store() -> Any:
        opened.append(Opened())
        return opened[-1]

    store = ReconnectingStore(open_store)
    assert (store.feed.last_seq(), store.feed.last_seq(), len(opened)) == (7, 7, 1)
    opened[0].lost = True
    for moment in (100.0, 104.9):
        now[0] = moment
        with pytest.raises(StoreUnavailableError, match="it is away"):
            store.feed.last_seq()
    assert (len(opened), opened[0].closes) == (1, 1)
    now[0] = 105.0
    assert (store.feed.last_seq(), len(opened)) == (7, 2)
    old, opened[1].lost = opened[0], True
    with pytest.raises(StoreUnavailableError):
        store._connection.use(lambda _: old.last_seq())
    assert opened[1].closes == 1
    now[0] = 110.0
    assert (store.feed.last_seq(), [one.closes for one in opened]) == (7, [1, 1, 0])
    store.close()
    store.close()
    assert [one.closes for one in opened] == [1, 1, 1]
