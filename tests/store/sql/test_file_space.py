import sqlite3
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

from gatewayfilter.model import LogRecord
from gatewayfilter.store import Store
from gatewayfilter.store.sql import file_space
from gatewayfilter.store.sql.database import Database
from gatewayfilter.store.sql.file_space import tidy_file

RECORD = LogRecord(7.0, "192.0.2.1", "GET", "u" * 1_700, "document", "block", "blacklist")


def _filled(url: str) -> tuple[Store, Path]:
    store = Store.open(url)
    for _ in range(20):
        store.log.write([RECORD] * 100)
    path = store._database.path
    assert path is not None
    return store, path


def _free_pages(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA freelist_count").fetchone()[0])


def test_what_a_purge_left_free_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_space, "FREE_PAGES", 50)
    monkeypatch.setattr(file_space, "_STEP_PAGES", 100)
    store, path = _filled(f"sqlite:///{tmp_path}/new.sqlite3")
    assert store.log.purge(100.0) == 2_000
    before = _free_pages(path)
    assert before > 900
    store.tidy()
    assert _free_pages(path) <= 60
    store.close()
    assert path.stat().st_size < before * 4_096 / 2


def test_free_pages_stay_for_the_rows_to_come(tmp_path: Path) -> None:
    store, path = _filled(f"sqlite:///{tmp_path}/new.sqlite3")
    store.log.purge(100.0)
    before = _free_pages(path)
    store.tidy()
    store.close()
    assert _free_pages(path) == before


def test_a_file_of_an_earlier_release_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_space, "FREE_PAGES", 0)
    path = tmp_path / "old.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        connection.execute("DROP TABLE alembic_version")
    store, path = _filled(f"sqlite:///{path}")
    store.log.purge(100.0)
    before = _free_pages(path)
    store.tidy()
    store.close()
    assert _free_pages(path) == before


def test_a_long_write_ahead_log_is_folded_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_space, "WAL_LIMIT_BYTES", 100_000)
    store, path = _filled(f"sqlite:///{tmp_path}/new.sqlite3")
    log = path.with_name(f"{path.name}-wal")
    assert log.stat().st_size > 100_000
    store.tidy()
    assert log.stat().st_size == 0
    store.close()


def test_pages_are_given_back_in_steps_to_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter([150, 50, 1, 0])
    pauses: list[float] = []
    monkeypatch.setattr(file_space, "_surplus", lambda _: next(left))
    monkeypatch.setattr(file_space, "_STEP_PAGES", 100)
    monkeypatch.setattr("gatewayfilter.store.sql.file_space.time.sleep", pauses.append)
    with closing(Store.open(f"sqlite:///{tmp_path}/new.sqlite3")) as store:
        assert tidy_file(store._database) == 100 + 50 + 1
    assert pauses == [0.01] * 3


class Pages:
    """A database of so many pages."""

    def __init__(self, **pragmas: int) -> None:
        self._pragmas = pragmas

    def read(self) -> AbstractContextManager[Self]:
        return nullcontext(self)

    def exec_driver_sql(self, statement: str) -> SimpleNamespace:
        return SimpleNamespace(scalar_one=lambda: self._pragmas[statement.removeprefix("PRAGMA ")])


@pytest.mark.parametrize(
    ("mode", "free", "pages", "surplus"),
    [
        (2, 4_096, 0, 0),
        (2, 4_097, 16_384, 1),
        (2, 5_000, 20_000, 0),
        (2, 5_001, 20_000, 1),
        (1, 9_000, 9_000, 0),
        (0, 9_000, 9_000, 0),
    ],
)
def test_free_pages_beyond_a_quarter_of_the_file_are_surplus(mode: int, free: int, pages: int, surplus: int) -> None:
    database: Any = Pages(auto_vacuum=mode, freelist_count=free, page_count=pages)
    assert file_space._surplus(database) == surplus


def test_another_database_sees_to_its_own_files() -> None:
    assert tidy_file(Database.from_url("postgresql+psycopg://nobody@127.0.0.1:1/none")) == 0
