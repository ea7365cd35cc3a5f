"""Rows that take the place of others with the same key, in one statement."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, Table
from sqlalchemy.dialects import postgresql, sqlite

from gatewayfilter.store.sql.database import Database


def upsert(
    database: Database,
    table: Table,
    where: Callable[[Any], ColumnElement[bool]],
    **instead: Callable[[Any], ColumnElement[Any]],
) -> sqlite.Insert | postgresql.Insert:
    """Returns the statement that inserts a row, or puts it in the place of the one with the same primary key.

    Args:
        database: in whose words.
        table: where.
        where: of the new row's columns, a condition under which it replaces the other; else the other stays.
        instead: columns that it gets then, whatever it brings: what of the new row's columns.
    """
    insert: Any = sqlite.insert(table) if database.path else postgresql.insert(table)
    brought = {column.name: insert.excluded[column.name] for column in table.columns if not column.primary_key}
    statement: sqlite.Insert | postgresql.Insert = insert.on_conflict_do_update(
        index_elements=list(table.primary_key),
        set_=brought | {name: of(insert.excluded) for name, of in instead.items()},
        where=where(insert.excluded),
    )
    return statement
