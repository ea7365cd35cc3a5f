"""`gatewayfilter list search`: every entry, line and rule that applies to a host or URL, or holds a text."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.output import print_json, print_table, say
from gatewayfilter.cli.ui.progress import showing
from gatewayfilter.model import EntryKind
from gatewayfilter.use_cases.lists.patterns import Pattern

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.model import ManualRule
    from gatewayfilter.use_cases.lists.list_search import FoundLine, FoundRule

_PATIENCE_S = 1.0
"""How long a search may take before its progress is shown."""


@click.command(
    cls=FilterCommand,
    examples=(
        "gatewayfilter list search example.com",
        "gatewayfilter list search https://cdn.example/ad.js --json",
        "gatewayfilter list search --partial casino",
    ),
    prints_data=True,
)
@click.argument("text", metavar="HOST|URL|TEXT")
@click.option("--partial", is_flag=True, help="Every line of the lists in which the text stands, the first 20 of each list.")
@click.pass_obj
def search(invocation: Invocation, *, text: str, partial: bool) -> int:
    """Find the lists that have a host or URL: your own entries, what was learned, and every line of every source.

    Your own entries and learned pages are also found by a part of their text. Sources that are switched off are searched, too.
    Exit code 1 when it is on no list.
    """
    from gatewayfilter.use_cases.lists.list_search import search_lists

    settings = invocation.settings()
    with invocation.store() as store, showing(quiet=invocation.json, patience_s=_PATIENCE_S) as progress:
        result = search_lists(settings, store, text, partial=partial, progress=progress)
    for sentence in result.unreadable:
        say(f"gatewayfilter: {sentence}", err=True)
    if invocation.json:
        print_json({"own": result.own, "learned": result.learned, "lists": result.lists})
        return 0 if result else 1
    now = time.time()
    rows: list[tuple[object, ...]] = [
        ("own", f"{item.rule.action}{_state(item.rule, now)}", item.rule.rule_id, _describe(item)) for item in result.own
    ]
    rows += [(f"learned: {entry.category or 'harmless'}", entry.action.value, "", entry.url) for entry in result.learned]
    rows += [(item.source + ("" if item.enabled else " (off)"), item.means, item.line, _said(item)) for item in result.lists]
    if rows:
        print_table(("where", "means", "line", "what"), rows)
        return 0
    say(f"{text} is on no list." if partial else f"{text} is on no list. (--partial searches for a part of a line.)")
    return 1


def _state(rule: ManualRule, now: float) -> str:
    expired = rule.expires_at is not None and rule.expires_at <= now
    return " (expired)" if expired else "" if rule.enabled else " (off)"


def _describe(item: FoundRule) -> str:
    rule = item.rule
    notes = [note for note in (rule.group and f"group {rule.group}", rule.comment) if note]
    hint = "" if item.covers else " [by its text]"
    return f"{Pattern(rule.kind, rule.pattern).describe(rule.action)}{f' ({", ".join(notes)})' if notes else ''}{hint}"


def _said(item: FoundLine) -> str:
    return item.text if not item.entry or item.entry == item.text else f"{item.text}  → {_entry(item.entry)}"


def _entry(key: str) -> str:
    kind = EntryKind.DOMAIN if key.startswith(".") else EntryKind.HOST if "/" not in key else EntryKind.URL
    return Pattern(EntryKind.PREFIX if key.endswith("/*") else kind, key).describe()
