"""A bound on the rows of a table that grows by untrusted input: pages and their visitors must not determine its size."""

from typing import Any, Final

from sqlalchemy import Column, Connection, Table, delete, func, select, tuple_

_MOST_AT_ONCE: Final = 5_000
"""Rows deleted in the transaction of the writer: some 40 ms."""


def trim(connection: Connection, table: Table, age: Column[Any], most: int) -> int:
    """Deletes the rows with the least `age` (an indexed column) in excess of `most`. Returns their number.

    Counts the table, which takes milliseconds: call it occasionally, for fewer new rows than it deletes at once.
    """
    surplus = max(connection.execute(select(func.count()).select_from(table)).scalar_one() - most, 0)
    if not surplus:
        return 0
    keys = list(table.primary_key)
    oldest = select(*keys).order_by(age).limit(min(surplus, _MOST_AT_ONCE))
    return connection.execute(delete(table).where(tuple_(*keys).in_(oldest))).rowcount
