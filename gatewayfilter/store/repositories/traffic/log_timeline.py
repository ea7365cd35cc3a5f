"""Timelines of the decision log, and the counts of the newest decisions, which are not in the database yet."""

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import batched, pairwise
from typing import Final

from sqlalchemy import Connection, bindparam, func, literal_column, select

from gatewayfilter.model import Action, LogBucket, LogDimension, LogTimeline, Reason
from gatewayfilter.store.repositories.traffic.log_counts import DAY_S, HOUR_S, Key, count_records
from gatewayfilter.store.repositories.traffic.log_rows import COUNTS, progress, records_after
from gatewayfilter.store.sql.schema import DECISIONS, LOG_COUNTS, LOG_HOURS

MOST_UNCOUNTED: Final = 20_000
"""Newest decisions that are counted for an answer."""
FRESH_S: Final = 0.06
"""Time after which no more of them are counted."""
MOST_HOURS: Final = 24 * 45
"""Hours of a timeline; a longer one is made of days (UTC)."""
MOST_READ: Final = 72_000
"""Hours times clients of a timeline; more are read by days as well: some 200 ms."""
MOST_EDGES: Final = 2_001
_CHUNK: Final = 500
_STARTS: Final = 500
_ALLOWED, _BLOCKED, _UNKNOWN, _LEARNED = range(4)

_COLUMNS = LOG_COUNTS.c
_LAST_ID = select(func.max(DECISIONS.c.id))
_STARTS_IN = (
    select(LOG_HOURS.c.start)
    .where(LOG_HOURS.c.start >= bindparam("begin"), LOG_HOURS.c.start < bindparam("end"))
    .order_by(LOG_HOURS.c.start)
)
_REASONS = select(_COLUMNS.start, _COLUMNS.name, _COLUMNS.action, func.sum(_COLUMNS.decisions)).where(
    _COLUMNS.period_s == bindparam("period_s"),
    _COLUMNS.dimension == literal_column(str(int(LogDimension.REASON))),
)
_BY_REASON = (_COLUMNS.start, _COLUMNS.name, _COLUMNS.action)
OF_EVERYBODY = _REASONS.where(
    _COLUMNS.client == literal_column("''"),  # literally, as in the index
    _COLUMNS.start >= bindparam("begin"),
    _COLUMNS.start < bindparam("end"),
).group_by(*_BY_REASON)
"""Selects start, reason, action and number of all hours or days that begin in a span."""
_OF_CLIENTS = _REASONS.where(
    _COLUMNS.start.in_(bindparam("starts", expanding=True)),
    _COLUMNS.client.in_(bindparam("clients", expanding=True)),
).group_by(*_BY_REASON)


def fresh_counts(connection: Connection, clock: Callable[[], float] = time.monotonic) -> tuple[Counter[Key], int]:
    """Returns the counts of the oldest decisions that are not in the database, and the number of further ones.

    Ends after `FRESH_S`, or reads none where there are more than `MOST_UNCOUNTED`.
    """
    counted, newest = progress(connection, COUNTS), connection.scalar(_LAST_ID) or 0
    found: Counter[Key] = Counter()
    deadline = clock() + FRESH_S
    while 0 < newest - counted <= MOST_UNCOUNTED and clock() < deadline:
        rows = records_after(connection, counted, newest, _CHUNK)
        found.update(count_records(record for _, record in rows))
        counted = rows[-1][0] if rows else newest
    return found, max(newest - counted, 0)


def make_timeline(connection: Connection, edges: Sequence[float], clients: frozenset[str] | None) -> LogTimeline:
    """Returns the counts between each two of the edges, as `SqlLogStats.timeline` has it."""
    if not 1 < len(edges) <= MOST_EDGES or any(one >= other for one, other in pairwise(edges)):
        raise ValueError("a timeline has ascending edges, two at least")
    fresh, uncounted = fresh_counts(connection)
    sums = [[0, 0, 0, 0] for _ in edges[:-1]]
    for start, reason, action, number in _rows(connection, fresh, (edges[0], edges[-1]), clients):
        counts = sums[max(bisect_right(edges, start) - 1, 0)]  # a day may begin before the first edge
        counts[_place(reason, action)] += number
        counts[_LEARNED] += number if reason == Reason.LEARNED else 0
    return LogTimeline(
        tuple(LogBucket(float(start), *counts) for start, counts in zip(edges, sums, strict=False)), float(edges[-1]), uncounted
    )


def _rows(
    connection: Connection, fresh: Counter[Key], span: tuple[float, float], clients: frozenset[str] | None
) -> Iterator[tuple[int, str, str, int]]:
    """Yields hours or days that begin in a span, with reason, action and number."""
    begin, end = _whole(span[0]), _whole(span[1])
    in_hours = span[1] - span[0] <= MOST_HOURS * HOUR_S
    if clients is None:
        period = HOUR_S if in_hours else DAY_S
        where = {"period_s": period, "begin": begin // period * period if period == DAY_S else begin, "end": end}
        for start, reason, action, number in connection.execute(OF_EVERYBODY, where):
            yield start, reason, action, int(number)
    elif clients:
        hours = list(connection.scalars(_STARTS_IN, {"begin": begin, "end": end}))
        period = HOUR_S if in_hours and len(hours) * len(clients) <= MOST_READ else DAY_S
        for part in batched(sorted({start // period * period for start in hours}), _STARTS):
            of = {"period_s": period, "starts": part, "clients": sorted(clients)}
            for start, reason, action, number in connection.execute(_OF_CLIENTS, of):
                yield start, reason, action, int(number)
    wanted = frozenset({""}) if clients is None else clients
    for (of_period, dimension, start, client, reason, action), number in fresh.items():
        if (of_period, dimension) == (HOUR_S, LogDimension.REASON) and client in wanted and span[0] <= start < span[1]:
            yield start, reason, action, number


def _whole(edge: float) -> int:
    return -int(-edge // 1)


def _place(reason: str, action: str) -> int:
    if action == Action.BLOCK:
        return _BLOCKED
    return _UNKNOWN if reason == Reason.UNKNOWN else _ALLOWED
