"""The overview of a day, a week or a month: a timeline, and the top clients, categories, sites and lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Final

from gatewayfilter.interfaces import LogStats
from gatewayfilter.model import LogCount, LogDimension, LogTimeline
from gatewayfilter.use_cases.traffic.client_names import ClientNames

TOP: Final = 8
_MOST_NAMES: Final = 400
"""Addresses whose names are summed, so that a client with several addresses is ranked by all of them."""
_SHOWN: Final = (LogDimension.CLIENT, LogDimension.CATEGORY, LogDimension.HOST, LogDimension.SOURCE)
_HOUR_S: Final = 3_600
_WEEK_STEP_H: Final = 6


class Span(StrEnum):
    """The time span of an overview."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class LogShare:
    """The decisions of a client, category, site or list.

    Attributes:
        name: as shown: the name of a client, else what is logged.
        decisions: number of all.
        blocked: of these, blocked ones.
    """

    name: str
    decisions: int
    blocked: int

    @property
    def blocked_share(self) -> float:
        """The fraction that was blocked, from 0 to 1."""
        return self.blocked / self.decisions if self.decisions else 0.0


@dataclass(frozen=True, slots=True)
class Overview:
    """What happened in a time span.

    Attributes:
        since, until: Unix seconds.
        timeline: in 24 hours, 28 quarters of days, or 30 days.
        decisions, blocked: numbers of the whole span.
        clients, categories, sites, lists: those with the most blocked requests, in this order.
        uncounted: number of the newest decisions that are not counted yet.
    """

    since: float
    until: float
    timeline: LogTimeline
    decisions: int
    blocked: int
    clients: tuple[LogShare, ...]
    categories: tuple[LogShare, ...]
    sites: tuple[LogShare, ...]
    lists: tuple[LogShare, ...]
    uncounted: int


def span_edges(span: Span, now: float, zone: tzinfo) -> list[float]:
    """Returns where the parts of a timeline begin, and where the last one ends (Unix seconds).

    Args:
        span: `DAY` has the last 24 hours with this one; `WEEK` and `MONTH` have 7 and 30 days with today.
        now: Unix seconds.
        zone: of the days.
    """
    if span is Span.DAY:
        end = int(now // _HOUR_S + 1) * _HOUR_S
        return [float(end - _HOUR_S * left) for left in range(24, -1, -1)]
    today = datetime.fromtimestamp(now, zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    days, step = (7, _WEEK_STEP_H) if span is Span.WEEK else (30, 24)
    first = today - timedelta(days=days - 1)
    times = [first + timedelta(hours=hours) for hours in range(0, days * 24 + 1, step)]
    return [time.replace(tzinfo=zone).timestamp() for time in times]


def make_overview(
    stats: LogStats,
    names: ClientNames,
    span: Span,
    now: float,
    zone: tzinfo,
    *,
    only: frozenset[str] | None = None,
    top: int = TOP,
) -> Overview:
    """Returns the overview of a time span. Some 100 ms for 30 days of 10 million decisions.

    Args:
        stats: of the log.
        names: of its clients.
        span: the length of the span.
        now: Unix seconds.
        zone: of the days.
        only: addresses as logged, and users as `user:NAME`; `None` for everybody.
        top: rows of each table.

    Raises:
        StoreError: the database refuses.
    """
    edges = span_edges(span, now, zone)
    timeline = stats.timeline(edges, only)
    tops = stats.tops(edges[0], edges[-1], only, _MOST_NAMES, _SHOWN)
    return Overview(
        edges[0],
        edges[-1],
        timeline,
        sum(bucket.decisions for bucket in timeline.buckets),
        sum(bucket.blocked for bucket in timeline.buckets),
        _shares(_by_client(tops.get(LogDimension.CLIENT, ()), names), top),
        _shares(tops.get(LogDimension.CATEGORY, ()), top),
        _shares(tops.get(LogDimension.HOST, ()), top),
        _shares(tops.get(LogDimension.SOURCE, ()), top),
        timeline.uncounted,
    )


def _by_client(counts: Sequence[LogCount], names: ClientNames) -> list[LogCount]:
    """Returns the counts by the name of the client: the addresses of one client are one."""
    found: dict[str, list[int]] = {}
    for one in counts:
        total = found.setdefault(names.shown(one.name), [0, 0])
        total[0] += one.decisions
        total[1] += one.blocked
    return [LogCount(name, *total) for name, total in found.items()]


def _shares(counts: Sequence[LogCount], top: int) -> tuple[LogShare, ...]:
    """Returns the highest ranked names; `""`, the sum of rare names, is none."""
    ranked = sorted((one for one in counts if one.name), key=lambda one: (-one.blocked, -one.decisions, one.name))
    return tuple(LogShare(one.name, one.decisions, one.blocked) for one in ranked[:top])
