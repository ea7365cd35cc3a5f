"""The holds of the frontier: the pauses of single crawl tasks and hosts.

A URL that waits and is held has a state of its own (`frontier_sql.HELD`), so that a lease reads no held rows however many there
are. A hold moves what waits at once. A URL that begins to wait later (it is offered, fails, is released) is moved by the first
lease that comes to it: nothing else that writes the queue has to read the holds.
"""

from collections.abc import Collection, Sequence
from itertools import batched
from typing import Final
from urllib.parse import urlsplit

from sqlalchemy import Connection, delete, func, insert, select

from gatewayfilter.errors import ConfigError, UrlError
from gatewayfilter.interfaces import SITE_SLOTS, Hold, HoldKind, QueueState
from gatewayfilter.store.repositories.crawling import frontier_sql as sql
from gatewayfilter.store.repositories.crawling.due_rows import due_rows
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import FRONTIER_HOLDS
from gatewayfilter.urls import digest_of, parse_url, registrable_domain

MOST_HOLDS: Final = 1000
_CHUNK: Final = 500
_MOVED_AT_ONCE: Final = 2000
"""Rows of one transaction: some 100 ms, for which other writers of SQLite wait."""
_MOST_BATCHES: Final = 20
"""Of held rows that a lease moves."""


class SqlHolds:
    """Implements `interfaces.QueueHolds`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def hold(self, kind: HoldKind, name: str, now: float) -> bool:
        """Leases no URL of a task or host from now on (Unix seconds). Returns False when it was held already.

        Raises:
            ConfigError: `MOST_HOLDS` are held.
        """
        with self._database.write(Area.FRONTIER) as connection:
            if _exists(connection, kind, name):
                return False
            if connection.execute(select(func.count()).select_from(FRONTIER_HOLDS)).scalar_one() >= MOST_HOLDS:
                raise ConfigError(f"at most {MOST_HOLDS:,} tasks and hosts can be paused at a time: pause the whole queue")
            connection.execute(insert(FRONTIER_HOLDS), {"kind": kind.value, "name": name, "since": now})
        self._move(kind, name, QueueState.WAITING.value, sql.HELD)  # if it ends here, leases move them
        return True

    def unhold(self, kind: HoldKind, name: str) -> bool:
        """Leases URLs of a task or host again, unless the other holds them too. Returns False when it was not held."""
        columns = FRONTIER_HOLDS.c
        with self._database.read() as connection:
            if not _exists(connection, kind, name):
                return False
        self._move(kind, name, sql.HELD, QueueState.WAITING.value)
        with self._database.write(Area.FRONTIER) as connection:
            # The hold ends together with the last held rows: none is left behind when the process is killed before.
            left = _ids(connection, kind, name, sql.HELD)
            _move_ids(connection, left, sql.HELD, QueueState.WAITING.value)
            statement = delete(FRONTIER_HOLDS).where(columns.kind == kind.value, columns.name == name)
            return bool(connection.execute(statement).rowcount)

    def all(self) -> list[Hold]:
        """Returns the holds by kind and name."""
        with self._database.read() as connection:
            return [Hold(HoldKind(row.kind), row.name, row.since) for row in connection.execute(sql.HOLDS)]

    def _move(self, kind: HoldKind, name: str, from_state: str, to_state: str) -> None:
        """Moves the rows of a task or host in short transactions, so that other writers do not wait for all of them.

        Ends when the hold does: another process may end it meanwhile.
        """
        with self._database.read() as connection:
            ids = _ids(connection, kind, name, from_state)
        for chunk in batched(ids, _MOVED_AT_ONCE):
            with self._database.write(Area.FRONTIER) as connection:
                if not _exists(connection, kind, name):
                    return
                _move_ids(connection, chunk, from_state, to_state)


def leasable_rows(
    connection: Connection, now: float, limit: int, slots: Sequence[int] | None
) -> tuple[Sequence[sql.FrontierRow], int]:
    """Returns up to `limit` due rows that wait and are not held, and the number of held ones that were moved out of the way."""
    holds = {(row.kind, row.name) for row in connection.execute(sql.HOLDS)}
    rows = due_rows(connection, QueueState.WAITING, now, limit, slots)
    if not holds:
        return rows, 0
    moved = 0
    for _ in range(_MOST_BATCHES):
        held = {row.id for row in rows if _is_held(row, holds)}
        if not held:
            return rows[:limit], moved
        moved += len(held)
        _move_ids(connection, list(held), QueueState.WAITING.value, sql.HELD)
        rows = due_rows(connection, QueueState.WAITING, now, max(limit, _CHUNK), slots)
    return [row for row in rows if not _is_held(row, holds)][:limit], moved


def _is_held(row: sql.FrontierRow, holds: Collection[tuple[str, str]]) -> bool:
    return (HoldKind.TASK.value, row.task) in holds or (HoldKind.HOST.value, host_of_queued(row.url)) in holds


def host_of_queued(url: str) -> str:
    """Returns the host of a URL of the queue, the URL itself where it has none."""
    try:
        return urlsplit(url).hostname or url
    except ValueError:
        return url


def site_slot(url: str) -> int:
    """Returns the slot of a URL's site (its registrable domain, else its host); -1, not assigned, if it is not a URL."""
    try:
        host = parse_url(url).host
    except UrlError:
        return sql.ANYBODY
    return int.from_bytes(digest_of(registrable_domain(host) or host)[:4]) % SITE_SLOTS


def _exists(connection: Connection, kind: HoldKind, name: str) -> bool:
    return any((row.kind, row.name) == (kind.value, name) for row in connection.execute(sql.HOLDS))


def _ids(connection: Connection, kind: HoldKind, name: str, state: str) -> Sequence[int]:
    if kind is HoldKind.TASK:
        return connection.scalars(sql.OF_TASK, {"in_state": state, "of_task": name}).all()
    slot = site_slot(f"http://[{name}]/" if ":" in name else f"http://{name}/")
    rows = connection.execute(sql.OF_SLOT, {"in_state": state, "of_slot": slot})
    return [row.id for row in rows if host_of_queued(row.url) == name]


def _move_ids(connection: Connection, ids: Sequence[int], from_state: str, to_state: str) -> None:
    for chunk in batched(ids, _CHUNK):
        connection.execute(sql.MOVE_IDS, {"ids": chunk, "from_state": from_state, "to_state": to_state})
