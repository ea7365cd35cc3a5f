"""Queries of the decision log, and their answers: pages of records, and counts per name and hour."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from gatewayfilter.model.decision import LogRecord

USER_PREFIX: Final = "user:"
"""What stands before the name of a proxy user where clients are named by an address or a user."""
LONGEST_SEARCHED: Final = 500
"""Characters of a URL, without its scheme, that are searched."""
SHORTEST_TEXT: Final = 3
"""A shorter text is searched at the beginning of hosts only."""


class LogDimension(IntEnum):
    """What decisions are counted by. The numbers stand in the database."""

    CLIENT = 1
    HOST = 2
    CATEGORY = 3
    SOURCE = 4
    REASON = 5


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Conditions on log records, all of which must hold.

    Attributes:
        text: part of the URL, `""` for any; with fewer than `SHORTEST_TEXT` characters the beginning of its host.
        since: Unix seconds, the first that counts; `None` for no bound.
        until: Unix seconds, the first that no longer counts; `None` for no bound.
        clients: addresses as logged, and users as `user:NAME`: one of them; `None` for any.
        host: a host, or a domain with the hosts below it.
    """

    text: str = ""
    since: float | None = None
    until: float | None = None
    clients: frozenset[str] | None = None
    action: str = ""
    reason: str = ""
    category: str = ""
    source_list: str = ""
    host: str = ""

    def matches(self, record: LogRecord) -> bool:
        """Returns whether a record fulfils all conditions."""
        if self.since is not None and record.at < self.since:
            return False
        if self.until is not None and record.at >= self.until:
            return False
        if self.clients is not None and not self._is_of_clients(record):
            return False
        if (self.action and record.action != self.action) or (self.reason and record.reason != self.reason):
            return False
        if (self.category and record.category != self.category) or (self.source_list and record.source_list != self.source_list):
            return False
        return (not self.host or is_below(host_of(record.url), self.host)) and self._has_text(record.url)

    def _is_of_clients(self, record: LogRecord) -> bool:
        assert self.clients is not None
        return record.client in self.clients or bool(record.user and f"{USER_PREFIX}{record.user}" in self.clients)

    def _has_text(self, url: str) -> bool:
        if not self.text:
            return True
        text, searched = searched_part(self.text), searched_part(url)
        return text in searched if len(text) >= SHORTEST_TEXT else searched.startswith(text)


@dataclass(frozen=True, slots=True)
class LogPage:
    """A page of the log, the newest record first.

    Attributes:
        records: pairs of id and record.
        before: continues below this id; `None` when there is no older record.
        searched_to: time of the oldest record that was looked at (Unix seconds), `None` for none.
        timed_out: whether it ended before it was full, because its time was over.
    """

    records: tuple[tuple[int, LogRecord], ...]
    before: int | None = None
    searched_to: float | None = None
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class LogCount:
    """The decisions that have a name in common: of a client, host, category, source or reason."""

    name: str
    decisions: int
    blocked: int


@dataclass(frozen=True, slots=True)
class LogHour:
    """The decisions of an hour that begins at `start` (Unix seconds)."""

    start: float
    decisions: int
    blocked: int


@dataclass(frozen=True, slots=True)
class LogBucket:
    """The decisions of a part of a chart that begins at `start` (Unix seconds).

    Attributes:
        start: Unix seconds.
        allowed: requests that were allowed, those of unknown URLs left out.
        blocked: requests that were blocked.
        unknown: allowed requests of URLs on no list, which are to be learned.
        learned: of all of these, decided by a learned entry.
    """

    start: float
    allowed: int = 0
    blocked: int = 0
    unknown: int = 0
    learned: int = 0

    @property
    def decisions(self) -> int:
        """All of them."""
        return self.allowed + self.blocked + self.unknown


@dataclass(frozen=True, slots=True)
class LogTimeline:
    """A chart of decisions.

    Attributes:
        buckets: in order, those without a decision among them.
        until: end of the last one (Unix seconds).
        uncounted: number of the newest decisions that are not counted yet.
    """

    buckets: tuple[LogBucket, ...]
    until: float
    uncounted: int = 0


@dataclass(frozen=True, slots=True)
class LogSummary:
    """Counts of the decisions in a time span.

    Attributes:
        since: beginning of the first hour that is counted; `None` for an empty log.
        until: end of the last one.
        hours: hours with any decision, in order.
        tops: the most frequent names; `""` stands for rare names that are not kept apart.
        uncounted: number of the newest decisions that are not counted yet.
    """

    since: float | None
    until: float | None
    decisions: int = 0
    blocked: int = 0
    hours: tuple[LogHour, ...] = ()
    tops: Mapping[LogDimension, tuple[LogCount, ...]] = field(default_factory=dict)
    uncounted: int = 0


@dataclass(frozen=True, slots=True)
class SeenClient:
    """A client in the log: an address as logged, or `user:NAME`; its first and its newest decision (Unix seconds)."""

    client: str
    first_at: float
    last_at: float


def client_of(record: LogRecord) -> str:
    """Returns whom a decision is counted for: `user:NAME` where the client logged in, else its address."""
    return f"{USER_PREFIX}{record.user}" if record.user else record.client


def host_of(url: str) -> str:
    """Returns the host of a logged URL, which may be cut to its host; `""` for none."""
    host = (url.partition("://")[2] or url).partition("/")[0].partition("?")[0]
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def is_below(host: str, domain: str) -> bool:
    """Returns whether a host is a domain, or below it."""
    return host == domain or host.endswith(f".{domain}")


def searched_part(url: str) -> str:
    """Returns what of a URL is searched: in lower case, without its scheme, not beyond `LONGEST_SEARCHED` characters."""
    return (url.partition("://")[2] or url)[:LONGEST_SEARCHED].lower()
