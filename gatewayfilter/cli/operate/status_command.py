"""`gatewayfilter status`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.dates import show_moment
from gatewayfilter.cli.ui.output import counted, hint, print_json, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.use_cases.filter_status import FilterStatus


@click.command(
    cls=FilterCommand,
    examples=("gatewayfilter status", "gatewayfilter status --json"),
    short_help="Show the state of the filter on one screen.",
    prints_data=True,
)
@click.pass_obj
def status(invocation: Invocation) -> int:
    """Show the state of the filter on one screen: processes, lists, what was learned, waiting work, pauses, counts, faults.

    Exit code 1 when something needs attention; each such line comes with the command that mends or explains it.
    """
    from gatewayfilter.use_cases.filter_status import filter_status

    with invocation.store() as store:
        found = filter_status(invocation.settings(), store)
    if invocation.json:
        print_json(found)
    else:
        for name, words in _lines(found):
            say(f"{name:<10}{words}")
        for item in found.attention:
            say(f"! {item.words}")
            hint(f"    → {item.mend}")
    return 1 if found.attention else 0


def _lines(found: FilterStatus) -> Iterator[tuple[str, str]]:
    workers, lists, today = found.workers, found.lists, found.today
    if found.running:
        for_how_long = f", for {_duration(time.time() - found.since)}" if found.since else ""
        yield "Running", f"yes, on {found.listen}{for_how_long}"
        yield "Workers", f"{workers.serving} of {workers.expected} serve; learner: {found.learner or 'not running'}"
    else:
        yield "Running", f"no ({found.listen} in the settings)"
    oldest = f"; the oldest, {lists.oldest}, was checked {show_moment(lists.oldest_at)}" if lists.oldest_at else ""
    yield (
        "Lists",
        (
            f"{lists.subscribed} subscribed, {counted(lists.entries, 'entry', 'entries')} and "
            f"{counted(lists.adblock_rules, 'Adblock rule')} in force{oldest}"
        ),
    )
    yield "Learned", counted(found.learned, "page or host", "pages and hosts")
    yield "Waiting", f"{counted(found.reviews, 'review')}, {counted(found.requests, 'request')} to unblock a page"
    pauses = ", ".join(f"{pause.name} until {show_moment(pause.until)}" for pause in found.pauses)
    yield "Pauses", pauses or "none"
    yield "Today", f"{counted(today.requests, 'request')}, {today.blocked:,} blocked"
    yield "Disk", f"{found.free_mb:,.0f} MB free"


def _duration(seconds: float) -> str:
    minutes = int(max(seconds, 0) // 60)
    if minutes < 60:
        return counted(minutes, "minute")
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return counted(minutes // 1440, "day")
