"""The differences between the rows of a table and those of a backup, found in one pass over both in the order of their keys."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, String, Table, collate, select

from gatewayfilter.errors import BackupError

type Row = Mapping[str, Any]

_PAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that is different.

    Attributes:
        now: in the table, `None` where the backup alone has it.
        then: in the backup, `None` where the table alone has it.
    """

    now: Row | None
    then: Row | None


def rows_of(connection: Connection, table: Table) -> Iterator[dict[str, Any]]:
    """Yields the rows of a table in the order of their keys, which is the same in every database: that of bytes."""
    keys = [
        collate(column, "C") if isinstance(column.type, String) and connection.dialect.name == "postgresql" else column
        for column in table.primary_key
    ]
    result = connection.execute(select(table).order_by(*keys), execution_options={"yield_per": _PAGE})
    for page in result.mappings().partitions():
        yield from map(dict, page)


def key_of(table: Table, row: Row) -> tuple[Any, ...]:
    """Returns the primary key of a row, comparable as `rows_of` sorts."""
    return tuple(value.encode() if isinstance(value := row[column.name], str) else value for column in table.primary_key)


def differences(table: Table, now: Iterator[Row], then: Iterator[Row]) -> Iterator[Difference]:
    """Yields what differs.

    Raises:
        BackupError: the rows of the backup are not in the order of their keys, or two have the same key.
    """
    now_row, then_row = next(now, None), next(then, None)
    while now_row is not None or then_row is not None:
        now_key = key_of(table, now_row) if now_row is not None else None
        then_key = key_of(table, then_row) if then_row is not None else None
        if then_key is None or (now_key is not None and now_key < then_key):
            yield Difference(now_row, None)
            now_row = next(now, None)
            continue
        if now_key is None or then_key < now_key:
            yield Difference(None, then_row)
        else:
            if now_row != then_row:
                yield Difference(now_row, then_row)
            now_row = next(now, None)
        then_row = next(then, None)
        if then_row is not None and key_of(table, then_row) <= then_key:
            raise BackupError(f"the backup cannot be used: the rows of {table.name} are not in order")
