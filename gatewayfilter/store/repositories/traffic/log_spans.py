"""The ids of the decision log that may lie in a time span, by the hours that are counted."""

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import Connection, bindparam, func, select

from gatewayfilter.model import LogQuery
from gatewayfilter.store.repositories.traffic.log_counts import hour_of
from gatewayfilter.store.repositories.traffic.log_rows import COUNTS, progress
from gatewayfilter.store.sql.schema import DECISIONS, LOG_HOURS

_MOST_IN_HOUR: Final = 100_000
"""Ids of the last hour of a span up to which the newest one before its end is searched: some 5 ms."""
_EMPTY: Final = (1, 0)

_COLUMNS = DECISIONS.c
_NEWEST = select(func.max(_COLUMNS.id))
_OLDEST = select(func.min(_COLUMNS.id))
_HOUR = select(LOG_HOURS.c.first_id, LOG_HOURS.c.last_id).where(LOG_HOURS.c.start == bindparam("start"))
_NEWEST_BEFORE = select(func.max(_COLUMNS.id)).where(_COLUMNS.at >= bindparam("begin"), _COLUMNS.at < bindparam("end"))


def id_spans(connection: Connection, query: LogQuery, before: int | None) -> list[tuple[int, int]]:
    """Returns the lowest and the highest id of spans that hold all records of the time of a query, the newest span first.

    Clocks jump, so a span may hold records of other times. Records that are not counted yet are a span of their own.
    """
    top, low = connection.scalar(_NEWEST), connection.scalar(_OLDEST)
    if top is None or low is None:
        return []
    if before is not None:
        top = min(top, before - 1)
    if query.since is None and query.until is None:
        return [(low, top)] if low <= top else []
    counted = progress(connection, COUNTS)
    first, last = _counted_span(connection, query.since, query.until)
    spans = [(max(low, counted + 1), top), (max(low, first), min(top, last, counted))]
    return [span for span in spans if span[0] <= span[1]]


def _counted_span(connection: Connection, since: float | None, until: float | None) -> tuple[int, int]:
    """Returns the first and the last id of the hours of a time span; an empty span when there is none."""
    hours = select(func.min(LOG_HOURS.c.first_id), func.max(LOG_HOURS.c.last_id))
    if since is not None:
        hours = hours.where(LOG_HOURS.c.start >= hour_of(since))
    if until is None:
        return _joined([connection.execute(hours).one()])
    whole = connection.execute(hours.where(LOG_HOURS.c.start < hour_of(until))).one()
    of_last_hour = connection.execute(_HOUR, {"start": hour_of(until)}).one_or_none()
    begin = max(hour_of(until), since or 0.0)
    if of_last_hour is None or begin >= until:
        return _joined([whole])
    first, last = of_last_hour
    if last - first <= _MOST_IN_HOUR:
        last = connection.scalar(_NEWEST_BEFORE, {"begin": begin, "end": until})
    return _joined([whole, (first, last)])


def _joined(spans: Iterable[Sequence[int | None]]) -> tuple[int, int]:
    """Returns the lowest and the highest id of spans, of which those without an end are empty."""
    known = [(first, last) for first, last in spans if first is not None and last is not None]
    return (min(first for first, _ in known), max(last for _, last in known)) if known else _EMPTY
