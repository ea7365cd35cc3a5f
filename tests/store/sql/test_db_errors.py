import sqlite3

import pytest
from sqlalchemy.exc import DataError, IntegrityError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from gatewayfilter.errors import StoreError, StoreUnavailableError
from gatewayfilter.store.sql.db_errors import sentence_of, store_error


def fault(code: int | None, text: str = "the words of the driver") -> sqlite3.Error:
    error = sqlite3.OperationalError(text)
    if code is not None:
        error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "part"),
    [
        (sqlite3.SQLITE_NOTADB, "is not a database"),
        (sqlite3.SQLITE_CORRUPT, "is damaged"),
        (sqlite3.SQLITE_CORRUPT_INDEX, "is damaged"),
        (sqlite3.SQLITE_READONLY_DBMOVED, "cannot be written"),
        (sqlite3.SQLITE_CANTOPEN_ISDIR, "cannot be opened"),
        (sqlite3.SQLITE_FULL, "disk is full"),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, "is locked"),
        (sqlite3.SQLITE_LOCKED, "is locked"),
        (sqlite3.SQLITE_IOERR_FSYNC, "disk reports an error"),
        (sqlite3.SQLITE_PERM, "may not be opened"),
        (sqlite3.SQLITE_MISMATCH, "refuses: the words of the driver"),
        (None, "refuses: the words of the driver"),
    ],
)
def test_sqlite_codes_become_sentences(code: int | None, part: str) -> None:
    direct = sentence_of(fault(code), "/x/y.sqlite3")
    assert part in direct
    assert "/x/y.sqlite3" in direct
    assert sentence_of(OperationalError("INSERT …", {}, fault(code)), "/x/y.sqlite3") == direct


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (fault(None, "first\nsecond"), "the database db refuses: first"),
        (fault(None, ""), "the database db refuses: OperationalError"),
        (PoolTimeoutError("QueuePool limit …"), "the database db has no free connection: too much is asked of it at once"),
        (
            OperationalError("SELECT", {}, ConnectionError("connection refused\nIs the server running?")),
            "the database db refuses: connection refused",
        ),
    ],
)
def test_other_faults_become_one_line(error: Exception, sentence: str) -> None:
    assert sentence_of(error, "db") == sentence


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OperationalError("INSERT …", {}, fault(sqlite3.SQLITE_BUSY)), StoreUnavailableError),
        (OperationalError("INSERT …", {}, fault(sqlite3.SQLITE_FULL)), StoreUnavailableError),
        (fault(sqlite3.SQLITE_CORRUPT), StoreUnavailableError),
        (PoolTimeoutError("QueuePool limit …"), StoreUnavailableError),
        (IntegrityError("INSERT …", {}, sqlite3.IntegrityError("UNIQUE")), StoreError),
        (DataError("INSERT …", {}, Exception("too long")), StoreError),
        (sqlite3.ProgrammingError("Error binding parameter 1"), StoreError),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"), StoreError),
    ],
)
def test_only_what_may_succeed_later_is_unavailable(error: Exception, kind: type[StoreError]) -> None:
    assert type(store_error(error, "db")) is kind
