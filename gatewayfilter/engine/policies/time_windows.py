"""Time windows of schedules, from the wall clock of a time zone to instants.

A window that begins or ends in a skipped hour does so when that hour is over; one that begins in a repeated hour begins in the
first, one that ends in it ends in the second.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from gatewayfilter.errors import PolicyError
from gatewayfilter.model import Schedule, Window

_MINUTES_OF_DAY: Final = 1440
_MOST_INSTANTS: Final = 16_384
"""Wall-clock times whose instants are remembered: many schedules begin and end at the same ones."""
_SECOND: Final = timedelta(seconds=1)
_BEFORE: Final = timedelta(days=2)
"""Windows that began so long ago may still be open: a day, and one that the zone skipped."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Instants in which a window is open, in Unix seconds; `end` is not part of it."""

    begin: float
    end: float


def find_zone(name: str) -> tzinfo:
    """Returns a time zone by its IANA name.

    Raises:
        PolicyError: there is no such zone.
    """
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError) as error:  # a name that is no path, a folder, and one that is not found
        raise PolicyError(f"there is no time zone {name!r}; examples: Europe/Berlin, Asia/Shanghai, UTC") from error


def zone_of(name: str) -> tzinfo:
    """Returns a time zone by its IANA name, UTC where this machine does not have it."""
    try:
        return find_zone(name)
    except PolicyError:
        return UTC


def intervals_of(schedule: Schedule, zone: tzinfo, begin: float, end: float) -> list[Interval]:
    """Returns the intervals of a schedule that are open between two instants, in order, overlapping ones merged.

    Args:
        schedule: its windows.
        zone: of its windows.
        begin: Unix seconds.
        end: likewise.
    """
    found = sorted(
        (
            interval
            for window in schedule.windows
            for interval in _of_window(window, zone, begin, end)
            if interval.begin < end and interval.end > begin
        ),
        key=lambda interval: interval.begin,
    )
    merged: list[Interval] = []
    for interval in found:
        if merged and interval.begin <= merged[-1].end:
            merged[-1] = Interval(merged[-1].begin, max(merged[-1].end, interval.end))
        else:
            merged.append(interval)
    return merged


def day_at(now: float, zone: tzinfo) -> tuple[int, Interval]:
    """Returns the day of an instant in a time zone: its proleptic ordinal, and when it begins and ends.

    Args:
        now: Unix seconds.
        zone: in which the day begins at midnight, or after an hour that is skipped there.
    """
    day = datetime.fromtimestamp(now, zone).date()
    begin, end = (_instant(one, 0, zone, fold=0) for one in (day, day + timedelta(days=1)))
    return day.toordinal(), Interval(begin, end)


def _of_window(window: Window, zone: tzinfo, begin: float, end: float) -> Iterator[Interval]:
    day = (datetime.fromtimestamp(begin, zone) - _BEFORE).date()
    last = datetime.fromtimestamp(end, zone).date()
    while day <= last:
        if day.weekday() in window.days:
            until = day + timedelta(days=1) if window.end <= window.begin else day
            interval = Interval(_instant(day, window.begin, zone, fold=0), _instant(until, window.end, zone, fold=1))
            if interval.begin < interval.end:
                yield interval
        day += timedelta(days=1)


@lru_cache(maxsize=_MOST_INSTANTS)
def _instant(day: date, minute: int, zone: tzinfo, *, fold: int) -> float:
    """Returns the Unix seconds of a wall-clock time; `fold` selects one of two in a repeated hour."""
    local = datetime.combine(day + timedelta(days=minute // _MINUTES_OF_DAY), time(minute % _MINUTES_OF_DAY // 60, minute % 60))
    first, second = (local.replace(tzinfo=zone, fold=number).astimezone(UTC) for number in (0, 1))
    if first.astimezone(zone).replace(tzinfo=None) != local:
        return _transition(second, first, zone).timestamp()
    return (second if fold else first).timestamp()


def _transition(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """Returns the first instant with the later offset, between one before a change of the zone's offset and one after it."""
    old = before.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + timedelta(seconds=(after - before) // _SECOND // 2)
        if middle.astimezone(zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after
