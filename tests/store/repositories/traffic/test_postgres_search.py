"""What PostgreSQL is asked by a search, with SQLite in its place; `test_log_search.py` asks a real one."""

import re
from collections.abc import Iterator
from typing import Any, Self

import pytest
from sqlalchemy.exc import DBAPIError

import gatewayfilter.store.repositories.traffic.log_search as module
from gatewayfilter.model import LogQuery
from gatewayfilter.model.log_query import LONGEST_SEARCHED
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.traffic.log_terms_table import SqlLogIndexer
from gatewayfilter.store.sql.database import Area
from tests.store.repositories.traffic.test_log_search import QUERIES, fill, record


class CancelledError(Exception):
    sqlstate = "57014"


class RefusedError(Exception):
    sqlstate = "42501"


def _searched(url: str) -> str:
    return re.sub("^[^/]*://", "", url)[:LONGEST_SEARCHED].lower()


class Postgres:
    """SQLite, which is told PostgreSQL's settings, and ends a statement on request."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.told: list[str] = []
        self.fails: Exception | None = None
        self.rolled_back = 0
        connection.connection.dbapi_connection.create_function("searched", 1, _searched)

    def execute(self, statement: Any, values: Any = None) -> Any:
        if str(statement).startswith("SET LOCAL"):
            self.told.append(str(statement))
            return None
        if self.fails is not None and len(self.told) % 2:
            raise DBAPIError("SELECT", None, self.fails)
        return self._connection.execute(statement, values)

    def rollback(self) -> None:
        self.rolled_back += 1


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    opened = Store.open(sqlite_url)
    yield opened
    opened.close()


@pytest.fixture
def postgres(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Postgres]:
    monkeypatch.setattr(module, "SEARCHED_URL", "searched(url)")
    with store.log_search._database.read() as connection:
        yield Postgres(connection)


def asked(postgres: Any, query: LogQuery, low: int, top: int, left_s: float = 0.25) -> list[tuple[list[int], int]]:
    budget = module._Budget(lambda: 0.0, left_s)
    return [
        ([number for number, _ in rows], down_to) for rows, down_to in module._from_postgres(postgres, query, (low, top), budget)
    ]


@pytest.mark.parametrize("newest", [3, 20_000])
def test_the_conditions_let_all_through_that_is_searched(
    newest: int, store: Store, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_POSTGRES_NEWEST", newest)
    monkeypatch.setattr(module, "_FOUND", 7)
    records = dict(enumerate(fill(store), 1))
    for query in QUERIES:
        query = module._storable(query)  # noqa: PLW2901  as the search does
        found = asked(postgres, query, 20, 280)
        numbers = [number for rows, _ in found for number in rows]
        assert numbers == sorted(numbers, reverse=True)
        assert {number for number, one in records.items() if 20 <= number <= 280 and query.matches(one)} <= set(numbers)
        assert found[-1][1] == 20
        exact = not (query.text or query.host or query.since or query.until)
        assert not exact or all(query.matches(records[number]) for number in numbers)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (LogQuery(text="PAGE12"), 12),
        (LogQuery(text="site3.example/page"), 43),
        (LogQuery(text="100%_sure"), 1),
        (LogQuery(host="2001:DB8::1"), 1),
        (LogQuery(text="nowhere"), 0),
    ],
)
def test_the_server_tells_what_holds_a_text(query: LogQuery, found: int, store: Store, postgres: Postgres) -> None:
    records = dict(enumerate(fill(store), 1))
    ((numbers, down_to),) = asked(postgres, query, 1, 300)
    assert down_to == 1
    text = (query.text or query.host).lower()
    wanted = [number for number, one in records.items() if text in _searched(one.url)]
    assert numbers == wanted[::-1]
    assert abs(len(wanted) - found) <= 3


def test_the_newest_are_read_first_and_then_as_many_as_a_statement_finds(
    store: Store, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_POSTGRES_NEWEST", 3)
    monkeypatch.setattr(module, "_FOUND", 2)
    store.log.write([record(number, action="block" if number % 2 else "allow") for number in range(12)])
    found = asked(postgres, LogQuery(action="block"), 2, 12)
    assert found == [([12, 10], 10), ([8, 6], 6), ([4, 2], 2)]
    assert postgres.told == ["SET LOCAL statement_timeout = 251", "SET LOCAL statement_timeout = DEFAULT"] * 2
    assert asked(postgres, LogQuery(action="block"), 10, 12) == [([12, 10], 10)]
    assert asked(postgres, LogQuery(action="block"), 9, 12) == [([12, 10], 10), ([], 9)]
    assert asked(postgres, LogQuery(), 11, 12) == [([12, 11], 11)]
    assert asked(postgres, LogQuery(reason="other"), 1, 12) == [([], 10), ([], 1)]


def test_a_statement_that_is_cancelled_ends_the_search(store: Store, postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POSTGRES_NEWEST", 3)
    store.log.write([record(number) for number in range(12)])
    postgres.fails = CancelledError()
    assert asked(postgres, LogQuery(action="allow"), 1, 12) == [([12, 11, 10], 10)]
    assert postgres.rolled_back == 1
    postgres.told.clear()
    postgres.fails = RefusedError()
    with pytest.raises(DBAPIError):
        asked(postgres, LogQuery(action="allow"), 1, 12)


class Server:
    """A database that answers by the beginning of a statement, and keeps what it is asked."""

    def __init__(self, *, there: list[str], locks: bool = True) -> None:
        self.asked: list[str] = []
        self.path = None
        self._there = there
        self._locks = locks

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self) -> Self:
        return self

    autocommit = read

    def scalars(self, statement: Any) -> list[str]:
        assert "pg_class" in str(statement)
        return self._there

    def scalar(self, statement: Any, values: dict[str, int]) -> bool:
        assert values == {"area": int(Area.LOG_INDEXES)}
        assert str(statement) == "SELECT pg_try_advisory_lock(:area)"
        self.asked.append("LOCK")
        return self._locks

    def execute(self, statement: Any, values: dict[str, int] | None = None) -> None:
        text = str(statement)
        assert (values == {"area": int(Area.LOG_INDEXES)}) is ("unlock" in text)
        self.asked.append("UNLOCK" if "unlock" in text else re.sub(r" ON decisions .*", "", text))


NAMES = [f"ix_decisions_search_{name}" for name in ("url", "client", "user", "category", "list", "reason")]


def test_missing_indexes_are_made_in_postgresql() -> None:
    server = Server(there=[name for name in NAMES if not name.endswith(("url", "user"))])
    database: Any = server
    assert SqlLogIndexer(database).step() == 0
    made = [
        [f"DROP INDEX IF EXISTS ix_decisions_search_{name}", f"CREATE INDEX CONCURRENTLY ix_decisions_search_{name}"]
        for name in ("url", "user")
    ]
    trigrams = "CREATE EXTENSION IF NOT EXISTS pg_trgm"
    assert server.asked == ["LOCK", trigrams, *made[0], "UNLOCK", "LOCK", *made[1], "UNLOCK"]
    locked: Any = Server(there=NAMES[1:], locks=False)
    assert SqlLogIndexer(locked).step() == 0
    assert locked.asked == ["LOCK"], "another process makes it"
