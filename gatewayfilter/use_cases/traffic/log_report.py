"""The report of a time span: what was blocked, for whom and by what, new devices, requests to unblock, learned pages, lists."""

import time
from dataclasses import dataclass
from typing import Final

from gatewayfilter.config import Settings
from gatewayfilter.interfaces import UnblockRequest
from gatewayfilter.model import LearnedEntry, LogCount, LogDimension, LogSummary
from gatewayfilter.store import Store
from gatewayfilter.use_cases.traffic.log_clients import LogClients
from gatewayfilter.wiring import subscriptions

_MOST_ROWS: Final = 15
_MOST_LEARNED: Final = 20


@dataclass(frozen=True, slots=True)
class NewDevice:
    """A client whose first decision in the log lies in the span.

    Attributes:
        client: as logged.
        name: `""` for an unnamed one.
        first_at: Unix seconds.
    """

    client: str
    name: str
    first_at: float


@dataclass(frozen=True, slots=True)
class Report:
    """A report.

    Attributes:
        since, until: Unix seconds, as requested.
        made_at: Unix seconds.
        summary: the counts.
        clients: counts by name of the client.
        new_devices: the newest first.
        requests: requests to unblock of the span with their answers, the newest first.
        learned: pages that were learned to be blocked, the newest first.
        learned_count: number of all of them.
        sources: number of enabled subscriptions.
        failing: names of those whose last update failed.
    """

    since: float
    until: float
    made_at: float
    summary: LogSummary
    clients: tuple[LogCount, ...]
    new_devices: tuple[NewDevice, ...]
    requests: tuple[UnblockRequest, ...]
    learned: tuple[LearnedEntry, ...]
    learned_count: int
    sources: int
    failing: tuple[str, ...]

    def blocked(self, dimension: LogDimension) -> tuple[LogCount, ...]:
        """Returns the names with the most blocked decisions."""
        found = [one for one in self.summary.tops.get(dimension, ()) if one.blocked]
        return tuple(sorted(found, key=lambda one: (-one.blocked, one.name))[:_MOST_ROWS])


def make_report(store: Store, settings: Settings, since: float, until: float | None = None) -> Report:
    """Returns the report of a time span.

    Args:
        store: the database.
        settings: of the filter.
        since: Unix seconds.
        until: Unix seconds, `None` for now.

    Raises:
        StoreError: the database refuses.
    """
    now = time.time()
    end = now if until is None else until
    clients = LogClients(store, settings)
    summary = store.log_stats.summary(since, until)
    devices = [one for one in store.log_stats.clients() if since <= one.first_at < end and one.client]
    learned, learned_count = store.lists.blocked_between(since, end, _MOST_LEARNED)
    sources = [one for one in subscriptions(settings).all() if one.definition.enabled]
    return Report(
        since,
        end,
        now,
        summary,
        _named(summary.tops.get(LogDimension.CLIENT, ()), clients),
        tuple(NewDevice(one.client, clients.name(one.client), one.first_at) for one in devices[:_MOST_ROWS]),
        tuple(one for one in store.unblock.requests() if since <= one.at < end)[:_MOST_ROWS],
        tuple(learned),
        learned_count,
        len(sources),
        tuple(one.definition.name for one in sources if one.state.error),
    )


def _named(counts: tuple[LogCount, ...], clients: LogClients) -> tuple[LogCount, ...]:
    """Returns the counts by name of the client; the addresses of one client are one."""
    found: dict[str, list[int]] = {}
    for one in counts:
        total = found.setdefault(clients.shown(one.name), [0, 0])
        total[0] += one.decisions
        total[1] += one.blocked
    ranked = sorted(found.items(), key=lambda item: (-item[1][1], -item[1][0], item[0]))
    return tuple(LogCount(name, *total) for name, total in ranked[:_MOST_ROWS])
