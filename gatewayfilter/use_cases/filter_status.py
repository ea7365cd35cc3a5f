"""The state of the filter on one page: processes, lists, learned entries, waiting work, pauses, counts, faults."""

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, Final

from gatewayfilter.config import Settings
from gatewayfilter.engine.snapshot.sizes import published_sizes
from gatewayfilter.errors import ListError
from gatewayfilter.model import Pause
from gatewayfilter.sources import Subscription
from gatewayfilter.store import Store
from gatewayfilter.use_cases.moments import midnight
from gatewayfilter.use_cases.network_facts import filter_zone
from gatewayfilter.use_cases.process_facts import process_facts
from gatewayfilter.wiring import services, subscriptions

_SILENT_S: Final = 30.0
"""A worker writes its status every second, later under load."""
_LEARNER_SILENT_S: Final = 300.0
"""The learner writes none while it publishes."""
_FAILURES: Final = 3
"""Updates in a row that have to fail before it needs attention."""
_LOW_MB: Final = 500
_LARGEST_STEP_S: Final = 120.0
_FAULTS: Final = {
    "hook_errors": "requests on which the filter itself failed",
    "store_errors": "batches that the database refused",
    "log_dropped": "decisions missing in the log",
    "snapshot_refused": "damaged snapshots",
}


@dataclass(frozen=True, slots=True)
class Attention:
    """Something that needs attention.

    Attributes:
        words: one sentence in English.
        mend: the command that mends or shows it.
        code: what it is, for pages that have their own words for it.
        values: what the sentence names, by name.
    """

    words: str
    mend: str
    code: str
    values: Mapping[str, str | int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """The proxy workers: how many serve, of how many; `restarts` of all processes since the start."""

    serving: int
    expected: int
    restarts: int


@dataclass(frozen=True, slots=True)
class ListStatus:
    """The lists of others.

    Attributes:
        subscribed: enabled subscriptions, without the starter lists.
        entries: of all lists in the snapshot in use, learned ones included; Adblock rules are counted apart.
        oldest, oldest_at: the subscription that was not checked for the longest time, and when (Unix seconds); `""`, 0 for none.
        failing: names of those that failed several times in a row.
        pending: names of those that were never fetched.
    """

    subscribed: int
    entries: int
    adblock_rules: int
    oldest: str
    oldest_at: float
    failing: tuple[str, ...]
    pending: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TodayCounts:
    """Decisions since midnight by this machine's clock."""

    requests: int
    blocked: int


@dataclass(frozen=True, slots=True)
class FilterStatus:
    """The state of the filter.

    Attributes:
        running: whether `run` is running on this state folder.
        since: Unix seconds of its start, 0 when it does not run.
        listen: address in use, or that of the settings.
        learner: its state, `""` when it does not run.
        learned: pages and hosts that were learned.
        reviews, requests: waiting for a person.
        pauses: in force.
        free_mb: room on the disk of the state folder.
        faults: counter of a fault → number since the start; only those that are not 0.
        attention: what needs attention; empty when all is well.
    """

    running: bool
    since: float
    listen: str
    workers: WorkerStatus
    learner: str
    lists: ListStatus
    learned: int
    reviews: int
    requests: int
    pauses: tuple[Pause, ...]
    today: TodayCounts
    free_mb: float
    faults: dict[str, int]
    attention: tuple[Attention, ...]


def running_listen(settings: Settings) -> str:
    """Returns the address on which the running filter listens, `""` when none runs on this state folder."""
    return str(process_facts(settings, "supervisor").get("listen", ""))


@dataclass(frozen=True, slots=True)
class ProcessState:
    """A process of the running filter.

    Attributes:
        name: `proxy-0`, `learner`, `web` …
        pid: its process id, 0 while it does not run.
        state: as it reports itself, `""` where it does not.
        age_s: seconds since it did; 0 where it does not.
        restarts, stalls: how often it was started again, and ended because it hung.
        memory_mb: resident set, shared pages included; 0 where it is not known.
    """

    name: str
    pid: int
    state: str
    age_s: float
    restarts: int
    stalls: int
    memory_mb: float


def process_states(settings: Settings, now: float | None = None) -> list[ProcessState]:
    """Returns the processes that `run` has started, empty while it does not run."""
    now = time.time() if now is None else now
    children = process_facts(settings, "supervisor").get("children", {})
    return [_process_state(settings, name, child, now) for name, child in children.items()]


def _process_state(settings: Settings, name: str, child: dict[str, Any], now: float) -> ProcessState:
    facts = process_facts(settings, name)
    pid = int(child.get("pid") or 0)
    age_s = max(0.0, now - float(facts.get("at", now)))
    return ProcessState(
        name, pid, str(facts.get("state", "")), age_s, int(child.get("restarts", 0)), int(child.get("stalls", 0)), _memory_mb(pid)
    )


def _memory_mb(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def serving_workers(settings: Settings, now: float | None = None) -> int:
    """Returns how many proxy workers serve, by their status files."""
    return _workers(settings, process_facts(settings, "supervisor"), time.time() if now is None else now).serving


def filter_status(settings: Settings, store: Store, now: float | None = None) -> FilterStatus:
    """Returns the state of the filter.

    Raises:
        StoreError: the database cannot be read.
    """
    now = time.time() if now is None else now
    supervisor = process_facts(settings, "supervisor")
    workers = _workers(settings, supervisor, now)
    learner = process_facts(settings, "learner")
    lists = _lists(settings)
    pauses = store.policies.read().pauses_at(now)
    free_mb = shutil.disk_usage(settings.data_dir).free / 1e6
    faults = _faults(settings, supervisor)
    learner_state = str(learner.get("state", "")) if now - float(learner.get("at", 0.0)) <= _LEARNER_SILENT_S else ""
    return FilterStatus(
        running=bool(supervisor),
        since=float(supervisor.get("started_at", 0.0)),
        listen=str(supervisor.get("listen", settings.proxy.listen)),
        workers=workers,
        learner=learner_state,
        lists=lists,
        learned=store.lists.learned_count(),
        reviews=store.reviews.open_count(),
        requests=store.unblock.open_count(),
        pauses=pauses,
        today=_today(store, now, filter_zone(settings)),
        free_mb=free_mb,
        faults=faults,
        attention=(
            *(
                item
                for item in _attention(bool(supervisor), workers, learner_state, lists, free_mb, faults)
                if item.code != "lists" or not settings.fleet.follow  # a follower's lists are those of its publisher
            ),
            *_failing_channels(settings, store),
            *_wrong_services(settings),
            *_wrong_clock(lists, now),
            *_wrong_fleet(settings, now),
        ),
    )


def _worker_names(supervisor: dict[str, Any]) -> list[str]:
    return [name for name in supervisor.get("children", {}) if name.startswith("proxy-")]


def _workers(settings: Settings, supervisor: dict[str, Any], now: float) -> WorkerStatus:
    names = _worker_names(supervisor)
    found = [process_facts(settings, name) for name in names]
    serving = sum(1 for facts in found if facts.get("state") == "serving" and now - float(facts.get("at", 0.0)) <= _SILENT_S)
    restarts = sum(int(child.get("restarts", 0)) for child in supervisor.get("children", {}).values())
    return WorkerStatus(serving, len(names), restarts)


def _faults(settings: Settings, supervisor: dict[str, Any]) -> dict[str, int]:
    counters = [process_facts(settings, name).get("counters", {}) for name in supervisor.get("children", {})]
    totals = {name: sum(int(found.get(name, 0)) for found in counters) for name in _FAULTS}
    return {name: count for name, count in totals.items() if count}


def _lists(settings: Settings) -> ListStatus:
    own = [item for item in subscriptions(settings).all() if item.definition.enabled and not item.definition.bundled]
    fetched = [item for item in own if not item.is_pending]
    oldest = min(fetched, key=lambda item: item.state.checked_at, default=None)
    entries, rules = published_sizes(settings.data_dir / "snapshots")
    return ListStatus(
        subscribed=len(own),
        entries=entries,
        adblock_rules=rules,
        oldest=oldest.definition.name if oldest else "",
        oldest_at=oldest.state.checked_at if oldest else 0.0,
        failing=_names(item for item in fetched if item.state.failures >= _FAILURES),
        pending=_names(item for item in own if item.is_pending),
    )


def _names(items: Iterator[Subscription]) -> tuple[str, ...]:
    return tuple(item.definition.name for item in items)


def _today(store: Store, now: float, zone: tzinfo) -> TodayCounts:
    found = store.log_stats.summary(midnight(now, zone))
    return TodayCounts(found.decisions, found.blocked)


def _failing_channels(settings: Settings, store: Store) -> Iterator[Attention]:
    for name, state in store.notifications.channels(settings.notify.channel_names).items():
        if state.failures:
            since = datetime.fromtimestamp(state.failing_since, filter_zone(settings))
            why = f": {state.error}" if state.error else ""
            yield Attention(
                f"Messages by {name} fail since {since:%Y-%m-%d %H:%M}{why}.",
                "gatewayfilter notify test",
                "channel",
                {"name": name, "since": state.failing_since, "error": state.error},
            )


def _wrong_services(settings: Settings) -> Iterator[Attention]:
    try:
        services(settings)
    except ListError as error:
        yield Attention(
            f"Your catalogue of services cannot be read: {error}.",
            "gatewayfilter service list",
            "services",
            {"error": str(error)},
        )


def _wrong_clock(lists: ListStatus, now: float) -> Iterator[Attention]:
    if lists.oldest_at > now + _LARGEST_STEP_S:
        yield Attention("The clock is behind the last update of a list.", "gatewayfilter doctor", "clock")


def _wrong_fleet(settings: Settings, now: float) -> Iterator[Attention]:
    if not settings.fleet.follow:
        return
    from gatewayfilter.use_cases.fleet_status import follower_trouble  # noqa: PLC0415  only on a follower

    if trouble := follower_trouble(settings, now):
        yield Attention(f"{trouble[0].upper()}{trouble[1:]}.", "gatewayfilter fleet status", "fleet", {"error": trouble})


def _attention(
    running: bool,  # noqa: FBT001  a fact beside others
    workers: WorkerStatus,
    learner: str,
    lists: ListStatus,
    free_mb: float,
    faults: dict[str, int],
) -> Iterator[Attention]:
    if not running:
        yield Attention("The filter does not run.", "gatewayfilter run", "stopped")
    elif workers.serving < workers.expected:
        yield Attention(
            f"{workers.serving} of {workers.expected} workers serve.",
            "gatewayfilter doctor",
            "workers",
            {"serving": workers.serving, "all": workers.expected},
        )
    if running and not learner:
        yield Attention("The learner does not run: nothing is learned, and lists grow old.", "gatewayfilter doctor", "learner")
    if workers.restarts:
        yield Attention(
            f"Processes were restarted {workers.restarts} times.", "gatewayfilter doctor", "restarts", {"count": workers.restarts}
        )
    if not lists.subscribed:
        yield Attention("Only the starter lists are on: it filters little.", "gatewayfilter setup", "lists")
    if lists.pending:
        yield Attention(
            f"Not fetched yet: {', '.join(lists.pending)}.",
            "gatewayfilter source update",
            "pending",
            {"names": ", ".join(lists.pending)},
        )
    if lists.failing:
        yield Attention(
            f"Updates fail: {', '.join(lists.failing)}.",
            "gatewayfilter source status",
            "failing",
            {"names": ", ".join(lists.failing)},
        )
    if free_mb < _LOW_MB:
        yield Attention(
            f"{free_mb:,.0f} MB are free on the disk.", "gatewayfilter log purge --before 7d", "disk", {"bytes": free_mb * 1e6}
        )
    for name, count in faults.items():
        yield Attention(f"{count:,} {_FAULTS[name]} since the start.", "gatewayfilter doctor", name, {"count": count})
