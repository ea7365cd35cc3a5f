"""Parsing and formatting of points in time, in the filter's time zone."""

from __future__ import annotations

import time
from datetime import datetime, tzinfo
from typing import Final

import click

from gatewayfilter.cli.ui.command_context import Invocation
from gatewayfilter.errors import PolicyError
from gatewayfilter.use_cases import moments
from gatewayfilter.use_cases.moments import read_duration

__all__ = [
    "expiry_option", "local_time", "moment_option", "past_option", "read_duration", "read_moment", "show_day", "show_moment",
]  # fmt: skip

_ZONE: Final = "gatewayfilter.zone"


def local_time(moment: float) -> datetime:
    """Returns a moment in the filter's time zone (`filter.timezone`), as the dashboard shows it."""
    return datetime.fromtimestamp(moment, _zone())


def _zone() -> tzinfo | None:
    """Returns the zone of the settings of the command that runs, which are read once; `None`, the machine's, without one."""
    context = click.get_current_context(silent=True)
    invocation = context.find_object(Invocation) if context is not None else None
    if context is None or invocation is None:
        return None
    if _ZONE not in context.meta:
        from gatewayfilter.use_cases.network_facts import filter_zone

        context.meta[_ZONE] = filter_zone(invocation.settings())
    found: tzinfo = context.meta[_ZONE]
    return found


def read_moment(text: str, *, back: bool = False) -> float:
    """Reads a point in time in Unix seconds, as `use_cases.moments.read_moment`.

    Raises:
        click.BadParameter: it is none, or lies outside the years 1970 to 9999.
    """
    try:
        return moments.read_moment(text, time.time(), back=back, zone=_zone())
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
    """Returns a moment to the second, `never` for `None`."""
    if moment is None:
        return "never"
    return local_time(moment).strftime("%Y-%m-%d %H:%M:%S")


def show_day(moment: float | None) -> str:
    """Returns a moment to the minute, empty for `None`."""
    if moment is None:
        return ""
    return local_time(moment).strftime("%Y-%m-%d %H:%M")
