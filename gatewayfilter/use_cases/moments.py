"""Durations and points in time as people write them."""

import re
from datetime import datetime, timedelta, tzinfo
from typing import Final

from gatewayfilter.errors import PolicyError

_PARTS: Final = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(s|min|m|h|d|w|y)", re.ASCII)
_SECONDS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}
_CLOCK: Final = re.compile(r"([01]?\d|2[0-3]):[0-5]\d", re.ASCII)
_DAYS: Final = {"today": 0, "yesterday": 1}
LATEST: Final = 253_402_300_000.0
"""The end of the year 9999, the last that dates can show."""


def read_duration(text: str) -> float | None:
    """Returns `7d`, `12h` or `1d12h` in seconds, `None` for text that is no duration; `m` and `min` are minutes."""
    text = text.strip().lower()
    parts = _PARTS.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return float(sum(float(number) * _SECONDS[unit] for number, unit in parts))


def read_moment(text: str, now: float, *, back: bool = False, zone: tzinfo | None = None) -> float:
    """Reads a point in time in Unix seconds: ISO 8601, in local time unless it has an offset, or a duration from now.

    Args:
        text: as typed.
        now: Unix seconds.
        back: for times gone by. A duration counts backwards (`30d` is thirty days ago), `today` and `yesterday` are their first
            moments, and `20:00` was at most a day ago.
        zone: of local time, `None` for this machine's.

    Raises:
        PolicyError: it is none, or lies outside the years 1970 to 9999.
    """
    word = text.strip().lower()
    moment: float | None = None
    if back and (word in _DAYS or _CLOCK.fullmatch(word)):
        moment = _named(word, now, zone)
    elif (duration := read_duration(word)) is not None:
        moment = now - duration if back else now + duration
    else:
        try:
            found = datetime.fromisoformat(text.strip())
            moment = (found if found.tzinfo else found.replace(tzinfo=zone)).timestamp()
        except (ValueError, OverflowError, OSError) as error:
            raise PolicyError(f"{text[:100]!r} is no time: write 7d, 12h or 2030-01-31T18:00") from error
    if not 0 <= moment < LATEST:
        raise PolicyError(f"{text[:100]!r} is too far away")
    return moment


def midnight(now: float, zone: tzinfo | None = None, *, days_ago: int = 0) -> float:
    """Returns the first moment of a day: of the calendar, since a day may have 23 or 25 hours."""
    today = datetime.fromtimestamp(now).astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    return (today - timedelta(days=days_ago)).replace(tzinfo=zone).timestamp()


def _named(word: str, now: float, zone: tzinfo | None) -> float:
    if word in _DAYS:
        return midnight(now, zone, days_ago=_DAYS[word])
    hour, _, minute = word.partition(":")

    def moment(days_ago: int) -> float:
        day = datetime.fromtimestamp(midnight(now, zone, days_ago=days_ago)).astimezone(zone).replace(tzinfo=None)
        return day.replace(hour=int(hour), minute=int(minute)).replace(tzinfo=zone).timestamp()

    today = moment(0)
    return today if today <= now else moment(1)
