"""Parsing and formatting of points in time."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import click

from gatewayfilter.errors import PolicyError
from gatewayfilter.use_cases import moments
from gatewayfilter.use_cases.moments import read_duration

__all__ = ["expiry_option", "moment_option", "past_option", "read_duration", "read_moment", "show_day", "show_moment"]


def read_moment(text: str, *, back: bool = False) -> float:
    """Reads a point in time in Unix seconds, as `use_cases.moments.read_moment`.

    Raises:
        click.BadParameter: it is none, or lies outside the years 1970 to 9999.
    """
    try:
        return moments.read_moment(text, time.time(), back=back)
    except PolicyError as error:
        raise click.BadParameter(str(error)) from error


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
