"""`gatewayfilter group`: groups of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.output import print_json, print_table, say
from gatewayfilter.model import DEFAULT, Group, to_record

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation


@click.group(
    "group", cls=FilterGroup, short_help="Groups of clients, each with a policy.", examples=("gatewayfilter group add kids",)
)
def group_group() -> None:
    """Groups of clients. Every client is in one; the group default always exists."""


@group_group.command(
    "add", examples=("gatewayfilter group add kids --note 'tablets and the console'",), prints_data=True, audited="group.added"
)
@click.argument("name")
@click.option("--policy", default="", metavar="NAME", help="Its policy.")
@click.option("--note", default="", metavar="TEXT", help="For later readers.")
@click.pass_obj
def add_group(invocation: Invocation, *, name: str, policy: str, note: str) -> None:
    """Add a group."""
    from gatewayfilter.use_cases.policies import PolicyEditor

    with invocation.store() as store:
        policies = PolicyEditor(store.policies).add_group(Group(name, policy, note))
    _show_one(invocation, policies.groups[name])


@group_group.command("set", examples=("gatewayfilter group set kids --policy strict",), prints_data=True, audited="group.changed")
@click.argument("name")
@click.option("--policy", metavar="NAME", help='Its policy, "" for none.')
@click.option("--note", metavar="TEXT", help="For later readers.")
@click.pass_obj
def set_group(invocation: Invocation, *, name: str, policy: str | None, note: str | None) -> None:
    """Change a group."""
    from gatewayfilter.use_cases.policies import PolicyEditor

    with invocation.store() as store:
        policies = PolicyEditor(store.policies).set_group(name, policy=policy, note=note)
    _show_one(invocation, policies.groups[name])


@group_group.command("rename", examples=("gatewayfilter group rename kids children",), prints_data=True, audited="group.renamed")
@click.argument("name")
@click.argument("new_name")
@click.pass_obj
def rename_group(invocation: Invocation, *, name: str, new_name: str) -> None:
    """Give a group another name. Its clients, its pause and its own rules go with it."""
    from gatewayfilter.use_cases.policies import PolicyEditor

    with invocation.store() as store:
        policies = PolicyEditor(store.policies).rename_group(name, new_name)
    _show_one(invocation, policies.groups[new_name])


@group_group.command("remove", examples=("gatewayfilter group remove kids",), audited="group.removed")
@click.argument("name")
@click.pass_obj
def remove_group(invocation: Invocation, *, name: str) -> None:
    """Remove a group that has no clients, with its pause and its own rules."""
    from gatewayfilter.use_cases.policies import PolicyEditor

    with invocation.store() as store:
        PolicyEditor(store.policies).remove_group(name)
    say(f"Removed the group {name}.")


@group_group.command("list", examples=("gatewayfilter group list --json",), prints_data=True)
@click.pass_obj
def list_groups(invocation: Invocation) -> None:
    """Show all groups."""
    with invocation.store() as store:
        policies = store.policies.read()
    default = policies.group(DEFAULT)
    groups = [default, *(group for name, group in sorted(policies.groups.items()) if name != DEFAULT)]
    members = {name: [one.name for one in policies.clients.values() if one.group == name] for name in (DEFAULT, *policies.groups)}
    if invocation.json:
        print_json([{**to_record(group), "clients": members[group.name]} for group in groups if group is not None])
        return
    rows = [(one.name, one.policy, ", ".join(sorted(members[one.name])), one.note) for one in groups if one is not None]
    print_table(("name", "policy", "clients", "note"), rows)


def _show_one(invocation: Invocation, group: Group) -> None:
    if invocation.json:
        print_json(to_record(group))
    else:
        say(f"{group.name}: policy {group.policy or DEFAULT}")
