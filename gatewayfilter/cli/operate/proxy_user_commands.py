"""`gatewayfilter proxy-user`: the users of the proxy."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.output import print_json, say
from gatewayfilter.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from gatewayfilter.cli.ui.command_context import Invocation


@click.group(
    "proxy-user",
    cls=FilterGroup,
    short_help="The users of the proxy.",
    examples=("gatewayfilter proxy-user add kim",),
)
def proxy_user_group() -> None:
    """The users of the proxy, in the file that `proxy.auth_file` names. A running filter applies a change within a second."""


def _path(invocation: Invocation) -> Path:
    path = invocation.settings().proxy.auth_file
    if path is None:
        raise ConfigError("set proxy.auth_file to the file that the users shall be kept in")
    return path


@proxy_user_group.command("add", examples=("gatewayfilter proxy-user add kim < password.txt",), recorded="proxy-user.changed")
@click.argument("name")
@click.pass_obj
def add_user(invocation: Invocation, *, name: str) -> None:
    """Add a user, or change the password of one. The password is read from a prompt, or from the first line of standard input."""
    from gatewayfilter.proxy.auth.user_file import PasswordHash, read_users, write_users

    path = _path(invocation)
    if not name.isprintable() or not name or any(mark in name for mark in ":# "):
        raise ConfigError("a user's name has neither colons, spaces nor number signs")
    if sys.stdin.isatty():
        password = str(click.prompt("Password", hide_input=True, confirmation_prompt=True))
    else:
        password = sys.stdin.readline().rstrip("\n")
    if not password:
        raise ConfigError("a password must not be empty")
    users = read_users(path) if path.exists() else {}
    known = name in users
    write_users(path, {**users, name: PasswordHash.of(password)})
    say(f"{'Changed' if known else 'Added'} {name} in {path}.")


@proxy_user_group.command("list", examples=("gatewayfilter proxy-user list --json",), prints_data=True)
@click.pass_obj
def list_users(invocation: Invocation) -> None:
    """Show the names of the users."""
    from gatewayfilter.proxy.auth.user_file import read_users

    path = _path(invocation)
    names = sorted(read_users(path)) if path.exists() else []
    if invocation.json:
        print_json(names)
    else:
        say("\n".join(names) if names else "There are no users yet.")


@proxy_user_group.command("remove", examples=("gatewayfilter proxy-user remove kim",), recorded="proxy-user.removed")
@click.argument("name")
@click.pass_obj
def remove_user(invocation: Invocation, *, name: str) -> int:
    """Remove a user. Exit code 1 when there is none of that name."""
    from gatewayfilter.proxy.auth.user_file import read_users, write_users

    path = _path(invocation)
    users = read_users(path) if path.exists() else {}
    if users.pop(name, None) is None:
        say(f"There is no user {name}.")
        return 1
    write_users(path, users)
    say(f"Removed {name}.")
    return 0
