"""`gatewayfilter list enable`, `disable` and `groups`: entries switched on and off, one by one or by their group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterCommand
from gatewayfilter.cli.ui.output import counted, hint, print_json, print_table, say
from gatewayfilter.use_cases.lists.rule_editing import RuleGroup, rule_groups, switch_rules

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation

_entries_argument = click.argument("entries", nargs=-1, metavar="[PATTERN|ID]...")
_group_option = click.option("--group", metavar="NAME", help="All entries of this group, or of those named only these.")


@click.command(
    cls=FilterCommand,
    examples=("gatewayfilter list enable ads.example.com", "gatewayfilter list enable --group homework"),
    prints_data=True,
    audited="rule.enabled",
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
    audited="rule.disabled",
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
        found = switch_rules(store, entries, group, enabled=enabled)
    if invocation.json:
        print_json(found)
    else:
        say(f"{counted(found.entries, 'entry', 'entries')} {'on' if enabled else 'off'}, {found.changed:,} changed.")
        for entry in found.missing:
            say(f"gatewayfilter: there is no entry {entry!r}" if entries else f"gatewayfilter: {entry} has no entries", err=True)
    return 1 if found.missing else 0


@click.command(cls=FilterCommand, examples=("gatewayfilter list groups", "gatewayfilter list groups --json"), prints_data=True)
@click.pass_obj
def groups(invocation: Invocation) -> None:
    """Show the groups of your entries, how many each has, and whether it is on."""
    with invocation.store() as store:
        found = rule_groups(store)
    if invocation.json:
        print_json(found)
    elif not found:
        hint("There are no groups. Make one: gatewayfilter list add --group NAME PATTERN")
    else:
        print_table(("group", "entries", "on"), [(item.group, f"{item.entries:,}", _state(item)) for item in found])


def _state(item: RuleGroup) -> str:
    if item.enabled == item.entries:
        return "on"
    return f"{item.enabled:,} of {item.entries:,}" if item.enabled else "off"
