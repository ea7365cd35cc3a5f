"""Weekdays as they are typed and shown, and minutes for each of them. Days are numbers, 0 is Monday."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from gatewayfilter.errors import PolicyError

DAY_NAMES: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FULL_NAMES: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
WEEKEND: Final = frozenset({5, 6})
_SHORT: Final = {"weekdays": frozenset(range(5)), "weekend": WEEKEND, "daily": frozenset(range(7))}
_PART: Final = re.compile(r"([^=]+)=\s*(\d{1,9})\s*", re.ASCII)
_NUMBER: Final = re.compile(r"-?\d{1,9}", re.ASCII)
_MOST_CHARACTERS: Final = 200


class DailyMinutes(NamedTuple):
    """Minutes a day.

    Attributes:
        minutes: of the days that are not named.
        other_days: weekday → its minutes, where they differ.
    """

    minutes: int
    other_days: Mapping[int, int]


def read_days(text: str) -> frozenset[int]:
    """Returns the weekdays of a text such as `mon,wed`, `fri-sun`, `weekdays`, `weekend` or `daily`.

    Raises:
        PolicyError: a part is no day.
    """
    found: set[int] = set()
    for part in text[:_MOST_CHARACTERS].lower().split(","):
        name = part.strip()
        first, dash, last = (one.strip() for one in name.partition("-"))
        if name in _SHORT:
            found |= _SHORT[name]
        elif _is_day(first) and (not dash or _is_day(last)):
            begin = DAY_NAMES.index(first[:3])
            end = DAY_NAMES.index(last[:3]) if dash else begin
            found |= {day % 7 for day in range(begin, end + 1 if end >= begin else end + 8)}
        else:
            raise PolicyError(f"{part!r} is no day; there are {', '.join(DAY_NAMES)}, {', '.join(_SHORT)}")
    return frozenset(found)


def show_days(days: frozenset[int]) -> str:
    """Returns weekdays as a text that `read_days` reads."""
    short = next((name for name, known in _SHORT.items() if known == days), None)
    return short or ",".join(DAY_NAMES[day] for day in sorted(days))


def read_daily_minutes(text: str, weekend: int | None = None) -> DailyMinutes:
    """Returns minutes a day from a text such as `60` or `mon-fri=60,sat-sun=120`.

    Args:
        text: one number for all days, or parts that name each day once.
        weekend: the minutes of Saturday and Sunday; then the text is one number.

    Raises:
        PolicyError: the text is neither, or a day is missing or named twice.
    """
    if _NUMBER.fullmatch(text.strip()):
        minutes = int(text.strip())
        differs = weekend is not None and weekend != minutes
        return DailyMinutes(minutes, dict.fromkeys(sorted(WEEKEND), weekend) if weekend is not None and differs else {})
    if weekend is not None:
        raise PolicyError("with --weekend, --minutes is one number: that of the other days")
    by_day: dict[int, int] = {}
    days: frozenset[int] = frozenset()
    for part in re.split(r"(?<=\d)\s*,", text[:_MOST_CHARACTERS]):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise PolicyError(f"{text!r} are no minutes; write 60, or mon-fri=60,sat-sun=120")
        days = read_days(match[1])
        if twice := sorted(days & by_day.keys()):
            raise PolicyError(f"{DAY_NAMES[twice[0]]} is named twice")
        by_day |= dict.fromkeys(days, int(match[2]))
    if missing := [name for day, name in enumerate(DAY_NAMES) if day not in by_day]:
        raise PolicyError(f"the minutes of {', '.join(missing)} are missing")
    counts = list(by_day.values())
    usual = max(dict.fromkeys(by_day[day] for day in range(7)), key=counts.count)
    return DailyMinutes(usual, {day: minutes for day, minutes in sorted(by_day.items()) if minutes != usual})


def show_daily_minutes(minutes: int, other_days: Mapping[int, int]) -> str:
    """Returns minutes a day as a text that `read_daily_minutes` reads."""
    if not other_days:
        return str(minutes)
    groups: dict[int, set[int]] = {}
    for day in range(7):
        groups.setdefault(other_days.get(day, minutes), set()).add(day)
    return ",".join(f"{show_days(frozenset(days))}={number}" for number, days in groups.items())


def _is_day(name: str) -> bool:
    return len(name) >= 3 and any(full.startswith(name) for full in _FULL_NAMES)
