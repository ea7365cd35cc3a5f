"""`gatewayfilter list stats`: the number of entries of each list."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.dates import show_day
from gatewayfilter.cli.ui.output import print_json, print_table, say

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation


@click.command(cls=FilterCommand, examples=("gatewayfilter list stats --json",), prints_data=True)
@click.pass_obj
def stats(invocation: Invocation) -> None:
    """Count your entries, what was learned, and what the snapshot in use holds."""
    from gatewayfilter.use_cases.lists.list_counts import list_counts

    with invocation.store() as store:
        found = list_counts(invocation.settings(), store, time.time())
    if invocation.json:
        print_json(found)
        return
    info = found.snapshot
    rows: list[tuple[object, ...]] = [("own", item.action, item.kind, f"{item.entries:,}") for item in found.own]
    rows += [("own", "", "expired", f"{found.own_expired:,}")] if found.own_expired else []
    rows += [("own", "", "switched off", f"{found.own_off:,}")] if found.own_off else []
    rows += [("learned", item.action, item.category, f"{item.entries:,}") for item in found.learned]
    rows += [
        ("snapshot", "block", "blacklist", f"{info.blacklist:,}"),
        ("snapshot", "allow", "whitelist", f"{info.whitelist:,}"),
        ("snapshot", "splice", "splicelist", f"{info.splicelist:,}"),
        ("snapshot", "", "Adblock rules", f"{info.adblock_rules:,}"),
    ]
    print_table(("where", "action", "what", "entries"), rows)
    say(f"\nSnapshot of {show_day(info.created_at)}, {info.size_bytes / 1e6:.1f} MB.")
