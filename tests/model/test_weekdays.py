"""Weekdays and minutes a day, as they are typed and shown."""

from datetime import date

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gatewayfilter.errors import PolicyError
from gatewayfilter.model import (
    DailyMinutes,
    Quota,
    QuotaKind,
    from_record,
    read_daily_minutes,
    read_days,
    show_daily_minutes,
    show_days,
    to_record,
)

DAYS = [
    ("mon", {0}, "mon"),
    ("Monday, Wednesday", {0, 2}, "mon,wed"),
    ("mon-fri", {0, 1, 2, 3, 4}, "weekdays"),
    ("fri - mon", {4, 5, 6, 0}, "mon,fri,sat,sun"),
    ("weekend", {5, 6}, "weekend"),
    ("weekdays,weekend", set(range(7)), "daily"),
]


@pytest.mark.parametrize(("text", "days", "shown"), DAYS)
def test_days(text: str, days: set[int], shown: str) -> None:
    assert read_days(text) == days
    assert show_days(read_days(text)) == shown
    assert read_days(shown) == days


@pytest.mark.parametrize("text", ["", "mo", "mon,", "-", "mon-", "-fri", "mon-xyz", "weekdays-sun", "mon-tue-wed"])
def test_what_is_no_day(text: str) -> None:
    with pytest.raises(PolicyError, match="is no day"):
        read_days(text)


MINUTES = [
    ("60", None, DailyMinutes(60, {}), "60"),
    (" 60 ", 60, DailyMinutes(60, {}), "60"),
    ("60", 120, DailyMinutes(60, {5: 120, 6: 120}), "weekdays=60,weekend=120"),
    ("mon-fri=60,sat-sun=120", None, DailyMinutes(60, {5: 120, 6: 120}), "weekdays=60,weekend=120"),
    ("mon,tue,wed=30,thu,fri=45,weekend=90", None, DailyMinutes(30, {3: 45, 4: 45, 5: 90, 6: 90}), None),
    ("daily=10", None, DailyMinutes(10, {}), "10"),
]


@pytest.mark.parametrize(("text", "weekend", "expected", "shown"), MINUTES)
def test_minutes(text: str, weekend: int | None, expected: DailyMinutes, shown: str | None) -> None:
    found = read_daily_minutes(text, weekend)
    assert found == expected
    again = show_daily_minutes(*found)
    assert shown in {None, again}
    assert read_daily_minutes(again) == found


WRONG = [
    ("", None, "are no minutes"),
    ("an hour", None, "are no minutes"),
    ("mon-fri", None, "are no minutes"),
    ("mon-fri=60", None, "the minutes of sat, sun are missing"),
    ("daily=60,sun=1", None, "sun is named twice"),
    ("mon-fri=60,sat-sun=-5", None, "are no minutes"),
    ("mun=60", None, "is no day"),
    ("mon-fri=60,sat-sun=120", 90, "--minutes is one number"),
    ("9" * 5000, None, "are no minutes"),
]


@pytest.mark.parametrize(("text", "weekend", "message"), WRONG)
def test_what_are_no_minutes(text: str, weekend: int | None, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        read_daily_minutes(text, weekend)


@given(st.text())
@example("0\x1f")  # a blank to `strip`, and none to `int`
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = read_daily_minutes(text)
    except PolicyError:
        return
    assert read_daily_minutes(show_daily_minutes(*found)) == found


@given(st.lists(st.integers(1, 1440), min_size=7, max_size=7))
def test_each_day_has_its_minutes(minutes: list[int]) -> None:
    text = ",".join(f"{day}={one}" for day, one in zip(("mon", "tue", "wed", "thu", "fri", "sat", "sun"), minutes, strict=True))
    daily = read_daily_minutes(text)
    quota = Quota("q", "kids", QuotaKind.SERVICE, "clips", daily.minutes, "UTC", daily.other_days)
    assert from_record(to_record(quota)) == quota
    monday = date(2026, 5, 4).toordinal()
    assert [quota.minutes_of(monday + day) for day in range(7)] == minutes


def test_a_record_of_an_earlier_version_has_the_same_minutes_each_day() -> None:
    record = to_record(Quota("q", "kids", QuotaKind.SERVICE, "clips", 30, "UTC"))
    del record["other_days"]
    assert from_record(record) == Quota("q", "kids", QuotaKind.SERVICE, "clips", 30, "UTC")
