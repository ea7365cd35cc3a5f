"""SQLite databases for tests: what is the same for all of them is made once in a test process.

A new database is a copy of the first one instead of the outcome of all migrations, and its SQL statements are those that were
composed for the databases before. Nothing waits for the disk: no test takes power away.
Programs that the tests start do all of it.
"""

import os
import threading
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine
from sqlalchemy.engine import make_url

from gatewayfilter.store.sql import database, sqlite_file
from gatewayfilter.store.sql.database import Database
from gatewayfilter.store.sql.schema_version import upgrade

_KEPT_STATEMENTS = 5_000


class NewDatabases:
    """Stands for `Database.make_file`."""

    def __init__(self) -> None:
        self._quick = True
        self._make_file = Database.make_file
        self._pragmas = sqlite_file._PRAGMAS

    def be(self, *, quick: bool) -> None:
        """Switches between databases that are made quickly and those of the product."""
        self._quick = quick
        vars(sqlite_file)["_PRAGMAS"] = (*self._pragmas, "PRAGMA synchronous = OFF") if quick else self._pragmas

    @cached_property
    def _first(self) -> bytes:
        self._quick = False
        try:
            with TemporaryDirectory() as folder:
                path = Path(folder, "first.sqlite3")
                upgrade(f"sqlite:///{path}")
                return path.read_bytes()
        finally:
            self._quick = True

    def make_file(self, made: Database) -> None:
        if self._quick and made.path is not None and not made.path.exists():
            self._copy_to(made.path)
        self._make_file(made)

    def _copy_to(self, path: Path) -> None:
        """Makes the file as a whole, for threads that open it at the same time; nothing where the folder refuses."""
        first, aside = self._first, f"{path}.{threading.get_ident()}"
        try:
            with open(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:  # noqa: PTH123
                file.write(first)
            try:
                os.link(aside, path)
            finally:
                os.unlink(aside)  # noqa: PTH108
        except (OSError, ValueError):
            return  # the product meets it as well


class SharedStatements:
    """Stands for `create_engine`: engines of SQLite have one dialect, by which their compiled statements are kept."""

    @cached_property
    def _first(self) -> Engine:
        engine = create_engine("sqlite://", query_cache_size=_KEPT_STATEMENTS)
        engine.connect().close()  # what the dialect asks of the first connection
        return engine

    def create_engine(self, url: Any, **options: Any) -> Engine:
        engine = create_engine(url, **options)
        if make_url(url).get_backend_name() == "sqlite":
            engine.dialect, engine._compiled_cache = self._first.dialect, self._first._compiled_cache
        return engine


def install() -> NewDatabases:
    """Puts both in their places, for all of the test process."""
    new = NewDatabases()

    def make_file(made: Database) -> None:
        new.make_file(made)

    patch = pytest.MonkeyPatch()
    patch.setattr(os, "fsync", lambda _: None)
    patch.setattr(Database, "make_file", make_file)
    patch.setattr(database, "create_engine", SharedStatements().create_engine)
    return new
