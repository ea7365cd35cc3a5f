"""Error messages of the database: one sentence with the cause and what to do."""

import sqlite3

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from gatewayfilter.errors import StoreError, StoreUnavailableError

DATABASE_FAULTS = (SQLAlchemyError, sqlite3.Error, UnicodeEncodeError)
"""Exceptions of SQLAlchemy, its driver and the binding of text; any other one is a bug."""

_OF_DATA = (
    UnicodeEncodeError,
    DataError,
    IntegrityError,
    sqlite3.DataError,
    sqlite3.IntegrityError,
    sqlite3.ProgrammingError,  # a value that cannot be bound
)
"""Faults of what was written: it would be refused again."""

_REPAIR = "`gatewayfilter db repair` moves it away and makes a new one, into which a backup can be restored"
_SQLITE_SENTENCES = {
    sqlite3.SQLITE_NOTADB: "{name} is not a database: " + _REPAIR,
    sqlite3.SQLITE_CORRUPT: "the database {name} is damaged: " + _REPAIR,
    sqlite3.SQLITE_READONLY: "the database {name} cannot be written: check the owner and mode of the file and of its folder",
    sqlite3.SQLITE_PERM: "the database {name} may not be opened: check the owner and mode of the file and of its folder",
    sqlite3.SQLITE_AUTH: "the database {name} may not be opened: check the owner and mode of the file and of its folder",
    sqlite3.SQLITE_CANTOPEN: "the database {name} cannot be opened: check that its folder exists and may be written",
    sqlite3.SQLITE_FULL: "the database {name} cannot grow: the disk is full",
    sqlite3.SQLITE_BUSY: "the database {name} is locked by another program: try again, or stop that program",
    sqlite3.SQLITE_LOCKED: "the database {name} is locked by another program: try again, or stop that program",
    sqlite3.SQLITE_IOERR: "the database {name} cannot be read or written: the disk reports an error",
}


def store_error(fault: BaseException, name: str) -> StoreError:
    """Returns the error to raise for an error of the database `name`."""
    cause = fault.orig if isinstance(fault, DBAPIError) else fault
    of_data = isinstance(fault, _OF_DATA) or isinstance(cause, _OF_DATA)
    return (StoreError if of_data else StoreUnavailableError)(sentence_of(fault, name))


def sentence_of(fault: BaseException, name: str) -> str:
    """Returns the message for an error of the database `name`: a path, or a URL without its password."""
    cause: BaseException | None = fault.orig if isinstance(fault, DBAPIError) else fault
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", None)
        known = _SQLITE_SENTENCES.get(code & 0xFF) if isinstance(code, int) else None  # the low byte is the primary code
        return known.format(name=name) if known else f"the database {name} refuses: {_first_line(cause)}"
    if isinstance(cause, UnicodeEncodeError):
        return "text with a broken character (half of a surrogate pair) cannot be stored"
    if isinstance(cause, PoolTimeoutError):
        return f"the database {name} has no free connection: too much is asked of it at once"
    return f"the database {name} refuses: {_first_line(cause)}"


def _first_line(fault: BaseException | None) -> str:
    lines = str(fault).strip().splitlines()
    return lines[0] if lines else type(fault).__name__
