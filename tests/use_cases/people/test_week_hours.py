"""The hours of a week and the windows of schedules."""

from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.model import ALL_DAYS, Window
from gatewayfilter.use_cases.people.week_hours import hours_of, windows_of

HOURS = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 23)))


@given(HOURS)
def test_what_is_painted_is_what_is_open(painted: set[tuple[int, int]]) -> None:
    hours = hours_of(windows_of(painted))
    assert {(day, hour) for day in range(7) for hour in range(24) if hours[day][hour]} == painted
    assert {state for day in hours for state in day} <= {"on", ""}


def test_a_night_is_one_window() -> None:
    night = {(day, hour) for day in range(7) for hour in (21, 22, 23, 0, 1, 2, 3, 4, 5)}
    assert windows_of(night) == (Window(1260, 360, ALL_DAYS),)
    assert windows_of({(day, hour) for day in range(7) for hour in range(24)}) == (Window(0, 1440, ALL_DAYS),)


def test_parts_of_hours() -> None:
    hours = hours_of([Window(1290, 30, frozenset({6}))])
    assert hours[6][20:] == ["", "part", "on", "on"]
    assert hours[0][:2] == ["part", ""]


@given(st.sets(st.tuples(st.integers(-9, 99), st.integers(-9, 99))))
def test_hours_that_do_not_exist_are_left_out(painted: set[tuple[int, int]]) -> None:
    assert all(0 <= window.begin < 1440 and window.days <= ALL_DAYS for window in windows_of(painted))


def test_an_hour_that_does_not_exist_takes_no_other_with_it() -> None:
    assert windows_of({(0, 23), (0, 24), (7, 1), (-1, 1), (1, -1)}) == (Window(1380, 1440, frozenset({0})),)
    assert windows_of({(6, 23), (0, 0)}) == (Window(1380, 60, frozenset({6})),)
    assert hours_of([Window(0, 1440, frozenset({0}))])[0] == ["on"] * 24
    assert hours_of([Window(0, 59, frozenset({0}))])[0][:2] == ["part", ""]
