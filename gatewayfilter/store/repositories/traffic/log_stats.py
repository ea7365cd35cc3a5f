"""Statistics of the decision log, from the counts per hour and day and from the newest decisions that are not counted yet."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import batched
from typing import Any, Final

from sqlalchemy import Connection, bindparam, func, literal_column, select

from gatewayfilter.model import LogCount, LogDimension, LogHour, LogSummary, LogTimeline, SeenClient
from gatewayfilter.store.repositories.traffic.log_counts import DAY_S, HOUR_S, Key, hour_of
from gatewayfilter.store.repositories.traffic.log_rows import COUNTS, progress
from gatewayfilter.store.repositories.traffic.log_timeline import OF_EVERYBODY, fresh_counts, make_timeline
from gatewayfilter.store.sql.database import Database
from gatewayfilter.store.sql.schema import DECISIONS, LOG_COUNTS, LOG_DEVICES, LOG_HOURS

TOP: Final = 100
"""Names of each dimension."""
_STARTS: Final = 500
_MOST_HOURS: Final = 24 * 45
"""Hours that are charted and summed one by one; longer spans begin and end at a day."""

_COLUMNS = LOG_COUNTS.c
_BLOCKED = func.sum(_COLUMNS.decisions).filter(_COLUMNS.action == "block")
_OF_CLIENT = (
    _COLUMNS.period_s == bindparam("period_s"),
    _COLUMNS.dimension == bindparam("dimension"),
    _COLUMNS.start.in_(bindparam("starts", expanding=True)),
    _COLUMNS.client.in_(bindparam("clients", expanding=True)),
)
_NAMES = (
    select(_COLUMNS.name, func.sum(_COLUMNS.decisions), func.coalesce(_BLOCKED, 0)).where(*_OF_CLIENT).group_by(_COLUMNS.name)
)
_HOURS = (
    select(_COLUMNS.start, func.sum(_COLUMNS.decisions), func.coalesce(_BLOCKED, 0)).where(*_OF_CLIENT).group_by(_COLUMNS.start)
)
_IN_SPAN = (LOG_HOURS.c.start >= bindparam("begin"), LOG_HOURS.c.start < bindparam("end"))
_EDGES = select(func.min(LOG_HOURS.c.start), func.max(LOG_HOURS.c.start))
_HOURS_IN = select(func.count()).select_from(LOG_HOURS).where(*_IN_SPAN)
_STARTS_IN = select(LOG_HOURS.c.start).where(*_IN_SPAN).order_by(LOG_HOURS.c.start)
_NUMBER_IN = select(func.coalesce(func.sum(_COLUMNS.decisions), 0)).where(
    _COLUMNS.period_s == bindparam("period_s"),
    _COLUMNS.dimension == literal_column(str(int(LogDimension.REASON))),
    _COLUMNS.client == literal_column("''"),  # literally, as in the index
    _COLUMNS.start >= bindparam("begin"),
    _COLUMNS.start < bindparam("end"),
)
_LAST_ID = select(func.max(DECISIONS.c.id))


class SqlLogStats:
    """Implements `interfaces.LogStats`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def summary(
        self,
        since: float | None = None,
        until: float | None = None,
        clients: frozenset[str] | None = None,
        top: int = TOP,
        dimensions: Collection[LogDimension] = tuple(LogDimension),
    ) -> LogSummary:
        """Returns the counts of a time span, which is widened to whole hours (and to days when it is longer than `_MOST_HOURS`).

        Args:
            since: Unix seconds, `None` for the oldest decision.
            until: Unix seconds, `None` for the newest one.
            clients: addresses as logged, and users as `user:NAME`; `None` for everybody.
            top: names of each dimension.
            dimensions: of which names are counted.

        Raises:
            StoreError: the database refuses.
        """
        with self._database.read() as connection:
            fresh, uncounted = fresh_counts(connection)
            span = _span(connection, fresh, since, until)
            if span is None:
                return LogSummary(None, None, uncounted=uncounted)
            tally = _Tally(connection, fresh, span, clients)
            hours = tally.hours()
            tops = {dimension: _top(tally.names(dimension), top) for dimension in dimensions}
        return LogSummary(
            float(span[0]),
            float(span[1]),
            sum(hour.decisions for hour in hours),
            sum(hour.blocked for hour in hours),
            hours,
            tops,
            uncounted,
        )

    def tops(
        self,
        since: float,
        until: float,
        clients: frozenset[str] | None = None,
        top: int = TOP,
        dimensions: Collection[LogDimension] = tuple(LogDimension),
    ) -> dict[LogDimension, tuple[LogCount, ...]]:
        """Returns the names of `summary` without its hours, which for a client are most of its cost. The arguments are the same.

        Raises:
            StoreError: the database refuses.
        """
        with self._database.read() as connection:
            fresh, _ = fresh_counts(connection)
            span = _span(connection, fresh, since, until)
            if span is None:
                return {}
            tally = _Tally(connection, fresh, span, clients)
            return {dimension: _top(tally.names(dimension), top) for dimension in dimensions}

    def timeline(self, edges: Sequence[float], clients: frozenset[str] | None = None) -> LogTimeline:
        """Returns the counts between each two of these times; an hour counts where it begins.

        Spans of more than 45 days, or of more than 100 clients and 30 days, are read by days (UTC).

        Args:
            edges: Unix seconds, ascending: where the first part begins, where each next one does, and where the last one ends.
            clients: addresses as logged, and users as `user:NAME`; `None` for everybody.

        Raises:
            StoreError: the database refuses.
            ValueError: fewer than two edges, more than 2,001, or they do not ascend.
        """
        with self._database.read() as connection:
            return make_timeline(connection, edges, clients)

    def clients(self) -> list[SeenClient]:
        """Returns the clients that are counted, the newest first."""
        with self._database.read() as connection:
            rows = connection.execute(select(LOG_DEVICES).order_by(LOG_DEVICES.c.first_at.desc(), LOG_DEVICES.c.client))
            found = {row.client: SeenClient(row.client, row.first_at, row.last_at) for row in rows}
            fresh, _ = fresh_counts(connection)
        for period, dimension, start, _, name, _ in sorted(fresh):
            if (period, dimension) == (HOUR_S, LogDimension.CLIENT):
                known = found.get(name, SeenClient(name, float(start), 0.0))
                found[name] = SeenClient(name, known.first_at, max(known.last_at, float(start + HOUR_S)))
        return list(found.values())

    def covered(self) -> tuple[int, int]:
        """Returns the id up to which the log is counted, and the newest id."""
        with self._database.read() as connection:
            return progress(connection, COUNTS), connection.scalar(_LAST_ID) or 0


class _Tally:
    """The counts of a span, of the database and of fresh decisions together."""

    def __init__(
        self, connection: Connection, fresh: Counter[Key], span: tuple[int, int], clients: frozenset[str] | None
    ) -> None:
        self._connection = connection
        self._fresh = fresh
        self._span = span
        self._clients = clients
        self._starts = list(connection.scalars(_STARTS_IN, {"begin": span[0], "end": span[1]}))
        self._periods = self._parts()

    def hours(self) -> tuple[LogHour, ...]:
        """Returns the hours with any decision; days where there are many."""
        period = HOUR_S if len(self._starts) <= _MOST_HOURS else DAY_S
        dimension = LogDimension.REASON
        found: dict[int, list[int]] = {}
        if self._clients is None:
            span = {"begin": self._span[0] // period * period, "end": self._span[1]}
            for start, _, action, number in self._connection.execute(OF_EVERYBODY, {"period_s": period, **span}):
                counts = found.setdefault(start, [0, 0])
                counts[0] += int(number)
                counts[1] += int(number) if action == "block" else 0
        elif self._clients:
            for starts in batched(sorted({start // period * period for start in self._starts}), _STARTS):
                for start, decisions, blocked in self._connection.execute(_HOURS, self._where(period, dimension, starts)):
                    found[start] = [int(decisions), int(blocked)]
        for (_, _, start, _, _, action), number in self._fresh_of(dimension):
            counts = found.setdefault(start // period * period, [0, 0])
            counts[0] += number
            counts[1] += number if action == "block" else 0
        return tuple(LogHour(float(start), *counts) for start, counts in sorted(found.items()))

    def names(self, dimension: LogDimension) -> dict[str, list[int]]:
        """Returns name → decisions, blocked ones."""
        found: dict[str, list[int]] = {}
        for period, starts in self._periods:
            for part in batched(starts, _STARTS):
                for name, decisions, blocked in self._connection.execute(_NAMES, self._where(period, dimension, part)):
                    counts = found.setdefault(name, [0, 0])
                    counts[0] += int(decisions)
                    counts[1] += int(blocked)
        for (_, _, _, _, name, action), number in self._fresh_of(dimension):
            counts = found.setdefault(name, [0, 0])
            counts[0] += number
            counts[1] += number if action == "block" else 0
        if dimension is LogDimension.CLIENT and self._clients is not None:
            return {name: counts for name, counts in found.items() if name in self._clients}
        return found

    def _parts(self) -> tuple[tuple[int, list[int]], ...]:
        """Parts the hours in days that are read as a whole, and in hours of the other days."""
        days: dict[int, list[int]] = {}
        for start in self._starts:
            days.setdefault(start // DAY_S * DAY_S, []).append(start)
        whole = {day for day, hours in days.items() if self._is_whole(day, hours)}
        return (DAY_S, sorted(whole)), (HOUR_S, [start for start in self._starts if start // DAY_S * DAY_S not in whole])

    def _is_whole(self, day: int, hours: list[int]) -> bool:
        """Whether the counts of a day are those of these hours: the span has all of it, or nothing else was decided on it.

        A day has as many names as four of its hours, so today and the first day are best read as days, too.
        """
        if self._span[0] <= day and day + DAY_S <= self._span[1]:
            return True
        number = self._number_in(DAY_S, day, day + DAY_S)
        return number == self._number_in(HOUR_S, hours[0], hours[-1] + HOUR_S)

    def _number_in(self, period: int, begin: int, end: int) -> int:
        return int(self._connection.execute(_NUMBER_IN, {"period_s": period, "begin": begin, "end": end}).scalar_one())

    def _where(self, period: int, dimension: LogDimension, starts: tuple[int, ...]) -> dict[str, Any]:
        of_everybody = self._clients is None or dimension is LogDimension.CLIENT
        clients = [""] if of_everybody else sorted(self._clients or ())
        return {"period_s": period, "dimension": int(dimension), "starts": starts, "clients": clients}

    def _fresh_of(self, dimension: LogDimension) -> Iterator[tuple[Key, int]]:
        of_everybody = self._clients is None or dimension is LogDimension.CLIENT
        wanted = frozenset({""}) if of_everybody else self._clients or frozenset()
        for key, number in self._fresh.items():
            if key[:2] == (HOUR_S, dimension) and self._span[0] <= key[2] < self._span[1] and key[3] in wanted:
                yield key, number


def _span(connection: Connection, fresh: Counter[Key], since: float | None, until: float | None) -> tuple[int, int] | None:
    """Returns the first hour, and the end of the last one, that a span touches; `None` where no decision is."""
    known = [start for start in connection.execute(_EDGES).one() if start is not None]
    known += [key[2] for key in fresh if key[0] == HOUR_S]
    if not known:
        return None
    begin = max(min(known), hour_of(since or 0.0))
    end = max(known) + HOUR_S
    if until is not None:
        last_hour = hour_of(until)
        end = min(end, last_hour if last_hour == until else last_hour + HOUR_S)
    if begin >= end:
        return None
    hours = connection.execute(_HOURS_IN, {"begin": begin, "end": end}).scalar_one()
    if hours > _MOST_HOURS:
        begin, end = begin // DAY_S * DAY_S, -(-end // DAY_S) * DAY_S
    return begin, end


def _top(names: dict[str, list[int]], most: int) -> tuple[LogCount, ...]:
    ranked = sorted(names.items(), key=lambda item: (-item[1][1], -item[1][0], item[0]))
    return tuple(LogCount(name, *counts) for name, counts in ranked[:most])
