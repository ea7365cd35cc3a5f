"""Parsing and formatting of points in time."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

import click

_PARTS = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(s|min|m|h|d|w|y)", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}
_LATEST = 253_402_300_000.0
"""The end of the year 9999, the last that dates can show."""


def read_duration(text: str) -> float | None:
    """Returns `7d`, `12h` or `1d12h` in seconds, `None` for text that is no duration; `m` and `min` are minutes."""
    text = text.strip().lower()
    parts = _PARTS.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return float(sum(float(number) * _SECONDS[unit] for number, unit in parts))


def read_moment(text: str, *, back: bool = False) -> float:
    """Reads a point in time in Unix seconds: ISO 8601, in local time unless it has an offset, or a duration from now.

    Args:
        text: as typed by the user.
        back: a duration counts backwards (`30d` is thirty days ago), and `today` and `yesterday` are their first moments.

    Raises:
        click.BadParameter: it is none, or lies outside the years 1970 to 9999.
    """
    now = time.time()
    if back and (day := _day_named(text)) is not None:
        return day
    duration = read_duration(text)
    if duration is not None:
        moment = now - duration if back else now + duration
    else:
        try:
            moment = datetime.fromisoformat(text.strip()).timestamp()
        except (ValueError, OverflowError, OSError) as error:
            raise click.BadParameter(f"{text!r} is no time: write 7d, 12h or 2030-01-31T18:00") from error
    if not 0 <= moment < _LATEST:
        raise click.BadParameter(f"{text!r} is too far away")
    return moment


def _day_named(text: str) -> float | None:
    days = {"today": 0, "yesterday": 1}.get(text.strip().lower())
    if days is None:
        return None
    midnight = datetime.now(UTC).astimezone().replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    return (midnight - timedelta(days=days)).timestamp()  # of the calendar: a day may have 23 or 25 hours


def moment_option(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """Reads an option that holds a time."""
    del context, parameter
    return None if value is None else read_moment(value)


def expiry_option(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """Reads an option that holds a time to come."""
    moment = moment_option(context, parameter, value)
    if moment is not None and moment <= time.time():
        raise click.BadParameter(f"{value!r} is in the past")
    return moment


def past_option(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """Reads an option that holds a time gone by: `30d` is thirty days ago; `today` and `yesterday` are known, too."""
    del context, parameter
    return None if value is None else read_moment(value, back=True)


def show_moment(moment: float | None) -> str:
    """Returns a moment in local time to the second, `never` for `None`."""
    if moment is None:
        return "never"
    return datetime.fromtimestamp(moment, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def show_day(moment: float | None) -> str:
    """Returns a moment in local time to the minute, empty for `None`."""
    if moment is None:
        return ""
    return datetime.fromtimestamp(moment, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
