"""`gatewayfilter list stats`: the number of entries of each list."""

from __future__ import annotations

import time
from collections import Counter
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
    from gatewayfilter.wiring import open_engine

    now = time.time()
    with invocation.store() as store:
        rules = store.lists.rules()
        learned = Counter((entry.action.value, entry.category) for entry in store.lists.learned())
        info = open_engine(invocation.settings(), store).snapshot.info
    expired = sum(rule.expires_at is not None and rule.expires_at <= now for rule in rules)
    off = sum(not rule.enabled for rule in rules)
    own = Counter((rule.action.value, rule.kind.value) for rule in rules)
    if invocation.json:
        print_json(
            {
                "own": [{"action": action, "kind": kind, "entries": count} for (action, kind), count in sorted(own.items())],
                "own_expired": expired,
                "own_off": off,
                "learned": [
                    {"action": action, "category": category, "entries": count}
                    for (action, category), count in sorted(learned.items())
                ],
                "snapshot": info,
            }
        )
        return
    rows: list[tuple[object, ...]] = [("own", action, kind, f"{count:,}") for (action, kind), count in sorted(own.items())]
    rows += [("own", "", "expired", f"{expired:,}")] if expired else []
    rows += [("own", "", "switched off", f"{off:,}")] if off else []
    rows += [("learned", action, category, f"{count:,}") for (action, category), count in sorted(learned.items())]
    rows += [
        ("snapshot", "block", "blacklist", f"{info.blacklist:,}"),
        ("snapshot", "allow", "whitelist", f"{info.whitelist:,}"),
        ("snapshot", "splice", "splicelist", f"{info.splicelist:,}"),
        ("snapshot", "", "Adblock rules", f"{info.adblock_rules:,}"),
    ]
    print_table(("where", "action", "what", "entries"), rows)
    say(f"\nSnapshot of {show_day(info.created_at)}, {info.size_bytes / 1e6:.1f} MB.")
