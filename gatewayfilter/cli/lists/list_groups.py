"""`gatewayfilter list enable`, `disable` and `groups`: entries switched on and off, one by one or by their group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.output import counted, print_json, print_table, say
from gatewayfilter.model import EntryKind, ManualRule
from gatewayfilter.use_cases.lists.patterns import Pattern, read_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gatewayfilter.cli.ui.command_context import Invocation


@dataclass(frozen=True, slots=True)
class _Group:
    group: str
    entries: int
    enabled: int

    @property
    def state(self) -> str:
        if self.enabled == self.entries:
            return "on"
        return f"{self.enabled:,} of {self.entries:,}" if self.enabled else "off"


def is_on(rules: Iterable[ManualRule], group: str) -> bool:
    """Returns whether a new entry of a group counts: not where the group has entries and all are switched off."""
    states = [rule.enabled for rule in rules if rule.group == group] if group else []
    return not states or any(states)


def matching(rules: Iterable[ManualRule], entry: str) -> list[ManualRule]:
    """Returns the rules named by number or pattern; a site is also found when it was added without subdomains.

    Raises:
        RuleError: it is neither.
    """
    if entry.isascii() and entry.isdigit():
        return [rule for rule in rules if rule.rule_id == int(entry)]
    pattern = read_pattern(entry, force=True)
    forms = {pattern, Pattern(EntryKind.HOST, pattern.text.removeprefix("."))}
    return [rule for rule in rules if Pattern(rule.kind, rule.pattern) in forms]


_entries_argument = click.argument("entries", nargs=-1, metavar="[PATTERN|ID]...")
_group_option = click.option("--group", metavar="NAME", help="All entries of this group, or of those named only these.")


@click.command(
    cls=FilterCommand,
    examples=("gatewayfilter list enable ads.example.com", "gatewayfilter list enable --group homework"),
    prints_data=True,
)
@_entries_argument
@_group_option
@click.pass_obj
def enable(invocation: Invocation, *, entries: tuple[str, ...], group: str | None) -> int:
    """Let entries count again: those named by pattern or number, or all of a group.

    Exit code 1 when one of them is not there, or the group is empty.
    """
    return _switch(invocation, entries, group, enabled=True)


@click.command(
    cls=FilterCommand,
    examples=("gatewayfilter list disable 17", "gatewayfilter list disable --group homework"),
    prints_data=True,
)
@_entries_argument
@_group_option
@click.pass_obj
def disable(invocation: Invocation, *, entries: tuple[str, ...], group: str | None) -> int:
    """Let entries not count, and keep them: those named by pattern or number, or all of a group.

    Running workers follow within a second. Exit code 1 when one of them is not there, or the group is empty.
    """
    return _switch(invocation, entries, group, enabled=False)


def _switch(invocation: Invocation, entries: tuple[str, ...], group: str | None, *, enabled: bool) -> int:
    if not entries and group is None:
        raise click.UsageError("name entries, or a group with --group")
    with invocation.store() as store:
        rules = [rule for rule in store.lists.rules() if group is None or rule.group == group]
        named = {entry: matching(rules, entry) for entry in entries} if entries else {f"group {group}": rules}
        wanted = {rule.rule_id for found in named.values() for rule in found}
        changed = store.lists.switch_rules(sorted(wanted), enabled=enabled)
    missing = [entry for entry, found in named.items() if not found]
    if invocation.json:
        print_json({"entries": len(wanted), "changed": changed, "missing": missing})
    else:
        say(f"{counted(len(wanted), 'entry', 'entries')} {'on' if enabled else 'off'}, {changed:,} changed.")
        for entry in missing:
            say(f"gatewayfilter: there is no entry {entry!r}" if entries else f"gatewayfilter: {entry} has no entries", err=True)
    return 1 if missing else 0


@click.command(cls=FilterCommand, examples=("gatewayfilter list groups", "gatewayfilter list groups --json"), prints_data=True)
@click.pass_obj
def groups(invocation: Invocation) -> None:
    """Show the groups of your entries, how many each has, and whether it is on."""
    with invocation.store() as store:
        rules = store.lists.rules()
    names = sorted({rule.group for rule in rules} - {""})
    found = [_group(name, rules) for name in names]
    if invocation.json:
        print_json(found)
    elif not found:
        say("There are no groups. Make one: gatewayfilter list add --group NAME PATTERN")
    else:
        print_table(("group", "entries", "on"), [(item.group, f"{item.entries:,}", item.state) for item in found])


def _group(name: str, rules: Iterable[ManualRule]) -> _Group:
    states = [rule.enabled for rule in rules if rule.group == name]
    return _Group(name, len(states), sum(states))
