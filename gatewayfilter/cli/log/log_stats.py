"""`gatewayfilter log stats`: counts and charts of decisions."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, Final

import click

from gatewayfilter.cli.log.log_filters import clients_option
from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.dates import local_time, past_option, show_day
from gatewayfilter.cli.ui.output import counted, print_json, print_table, say
from gatewayfilter.model import LogDimension

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.model import LogCount, LogSummary
    from gatewayfilter.use_cases.traffic.log_clients import LogClients

_TOP: Final = 10
_BAR: Final = 40
_SAMPLE: Final = 1000
_HOURS_SHOWN: Final = 48
_TABLES: Final = (
    ("answers", LogDimension.REASON, False),
    ("categories", LogDimension.CATEGORY, True),
    ("lists", LogDimension.SOURCE, True),
    ("blocked_sites", LogDimension.HOST, True),
    ("clients", LogDimension.CLIENT, False),
)
"""Names of the tables; whether only blocked decisions count in them."""


@click.command(
    "stats",
    cls=FilterCommand,
    examples=("gatewayfilter log stats --since today", "gatewayfilter log stats --since 7d --client kim-tablet --json"),
    prints_data=True,
)
@click.option("--since", metavar="TIME", callback=past_option, help="From then on: today, yesterday, 7d, 12h, 2030-01-31.")
@click.option("--until", metavar="TIME", callback=past_option, help="Before then, as --since.")
@click.option("--client", metavar="NAME|IP", help="Of this client: its name, an address, or user:NAME.")
@click.option("--group", metavar="NAME", help="Of the clients of this group.")
@click.option("--user", metavar="NAME", help="Of this user of the proxy.")
@click.pass_obj
def stats(
    invocation: Invocation,
    *,
    since: float | None,
    until: float | None,
    client: str | None,
    group: str | None,
    user: str | None,
) -> None:
    """Count decisions by hour or day, answer, category, list, blocked site and client. Times are widened to whole hours."""
    from gatewayfilter.use_cases.traffic.log_clients import LogClients

    with invocation.store() as store:
        clients = LogClients(store, invocation.settings())
        summary = store.log_stats.summary(since, until, clients_option(clients, client, group, user))
        newest = store.log.tail(_SAMPLE)
    median_us = median(record.elapsed_us for _, record in newest) if newest else 0.0
    if invocation.json:
        print_json(_as_object(summary, clients, median_us))
        return
    span = f" from {show_day(summary.since)} to {show_day(summary.until)}" if summary.since is not None else ""
    say(f"{counted(summary.decisions, 'decision')}{span}, {summary.blocked:,} blocked, {median_us:.0f} µs each (median).")
    if summary.uncounted:
        say(f"{counted(summary.uncounted, 'newer decision')} not counted yet: the running filter counts them in the background.")
    print_chart(summary)
    for title, dimension, only_blocked in _TABLES:
        rows = _rows(summary.tops.get(dimension, ()), clients if dimension is LogDimension.CLIENT else None, blocked=only_blocked)
        if rows:
            say()
            print_table((title.replace("_", " "), "decisions", "blocked", ""), [(*row, _bar(row, rows)) for row in rows[:_TOP]])


def _chosen(counts: Sequence[LogCount], *, blocked: bool) -> list[LogCount]:
    chosen = [one for one in counts if one.blocked or not blocked]
    return sorted(chosen, key=lambda one: (-(one.blocked if blocked else one.decisions), one.name))


def _rows(counts: Sequence[LogCount], clients: LogClients | None, *, blocked: bool) -> list[tuple[str, str, str]]:
    merged: dict[str, list[int]] = {}
    for one in _chosen(counts, blocked=blocked):
        name = (clients.shown(one.name) if clients is not None else one.name) or "(others)"
        total = merged.setdefault(name, [0, 0])
        total[0] += one.decisions
        total[1] += one.blocked
    return [(name, f"{total:,}", f"{stopped:,}") for name, (total, stopped) in merged.items()]


def _bar(row: tuple[str, str, str], rows: Sequence[tuple[str, str, str]]) -> str:
    most = max(int(one[1].replace(",", "")) for one in rows)
    return "█" * max(1, round(int(row[1].replace(",", "")) / most * _BAR / 2))


def print_chart(summary: LogSummary) -> None:
    """Prints a bar for each hour, or for each day where there are many: blocked decisions dark, others light."""
    by_day = len(summary.hours) > _HOURS_SHOWN
    every, blocked = Counter[str](), Counter[str]()
    for hour in summary.hours:
        label = local_time(hour.start).strftime("%Y-%m-%d" if by_day else "%m-%d %H:00")
        every[label] += hour.decisions
        blocked[label] += hour.blocked
    if not every:
        return
    most = max(every.values())
    say()
    for label, count in list(every.items())[-_HOURS_SHOWN:]:
        dark = round(blocked[label] / most * _BAR)
        light = max(round(count / most * _BAR) - dark, 0)
        say(f"{label}  {'█' * dark}{'░' * light} {count:,} ({blocked[label]:,} blocked)")


def _as_object(summary: LogSummary, clients: LogClients, median_us: float) -> dict[str, object]:
    tables: dict[str, object] = {}
    for title, dimension, only_blocked in _TABLES:
        chosen = _chosen(summary.tops.get(dimension, ()), blocked=only_blocked)
        tables[title] = [
            {
                "name": one.name,
                **({"client_name": clients.name(one.name)} if dimension is LogDimension.CLIENT else {}),
                "count": one.blocked if only_blocked else one.decisions,
                "blocked": one.blocked,
            }
            for one in chosen
        ]
    return {
        "decisions": summary.decisions,
        "blocked": summary.blocked,
        "since": summary.since,
        "until": summary.until,
        "uncounted": summary.uncounted,
        "median_us": median_us,
        "hours": [{"start": hour.start, "decisions": hour.decisions, "blocked": hour.blocked} for hour in summary.hours],
        **tables,
    }
