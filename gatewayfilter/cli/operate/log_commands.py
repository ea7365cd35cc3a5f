"""`gatewayfilter log`: the decisions that were made."""

from __future__ import annotations

import sys
import time
from collections import Counter
from statistics import median
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.dates import past_option, show_moment
from gatewayfilter.cli.ui.output import counted, plain, print_json, print_json_line, print_table, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.model import LogRecord

_POLL_S = 0.5
_BATCH = 1000
_TOP = 10


@click.group("log", cls=FilterGroup, short_help="The log of decisions.", examples=("gatewayfilter log tail -f",))
def log_group() -> None:
    """The log of decisions. How much of a URL it keeps, and for how long, the settings of [log] say."""


@log_group.command(
    examples=("gatewayfilter log tail", "gatewayfilter log tail -f", "gatewayfilter log tail -n 1000 --json"), prints_data=True
)
@click.option("-n", "--lines", type=click.IntRange(0), default=20, show_default=True, metavar="N", help="How many of the newest.")
@click.option("-f", "--follow", is_flag=True, help="Go on as decisions are made, until Ctrl-C.")
@click.pass_obj
def tail(invocation: Invocation, *, lines: int, follow: bool) -> None:
    """Show the newest decisions, oldest first; with --json one object a line."""
    with invocation.store() as store:
        newest = store.log.tail(max(lines, 1))
        last = newest[-1][0] if newest else 0
        _print_records(invocation, newest if lines else [])
        while follow:
            sys.stdout.flush()
            time.sleep(_POLL_S)
            if fresh := store.log.tail(_BATCH, last):
                last = fresh[-1][0]
                _print_records(invocation, fresh)


def _print_records(invocation: Invocation, records: Sequence[tuple[int, LogRecord]]) -> None:
    for number, record in records:
        if invocation.json:
            print_json_line({"id": number, **plain(record._asdict())})
        else:
            say(_line(record))


def _line(record: LogRecord) -> str:
    why = ": ".join(part for part in (record.source_list, record.rule) if part)
    category = f" [{record.category}]" if record.category else ""
    return (
        f"{show_moment(record.at)} {record.client or '-'} {record.action.upper()} {record.method} {record.url} "
        f"{record.resource_type} {record.reason}{category}{f' ({why})' if why else ''} {record.elapsed_us} µs"
    )


@log_group.command(
    examples=("gatewayfilter log search casino", "gatewayfilter log search 192.0.2.7 --last 1000000"), prints_data=True
)
@click.argument("text")
@click.option("--action", type=click.Choice(["allow", "block"]), help="Only these.")
@click.option(
    "--last", type=click.IntRange(1), default=100_000, show_default=True, metavar="N", help="How many decisions to look at."
)
@click.pass_obj
def search(invocation: Invocation, *, text: str, action: str | None, last: int) -> int:
    """Show the decisions whose client, URL, list or rule contains TEXT. Exit code 1 when there are none."""
    part = text.lower()
    with invocation.store() as store:
        found = [
            (number, record)
            for number, record in store.log.tail(last)
            if action in {None, record.action}
            and part in f"{record.client} {record.url} {record.source_list} {record.rule}".lower()
        ]
    _print_records(invocation, found)
    return 0 if found else 1


@log_group.command(examples=("gatewayfilter log stats", "gatewayfilter log stats --since 1d --json"), prints_data=True)
@click.option("--since", metavar="TIME", callback=past_option, help="Only decisions after this: 1d, 12h, 2030-01-31.")
@click.option(
    "--last", type=click.IntRange(1), default=100_000, show_default=True, metavar="N", help="How many decisions to look at."
)
@click.pass_obj
def stats(invocation: Invocation, *, since: float | None, last: int) -> None:
    """Count the newest decisions by answer, category, list, blocked site and client."""
    with invocation.store() as store:
        records = [record for _, record in store.log.tail(last) if since is None or record.at >= since]
    blocked = [record for record in records if record.action == "block"]
    tables: dict[str, Counter[str]] = {
        "answers": Counter(f"{record.action} {record.reason}" for record in records),
        "categories": Counter(record.category for record in blocked if record.category),
        "lists": Counter(record.source_list for record in blocked if record.source_list),
        "blocked_sites": Counter(_site(record.url) for record in blocked),
        "clients": Counter(record.client for record in records if record.client),
    }
    median_us = median(record.elapsed_us for record in records) if records else 0.0
    if invocation.json:
        tops = {name: [{"name": what, "count": n} for what, n in counts.most_common(100)] for name, counts in tables.items()}
        first = records[0].at if records else None
        print_json({"decisions": len(records), "blocked": len(blocked), "since": first, "median_us": median_us, **tops})
        return
    say(f"{counted(len(records), 'decision')}, {len(blocked):,} blocked, {median_us:.0f} µs each (median).")
    for name, counts in tables.items():
        if counts:
            say()
            print_table((name.replace("_", " "), "decisions"), [(what, f"{n:,}") for what, n in counts.most_common(_TOP)])


def _site(url: str) -> str:
    return url.partition("://")[2].partition("/")[0] or url


@log_group.command(
    examples=("gatewayfilter log purge --before 30d", "gatewayfilter log purge --before 0s --yes"), prints_data=True
)
@click.option("--before", required=True, metavar="TIME", callback=past_option, help="Older than this: 30d, 12h, 2030-01-31.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def purge(invocation: Invocation, *, before: float, yes: bool) -> int:
    """Remove old decisions for good."""
    question = f"Remove all decisions before {show_moment(before)}?"
    if not yes and sys.stdin.isatty() and not click.confirm(question, err=True):
        return 1
    with invocation.store() as store:
        count = store.log.purge(before)
    if invocation.json:
        print_json({"removed": count})
    else:
        say(f"{counted(count, 'decision')} removed.")
    return 0
