"""`gatewayfilter client`: devices and persons that policies apply to."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.dates import show_day
from gatewayfilter.cli.ui.output import counted, hint, print_json, print_table, say
from gatewayfilter.model import DEFAULT, ICONS, Client, parse_matcher, to_record

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation

_ADDRESS = "ADDRESS"


@click.group(
    "client",
    cls=FilterGroup,
    short_help="Devices and persons that policies apply to.",
    examples=("gatewayfilter client add tablet --address 192.168.1.20 --group kids",),
)
def client_group() -> None:
    """Devices and persons, by address, network, MAC or proxy user.

    A request is looked up by its proxy user, then by MAC, by address, and by the longest network. What is not found belongs to
    the group default. A running filter applies changes within a second.
    """


@client_group.command(
    "add",
    examples=(
        "gatewayfilter client add tablet --address aa:bb:cc:dd:ee:ff --group kids",
        "gatewayfilter client add office --address 10.1.0.0/16 --address fd00:1::/48",
        "gatewayfilter client add anna --address user:anna",
    ),
    prints_data=True,
    audited="client.added",
)
@click.argument("name")
@click.option(
    "--address",
    "addresses",
    multiple=True,
    required=True,
    metavar=_ADDRESS,
    help="What it is recognized by: address, network, MAC or user:NAME.",
)
@click.option("--group", default=DEFAULT, metavar="NAME", show_default=True, help="Its group.")
@click.option("--note", default="", metavar="TEXT", help="For later readers.")
@click.option("--icon", type=click.Choice(ICONS), help="What kind of device it is.")
@click.pass_obj
def add_client(invocation: Invocation, *, name: str, addresses: tuple[str, ...], group: str, note: str, icon: str | None) -> None:
    """Add a client."""
    from gatewayfilter.use_cases.policies import PolicyEditor

    matchers = tuple(dict.fromkeys(map(parse_matcher, addresses)))
    with invocation.store() as store:
        policies = PolicyEditor(store.policies).add_client(Client(name, matchers, group, note=note, icon=icon or ""))
    _show_one(invocation, policies.clients[name])


@client_group.command(
    "set",
    examples=(
        "gatewayfilter client set tablet --group kids --add 192.168.1.21",
        "gatewayfilter client set tablet --remove 192.168.1.20",
        "gatewayfilter client set tablet --name anna-tablet --icon tablet --note 'the blue one'",
    ),
    prints_data=True,
    audited="client.changed",
)
@click.argument("name")
@click.option("--add", multiple=True, metavar=_ADDRESS, help="Recognize it by this, too.")
@click.option("--remove", multiple=True, metavar=_ADDRESS, help="No longer recognize it by this.")
@click.option("--group", metavar="NAME", help="Put it into this group.")
@click.option("--note", metavar="TEXT", help="For later readers.")
@click.option("--icon", type=click.Choice(("", *ICONS)), help='What kind of device it is, "" for none.')
@click.option("--name", "new_name", metavar="NAME", help="Give it another name; its rules, pause and used quotas go with it.")
@click.pass_obj
def set_client(
    invocation: Invocation,
    *,
    name: str,
    add: tuple[str, ...],
    remove: tuple[str, ...],
    group: str | None,
    note: str | None,
    icon: str | None,
    new_name: str | None,
) -> None:
    """Change a client."""
    from gatewayfilter.use_cases.policies import PolicyEditor

    with invocation.store() as store:
        editor = PolicyEditor(store.policies)
        policies = editor.set_client(name, add=add, remove=remove, group=group, note=note, icon=icon)
        if new_name is not None and new_name != name:
            policies = editor.rename_client(name, new_name)
            name = new_name
    _show_one(invocation, policies.clients[name])


@client_group.command("remove", examples=("gatewayfilter client remove tablet",), audited="client.removed")
@click.argument("name")
@click.pass_obj
def remove_client(invocation: Invocation, *, name: str) -> None:
    """Remove a client with its pause and its own rules; it belongs to the group default from then on."""
    from gatewayfilter.use_cases.policies import PolicyEditor

    with invocation.store() as store:
        PolicyEditor(store.policies).remove_client(name)
    say(f"Removed the client {name}.")


@client_group.command("list", examples=("gatewayfilter client list --json",), prints_data=True)
@click.pass_obj
def list_clients(invocation: Invocation) -> None:
    """Show all clients."""
    with invocation.store() as store:
        clients = sorted(store.policies.read().clients.values(), key=lambda client: client.name)
    if invocation.json:
        print_json([to_record(client) for client in clients])
    elif not clients:
        hint("There are no clients. See what is on the network: gatewayfilter client seen")
    else:
        rows = [(one.name, one.icon, one.group, ", ".join(map(str, one.matchers)), one.policy, one.note) for one in clients]
        print_table(("name", "kind", "group", "recognized by", "policy", "note"), rows)


@client_group.command("seen", examples=("gatewayfilter client seen", "gatewayfilter client seen --all --json"), prints_data=True)
@click.option("--all", "everything", is_flag=True, help="Devices that are clients already, too.")
@click.option("--no-names", is_flag=True, help="Look up no host names in the network.")
@click.pass_obj
def seen_clients(invocation: Invocation, *, everything: bool, no_names: bool) -> None:
    """Show devices that are no client yet: those on this machine's links, and those in the newest 10,000 log records.

    Host names are looked up by DNS, mDNS and LLMNR, for addresses of the internal network. A device may claim any name.
    """
    from gatewayfilter.addresses.naming.mac_makers import has_table
    from gatewayfilter.use_cases.devices import seen_devices

    with invocation.store() as store:
        found = seen_devices(store, find_names=None) if no_names else seen_devices(store)
    devices = [device for device in found if everything or not device.client]
    if invocation.json:
        print_json(devices)
    elif not devices:
        say("No device was seen that is no client yet.")
    else:
        columns = ("address", "MAC", "maker", "name", "first seen", "last seen", "requests", "client")
        rows = [
            (
                one.address,
                one.mac,
                one.maker,
                one.name,
                show_day(one.first_at),
                show_day(one.last_at),
                str(one.requests),
                one.client,
            )
            for one in devices
        ]
        print_table(columns, rows)
        if not has_table() and any(one.mac for one in devices):
            say("\nThe makers of the devices are shown when a table of them is installed: the package ieee-data or hwdata.")


@client_group.command(
    "erase",
    examples=("gatewayfilter client erase tablet --keep", "gatewayfilter client erase 192.168.1.20 --yes"),
    prints_data=True,
    recorded="client.erased",
)
@click.argument("name")
@click.option("--keep", is_flag=True, help="Keep the client itself, with its policy, rules and pause.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def erase_client(invocation: Invocation, *, name: str, keep: bool, yes: bool) -> int:
    """Erase all that is stored about a client: log, counts, requests, messages, links, quotas, devices, and the client itself.

    NAME is that of a client, an address, or user:NAME. Backups are named, not changed. There is no undo.
    """
    from gatewayfilter.use_cases.traffic.client_erasure import erase_client as erase

    if not yes and sys.stdin.isatty() and not click.confirm(f"Erase all that is stored about {name}?", err=True):
        return 1
    with invocation.store() as store:
        erased = erase(store, invocation.settings(), name, keep=keep)
    if invocation.json:
        print_json({**erased.counts, "backups": [str(path) for path in erased.backups]})
        return 0
    say(f"Erased of {name}: " + ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in erased.counts.items()) + ".")
    if erased.backups:
        say("These backups may still hold it; delete them yourself: " + ", ".join(map(str, erased.backups)))
    return 0


def _show_one(invocation: Invocation, client: Client) -> None:
    if invocation.json:
        print_json(to_record(client))
    else:
        matchers = counted(len(client.matchers), "address", "addresses")
        say(f"{client.name}: group {client.group}, {matchers}: {', '.join(map(str, client.matchers))}")
