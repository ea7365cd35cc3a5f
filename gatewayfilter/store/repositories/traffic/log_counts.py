"""Counts of decisions per hour and day, by client, host, category, source and reason, for everybody and per client.

Decisions are counted in the order of their ids, many in one transaction together with the id that was reached: none is
counted twice or missed. Clients choose hosts, so each hour and day keeps a bounded number of names: the rarest are merged
into the name `""`.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from sqlalchemy import Connection, bindparam, delete, func, or_, select, text, update

from gatewayfilter.model import LogDimension, LogRecord, client_of, host_of
from gatewayfilter.store.repositories.traffic.log_rows import (
    COUNTS,
    ChunkSize,
    newest_settled,
    progress,
    records_after,
    set_progress,
    still_there,
)
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import LOG_COUNTS, LOG_DEVICES, LOG_HOURS

HOUR_S: Final = 3_600
DAY_S: Final = 86_400
PERIODS: Final = (HOUR_S, DAY_S)
MOST_NAMES: Final = 3_000
"""Rows of one dimension in one hour or day for everybody: a chart of 30 days reads no more than 30 times as many."""
MOST_OF_CLIENTS: Final = 10_000
"""Rows of one dimension in one hour or day for all clients apart."""
_MOST_AT_ONCE: Final = 4_000
_TRIM_PAUSE_S: Final = 0.01
_LATEST: Final = 253_402_300_000
_LONGEST_NAME: Final = 253

_COLUMNS = LOG_COUNTS.c
_KEY: Final = ("period_s", "dimension", "start", "client", "name", "action")
_INTO = f"INSERT INTO log_counts ({', '.join(_KEY)}, decisions) VALUES "  # noqa: S608  names of ours
_ADD_TO = f" ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET decisions = log_counts.decisions + excluded.decisions"
_ADD_HOUR = text(
    "INSERT INTO log_hours (start, first_id, last_id) VALUES (:start, :first_id, :last_id) ON CONFLICT (start) DO UPDATE SET "
    "first_id = CASE WHEN excluded.first_id < log_hours.first_id THEN excluded.first_id ELSE log_hours.first_id END, "
    "last_id = CASE WHEN excluded.last_id > log_hours.last_id THEN excluded.last_id ELSE log_hours.last_id END"
)
_ADD_DEVICE = text(
    "INSERT INTO log_devices (client, first_at, last_at) VALUES (:client, :first_at, :last_at) "
    "ON CONFLICT (client) DO UPDATE SET "
    "first_at = CASE WHEN excluded.first_at < log_devices.first_at THEN excluded.first_at ELSE log_devices.first_at END, "
    "last_at = CASE WHEN excluded.last_at > log_devices.last_at THEN excluded.last_at ELSE log_devices.last_at END"
)
_BUCKET = (
    _COLUMNS.period_s == bindparam("of_period"),
    _COLUMNS.dimension == bindparam("of_dimension"),
    _COLUMNS.start == bindparam("of_start"),
)
_ROW = (
    *_BUCKET,
    _COLUMNS.client == bindparam("of_client"),
    _COLUMNS.name == bindparam("of_name"),
    _COLUMNS.action == bindparam("of_action"),
)
_SIZE = select(func.count()).select_from(LOG_COUNTS).where(*_BUCKET)
_RAREST = (
    select(_COLUMNS.client, _COLUMNS.name, _COLUMNS.action, _COLUMNS.decisions)
    .where(*_BUCKET, _COLUMNS.name != "")
    .order_by(_COLUMNS.decisions)
    .limit(bindparam("most"))
)

type Key = tuple[int, int, int, str, str, str]
"""A row of `log_counts` by period, dimension, start, client, name and action."""


class SqlLogCounter:
    """Brings the counts up to date."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._chunk = ChunkSize(_MOST_AT_ONCE)

    def step(self) -> int:
        """Counts the next decisions, in one transaction. Returns their number, 0 when all are counted.

        Raises:
            StoreError: the database refuses; nothing was counted.
        """
        newest = newest_settled(self._database)
        with self._database.read() as connection:
            after = progress(connection, COUNTS)
            rows = records_after(connection, after, newest, self._chunk.rows)
        if not rows:
            return 0
        counts = count_records(record for _, record in rows)
        with self._database.write(Area.LOG_COUNTS) as connection:
            begun = time.monotonic()
            if progress(connection, COUNTS) != after:
                return len(rows)  # another process was faster
            kept = still_there(connection, rows)
            if len(kept) != len(rows):
                counts = count_records(record for _, record in kept)
            if counts:
                add_counts(connection, kept, counts)
            set_progress(self._database, connection, COUNTS, rows[-1][0])
        self._chunk.fit(time.monotonic() - begun)
        return len(rows)


def add_counts(connection: Connection, rows: Sequence[tuple[int, LogRecord]], counts: Counter[Key]) -> None:
    """Adds records to the counts, the hours and the devices, and merges the rarest names where there are too many.

    Args:
        connection: in a transaction.
        rows: the records with their ids.
        counts: those of the records.
    """
    _add(connection, counts)
    connection.execute(_ADD_HOUR, _hours_of(rows))
    connection.execute(_ADD_DEVICE, _devices_of(rows))
    for period, dimension, start in _buckets_at_risk(counts):
        _merge_rarest(connection, {"of_period": period, "of_dimension": dimension, "of_start": start})


def count_records(records: Iterable[LogRecord]) -> Counter[Key]:
    """Returns the rows of `log_counts` that records add to, with their numbers."""
    alike = Counter(
        (
            hour_of(record.at),
            client_of(record),
            host_of(record.url),
            record.category,
            record.source_list,
            record.reason,
            record.action,
        )
        for record in records
    )
    found: Counter[Key] = Counter()
    for (hour, client, host, category, source, reason, action), number in alike.items():
        for period in PERIODS:
            start = hour - hour % period
            found[period, LogDimension.CLIENT, start, "", client[:_LONGEST_NAME], action] += number
            for dimension, name in (
                (LogDimension.REASON, reason),
                (LogDimension.HOST, host),
                (LogDimension.CATEGORY, category),
                (LogDimension.SOURCE, source),
            ):
                if name:
                    found[period, dimension, start, "", name[:_LONGEST_NAME], action] += number
                    if client:
                        found[period, dimension, start, client[:_LONGEST_NAME], name[:_LONGEST_NAME], action] += number
    return found


def hour_of(at: float) -> int:
    """Returns the beginning of the hour (UTC) of a time; clocks may be wrong, so times beyond the calendar are moved into it."""
    seconds = int(min(max(at, 0.0), _LATEST))
    return seconds - seconds % HOUR_S


def _add(connection: Connection, counts: Counter[Key]) -> None:
    """Adds to the counts, in the order of the table. Bypasses SQLAlchemy's parameters, which cost as much as the rest."""
    place = "?" if connection.dialect.name == "sqlite" else "%s"
    statement = f"{_INTO}({', '.join([place] * (len(_KEY) + 1))}){_ADD_TO}"
    connection.exec_driver_sql(statement, [(*key, number) for key, number in sorted(counts.items())])


def _hours_of(rows: Sequence[tuple[int, LogRecord]]) -> list[dict[str, int]]:
    hours: dict[int, list[int]] = {}
    for number, record in rows:
        hours.setdefault(hour_of(record.at), []).append(number)
    return [{"start": start, "first_id": ids[0], "last_id": ids[-1]} for start, ids in sorted(hours.items())]


def _devices_of(rows: Sequence[tuple[int, LogRecord]]) -> list[dict[str, Any]]:
    seen: dict[str, list[float]] = {}
    for _, record in rows:
        seen.setdefault(client_of(record)[:_LONGEST_NAME], []).append(record.at)
    return [{"client": client, "first_at": min(times), "last_at": max(times)} for client, times in sorted(seen.items())]


def _buckets_at_risk(counts: Counter[Key]) -> set[tuple[int, int, int]]:
    """Returns the hours and days whose names clients choose."""
    chosen = {LogDimension.CLIENT, LogDimension.HOST}
    return {key[:3] for key in counts if key[1] in chosen}


def _merge_rarest(connection: Connection, bucket: dict[str, int]) -> None:
    """Merges the rarest names of an hour or day that has too many, until half of them are left."""
    for which, most in ((_COLUMNS.client == "", MOST_NAMES), (_COLUMNS.client != "", MOST_OF_CLIENTS)):
        size = connection.execute(_SIZE.where(which), bucket).scalar_one()
        if size > most:
            _merge(connection, bucket, connection.execute(_RAREST.where(which), {**bucket, "most": size - most // 2}).all())


def _merge(connection: Connection, bucket: dict[str, int], rarest: Sequence[Any]) -> None:
    connection.execute(
        delete(LOG_COUNTS).where(*_ROW),
        [{**bucket, "of_client": row.client, "of_name": row.name, "of_action": row.action} for row in rarest],
    )
    merged: Counter[Key] = Counter()
    for row in rarest:
        merged[bucket["of_period"], bucket["of_dimension"], bucket["of_start"], row.client, "", row.action] += row.decisions
    _add(connection, merged)


def subtract_counts(connection: Connection, records: Sequence[LogRecord], since: float) -> None:
    """Takes deleted records off the counts of hours and days that are not over at `since` (Unix seconds)."""
    hour, day = hour_of(since), hour_of(since) // DAY_S * DAY_S
    counts = {key: number for key, number in count_records(records).items() if key[2] >= (hour if key[0] == HOUR_S else day)}
    if not counts:
        return
    rows = [
        dict(zip((f"of_{name.removesuffix('_s')}" for name in _KEY), key, strict=True), less=number)
        for key, number in sorted(counts.items())
    ]
    connection.execute(update(LOG_COUNTS).where(*_ROW).values(decisions=_COLUMNS.decisions - bindparam("less")), rows)
    connection.execute(delete(LOG_COUNTS).where(*_ROW, _COLUMNS.decisions <= 0), [{**row} for row in rows])


def _chunks_before(before: float) -> Iterator[Any]:
    for period in PERIODS:
        edge = hour_of(before) // period * period
        for dimension in LogDimension:
            yield period, dimension, edge


def drop_counts_before(database: Database, before: float) -> None:
    """Removes the counts of hours and days that were over at `before` (Unix seconds), in short transactions."""
    first = select(func.min(_COLUMNS.start)).where(
        _COLUMNS.period_s == bindparam("of_period"), _COLUMNS.dimension == bindparam("of_dimension")
    )
    for period, dimension, edge in _chunks_before(before):
        while True:
            where = {"of_period": period, "of_dimension": int(dimension)}
            with database.read() as connection:
                oldest = connection.scalar(first, where)
            if oldest is None or oldest >= edge:
                break
            with database.write(Area.LOG_COUNTS) as connection:
                connection.execute(delete(LOG_COUNTS).where(*_BUCKET), {**where, "of_start": oldest})
    with database.write(Area.LOG_COUNTS) as connection:
        connection.execute(delete(LOG_HOURS).where(LOG_HOURS.c.start < hour_of(before)))
        connection.execute(delete(LOG_DEVICES).where(LOG_DEVICES.c.last_at < before))


def drop_counts_of(database: Database, clients: frozenset[str]) -> None:
    """Removes what was counted of clients alone; their part of the counts of everybody stays."""
    names = sorted(clients)
    with database.write(Area.LOG_COUNTS) as connection:
        connection.execute(
            delete(LOG_COUNTS).where(
                or_(_COLUMNS.client.in_(names), (_COLUMNS.dimension == int(LogDimension.CLIENT)) & _COLUMNS.name.in_(names))
            )
        )
        connection.execute(delete(LOG_DEVICES).where(LOG_DEVICES.c.client.in_(names)))


def trim_counts(database: Database, most_rows: int) -> None:
    """Removes the oldest hours, and then the oldest days, while there are more rows than `most_rows`, in short transactions.

    Ends where another process removes them at the same time.
    """
    with database.read() as connection:
        surplus = connection.execute(select(func.count()).select_from(LOG_COUNTS)).scalar_one() - most_rows
    for period in PERIODS:
        while surplus > 0:
            with database.read() as connection:
                start = connection.scalar(select(func.min(_COLUMNS.start)).where(_COLUMNS.period_s == period))
            if start is None:
                break
            with database.write(Area.LOG_COUNTS) as connection:
                gone = connection.execute(delete(LOG_COUNTS).where(_COLUMNS.period_s == period, _COLUMNS.start == start)).rowcount
            if not gone:
                return
            surplus -= gone
            time.sleep(_TRIM_PAUSE_S)
