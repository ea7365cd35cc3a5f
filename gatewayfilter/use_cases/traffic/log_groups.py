"""Grouped pages of the decision log: the requests of a client to a site within a minute are one group."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gatewayfilter.interfaces import LogSearch
from gatewayfilter.model import Action, LogQuery, LogRecord, Reason, ResourceType, client_of, host_of
from gatewayfilter.urls import registrable_domain

BUDGET_S: Final = 0.15
MINUTE_S: Final = 60
_MOST_RECORDS: Final = 5_000
"""Records of a page: some 50 ms."""
_CHUNK: Final = 500
_PER_GROUP: Final = 4
"""Records that are read at first for each group of a page."""
_LONGEST_HOST: Final = 253

type Key = tuple[str, str, int]
"""Client, site and minute."""


@dataclass(frozen=True, slots=True)
class LogGroup:
    """Requests of a client to a site within a minute.

    Attributes:
        client: an address as logged, or `user:NAME`.
        site: registrable domain, `""` for requests without a URL.
        minute: when it begins (Unix seconds).
        newest_id, oldest_id: of its records; records of other groups may lie between them.
        shown_id, shown: the record that stands for the group: its first page, else its newest record.
        decisions: number of its records.
        blocked: of these, blocked ones.
        unknown: of these, allowed ones of URLs on no list.
    """

    client: str
    site: str
    minute: float
    newest_id: int
    oldest_id: int
    shown_id: int
    shown: LogRecord
    decisions: int
    blocked: int
    unknown: int


@dataclass(frozen=True, slots=True)
class LogGroupPage:
    """A page of groups, by their newest record, the newest first.

    Attributes:
        groups: those of its records. Where a page ends within a minute, the next one begins with further records of its groups.
        before: continues below this id; `None` when there is no older record.
        searched_to: time of the oldest record that was looked at (Unix seconds), `None` for none.
        timed_out: whether it ended before it was full, because its time or its number of records was used up.
    """

    groups: tuple[LogGroup, ...]
    before: int | None = None
    searched_to: float | None = None
    timed_out: bool = False


def grouped_page(
    search: LogSearch,
    query: LogQuery,
    limit: int = 50,
    *,
    before: int | None = None,
    budget_s: float = BUDGET_S,
    clock: Callable[[], float] = time.monotonic,
) -> LogGroupPage:
    """Returns the newest records that fulfil a query, in groups.

    Args:
        search: of the decision log.
        query: the conditions.
        limit: the most groups.
        before: only records with a lower id, for the page after another.
        budget_s: time after which the page ends.
        clock: seconds that never go back.

    Raises:
        StoreError: the database refuses.
    """
    deadline = clock() + budget_s
    groups: dict[Key, _Group] = {}
    records, chunk, searched_to = 0, min(_PER_GROUP * limit, _CHUNK), None
    while True:
        page = search.page(query, chunk, before=before, budget_s=max(deadline - clock(), 0.0))
        for number, record in page.records:
            key = _key(record)
            group = groups.get(key)
            if group is None:
                if len(groups) == limit:
                    return LogGroupPage(_made(groups), number + 1, searched_to)
                groups[key] = _Group(number, record)
            else:
                group.add(number, record)
            searched_to = record.at
        before, records = page.before, records + len(page.records)
        searched_to = page.searched_to
        ended = clock() >= deadline or records >= _MOST_RECORDS
        if before is None or ended:
            return LogGroupPage(_made(groups), before, searched_to, timed_out=before is not None)
        chunk = _CHUNK


class _Group:
    """A group while it is counted: records come the newest first."""

    __slots__ = ("blocked", "decisions", "newest_id", "oldest_id", "shown", "shown_id", "unknown")

    def __init__(self, number: int, record: LogRecord) -> None:
        self.newest_id = number
        self.shown_id, self.shown = number, record
        self.decisions = self.blocked = self.unknown = 0
        self.add(number, record)

    def add(self, number: int, record: LogRecord) -> None:
        self.oldest_id = number
        self.decisions += 1
        if record.action == Action.BLOCK:
            self.blocked += 1
        elif record.reason == Reason.UNKNOWN:
            self.unknown += 1
        if record.resource_type == ResourceType.DOCUMENT:
            self.shown_id, self.shown = number, record


def _made(groups: dict[Key, _Group]) -> tuple[LogGroup, ...]:
    return tuple(
        LogGroup(
            client,
            site,
            float(minute),
            group.newest_id,
            group.oldest_id,
            group.shown_id,
            group.shown,
            group.decisions,
            group.blocked,
            group.unknown,
        )
        for (client, site, minute), group in groups.items()
    )


def _key(record: LogRecord) -> Key:
    host = host_of(record.url)[:_LONGEST_HOST].lower()
    return client_of(record), registrable_domain(host), int(record.at // MINUTE_S * MINUTE_S)
