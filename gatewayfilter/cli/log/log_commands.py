"""`gatewayfilter log`: the decisions that were made."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click

from gatewayfilter.cli.log.log_export import export
from gatewayfilter.cli.log.log_filters import filter_options, merged, query_of
from gatewayfilter.cli.log.log_lines import print_records
from gatewayfilter.cli.log.log_stats import stats
from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.dates import past_option, show_moment
from gatewayfilter.cli.ui.output import counted, print_json, say
from gatewayfilter.errors import PolicyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.model import LogPage, LogQuery, LogRecord
    from gatewayfilter.store import Store

_POLL_S: Final = 0.5
_BATCH: Final = 1000
_PATIENCE_S: Final = 20.0
"""Time after which a search returns what it has found so far."""
_SHORT: Final = 3


@click.group("log", cls=FilterGroup, short_help="The log of decisions.", examples=("gatewayfilter log tail -f",))
def log_group() -> None:
    """The log of decisions. How much of a URL it keeps, and for how long, the settings of [log] say."""


@log_group.command(
    examples=(
        "gatewayfilter log tail -f",
        "gatewayfilter log tail blocked for kim-tablet since today",
        "gatewayfilter log tail blocked ads on example.com -n 1000 --json",
    ),
    prints_data=True,
)
@click.argument("words", nargs=-1)
@click.option("-n", "--lines", type=click.IntRange(0), default=20, show_default=True, metavar="N", help="How many of the newest.")
@click.option("-f", "--follow", is_flag=True, help="Go on as decisions are made, until Ctrl-C.")
@click.option("--full", is_flag=True, help="Show long URLs whole.")
@filter_options
@click.pass_obj
def tail(invocation: Invocation, /, *, words: Sequence[str], lines: int, follow: bool, full: bool, **options: Any) -> None:
    """Show the newest decisions, oldest first; with --json one object a line.

    WORDS choose decisions like a sentence: `blocked` or `allowed`, a category, `for` a client, `in` a group, `on` a host, `by` a
    list, `because` and a reason, `containing` a text, `since` and `until` a time. The options do the same.
    """
    from gatewayfilter.use_cases.traffic.log_clients import LogClients

    with invocation.store() as store:
        clients = LogClients(store, invocation.settings())
        query = query_of(clients, **merged(options, words))
        newest = store.log.tail(1)
        last = newest[-1][0] if newest else 0
        found = _find(store, query, lines, last + 1).records if lines else ()
        print_records(reversed(found), clients, json=invocation.json, full=full)
        while follow:
            sys.stdout.flush()
            time.sleep(_POLL_S)
            if fresh := store.log.tail(_BATCH, last):
                last = fresh[-1][0]
                print_records((one for one in fresh if query.matches(one[1])), clients, json=invocation.json, full=full)


@log_group.command(
    examples=(
        "gatewayfilter log search casino",
        "gatewayfilter log search --action block --since today --client kim-tablet",
        "gatewayfilter log search --reason login-refused --since 7d",
    ),
    prints_data=True,
)
@click.argument("text", default="")
@filter_options
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="At most so many.")
@click.option("--before", type=click.IntRange(1), metavar="ID", help="Only older ones than this: the next page.")
@click.option("--full", is_flag=True, help="Show long URLs whole.")
@click.pass_obj
def search(invocation: Invocation, /, *, text: str, limit: int, before: int | None, full: bool, **options: Any) -> int:
    """Show the decisions whose URL contains TEXT, newest first. Exit code 1 when there are none.

    A TEXT of one or two characters is searched at the beginning of hosts only. The first 500 characters of a URL are searched.
    """
    from gatewayfilter.use_cases.traffic.log_clients import LogClients

    with invocation.store() as store:
        clients = LogClients(store, invocation.settings())
        query = query_of(clients, text=text, **options)
        page = _find(store, query, limit, before)
        print_records(page.records, clients, json=invocation.json, full=full)
    if page.before is not None:
        looked = f"searched back to {show_moment(page.searched_to)}; " if page.searched_to is not None else ""
        say(f"More: {looked}add --before {page.before}", err=True)
    if 0 < len(text) < _SHORT:
        say("A text of one or two characters is searched at the beginning of hosts only.", err=True)
    return 0 if page.records else 1


def _find(store: Store, query: LogQuery, limit: int, before: int | None) -> LogPage:
    """Returns a full page, or what is found in `_PATIENCE_S`."""
    from gatewayfilter.model import LogPage

    deadline = time.monotonic() + _PATIENCE_S
    found: list[tuple[int, LogRecord]] = []
    while True:
        page = store.log_search.page(query, limit - len(found), before=before)
        found += page.records
        before = page.before
        if before is None or len(found) >= limit or time.monotonic() >= deadline:
            return LogPage(tuple(found), before, page.searched_to)


log_group.add_command(stats)
log_group.add_command(export)


@log_group.command(
    examples=("gatewayfilter log purge --before 30d", "gatewayfilter log purge --client kim-tablet --yes"),
    prints_data=True,
    recorded="log.purged",
)
@click.option("--before", metavar="TIME", callback=past_option, help="Older than this: 30d, 12h, today, 2030-01-31.")
@click.option("--client", metavar="NAME|IP", help="Of this client: its name, an address, or user:NAME.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def purge(invocation: Invocation, *, before: float | None, client: str | None, yes: bool) -> int:
    """Remove decisions for good, with all that is counted and indexed of them. Needs --before, --client or both."""
    if before is None and not client:
        raise click.UsageError("Name a time (--before) or a client (--client).")
    from gatewayfilter.use_cases.traffic.log_files import purge_log

    with invocation.store() as store:
        if client:
            _check_client(store, invocation, client)
        of = f" of {client}" if client else ""
        when = f" before {show_moment(before)}" if before is not None else ""
        if not yes and sys.stdin.isatty() and not click.confirm(f"Remove all decisions{of}{when}?", err=True):
            return 1
        count = purge_log(store, invocation.settings(), before, client or "")
    if invocation.json:
        print_json({"removed": count})
    else:
        say(f"{counted(count, 'decision')} removed.")
    return 0


def _check_client(store: Store, invocation: Invocation, client: str) -> None:
    from gatewayfilter.use_cases.traffic.log_clients import LogClients

    try:
        LogClients(store, invocation.settings()).named(client)
    except PolicyError as error:
        raise click.BadParameter(str(error)) from error
