"""Windows of the wall clock as instants: time zones, midnight, skipped and repeated hours."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from gatewayfilter.engine.policies.time_windows import Interval, day_at, find_zone, intervals_of, zone_of
from gatewayfilter.errors import PolicyError
from gatewayfilter.model import Schedule, ScheduleEffect, Window
from tests.case_tables import all_cases

DAY_S = 86_400.0


def minutes(text: str) -> int:
    hour, _, minute = text.partition(":")
    return int(hour) * 60 + int(minute)


def instant(text: str) -> float:
    """Unix seconds of an ISO time with its offset from UTC."""
    return datetime.fromisoformat(text).timestamp()


def intervals(zone: str, daily: str, first: str, days: float = 1.0, weekdays: str = "0123456") -> list[Interval]:
    begin, _, end = daily.partition("-")
    window = Window(minutes(begin), minutes(end), frozenset(map(int, weekdays)))
    schedule = Schedule("s", "p", ScheduleEffect.BLOCK_ALL, (window,), zone)
    at = datetime.fromisoformat(first).replace(tzinfo=ZoneInfo(zone)).timestamp()
    return intervals_of(schedule, find_zone(zone), at, at + days * DAY_S)


# Zone, window, noon from which a day is looked at, begin and end with their offsets.
CASES = [
    ("UTC", "21:00-22:00", "2026-05-04T12:00", "2026-05-04T21:00+00:00", "2026-05-04T22:00+00:00"),
    ("Asia/Shanghai", "21:00-06:00", "2026-05-04T12:00", "2026-05-04T21:00+08:00", "2026-05-05T06:00+08:00"),
    ("America/New_York", "22:00-24:00", "2026-05-04T12:00", "2026-05-04T22:00-04:00", "2026-05-05T00:00-04:00"),
    ("Asia/Kathmandu", "20:15-20:45", "2026-05-04T12:00", "2026-05-04T20:15+05:45", "2026-05-04T20:45+05:45"),
    ("Pacific/Chatham", "20:15-20:45", "2026-07-04T12:00", "2026-07-04T20:15+12:45", "2026-07-04T20:45+12:45"),
    # Europe/Berlin skips 02:00-03:00 on 2026-03-29.
    ("Europe/Berlin", "21:00-06:00", "2026-03-28T12:00", "2026-03-28T21:00+01:00", "2026-03-29T06:00+02:00"),
    ("Europe/Berlin", "02:30-04:00", "2026-03-28T12:00", "2026-03-29T03:00+02:00", "2026-03-29T04:00+02:00"),
    ("Europe/Berlin", "01:00-02:30", "2026-03-28T12:00", "2026-03-29T01:00+01:00", "2026-03-29T03:00+02:00"),
    # ... and repeats 02:00-03:00 on 2026-10-25.
    ("Europe/Berlin", "21:00-06:00", "2026-10-24T12:00", "2026-10-24T21:00+02:00", "2026-10-25T06:00+01:00"),
    ("Europe/Berlin", "02:15-02:45", "2026-10-24T12:00", "2026-10-25T02:15+02:00", "2026-10-25T02:45+01:00"),
    ("Europe/Berlin", "02:30-04:00", "2026-10-24T12:00", "2026-10-25T02:30+02:00", "2026-10-25T04:00+01:00"),
    ("Europe/Berlin", "01:30-02:30", "2026-10-24T12:00", "2026-10-25T01:30+02:00", "2026-10-25T02:30+01:00"),
    ("America/New_York", "02:30-03:30", "2026-03-07T12:00", "2026-03-08T03:00-04:00", "2026-03-08T03:30-04:00"),
    ("America/New_York", "01:10-01:50", "2026-10-31T12:00", "2026-11-01T01:10-04:00", "2026-11-01T01:50-05:00"),
    # Half an hour is skipped, and repeated.
    ("Australia/Lord_Howe", "02:10-03:00", "2026-10-03T12:00", "2026-10-04T02:30+11:00", "2026-10-04T03:00+11:00"),
    ("Australia/Lord_Howe", "01:40-01:50", "2026-04-04T12:00", "2026-04-05T01:40+11:00", "2026-04-05T01:50+10:30"),
    # Midnight itself is skipped.
    ("America/Santiago", "00:00-01:30", "2026-09-05T12:00", "2026-09-06T01:00-03:00", "2026-09-06T01:30-03:00"),
    # A zone skipped a whole day: its window begins when the day is over, and joins the one before.
    ("Pacific/Apia", "23:00-02:00", "2011-12-29T12:00", "2011-12-29T23:00-10:00", "2011-12-31T02:00+14:00"),
]


@all_cases(("zone", "daily", "first", "begin", "end"), CASES)
def test_windows_of_a_day(zone: str, daily: str, first: str, begin: str, end: str) -> None:
    assert intervals(zone, daily, first)[0] == Interval(instant(begin), instant(end))


def test_a_window_in_a_skipped_hour_never_opens() -> None:
    assert intervals("Europe/Berlin", "02:10-02:50", "2026-03-28T12:00") == []


def test_a_window_over_midnight_belongs_to_the_day_of_its_begin() -> None:
    found = intervals("UTC", "21:00-06:00", "2026-05-04T00:00", days=7, weekdays="4")  # Fridays; 4 May is a Monday
    assert found == [Interval(instant("2026-05-08T21:00+00:00"), instant("2026-05-09T06:00+00:00"))]


def test_one_that_began_before_is_open_now() -> None:
    found = intervals("UTC", "21:00-06:00", "2026-05-04T01:00", days=0.1)
    assert found == [Interval(instant("2026-05-03T21:00+00:00"), instant("2026-05-04T06:00+00:00"))]


def test_windows_that_touch_are_one() -> None:
    windows = (Window(0, 720), Window(720, 1440))
    schedule = Schedule("s", "p", ScheduleEffect.BLOCK_ALL, windows, "Europe/Berlin")
    at = instant("2026-10-20T00:00+02:00")
    assert len(intervals_of(schedule, find_zone("Europe/Berlin"), at, at + 8 * DAY_S)) == 1


def test_the_whole_day() -> None:
    assert intervals("UTC", "00:00-24:00", "2026-05-04T00:00", weekdays="0") == [
        Interval(instant("2026-05-04T00:00+00:00"), instant("2026-05-05T00:00+00:00"))
    ]


def test_a_window_that_ends_as_it_begins_is_a_day_long() -> None:
    assert intervals("UTC", "08:00-08:00", "2026-05-04T08:00", weekdays="0") == [
        Interval(instant("2026-05-04T08:00+00:00"), instant("2026-05-05T08:00+00:00"))
    ]


@all_cases("name", ["", "Mars/Base", "../etc/passwd", "Europe", "Europe/Berlin\0"])
def test_unknown_zones_are_refused(name: str) -> None:
    with pytest.raises(PolicyError, match="no time zone"):
        find_zone(name)


def test_a_zone_that_this_machine_does_not_have_is_read_as_utc() -> None:
    assert zone_of("Asia/Shanghai") == ZoneInfo("Asia/Shanghai")
    assert zone_of("Mars/Base") is UTC


@all_cases(
    ("first", "days", "opened"),
    [
        ("2026-05-04T09:00", 1 / 24, 1),
        ("2026-05-04T07:00", 1 / 24, 0),  # it opens as the time ends
        ("2026-05-04T07:00", 1.1 / 24, 1),
        ("2026-05-04T10:00", 1 / 24, 0),  # it closed as the time begins
        ("2026-05-04T09:54", 1 / 24, 1),
    ],
)
def test_a_window_counts_where_it_is_open_at_any_time_between(first: str, days: float, opened: int) -> None:
    assert len(intervals("UTC", "08:00-10:00", first, days)) == opened


def test_a_day_begins_and_ends_at_midnight_of_its_zone() -> None:
    day, interval = day_at(instant("2026-03-29T12:00+02:00"), find_zone("Europe/Berlin"))
    assert day == datetime.fromisoformat("2026-03-29").toordinal()
    assert interval == Interval(instant("2026-03-29T00:00+01:00"), instant("2026-03-30T00:00+02:00"))
    assert day_at(interval.end, find_zone("Europe/Berlin"))[0] == day_at(interval.begin, find_zone("Europe/Berlin"))[0] + 1


def _is_open(window: Window, local: datetime) -> bool:
    """Returns whether a window is open by the wall clock alone."""
    minute, day = local.hour * 60 + local.minute, local.weekday()
    if window.end > window.begin:
        return day in window.days and window.begin <= minute < window.end
    return (day in window.days and minute >= window.begin) or ((day - 1) % 7 in window.days and minute < window.end)


@all_cases(
    ("zone", "first"),
    [
        ("Australia/Lord_Howe", "2026-04-02"),  # half an hour
        ("Australia/Lord_Howe", "2026-10-01"),
        ("Asia/Gaza", "2026-03-25"),
        ("Asia/Gaza", "2026-10-21"),
        ("Pacific/Chatham", "2026-04-02"),  # at 03:45
        ("Pacific/Chatham", "2026-09-24"),
        ("Africa/Casablanca", "2026-02-12"),  # summer time but in Ramadan
        ("Africa/Casablanca", "2026-03-19"),
        ("America/Havana", "2026-03-05"),  # at midnight
        ("America/Havana", "2026-10-29"),
        ("Africa/Cairo", "2026-10-27"),
        ("America/Santiago", "2026-09-03"),
        ("Pacific/Apia", "2011-12-27"),  # without the 30th
    ],
)
@all_cases("daily", [(1260, 360), (0, 1440), (0, 60), (90, 150), (150, 195), (1439, 1), (1380, 30)])
def test_windows_are_open_by_the_wall_clock_outside_changed_hours(zone: str, first: str, daily: tuple[int, int]) -> None:
    place = find_zone(zone)
    window = Window(*daily)
    begin = datetime.fromisoformat(f"{first}T00:00+00:00").timestamp()
    found = intervals_of(Schedule("s", "p", ScheduleEffect.BLOCK_ALL, (window,), zone), place, begin, begin + 6 * 86_400)
    for moment in range(int(begin), int(begin) + 6 * 86_400, 900):
        near = {datetime.fromtimestamp(moment + hours * 3600, place).utcoffset() for hours in (-2, 2)}
        if len(near) == 1:
            opened = any(interval.begin <= moment < interval.end for interval in found)
            assert opened == _is_open(window, datetime.fromtimestamp(moment, place)), datetime.fromtimestamp(moment, place)
