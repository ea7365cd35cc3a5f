"""The crawler's queue: counts, rows, crawl tasks, hosts, and the changes that an operator makes.

Loads no crawler, but for `add_urls`: a process that must stay small runs that in a child.
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from gatewayfilter.config import CrawlTask, Settings
from gatewayfilter.errors import ClassifyError, ConfigError, FetchError, MissingError
from gatewayfilter.interfaces import CrawlRequest, Hold, HoldKind, Priority, QueuedUrl, QueueState
from gatewayfilter.store import Store, host_of_queued
from gatewayfilter.urls import parse_loose_url
from gatewayfilter.use_cases.learning.crawl_tasks import chosen_task

STATES: Final = tuple(state.value for state in QueueState)
_READ_FOR_HOSTS: Final = 5_000
"""Rows of a state from which hosts are counted: the most urgent ones."""


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """The queue as a whole.

    Attributes:
        counts: URLs by state; `due` are those that wait and may be fetched now.
        paused_since: Unix seconds, `None` while it is not paused.
        holds: single tasks and hosts that are paused.
    """

    counts: Mapping[str, int]
    paused_since: float | None
    holds: tuple[Hold, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """A crawl task.

    Attributes:
        strategy: of the settings, `None` for a task that is only in the queue.
        links: pages that links led to, in this period of `pages_per_site`.
        urls: its URLs in the queue by state.
        held_since: the start of its own pause (Unix seconds), `None` for none.
    """

    name: str
    strategy: CrawlTask | None
    links: int
    urls: Mapping[str, int]
    held_since: float | None = None


@dataclass(frozen=True, slots=True)
class HostFacts:
    """A host of the queue.

    Attributes:
        waiting: its URLs that wait.
        failed: its URLs that were given up.
        tries: the most tries of one of them.
        next_at: when its first one may be fetched (Unix seconds), 0 for at once or none.
        error: why one of them failed, `""` for none.
        held_since: the start of its own pause (Unix seconds), `None` for none.
    """

    host: str
    waiting: int
    failed: int
    tries: int
    next_at: float
    error: str
    held_since: float | None = None


@dataclass(frozen=True, slots=True)
class QueuePage:
    """Rows of the queue, the most urgent first, and what names the place behind them (`""` at the end)."""

    rows: tuple[QueuedUrl, ...]
    next: str


@dataclass(frozen=True, slots=True)
class Added:
    """How many URLs were new, and how many were in the queue already."""

    queued: int
    known: int


def queue_facts(store: Store, now: float) -> QueueFacts:
    """Returns counts and pause.

    Raises:
        StoreError: the database cannot be read.
    """
    return QueueFacts(store.frontier.stats(now), store.frontier.paused_since(), tuple(store.frontier.holds.all()))


def queue_page(store: Store, state: QueueState | None, after: str, limit: int) -> QueuePage:
    """Returns a page of the queue.

    Args:
        store: the database.
        state: only URLs in this state.
        after: `next` of the page before, `""` for the first.
        limit: most rows.

    Raises:
        ClassifyError: `after` names no place.
        StoreError: the database cannot be read.
    """
    rows, place = store.frontier.page(limit, state, _place(after))
    return QueuePage(tuple(rows), "" if place is None else f"{place[0]}_{place[1]!r}_{place[2]}")


def _place(after: str) -> tuple[int, float, int] | None:
    if not after:
        return None
    try:
        priority, due_at, number = after[:80].split("_")
        place = int(priority), float(due_at), int(number)
    except ValueError as error:
        raise ClassifyError("this is no place in the queue") from error
    if not (abs(place[0]) < 2**31 and abs(place[1]) < 1e18 and abs(place[2]) < 2**63):
        raise ClassifyError("this is no place in the queue")
    return place


def queue_tasks(settings: Settings, store: Store) -> tuple[TaskFacts, ...]:
    """Returns the crawl tasks of the settings and of the queue, and those that are paused, by name.

    Raises:
        StoreError: the database cannot be read.
    """
    strategies, counts, links = settings.crawl.tasks, store.frontier.tasks(), store.task_sites.totals()
    held = _held(store, HoldKind.TASK)
    return tuple(
        TaskFacts(
            name,
            strategies.get(name),
            links.get(name, 0),
            {state: counts.get(name, {}).get(state, 0) for state in STATES},
            held.get(name),
        )
        for name in sorted({*strategies, *counts, *held})
    )


def queue_hosts(store: Store, limit: int) -> tuple[HostFacts, ...]:
    """Returns hosts of the most urgent waiting and given up URLs: those that are paused, then those with the most failures.

    Raises:
        StoreError: the database cannot be read.
    """
    waiting = store.frontier.show(_READ_FOR_HOSTS, QueueState.WAITING)
    dead = store.frontier.show(_READ_FOR_HOSTS, QueueState.DEAD)
    of_waiting, of_dead = Counter(map(_host, waiting)), Counter(map(_host, dead))
    tries, errors = _tries((*waiting, *dead))
    held = _held(store, HoldKind.HOST)
    earliest: dict[str, float] = {}
    for row in waiting:
        host = _host(row)
        earliest[host] = min(earliest.get(host, row.not_before), row.not_before)
    found = [
        HostFacts(
            host, of_waiting[host], of_dead[host], tries[host], earliest.get(host, 0.0), errors.get(host, ""), held.get(host)
        )
        for host in {*of_waiting, *of_dead, *held}
    ]
    return tuple(sorted(found, key=_by_failures)[:limit])


def _by_failures(facts: HostFacts) -> tuple[object, ...]:
    return facts.held_since is None, -facts.failed, -facts.tries, -facts.waiting, facts.host


def _held(store: Store, kind: HoldKind) -> dict[str, float]:
    return {hold.name: hold.since for hold in store.frontier.holds.all() if hold.kind is kind}


def _tries(rows: Iterable[QueuedUrl]) -> tuple[Counter[str], dict[str, str]]:
    tries: Counter[str] = Counter()
    errors: dict[str, str] = {}
    for row in rows:
        host = _host(row)
        tries[host] = max(tries[host], row.attempts)
        if row.error:
            errors[host] = row.error
    return tries, errors


def _host(row: QueuedUrl) -> str:
    return host_of_queued(row.url)


def pause_queue(settings: Settings, store: Store, now: float, task: str = "", host: str = "") -> bool:
    """Has nothing more fetched, or nothing of one task or host, over restarts too. Returns whether it was not paused before.

    Args:
        settings: the settings.
        store: the database.
        now: Unix seconds.
        task: a crawl task.
        host: a host, without those below it; an address stands for its host.

    Raises:
        ConfigError: both are given, the queue is shared by machines, or too many are paused.
        MissingError: there is no such task.
        UrlError: it is no host.
        StoreError: the database refuses.
    """
    one = _one(task, host)
    if one is None:
        return store.frontier.pause(now)
    if task:
        find_task(settings, store, task)
    return store.frontier.holds.hold(*one, now)


def resume_queue(store: Store, task: str = "", host: str = "") -> bool:
    """Has pages fetched again, after `pause_queue` with the same values. Returns whether it was paused.

    Raises:
        ConfigError: both a task and a host are given.
        UrlError: it is no host.
        StoreError: the database refuses.
    """
    one = _one(task, host)
    return store.frontier.resume() if one is None else store.frontier.holds.unhold(*one)


def _one(task: str, host: str) -> tuple[HoldKind, str] | None:
    if task and host:
        raise ConfigError("name a crawl task or a host, not both")
    if task:
        return HoldKind.TASK, task.replace("\0", "")
    if host:
        # An IPv6 address may stand without brackets, as the list of hosts has it.
        bare = f"[{host.strip()}]" if host.count(":") > 1 and not {"/", "["} & set(host) else host
        return HoldKind.HOST, host_of_queued(parse_loose_url(bare).text)
    return None


def retry_failed(store: Store) -> int:
    """Puts the URLs that were given up back to waiting. Returns their number.

    Raises:
        StoreError: the database refuses.
    """
    return store.frontier.revive()


def clear_queue(store: Store, task: str | None = None) -> int:
    """Empties the queue, or takes one task out of it, which ends with that. Returns the number of URLs.

    Raises:
        StoreError: the database refuses.
    """
    count = store.frontier.clear(task)
    if task is not None:
        store.task_sites.forget(task)
    return count


def add_urls(settings: Settings, store: Store, urls: Iterable[str], task: str = "") -> Added:
    """Queues pages ahead of all others, or at the priority of a task. Loads the crawler.

    Raises:
        MissingError: there is no such task.
        UrlError: one is no URL.
        FetchError: one may not be crawled; then none is added.
        StoreError: the database refuses.
    """
    from gatewayfilter.crawl import may_crawl  # noqa: PLC0415  the crawler, when pages are added

    priority = chosen_task(settings, task).priority if task else Priority.MANUAL
    targets = [parse_loose_url(url) for url in urls]
    for target in targets:
        if refusal := may_crawl(target, settings.crawl):
            raise FetchError(f"{target.text} may not be crawled: {refusal}")
    offers = {target.text: CrawlRequest(target.text, priority, task=task) for target in targets}
    new = store.frontier.add(offers.values(), time.time())
    return Added(new, len(offers) - new)


def find_task(settings: Settings, store: Store, name: str) -> None:
    """Checks that a task is in the settings or the queue.

    Raises:
        MissingError: it is in neither.
        StoreError: the database cannot be read.
    """
    if name not in settings.crawl.tasks and name not in store.frontier.tasks():
        raise MissingError(f"there is no crawl task {name!r}")
