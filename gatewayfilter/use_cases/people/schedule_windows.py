"""Windows of schedules as they are typed, and the windows of the bedtime preset."""

import re
from typing import Final

from gatewayfilter.errors import PolicyError
from gatewayfilter.model import ALL_DAYS, Window

PRESET: Final = "preset"
"""The value of `--bedtime` without a window."""

_DAILY: Final = re.compile(r"(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})", re.ASCII)
_MIDNIGHT: Final = 1440
SCHOOL_NIGHT: Final = "21:00-06:30"
"""The bedtime before a day of school."""
FREE_NIGHT: Final = "22:30-08:00"
"""The bedtime before a free day."""
FREE: Final = frozenset({4, 5})
"""Friday and Saturday: nights before a day without school. A window belongs to the day on which it begins."""


def read_window(text: str, days: frozenset[int]) -> Window:
    """Returns a window that begins on these days, from a text such as `21:00-06:00`.

    Raises:
        PolicyError: it is none.
    """
    match = _DAILY.fullmatch(text.strip())
    if match is None:
        raise PolicyError(f"{text!r} is no window; write 21:00-06:00")
    begin, end = (int(hour) * 60 + int(minute) for hour, minute in (match.group(1, 2), match.group(3, 4)))
    if int(match[2]) > 59 or int(match[4]) > 59 or begin >= _MIDNIGHT or end > _MIDNIGHT:
        raise PolicyError(f"{text!r} is no window: a day goes from 00:00 to 24:00")
    if begin == end:
        raise PolicyError(f"{text!r} begins when it ends; write 00:00-24:00 for the whole day")
    return Window(begin, end, days)


def bedtime_windows(text: str, weekend: str | None, days: frozenset[int]) -> tuple[Window, ...]:
    """Returns the windows of a bedtime.

    Args:
        text: the window of each night, or `PRESET` for the usual ones of school nights and of nights before free days.
        weekend: the window of Friday and Saturday night, `None` for that of the other nights or of the preset.
        days: weekdays on which windows begin.

    Raises:
        PolicyError: a text is no window, or no day is left.
    """
    is_preset = text == PRESET
    free = weekend or (FREE_NIGHT if is_preset else None)
    usual = SCHOOL_NIGHT if is_preset else text
    if free is None:
        return (read_window(usual, days & ALL_DAYS),)
    pairs = ((usual, days - FREE), (free, days & FREE))
    return tuple(read_window(given, nights) for given, nights in pairs if nights)
