"""The priority queue of URLs to crawl, as a table.

Source: [url-filter, URL filter step 2] a URL on no list goes first in the crawl queue; [cloud-crawler §3] scheduler.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import batched
from typing import Any, Final

from sqlalchemy import Connection, delete, insert, tuple_

from gatewayfilter.interfaces import CrawlRequest, Lease, Priority, QueuedUrl, QueueHolds, QueueState
from gatewayfilter.store.repositories.crawling import frontier_sql as sql
from gatewayfilter.store.repositories.crawling.due_rows import due_rows
from gatewayfilter.store.repositories.crawling.frontier_holds import SqlHolds, leasable_rows, site_slot
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import FRONTIER, FRONTIER_PAUSES
from gatewayfilter.urls import digest_of

_DAY_S: Final = 86_400.0
DEAD_REST_S: Final = _DAY_S
"""A dead letter ignores offers for this long; after that a new visit gives the URL another chance. Otherwise a site could stay
unclassified for good by failing for the crawler."""
DEAD_KEEP_S: Final = 7 * _DAY_S
"""A dead letter is deleted after this long."""

TASK_REST_S: Final = 60.0
"""Maximum delay of a task for a page that was visited for another reason."""

USUAL_LENGTH: Final = 256
"""Usual length of a URL in characters. One that is n times as long is admitted only while the queue is filled to an n-th, so that
long ones take at most about three times the room of usual ones."""
_CHUNK = 500
_SWEEP_EVERY_S = 60.0
_SWEEP_MOST = 2000
_RECOUNT_AFTER = 1000


class SqlFrontier:
    """Implements `interfaces.SharedFrontier`.

    A URL's row is found by the MD5 of its canonical text. The next leases are read from an index over state, priority and
    the time from which the URL may be leased (by default the time of its offer), so a user's visit overtakes any number of queued
    links at no cost.

    Attributes:
        max_waiting: beyond so many waiting URLs new links are refused, beyond twice as many everything new is, and long URLs
            sooner. Of done URLs and dead letters together the newest twice as many are kept, so that no client can fill the disk.
        refused: number of URLs that this object refused.
        holds: the pauses of single tasks and hosts.
    """

    def __init__(self, database: Database, *, max_waiting: int = 200_000) -> None:
        self._database = database
        self.max_waiting = max_waiting
        self.refused = 0
        self.holds: QueueHolds = SqlHolds(database)
        self._waiting = 0  # the last count plus additions since; removals are not counted
        self._recount_in = 0
        self._next_sweep = 0.0
        self._found_some = False

    def add(self, offers: Iterable[CrawlRequest], now: float) -> int:
        """Adds URLs; one that is waiting already keeps the more urgent priority. Returns the number of new ones.

        A waiting URL also keeps the earlier of the two times, unless it failed before: its back-off stays. A leased one is
        unchanged, a done one until its rest is over (for another task, `TASK_REST_S` at most), a dead letter for `DEAD_REST_S`;
        after that they count as new.
        """
        wanted = merged(offers)
        added = 0
        for chunk in batched(wanted.items(), _CHUNK):
            with self._database.write(Area.FRONTIER) as connection:
                added += self._add(connection, dict(chunk), now)
        return added

    def lease(self, limit: int, lease_s: float, now: float, slots: Sequence[int] | None = None, holder: str = "") -> list[Lease]:
        """Returns up to `limit` URLs, the most urgent first, oldest first among equals; of sites in these slots alone.

        An idle crawler polls constantly: after an empty result it only reads, until there is something to lease.
        """
        if not self._found_some:
            with self._database.read() as connection:
                if connection.scalar(sql.PAUSED_SINCE) is not None or not any(
                    due_rows(connection, state, now, 1, slots) for state in (QueueState.WAITING, QueueState.LEASED)
                ):
                    return []
        token = secrets.token_hex(8)  # a URL is leased once per call: unique together with the URL
        with self._database.write(Area.FRONTIER) as connection:
            self._found_some = False
            if connection.scalar(sql.PAUSED_SINCE) is not None:
                return []
            connection.execute(sql.EXPIRE, {"now": now})
            rows, held = leasable_rows(connection, now, limit, slots)
            for chunk in batched(rows, _CHUNK):
                values = {"new_token": token, "new_holder": holder, "new_due_at": now + lease_s}
                connection.execute(sql.LEASE, {"ids": [row.id for row in chunk], **values})
        self._found_some = bool(rows or held)
        until = now + lease_s
        return [Lease(row.url, row.priority, row.attempts + 1, token, until, row.task, row.depth) for row in rows]

    def release(self, holders: Sequence[str], now: float) -> int:
        """Releases the leases of these crawlers at once. Returns their number."""
        with self._database.write(Area.FRONTIER) as connection:
            return connection.execute(sql.RELEASE, {"holders": list(holders), "now": now}).rowcount

    def release_except(self, holders: Sequence[str], now: float) -> int:
        """Releases at once the leases of all named crawlers except these. Returns their number."""
        with self._database.write(Area.FRONTIER) as connection:
            return connection.execute(sql.RELEASE_EXCEPT, {"holders": list(holders), "now": now}).rowcount

    def pause(self, now: float) -> bool:
        """Pauses leasing from now on (Unix seconds), across restarts. Returns False when it was paused already."""
        with self._database.write(Area.FRONTIER) as connection:
            if connection.scalar(sql.PAUSED_SINCE) is not None:
                return False
            connection.execute(insert(FRONTIER_PAUSES), {"id": sql.WHOLE, "since": now})
            return True

    def resume(self) -> bool:
        """Resumes leasing. Returns False when it was not paused."""
        with self._database.write(Area.FRONTIER) as connection:
            return bool(connection.execute(delete(FRONTIER_PAUSES)).rowcount)

    def paused_since(self) -> float | None:
        """Returns the start of the pause (Unix seconds), `None` if not paused."""
        with self._database.read() as connection:
            return connection.scalar(sql.PAUSED_SINCE)

    def done(self, lease: Lease, rest_until: float = 0.0) -> bool:
        """Removes a finished URL, or lets it rest: until then (Unix seconds) adding it again has no effect.

        Returns False when the lease is no longer the caller's: it expired and the URL was released since.
        """
        if rest_until <= 0:
            return self._give_back(sql.FINISH, lease)
        return self._give_back(sql.RETURN, lease, new_state=QueueState.DONE.value, new_due_at=rest_until, new_error="")

    def done_all(self, finished: Sequence[tuple[Lease, float]]) -> None:
        """Does `done` for each lease with its `rest_until`, in one transaction; lost leases are ignored."""
        done = [(lease, until) for lease, until in finished if until > 0]
        leaving = [_held(lease) for lease, until in finished if until <= 0]
        with self._database.write(Area.FRONTIER) as connection:
            if done:
                values = {"new_state": QueueState.DONE.value, "new_error": ""}
                connection.execute(sql.RETURN, [{**_held(lease), **values, "new_due_at": until} for lease, until in done])
            if leaving:
                connection.execute(sql.FINISH, leaving)

    def retry(self, lease: Lease, not_before: float, error: str, *, counted: bool = True) -> bool:
        """Requeues a failed URL. Returns False when the lease is no longer the caller's.

        An attempt that is not `counted` does not bring the URL nearer to the dead letters.
        """
        statement = sql.PUT_BACK if counted else sql.PUT_BACK_UNCOUNTED
        return self._give_back(statement, lease, new_state=QueueState.WAITING.value, new_due_at=not_before, new_error=error)

    def again(self, lease: Lease, at: float, priority: int) -> bool:
        """Requeues a finished URL for its next visit (Unix seconds). Returns False when the lease is no longer the caller's."""
        state = QueueState.WAITING.value
        return self._give_back(sql.AGAIN, lease, new_state=state, new_due_at=at, new_error="", new_priority=int(priority))

    def dead_letter(self, lease: Lease, error: str) -> bool:
        """Moves a URL to the dead letters. Returns False when the lease is no longer the caller's."""
        # The end of the lease is used as the time of death: accurate enough for days.
        return self._give_back(sql.RETURN, lease, new_state=QueueState.DEAD.value, new_due_at=lease.expires_at, new_error=error)

    def still_held(self, leases: Sequence[Lease]) -> list[Lease]:
        """Returns those that are the caller's still: neither given back, nor handed out again. Changes nothing."""
        held: set[tuple[bytes, str]] = set()
        with self._database.read() as connection:
            for chunk in batched(leases, _CHUNK):
                rows = connection.execute(sql.HELD_TOKENS, {"digests": [digest_of(lease.url) for lease in chunk]})
                held.update((row.digest, row.token) for row in rows)
        return [lease for lease in leases if (digest_of(lease.url), lease.token) in held]

    def stats(self, now: float) -> dict[str, int]:
        """Returns counts by state: `waiting`, `due` (waiting and may be leased now), `leased`, `done`, `dead`."""
        with self._database.read() as connection:
            counts = {row.state: row.urls for row in connection.execute(sql.COUNTS)}
            due = connection.execute(sql.DUE_COUNT, {"in_states": [QueueState.WAITING.value], "now": now}).scalar_one()
        counts[QueueState.WAITING.value] = counts.get(QueueState.WAITING.value, 0) + counts.get(sql.HELD, 0)
        waiting, *others = ((state.value, counts.get(state.value, 0)) for state in QueueState)
        return dict([waiting, ("due", due), *others])

    def waiting(self, now: float) -> tuple[int, float | None]:
        """Returns how many URLs wait, and since when the oldest of those that are due is (Unix seconds; `None` for none)."""
        with self._database.read() as connection:
            count, since = connection.execute(sql.WAITING).one()
        return count, since if since is not None and since <= now else None

    def show(self, limit: int, state: QueueState | None = None) -> list[QueuedUrl]:
        """Returns rows, the most urgent first."""
        return self.page(limit, state)[0]

    def page(
        self, limit: int, state: QueueState | None = None, after: tuple[int, float, int] | None = None
    ) -> tuple[list[QueuedUrl], tuple[int, float, int] | None]:
        """Returns rows, the most urgent first, and what `after` of the next page is (`None` on the last).

        Args:
            limit: most rows.
            state: only those in this state.
            after: only those behind this place: priority, time and number of a row.
        """
        order = (sql.COLUMNS.priority, sql.COLUMNS.due_at, sql.COLUMNS.id)
        statement = sql.SHOWN.order_by(*order).limit(limit + 1)
        if after is not None:
            statement = statement.where(tuple_(*order) > after)
        with self._database.read() as connection:
            if state is not None:
                held_too = state is QueueState.WAITING and connection.execute(sql.HOLDS).first() is not None
                statement = statement.where(sql.WAITS if held_too else sql.COLUMNS.state == state.value)
            found = connection.execute(statement).all()
        rows = [_shown(row) for row in found[:limit]]
        last = found[limit - 1] if len(found) > limit else None
        return rows, (last.priority, last.due_at, last.id) if last is not None else None

    def revive(self) -> int:
        """Requeues all dead letters, due at once. Returns their number."""
        self._recount_in = 0
        with self._database.write(Area.FRONTIER) as connection:
            return connection.execute(sql.REVIVE).rowcount

    def clear(self, task: str | None = None) -> int:
        """Empties the queue, leased, done and dead URLs included, or removes one task's URLs. Returns their number."""
        self._recount_in = 0
        statement = delete(FRONTIER) if task is None else delete(FRONTIER).where(sql.COLUMNS.task == task)
        with self._database.write(Area.FRONTIER) as connection:
            return connection.execute(statement).rowcount

    def tasks(self) -> dict[str, dict[str, int]]:
        """Returns for each task with URLs in the queue their number by state."""
        counts: dict[str, dict[str, int]] = {}
        with self._database.read() as connection:
            for row in connection.execute(sql.TASK_COUNTS):
                states = counts.setdefault(row.task, {})
                state = _public(row.state)
                states[state] = states.get(state, 0) + row.urls
        return counts

    def _add(self, connection: Connection, wanted: Mapping[bytes, CrawlRequest], now: float) -> int:
        if now >= self._next_sweep or self._recount_in <= 0:
            self._next_sweep = now + _SWEEP_EVERY_S
            self._sweep(connection, now)
        known = {row.digest: row for row in connection.execute(sql.KNOWN, {"digests": list(wanted)})}
        over = {digest: row for digest, row in known.items() if _is_over(row, wanted[digest], now)}
        if over:
            _delete(connection, [row.id for row in over.values()])
            known = {digest: row for digest, row in known.items() if digest not in over}
            wanted = {**wanted, **{digest: _after_rest(wanted[digest], row, now) for digest, row in over.items()}}
        hurried = [values for digest, row in known.items() if (values := _hurried(row, wanted[digest], now))]
        if hurried:
            connection.execute(sql.HURRY, hurried)
        new = [(digest, offer) for digest, offer in wanted.items() if digest not in known]
        admitted = self._admit(connection, new) if new else new
        if admitted:
            connection.execute(insert(FRONTIER), [_new_row(digest, offer, now) for digest, offer in admitted])
        return len(admitted)

    def _admit(self, connection: Connection, new: Sequence[tuple[bytes, CrawlRequest]]) -> Sequence[tuple[bytes, CrawlRequest]]:
        """Returns those for which there is room. Counts rows only near the limit, and occasionally for additions by others."""
        if self._recount_in <= 0 or self._waiting + len(new) > self.max_waiting:
            self._waiting = _count(connection, QueueState.WAITING.value, sql.HELD)
            self._recount_in = _RECOUNT_AFTER
        admitted: list[tuple[bytes, CrawlRequest]] = []
        for digest, offer in new:
            limit = self.max_waiting if offer.priority >= Priority.LINK else 2 * self.max_waiting
            if self._waiting + len(admitted) < limit * min(1.0, USUAL_LENGTH / len(offer.url)):
                admitted.append((digest, offer))
        self.refused += len(new) - len(admitted)
        self._waiting += len(admitted)
        self._recount_in -= len(admitted)
        return admitted

    def _sweep(self, connection: Connection, now: float) -> None:
        """Deletes rows after their rest, old dead letters, and rows in excess; a bounded number at a time."""
        leaving = [row.id for row in due_rows(connection, QueueState.DONE, now, _SWEEP_MOST)]
        leaving += [row.id for row in due_rows(connection, QueueState.DEAD, now - DEAD_KEEP_S, _SWEEP_MOST)]
        _delete(connection, leaving)
        settled = _count(connection, QueueState.DONE.value, QueueState.DEAD.value)
        if surplus := max(settled - 2 * self.max_waiting, 0):
            _delete(connection, connection.scalars(sql.OLDEST_SETTLED, {"most": min(surplus, _SWEEP_MOST)}).all())

    def _give_back(self, statement: Any, lease: Lease, **values: object) -> bool:
        with self._database.write(Area.FRONTIER) as connection:
            return bool(connection.execute(statement, {**_held(lease), **values}).rowcount)


def _held(lease: Lease) -> dict[str, object]:
    return {"of": digest_of(lease.url), "held_token": lease.token}


def _count(connection: Connection, *states: str) -> int:
    return connection.execute(sql.COUNT, {"in_states": states}).scalar_one()


def _public(state: str) -> str:
    return QueueState.WAITING.value if state == sql.HELD else state


def _shown(row: sql.FrontierRow) -> QueuedUrl:
    state = QueueState(_public(row.state))
    held = row.state == sql.HELD
    return QueuedUrl(row.url, row.priority, state, row.attempts, row.not_before, row.error, row.task, row.depth, held)


def _delete(connection: Connection, ids: Sequence[int]) -> None:
    for chunk in batched(ids, _CHUNK):
        connection.execute(sql.DELETE, {"ids": chunk})


def merged(offers: Iterable[CrawlRequest]) -> dict[bytes, CrawlRequest]:
    """Returns the offers by digest, in order; those of one URL are merged to the most urgent priority and the earliest time."""
    merged: dict[bytes, CrawlRequest] = {}
    for offer in offers:
        digest = digest_of(offer.url)
        other = merged.get(digest)
        if other is not None:
            task, depth = _task_of_both(other, offer)
            offer = CrawlRequest(  # noqa: PLW2901  both are merged
                offer.url, min(offer.priority, other.priority), min(offer.not_before, other.not_before), task, depth
            )
        merged[digest] = offer
    return merged


def _task_of_both(known: Any, offer: CrawlRequest) -> tuple[str, int]:
    """Returns the task and depth of a URL (an offer or a row) that is offered again: it keeps its task, and the smaller depth."""
    if not known.task or known.task != offer.task:
        return (known.task, known.depth) if known.task else (offer.task, offer.depth)
    return known.task, min(known.depth, offer.depth)


def _new_row(digest: bytes, offer: CrawlRequest, now: float) -> dict[str, object]:
    return {
        "digest": digest,
        "url": offer.url,
        "priority": int(offer.priority),
        "state": QueueState.WAITING.value,
        "not_before": offer.not_before,
        "due_at": max(offer.not_before, now),
        "attempts": 0,
        "token": "",
        "error": "",
        "slot": site_slot(offer.url),
        "task": offer.task,
        "depth": offer.depth,
    }


def _is_over(row: sql.FrontierRow, offer: CrawlRequest, now: float) -> bool:
    """Whether a row is only a done URL or dead letter of others than the offering task, so that the offer replaces it."""
    if row.state == QueueState.DEAD.value:
        return bool(row.due_at + DEAD_REST_S <= now)
    return bool(row.state == QueueState.DONE.value and (row.due_at <= now or (offer.task and offer.task != row.task)))


def _after_rest(offer: CrawlRequest, row: sql.FrontierRow, now: float) -> CrawlRequest:
    """Returns an offer that is delayed by the page's rest, up to a limit: a task visits each page itself."""
    return replace(offer, not_before=max(offer.not_before, min(row.due_at, now + TASK_REST_S)))


def _hurried(row: sql.FrontierRow, offer: CrawlRequest, now: float) -> dict[str, object] | None:
    """Returns the new values of a waiting row that this offer makes more urgent or puts into a task, `None` when it does not."""
    if _public(row.state) != QueueState.WAITING.value:
        return None
    priority = min(row.priority, int(offer.priority))
    due_at = max(offer.not_before, now)
    sooner = row.attempts == 0 and due_at < row.due_at
    task, depth = _task_of_both(row, offer)
    if priority == row.priority and not sooner and (task, depth) == (row.task, row.depth):
        return None
    return {
        "row_id": row.id,
        "new_priority": priority,
        "new_not_before": offer.not_before if sooner else row.not_before,
        "new_due_at": due_at if sooner else row.due_at,
        "new_task": task,
        "new_depth": depth,
    }
