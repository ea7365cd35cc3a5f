"""The priority queue of URLs to crawl, as a table.

Source: [url-filter, URL filter step 2] a URL that no list knows goes first in the crawl queue; [cloud-crawler §3] scheduler.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from itertools import batched
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update

from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import SITE_SLOTS, Lease, Offer, Priority, QueuedUrl, QueueState
from gatewayfilter.store.database import Area, Database
from gatewayfilter.store.schema import FRONTIER, FRONTIER_PAUSES
from gatewayfilter.urls import digest_of, parse_url, registrable_domain

_DAY_S: Final = 86_400.0
DEAD_REST_S: Final = _DAY_S
"""A dead letter ignores offers for this long; after that a new visit gives the URL another chance. Otherwise a site could stay
unjudged for good by failing while the crawler looks."""
DEAD_KEEP_S: Final = 7 * _DAY_S
"""A dead letter is forgotten after this long."""

_CHUNK = 500
_SWEEP_EVERY_S = 60.0
_SWEEP_MOST = 2000
_RECOUNT_AFTER = 1000
_NO_LEVEL = -(2**31)  # below every priority
_ANYBODY = -1
_WHOLE = 1

type _Row = Row[*tuple[Any, ...]]

_COLUMNS = FRONTIER.c
_KNOWN = select(
    _COLUMNS.digest, _COLUMNS.id, _COLUMNS.state, _COLUMNS.priority, _COLUMNS.not_before, _COLUMNS.due_at, _COLUMNS.attempts
).where(_COLUMNS.digest.in_(bindparam("digests", expanding=True)))
_COUNT = select(func.count()).select_from(FRONTIER).where(_COLUMNS.state == bindparam("in_state"))
_DUE_COUNT = _COUNT.where(_COLUMNS.due_at <= bindparam("now"))
_COUNTS = select(_COLUMNS.state, func.count().label("urls")).group_by(_COLUMNS.state)
_HURRY = (
    update(FRONTIER)
    .where(_COLUMNS.id == bindparam("row_id"))
    .values(priority=bindparam("new_priority"), not_before=bindparam("new_not_before"), due_at=bindparam("new_due_at"))
)
# Not "in these two states": that would sort what an index finds, while the oldest rows are nearly all settled ones.
_OLDEST_SETTLED = (
    select(_COLUMNS.id)
    .where(_COLUMNS.state != QueueState.WAITING.value, _COLUMNS.state != QueueState.LEASED.value)
    .order_by(_COLUMNS.id)
    .limit(bindparam("most"))
)
_PAUSED_SINCE = select(FRONTIER_PAUSES.c.since).where(FRONTIER_PAUSES.c.id == _WHOLE)
_DELETE = delete(FRONTIER).where(_COLUMNS.id.in_(bindparam("ids", expanding=True)))

# Both are answered from the end of one index range, however many URLs wait: the next priority in use, and what is due in it.
NEXT_LEVEL = select(func.min(_COLUMNS.priority)).where(
    _COLUMNS.state == bindparam("in_state"), _COLUMNS.priority > bindparam("after")
)
DUE_IN_LEVEL = (
    select(_COLUMNS.id, _COLUMNS.url, _COLUMNS.priority, _COLUMNS.attempts)
    .where(
        _COLUMNS.state == bindparam("in_state"),
        _COLUMNS.priority == bindparam("level"),
        _COLUMNS.due_at <= bindparam("now"),
    )
    .order_by(_COLUMNS.due_at, _COLUMNS.id)
    .limit(bindparam("most"))
)
_DUE_IN_SLOTS = DUE_IN_LEVEL.where(_COLUMNS.slot.in_(bindparam("slots", expanding=True)))
_EXPIRE = (
    update(FRONTIER)
    .where(_COLUMNS.state == QueueState.LEASED.value, _COLUMNS.due_at <= bindparam("now"))
    .values(state=QueueState.WAITING.value, token="")
)
_LEASE = (
    update(FRONTIER)
    .where(_COLUMNS.id.in_(bindparam("ids", expanding=True)))
    .values(
        state=QueueState.LEASED.value,
        token=bindparam("new_token"),
        due_at=bindparam("new_due_at"),
        attempts=_COLUMNS.attempts + 1,
    )
)
_OURS = (
    _COLUMNS.digest == bindparam("of"),
    _COLUMNS.state == QueueState.LEASED.value,
    _COLUMNS.token == bindparam("held_token"),
)
_FINISH = delete(FRONTIER).where(*_OURS)
_RETURN = (
    update(FRONTIER)
    .where(*_OURS)
    .values(state=bindparam("new_state"), due_at=bindparam("new_due_at"), error=bindparam("new_error"), token="")
)
_PUT_BACK = _RETURN.values(not_before=bindparam("new_due_at"))
_REVIVE = (
    update(FRONTIER)
    .where(_COLUMNS.state == QueueState.DEAD.value)
    .values(state=QueueState.WAITING.value, attempts=0, not_before=0.0, due_at=0.0, error="")
)


class SqlFrontier:
    """Implements `interfaces.SharedFrontier`.

    A URL's row is found by the MD5 of its canonical text. What is leased next is read off an index over state, priority and the
    time from which the URL may be leased (for one offered without such a time, when it was offered), so a user's visit
    overtakes any number of queued links at no cost.

    Attributes:
        max_waiting: beyond so many waiting URLs new links are refused, beyond twice as many everything new is. Of resting
            URLs and dead letters together the newest twice as many are kept, so that no client fills the disk.
        refused: how many this object refused so far.
    """

    def __init__(self, database: Database, *, max_waiting: int = 200_000) -> None:
        self._database = database
        self.max_waiting = max_waiting
        self.refused = 0
        self._waiting = 0  # as of the last count, with what was added since; what left meanwhile is not known
        self._recount_in = 0
        self._next_sweep = 0.0

    def add(self, offers: Iterable[Offer], now: float) -> int:
        """Adds URLs; one that is waiting already keeps the more urgent priority. Returns how many were new.

        A waiting URL also keeps the earlier of the two times, unless it failed before: its back-off stays. A leased one is
        left alone, a resting one until its rest is over, a dead letter for `DEAD_REST_S`; after that they count as new.
        """
        wanted = _merged(offers)
        added = 0
        for chunk in batched(wanted.items(), _CHUNK):
            with self._database.write(Area.FRONTIER) as connection:
                added += self._add(connection, dict(chunk), now)
        return added

    def lease(self, limit: int, lease_s: float, now: float, slots: Sequence[int] | None = None) -> list[Lease]:
        """Returns up to `limit` URLs, the most urgent first, oldest first among equals; of sites in these slots alone.

        An idle crawler asks all the time: when there is nothing, it only reads.
        """
        with self._database.read() as connection:
            if connection.scalar(_PAUSED_SINCE) is not None or not any(
                _due(connection, state, now, 1, slots) for state in (QueueState.WAITING, QueueState.LEASED)
            ):
                return []
        token = secrets.token_hex(8)  # a URL is leased once in a call: with the URL it is unique
        with self._database.write(Area.FRONTIER) as connection:
            connection.execute(_EXPIRE, {"now": now})
            rows = _due(connection, QueueState.WAITING, now, limit, slots)
            for chunk in batched(rows, _CHUNK):
                values = {"ids": [row.id for row in chunk], "new_token": token, "new_due_at": now + lease_s}
                connection.execute(_LEASE, values)
        return [Lease(row.url, row.priority, row.attempts + 1, token, now + lease_s) for row in rows]

    def pause(self, now: float) -> bool:
        """Hands out nothing from now on (Unix seconds), over restarts too. Returns False when it was so already."""
        with self._database.write(Area.FRONTIER) as connection:
            if connection.scalar(_PAUSED_SINCE) is not None:
                return False
            connection.execute(insert(FRONTIER_PAUSES), {"id": _WHOLE, "since": now})
            return True

    def resume(self) -> bool:
        """Hands out URLs again. Returns False when it did already."""
        with self._database.write(Area.FRONTIER) as connection:
            return bool(connection.execute(delete(FRONTIER_PAUSES)).rowcount)

    def paused_since(self) -> float | None:
        """Returns since when nothing is handed out (Unix seconds), `None` while URLs are."""
        with self._database.read() as connection:
            return connection.scalar(_PAUSED_SINCE)

    def done(self, lease: Lease, rest_until: float = 0.0) -> bool:
        """Takes a finished URL out, or lets it rest: until then (Unix seconds) adding it again does nothing.

        Returns False when the lease is no longer ours: it ran out and somebody asked for URLs since.
        """
        if rest_until <= 0:
            return self._give_back(_FINISH, lease)
        return self._give_back(_RETURN, lease, new_state=QueueState.RESTING.value, new_due_at=rest_until, new_error="")

    def retry(self, lease: Lease, not_before: float, error: str) -> bool:
        """Puts a failed URL back. Returns False when the lease is no longer ours."""
        return self._give_back(_PUT_BACK, lease, new_state=QueueState.WAITING.value, new_due_at=not_before, new_error=error)

    def bury(self, lease: Lease, error: str) -> bool:
        """Moves a URL to the dead letters. Returns False when the lease is no longer ours."""
        # The end of the lease stands for the time of death: near enough for days.
        return self._give_back(_RETURN, lease, new_state=QueueState.DEAD.value, new_due_at=lease.expires_at, new_error=error)

    def stats(self, now: float) -> dict[str, int]:
        """Returns counts by state: `waiting`, `due` (waiting and may be leased now), `leased`, `resting`, `dead`."""
        with self._database.read() as connection:
            counts = {row.state: row.urls for row in connection.execute(_COUNTS)}
            due = connection.scalar(_DUE_COUNT, {"in_state": QueueState.WAITING.value, "now": now}) or 0
        waiting, *others = ((state.value, counts.get(state.value, 0)) for state in QueueState)
        return dict([waiting, ("due", due), *others])

    def show(self, limit: int, state: QueueState | None = None) -> list[QueuedUrl]:
        """Returns rows, the most urgent first."""
        rows = select(
            _COLUMNS.url, _COLUMNS.priority, _COLUMNS.state, _COLUMNS.attempts, _COLUMNS.not_before, _COLUMNS.error
        ).order_by(_COLUMNS.priority, _COLUMNS.due_at, _COLUMNS.id)
        if state is not None:
            rows = rows.where(_COLUMNS.state == state.value)
        with self._database.read() as connection:
            return [
                QueuedUrl(row.url, row.priority, QueueState(row.state), row.attempts, row.not_before, row.error)
                for row in connection.execute(rows.limit(limit))
            ]

    def revive(self) -> int:
        """Puts all dead letters back to waiting, due at once. Returns how many."""
        self._recount_in = 0
        with self._database.write(Area.FRONTIER) as connection:
            return connection.execute(_REVIVE).rowcount

    def clear(self) -> int:
        """Empties the queue, leased, resting and dead URLs included. Returns how many."""
        self._recount_in = 0
        with self._database.write(Area.FRONTIER) as connection:
            return connection.execute(delete(FRONTIER)).rowcount

    def _add(self, connection: Connection, wanted: Mapping[bytes, Offer], now: float) -> int:
        if now >= self._next_sweep or self._recount_in <= 0:
            self._next_sweep = now + _SWEEP_EVERY_S
            self._sweep(connection, now)
        known = {row.digest: row for row in connection.execute(_KNOWN, {"digests": list(wanted)})}
        over = [row.id for row in known.values() if _is_over(row, now)]
        if over:
            _delete(connection, over)
            known = {digest: row for digest, row in known.items() if not _is_over(row, now)}
        hurried = [values for digest, row in known.items() if (values := _hurried(row, wanted[digest], now))]
        if hurried:
            connection.execute(_HURRY, hurried)
        new = [(digest, offer) for digest, offer in wanted.items() if digest not in known]
        admitted = self._admit(connection, new) if new else new
        if admitted:
            connection.execute(insert(FRONTIER), [_new_row(digest, offer, now) for digest, offer in admitted])
        return len(admitted)

    def _admit(self, connection: Connection, new: Sequence[tuple[bytes, Offer]]) -> Sequence[tuple[bytes, Offer]]:
        """Returns those for which there is room. Counts only near the limit, and now and then for what others add."""
        if self._recount_in <= 0 or self._waiting + len(new) > self.max_waiting:
            self._waiting = _count(connection, QueueState.WAITING)
            self._recount_in = _RECOUNT_AFTER
        admitted: list[tuple[bytes, Offer]] = []
        for digest, offer in new:
            limit = self.max_waiting if offer.priority >= Priority.LINK else 2 * self.max_waiting
            if self._waiting + len(admitted) < limit:
                admitted.append((digest, offer))
        self.refused += len(new) - len(admitted)
        self._waiting += len(admitted)
        self._recount_in -= len(admitted)
        return admitted

    def _sweep(self, connection: Connection, now: float) -> None:
        """Forgets what rested long enough, dead letters of old, and what is too much; a bounded number at a time."""
        leaving = [row.id for row in _due(connection, QueueState.RESTING, now, _SWEEP_MOST)]
        leaving += [row.id for row in _due(connection, QueueState.DEAD, now - DEAD_KEEP_S, _SWEEP_MOST)]
        _delete(connection, leaving)
        settled = _count(connection, QueueState.RESTING) + _count(connection, QueueState.DEAD)
        surplus = settled - 2 * self.max_waiting
        if surplus > 0:
            _delete(connection, connection.scalars(_OLDEST_SETTLED, {"most": min(surplus, _SWEEP_MOST)}).all())

    def _give_back(self, statement: Any, lease: Lease, **values: object) -> bool:
        with self._database.write(Area.FRONTIER) as connection:
            held = {"of": digest_of(lease.url), "held_token": lease.token}
            return bool(connection.execute(statement, {**held, **values}).rowcount)


def _count(connection: Connection, state: QueueState) -> int:
    return connection.scalar(_COUNT, {"in_state": state.value}) or 0


def _delete(connection: Connection, ids: Sequence[int]) -> None:
    for chunk in batched(ids, _CHUNK):
        connection.execute(_DELETE, {"ids": chunk})


def _merged(offers: Iterable[Offer]) -> dict[bytes, Offer]:
    """Returns the offers by digest, in their order; of several of one URL the most urgent priority and the earliest time."""
    merged: dict[bytes, Offer] = {}
    for offer in offers:
        digest = digest_of(offer.url)
        other = merged.get(digest)
        if other is not None:
            offer = Offer(offer.url, min(offer.priority, other.priority), min(offer.not_before, other.not_before))  # noqa: PLW2901  the two become one
        merged[digest] = offer
    return merged


def _new_row(digest: bytes, offer: Offer, now: float) -> dict[str, object]:
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
    }


def site_slot(url: str) -> int:
    """Returns the slot of a URL's site (its registrable domain, else its host); -1, anybody's, for what is no URL."""
    try:
        host = parse_url(url).host
    except UrlError:
        return _ANYBODY
    return int.from_bytes(digest_of(registrable_domain(host) or host)[:4]) % SITE_SLOTS


def _is_over(row: _Row, now: float) -> bool:
    """Whether a row only says that its URL was there, and a new offer starts afresh."""
    if row.state == QueueState.DEAD.value:
        return bool(row.due_at + DEAD_REST_S <= now)
    return bool(row.state == QueueState.RESTING.value and row.due_at <= now)


def _hurried(row: _Row, offer: Offer, now: float) -> dict[str, object] | None:
    """Returns the new values of a waiting row that this offer makes more urgent, `None` when it does not."""
    if row.state != QueueState.WAITING.value:
        return None
    priority = min(row.priority, int(offer.priority))
    due_at = max(offer.not_before, now)
    sooner = row.attempts == 0 and due_at < row.due_at
    if priority == row.priority and not sooner:
        return None
    return {
        "row_id": row.id,
        "new_priority": priority,
        "new_not_before": offer.not_before if sooner else row.not_before,
        "new_due_at": due_at if sooner else row.due_at,
    }


def _due(connection: Connection, state: QueueState, now: float, limit: int, slots: Sequence[int] | None = None) -> list[_Row]:
    """Returns up to `limit` rows of a state whose time has come, the most urgent first.

    Priority by priority, for one query over all would walk past every URL that waits for its time.
    """
    found: list[_Row] = []
    level = _NO_LEVEL
    while len(found) < limit:
        level = connection.scalar(NEXT_LEVEL, {"in_state": state.value, "after": level})
        if level is None:
            break
        values: dict[str, object] = {"in_state": state.value, "level": level, "now": now, "most": limit - len(found)}
        if slots is None:
            found += connection.execute(DUE_IN_LEVEL, values)
        else:
            found += connection.execute(_DUE_IN_SLOTS, {**values, "slots": [*slots, _ANYBODY]})
    return found
