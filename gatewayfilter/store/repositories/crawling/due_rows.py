"""Rows of the frontier that are due, read from its index."""

from collections.abc import Sequence

from sqlalchemy import Connection

from gatewayfilter.interfaces import QueueState
from gatewayfilter.store.repositories.crawling import frontier_sql as sql


def due_rows(
    connection: Connection, state: QueueState, now: float, limit: int, slots: Sequence[int] | None = None
) -> list[sql.FrontierRow]:
    """Returns up to `limit` due rows of a state, the most urgent first; of sites in these slots alone.

    One query per priority: a single query would scan every URL that is not due yet.
    """
    found: list[sql.FrontierRow] = []
    level = sql.NO_LEVEL
    while len(found) < limit:
        level = connection.scalar(sql.NEXT_LEVEL, {"in_state": state.value, "after": level})
        if level is None:
            break
        values: dict[str, object] = {"in_state": state.value, "level": level, "now": now, "most": limit - len(found)}
        if slots is None:
            found += connection.execute(sql.DUE_IN_LEVEL, values)
        else:
            found += connection.execute(sql.DUE_IN_SLOTS, {**values, "slots": [*slots, sql.ANYBODY]})
    return found
