"""Upserts: insert a row or replace the one with the same key, in one statement."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Table

from gatewayfilter.store.sql.database import Database

if TYPE_CHECKING:  # the one that is not used takes 2 MB
    from sqlalchemy.dialects import postgresql, sqlite


def upsert(
    database: Database,
    table: Table,
    where: Callable[[Any], ColumnElement[bool]],
    **instead: Callable[[Any], ColumnElement[Any]],
) -> "sqlite.Insert | postgresql.Insert":
    """Returns the statement that inserts a row or replaces the one with the same primary key.

    Args:
        database: for its SQL dialect.
        table: the table.
        where: condition on the new row's columns under which it replaces the old row; otherwise the old one stays.
        instead: columns that it gets then, whatever it brings: what of the new row's columns.
    """
    insert: Any = _insert_into(table) if database.path else _insert_into_postgres(table)
    brought = {column.name: insert.excluded[column.name] for column in table.columns if not column.primary_key}
    statement: sqlite.Insert | postgresql.Insert = insert.on_conflict_do_update(
        index_elements=list(table.primary_key),
        set_=brought | {name: of(insert.excluded) for name, of in instead.items()},
        where=where(insert.excluded),
    )
    return statement


def _insert_into(table: Table) -> Any:
    from sqlalchemy.dialects.sqlite import insert  # noqa: PLC0415

    return insert(table)


def _insert_into_postgres(table: Table) -> Any:
    from sqlalchemy.dialects.postgresql import insert  # noqa: PLC0415

    return insert(table)
