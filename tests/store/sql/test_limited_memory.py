"""A process that must stay small limits SQLite's memory, over all its connections."""

from collections.abc import Iterator

import pytest

from gatewayfilter.store.sql.database import Database


@pytest.fixture
def database(sqlite_url: str) -> Iterator[Database]:
    opened = Database.from_url(sqlite_url)
    yield opened
    opened.limit_memory(0)  # the limit is the process's
    opened.close()


def test_it_holds_for_every_connection(database: Database) -> None:
    database.limit_memory(3_000_000)
    database.close_idle()
    with database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA soft_heap_limit").scalar_one() == 3_000_000
