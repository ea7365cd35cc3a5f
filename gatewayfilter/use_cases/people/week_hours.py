"""Windows of schedules as the hours of a week, and back: what the grid of a week shows and paints."""

from collections.abc import Iterable
from typing import Final

from gatewayfilter.model import Window

_DAY: Final = 1_440
_WEEK: Final = 7 * _DAY
_DAYS: Final = range(7)
_HOURS: Final = range(24)


def hours_of(windows: Iterable[Window]) -> list[list[str]]:
    """Returns for each of seven days 24 of `on` (open the whole hour), `part` and `""`."""
    minutes = bytearray(_WEEK)
    for window in windows:
        length = (window.end - window.begin) % _DAY or _DAY
        for day in window.days:
            for minute in range(length):
                minutes[(day * _DAY + window.begin + minute) % _WEEK] = 1
    sums = [sum(minutes[start : start + 60]) for start in range(0, _WEEK, 60)]
    words = ["on" if found == 60 else "part" if found else "" for found in sums]
    return [words[day * 24 : day * 24 + 24] for day in _DAYS]


def windows_of(hours: Iterable[tuple[int, int]]) -> tuple[Window, ...]:
    """Returns the fewest daily windows that are open in these hours: pairs of a weekday (0 is Monday) and an hour.

    A night is one window that begins on the evening before, where it is shorter than a day.
    """
    painted = set(hours)
    runs: dict[tuple[int, int], int] = {}
    for day in _DAYS:
        begin = None
        for hour in (*_HOURS, 24):
            is_open = hour in _HOURS and (day, hour) in painted
            if is_open and begin is None:
                begin = hour
            elif not is_open and begin is not None:
                runs[day, begin] = hour
                begin = None
    for day in _DAYS:
        _join_night(runs, day)
    spans: dict[tuple[int, int], set[int]] = {}
    for (day, begin), end in runs.items():
        spans.setdefault((begin * 60, end * 60), set()).add(day)
    return tuple(Window(begin, end, frozenset(days)) for (begin, end), days in sorted(spans.items()))


def _join_night(runs: dict[tuple[int, int], int], day: int) -> None:
    """Joins a run that ends at midnight with the one that begins then, if both are less than a day together."""
    evening = next((begin for (of, begin), end in runs.items() if of == day and end == 24), None)
    morning = runs.get(((day + 1) % 7, 0))
    if evening is not None and morning is not None and morning <= evening:
        del runs[(day + 1) % 7, 0]
        runs[day, evening] = morning
