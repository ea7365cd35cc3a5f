"""`gatewayfilter proxy-user`: the users of the proxy."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.output import print_json, say

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation


@click.group(
    "proxy-user",
    cls=FilterGroup,
    short_help="The users of the proxy.",
    examples=("gatewayfilter proxy-user add kim",),
)
def proxy_user_group() -> None:
    """The users of the proxy, in the file that `proxy.auth_file` names. A running filter applies a change within a second."""


@proxy_user_group.command("add", examples=("gatewayfilter proxy-user add kim < password.txt",), recorded="proxy-user.changed")
@click.argument("name")
@click.pass_obj
def add_user(invocation: Invocation, *, name: str) -> None:
    """Add a user, or change the password of one. The password is read from a prompt, or from the first line of standard input."""
    from gatewayfilter.use_cases.operation.proxy_users import ProxyUsers, check_name

    users = ProxyUsers(invocation.settings())
    check_name(name)
    if sys.stdin.isatty():
        password = str(click.prompt("Password", hide_input=True, confirmation_prompt=True))
    else:
        password = sys.stdin.readline().rstrip("\n")
    known = users.put(name, password)
    say(f"{'Changed' if known else 'Added'} {name} in {users.path}.")


@proxy_user_group.command("list", examples=("gatewayfilter proxy-user list --json",), prints_data=True)
@click.pass_obj
def list_users(invocation: Invocation) -> None:
    """Show the names of the users."""
    from gatewayfilter.use_cases.operation.proxy_users import ProxyUsers

    names = ProxyUsers(invocation.settings()).names()
    if invocation.json:
        print_json(names)
    else:
        say("\n".join(names) if names else "There are no users yet.")


@proxy_user_group.command("remove", examples=("gatewayfilter proxy-user remove kim",), recorded="proxy-user.removed")
@click.argument("name")
@click.pass_obj
def remove_user(invocation: Invocation, *, name: str) -> int:
    """Remove a user. Exit code 1 when there is none of that name."""
    from gatewayfilter.use_cases.operation.proxy_users import ProxyUsers

    if not ProxyUsers(invocation.settings()).remove(name):
        say(f"There is no user {name}.")
        return 1
    say(f"Removed {name}.")
    return 0
