"""The frontier in Redis: the priority queue of URLs that crawlers of several machines share.

Source: [cloud-crawler] one scheduler for many fetchers; [page-dedup] several crawlers share one queue in Redis.
Deviation: sorted sets and not a list, so that any priority overtakes, and a lease in place of a removal, so that a URL whose
crawler was killed is handed out again.
"""

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha1
from itertools import batched
from typing import Any, Final

from redis.exceptions import NoScriptError

from gatewayfilter.interfaces import CrawlRequest, Lease, Priority, QueuedUrl, QueueHolds, QueueState
from gatewayfilter.scaleout.redis import frontier_scripts as lua
from gatewayfilter.scaleout.redis.connection import Client, RedisConnection
from gatewayfilter.scaleout.redis.no_holds import NoHolds
from gatewayfilter.store.repositories.crawling.frontier import (
    DEAD_KEEP_S,
    DEAD_REST_S,
    TASK_REST_S,
    USUAL_LENGTH,
    merged,
)
from gatewayfilter.store.repositories.crawling.frontier_holds import site_slot
from gatewayfilter.urls import digest_of

PREFIX: Final = "{gf:queue}:"
"""Of all keys of the queue: one slot, so that a script may change them together."""
MARK: Final = "redis-"
"""Of the tokens of leases from Redis."""
_CHUNK: Final = 500
_MOST_TAKEN: Final = 1000
_SWEEP_EVERY_S: Final = 60.0
_SWEEP_MOST: Final = 2000
_NO_SLOT: Final = "ffff"


class _Script:
    """A script with the library, and its digest."""

    def __init__(self, body: str) -> None:
        self.text = lua.LIBRARY + body
        self.sha = sha1(self.text.encode(), usedforsecurity=False).hexdigest()


_PUSH, _TAKE, _GIVE_BACK, _EXTEND, _STILL_HELD, _RELEASE, _SWEEP, _STATS, _PAGE, _REVIVE, _CLEAR = map(
    _Script,
    (
        lua.PUSH, lua.TAKE, lua.GIVE_BACK, lua.EXTEND, lua.STILL_HELD, lua.RELEASE,
        lua.SWEEP, lua.STATS, lua.PAGE, lua.REVIVE, lua.CLEAR,
    ),
)  # fmt: skip


class RedisFrontier:
    """Implements `interfaces.CrawlQueue`. Threads may share one. Each method raises `RedisAwayError` when Redis does not answer.

    Leases run by the clock of the server: a caller's time is used for differences alone, so clocks that differ by minutes change
    no lease. The bounds are those of the frontier in SQL, and hold exactly: the script that adds counts.

    Args:
        connection: to Redis.
        max_waiting: see `SqlFrontier`.
        clock: Unix seconds.
        server_clock: `False` takes the callers' times as they are, for tests.

    Attributes:
        max_waiting: see `SqlFrontier`.
        refused: number of URLs that this object refused.
        holds: refuses the pause of a single task or host.
    """

    def __init__(
        self,
        connection: RedisConnection,
        *,
        max_waiting: int = 200_000,
        clock: Callable[[], float] = time.time,
        server_clock: bool = True,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._mode = "1" if server_clock else "0"
        self.max_waiting = max_waiting
        self.refused = 0
        self.holds: QueueHolds = NoHolds()
        self._next_sweep = 0.0

    def add(self, offers: Iterable[CrawlRequest], now: float) -> int:
        """Adds URLs as `SqlFrontier.add` does. Returns the number of new ones."""
        if now >= self._next_sweep:
            self._next_sweep = now + _SWEEP_EVERY_S
            self._run(_SWEEP, now, 2 * self.max_waiting, DEAD_KEEP_S, _SWEEP_MOST, read=int)
        added = 0
        for chunk in batched(merged(offers).items(), _CHUNK):
            rows = [part for digest, offer in chunk for part in self._row(digest, offer)]
            new, refused = self._run(_PUSH, now, DEAD_REST_S, TASK_REST_S, *rows, read=_two_counts)
            added += new
            self.refused += refused
        return added

    def lease(self, limit: int, lease_s: float, now: float, slots: Sequence[int] | None = None, holder: str = "") -> list[Lease]:
        """Returns up to `limit` URLs, the most urgent first, oldest first among equals; of sites in these slots alone."""
        token = MARK + secrets.token_hex(8)
        own = "" if slots is None else "".join(f"{slot:04x}" for slot in slots) + _NO_SLOT
        found: list[Lease] = []
        while len(found) < limit:
            wanted = min(limit - len(found), _MOST_TAKEN)
            read = partial(_leases, token, now + lease_s)
            leases = self._run(_TAKE, now, wanted, lease_s, token, holder, own, read=read)
            found += leases
            if len(leases) < wanted:
                break
        return found

    def extend(self, lease: Lease, lease_s: float) -> bool:
        """Extends a lease to at least so long from now. Returns False when it is no longer the caller's."""
        return self._run(_EXTEND, self._clock(), lease_s, digest_of(lease.url).hex(), lease.token, read=bool)

    def release(self, holders: Sequence[str], now: float) -> int:
        """Releases the leases of these crawlers at once. Returns their number."""
        return self._run(_RELEASE, now, "1", *holders, read=int)

    def release_except(self, holders: Sequence[str], now: float) -> int:
        """Releases at once the leases of all named crawlers except these. Returns their number."""
        return self._run(_RELEASE, now, "0", *holders, read=int)

    def done(self, lease: Lease, rest_until: float = 0.0) -> bool:
        """Removes a finished URL, or lets it rest. Returns False when the lease is no longer the caller's."""
        state = QueueState.DONE.value if rest_until > 0 else ""
        return self._give_back([lease], state, rest_until)

    def done_all(self, finished: Sequence[tuple[Lease, float]]) -> None:
        """Does `done` for each lease with its `rest_until`; lost leases are ignored."""
        by_rest: dict[float, list[Lease]] = {}
        for lease, rest_until in finished:
            by_rest.setdefault(rest_until, []).append(lease)
        for rest_until, leases in by_rest.items():
            self._give_back(leases, QueueState.DONE.value if rest_until > 0 else "", rest_until)

    def retry(self, lease: Lease, not_before: float, error: str, *, counted: bool = True) -> bool:
        """Requeues a failed URL. Returns False when the lease is no longer the caller's."""
        return self._give_back([lease], QueueState.WAITING.value, not_before, error, "0" if counted else "-1", moved=True)

    def again(self, lease: Lease, at: float, priority: int) -> bool:
        """Requeues a finished URL for its next visit (Unix seconds). Returns False when the lease is no longer the caller's."""
        return self._give_back([lease], QueueState.WAITING.value, at, "", "", priority=int(priority), moved=True)

    def dead_letter(self, lease: Lease, error: str) -> bool:
        """Moves a URL to the dead letters. Returns False when the lease is no longer the caller's."""
        return self._give_back([lease], QueueState.DEAD.value, lease.expires_at, error)

    def still_held(self, leases: Sequence[Lease]) -> list[Lease]:
        """Returns those that are the caller's still: neither given back, nor handed out again. Changes nothing."""
        found: list[Lease] = []
        for chunk in batched(leases, _CHUNK):
            held = [part for lease in chunk for part in (digest_of(lease.url).hex(), lease.token)]
            found += [
                chunk[place] for place in self._run(_STILL_HELD, self._clock(), *held, read=lambda got: list(map(int, got)))
            ]
        return found

    def stats(self, now: float) -> dict[str, int]:
        """Returns counts by state: `waiting`, `due` (waiting and may be leased now), `leased`, `done`, `dead`."""
        return self._run(_STATS, now, read=_counts)

    def waiting(self, now: float) -> tuple[int, float | None]:
        """Returns the number of waiting URLs, and since when the oldest one of them is due (`None` for none)."""
        waiting, since = self._run(_STATS, now, read=_waiting)
        return waiting, since if since is not None and since <= now else None

    def show(self, limit: int, state: QueueState | None = None) -> list[QueuedUrl]:
        """Returns rows, the most urgent first."""
        return self.page(limit, state)[0]

    def page(
        self, limit: int, state: QueueState | None = None, after: tuple[int, float, int] | None = None
    ) -> tuple[list[QueuedUrl], tuple[int, float, int] | None]:
        """Returns rows, the most urgent first, and what `after` of the next page is (`None` on the last)."""
        place = ("", "", "") if after is None else (after[0], repr(after[1]), f"{after[2]:012x}~")
        shown = state.value if state else ""
        return self._run(_PAGE, self._clock(), limit + 1, shown, *place, read=partial(_page, limit))

    def revive(self) -> int:
        """Requeues all dead letters, due at once. Returns their number."""
        return self._repeated(_REVIVE)

    def clear(self, task: str | None = None) -> int:
        """Empties the queue, leased, done and dead URLs included, or removes one task's URLs. Returns their number."""
        return self._repeated(_CLEAR, "0" if task is None else "1", task or "")

    def tasks(self) -> dict[str, dict[str, int]]:
        """Returns for each task with URLs in the queue their number by state."""
        return self._connection.ask(lambda client: client.hgetall(f"{PREFIX}tasks"), _tasks)

    def pause(self, now: float) -> bool:
        """Pauses leasing from now on (Unix seconds), on all machines. Returns False when it was paused already."""
        return bool(self._connection.use(lambda client: client.hsetnx(f"{PREFIX}meta", "paused", repr(now))))

    def resume(self) -> bool:
        """Resumes leasing. Returns False when it was not paused."""
        return bool(self._connection.use(lambda client: client.hdel(f"{PREFIX}meta", "paused")))

    def paused_since(self) -> float | None:
        """Returns the start of the pause (Unix seconds), `None` if not paused."""
        return self._connection.use(lambda client: _moment(client.hget(f"{PREFIX}meta", "paused")))

    def _row(self, digest: bytes, offer: CrawlRequest) -> tuple[object, ...]:
        limit = self.max_waiting if offer.priority >= Priority.LINK else 2 * self.max_waiting
        slot = site_slot(offer.url)
        return (
            digest.hex(),
            offer.url,
            int(offer.priority),
            repr(offer.not_before),
            offer.task,
            offer.depth,
            _NO_SLOT if slot < 0 else f"{slot:04x}",
            limit * (USUAL_LENGTH / max(USUAL_LENGTH, len(offer.url))),
        )

    def _give_back(
        self,
        leases: Sequence[Lease],
        state: str,
        at: float,
        error: str = "",
        attempts: str = "0",
        *,
        priority: int | None = None,
        moved: bool = False,
    ) -> bool:
        held = [part for lease in leases for part in (digest_of(lease.url).hex(), lease.token)]
        values = (state, repr(at), error, attempts, "" if priority is None else priority, "1" if moved else "")
        return self._run(_GIVE_BACK, self._clock(), *values, *held, read=bool)

    def _repeated(self, script: _Script, *values: object) -> int:
        count = 0
        while done := self._run(script, self._clock(), _CHUNK, *values, read=int):
            count += done
        return count

    def _run[T](self, script: _Script, now: float, *values: object, read: Callable[[Any], T]) -> T:
        arguments: list[Any] = [repr(now), self._mode, *values]
        return self._connection.ask(lambda client: _evaluate(client, script, arguments), read)


def _evaluate(client: Client, script: _Script, arguments: Sequence[Any]) -> Any:
    """Runs a script by its digest; a server that lacks it, as a new master does, gets the text."""
    try:
        return client.evalsha(script.sha, 1, PREFIX, *arguments)
    except NoScriptError:
        return client.eval(script.text, 1, PREFIX, *arguments)


def _two_counts(found: Sequence[Any]) -> tuple[int, int]:
    added, refused = found
    return int(added), int(refused)


def _leases(token: str, until: float, rows: Sequence[Sequence[Any]]) -> list[Lease]:
    return [
        Lease(_text(url), int(priority), int(attempts), token, until, _text(task), int(depth))
        for url, priority, attempts, task, depth in rows
    ]


def _counts(found: Sequence[Any]) -> dict[str, int]:
    return dict(zip(("waiting", "due", "leased", "done", "dead"), map(int, found[:5]), strict=True))


def _waiting(found: Sequence[Any]) -> tuple[int, float | None]:
    return int(found[0]), float(found[5]) - float(found[6]) if found[5] else None


def _page(limit: int, answer: Sequence[Any]) -> tuple[list[QueuedUrl], tuple[int, float, int] | None]:
    shift, found = answer
    rows = [_shown(row, float(shift)) for row in found[:limit]]
    if len(found) <= limit or not limit:
        return rows, None
    last = found[limit - 1]
    return rows, (int(last[1]), float(last[8]), int(last[9][:12], 16))


def _tasks(fields: Mapping[Any, Any]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for field, urls in fields.items():
        state, _, task = _text(field).partition(":")
        counts.setdefault(task, {})[state] = int(urls)
    return counts


def _moment(found: Any) -> float | None:
    return None if found is None else float(found)


def _shown(row: Sequence[Any], shift: float) -> QueuedUrl:
    url, priority, state, attempts, not_before, error, task, depth = row[:8]
    at = float(not_before)
    shown_at = round(at - shift, 6) if at else 0.0
    return QueuedUrl(
        _text(url), int(priority), QueueState(_text(state)), int(attempts), shown_at, _text(error), _text(task), int(depth)
    )


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
