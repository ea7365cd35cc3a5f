"""Options of commands that unblock a page: for whom, and how long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gatewayfilter.cli.ui.dates import read_duration, show_day

if TYPE_CHECKING:
    from collections.abc import Callable

    from gatewayfilter.use_cases.requests import Whom

EVER = "ever"
ONCE = "once"


def whom_options[Command: Callable[..., Any]](command: Command) -> Command:
    """Adds `--client`, `--group` and `--all`."""
    for option in (
        click.option("--all", "everybody", is_flag=True, help="For everybody."),
        click.option("--group", default="", metavar="NAME", help="For the clients of this group."),
        click.option("--client", default="", metavar="NAME", help="For this client (default: the one that asked)."),
    ):
        command = option(command)
    return command


def whom_of(client: str, group: str, *, everybody: bool) -> Whom:
    """Returns for whom something is approved, as it was typed."""
    from gatewayfilter.use_cases.requests import Whom

    return Whom(client, group, everybody)


def read_lifetime(text: str) -> float | None:
    """Returns a duration in seconds, `None` for `ever`.

    Raises:
        click.BadParameter: it is neither.
    """
    if text.strip().lower() == EVER:
        return None
    seconds = read_duration(text)
    if seconds is None:
        raise click.BadParameter(f"{text!r} is no duration: write 1h, 1d, 10min or {EVER}")
    return seconds


def scope_text(scope: str) -> str:
    """Returns a scope in words."""
    kind, _, name = scope.partition(":")
    return f"the {kind} {name}" if name else "everybody"


def until_text(until: float | None) -> str:
    """Returns the end of an approval in words."""
    return "for ever" if until is None else f"until {show_day(until)}"
