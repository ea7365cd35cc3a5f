"""`gatewayfilter user`: the accounts of the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.access.token_commands import token_group
from gatewayfilter.cli.ui.actor import record
from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.dates import show_moment
from gatewayfilter.cli.ui.output import hint, print_json, print_table, say
from gatewayfilter.cli.ui.passwords import read_new_password
from gatewayfilter.errors import AccountError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.model import Account
    from gatewayfilter.use_cases.access.accounts import Accounts

_role_choice = click.Choice(["viewer", "approver", "admin"])
_password_option = click.option("--password-stdin", is_flag=True, help="Read the password from the first line of standard input.")


@click.group(
    "user",
    cls=FilterGroup,
    short_help="Accounts of the dashboard.",
    examples=("gatewayfilter user add kim --role approver", "gatewayfilter user list"),
)
def user_group() -> None:
    """Accounts of the dashboard and their API tokens. A running dashboard applies a change at once."""


@user_group.command(
    "add", examples=("gatewayfilter user add kim --role approver", "gatewayfilter user add kim --password-stdin < password.txt")
)
@click.argument("name")
@click.option("--role", type=_role_choice, help="What it may do (default: admin for the first one, viewer for others).")
@click.option("--subject", help="Who it is at the provider of single sign-on; it has no password then.")
@_password_option
@click.pass_obj
def add_user(invocation: Invocation, *, name: str, role: str | None, subject: str | None, password_stdin: bool) -> None:
    """Add an account. The password is asked for, or read from standard input; it is never an argument."""
    from gatewayfilter.model import Role, check_account_name
    from gatewayfilter.use_cases.access.accounts import Accounts

    name = check_account_name(name)
    with invocation.store() as store:
        accounts = Accounts(store)
        if store.accounts.find(name) is not None:
            raise AccountError(f"there is an account {name!r} already; `gatewayfilter user passwd` changes its password")
        wanted = Role(role) if role else (Role.VIEWER if store.accounts.exist() else Role.ADMIN)
        identity = _identity(invocation, subject) if subject else ""
        password = None if identity else read_new_password(name, from_stdin=password_stdin)
        account = accounts.add(name, wanted, password, external_id=identity)
        record(store, "user.added", account.name, f"role {account.role}")
    say(f"Added {account.name}, {account.role}.")


@user_group.command("list", examples=("gatewayfilter user list --json",), prints_data=True)
@click.pass_obj
def list_users(invocation: Invocation) -> None:
    """Show the accounts."""
    with invocation.store() as store:
        found = store.accounts.all()
        sessions = {account.account_id: len(store.sessions.of_account(account.account_id)) for account in found}
        tokens = {account.account_id: len(store.tokens.all(account.account_id)) for account in found}
    if invocation.json:
        print_json(
            [
                _shown(account) | {"sessions": sessions[account.account_id], "tokens": tokens[account.account_id]}
                for account in found
            ]
        )
    elif not found:
        hint("There are no accounts yet. Add one: gatewayfilter user add NAME")
    else:
        print_table(
            ("name", "role", "second factor", "disabled", "sessions", "tokens", "last log-in"),
            [
                (
                    account.name,
                    account.role,
                    "yes" if account.has_second_factor else "no",
                    "yes" if account.disabled else "no",
                    sessions[account.account_id],
                    tokens[account.account_id],
                    show_moment(account.logged_in_at),
                )
                for account in found
            ],
        )


def _shown(account: Account) -> dict[str, object]:
    return {
        "name": account.name,
        "role": account.role.value,
        "second_factor": account.has_second_factor,
        "disabled": account.disabled,
        "external_id": account.external_id,
        "language": account.language,
        "created_at": account.created_at,
        "changed_at": account.changed_at,
        "logged_in_at": account.logged_in_at,
    }


@user_group.command("remove", examples=("gatewayfilter user remove kim",))
@click.argument("name")
@click.pass_obj
def remove_user(invocation: Invocation, *, name: str) -> None:
    """Remove an account with its sessions and tokens. The last admin stays."""

    def remove(accounts: Accounts, account: Account) -> str:
        accounts.remove(account)
        return f"Removed {account.name}."

    _change(invocation, name, "user.removed", remove)


@user_group.command("passwd", examples=("gatewayfilter user passwd kim", "gatewayfilter user passwd kim --remove-second-factor"))
@click.argument("name")
@_password_option
@click.option("--remove-second-factor", is_flag=True, help="Require no one-time code any more: for a lost phone.")
@click.pass_obj
def change_password(invocation: Invocation, *, name: str, password_stdin: bool, remove_second_factor: bool) -> None:
    """Set a new password. All sessions of the account end."""

    def change(accounts: Accounts, account: Account) -> str:
        accounts.set_password(account, read_new_password(account.name, from_stdin=password_stdin))
        if remove_second_factor:
            accounts.remove_second_factor(account)
        return f"Changed the password of {account.name}; all its sessions have ended."

    _change(invocation, name, "user.password", change, "second factor removed" if remove_second_factor else "")


@user_group.command("role", examples=("gatewayfilter user role kim admin",))
@click.argument("name")
@click.argument("role", type=_role_choice)
@click.pass_obj
def change_role(invocation: Invocation, *, name: str, role: str) -> None:
    """Give an account another role: viewer, approver or admin. The last admin stays one."""
    from gatewayfilter.model import Role

    def change(accounts: Accounts, account: Account) -> str:
        after = accounts.set_role(account, Role(role))
        return f"{after.name} is {after.role} from now on."

    _change(invocation, name, "user.role", change, f"role {role}")


@user_group.command("rename", examples=("gatewayfilter user rename kim kimberly",))
@click.argument("name")
@click.argument("new_name")
@click.pass_obj
def rename_user(invocation: Invocation, *, name: str, new_name: str) -> None:
    """Give an account another name."""

    def change(accounts: Accounts, account: Account) -> str:
        return f"{account.name} is {accounts.rename(account, new_name).name} from now on."

    _change(invocation, name, "user.renamed", change, f"name {new_name}")


@user_group.command("link", examples=("gatewayfilter user link kim 248289761001",))
@click.argument("name")
@click.argument("subject")
@click.pass_obj
def link_user(invocation: Invocation, *, name: str, subject: str) -> None:
    """Link an account to a person at the provider of single sign-on (web.oidc.issuer). All sessions of the account end.

    SUBJECT is the claim `sub`, which the page of a log-in without an account shows. Names and mail addresses are none.
    """
    identity = _identity(invocation, subject)

    def change(accounts: Accounts, account: Account) -> str:
        return f"{accounts.link(account, identity).name} logs in by single sign-on from now on."

    _change(invocation, name, "user.linked", change, identity)


@user_group.command("unlink", examples=("gatewayfilter user unlink kim",))
@click.argument("name")
@click.pass_obj
def unlink_user(invocation: Invocation, *, name: str) -> None:
    """Take the link of `user link` away. The account needs a password. All its sessions end."""

    def change(accounts: Accounts, account: Account) -> str:
        return f"{accounts.link(account, '').name} logs in with the password alone from now on."

    _change(invocation, name, "user.unlinked", change)


@user_group.command("disable", examples=("gatewayfilter user disable kim",))
@click.argument("name")
@click.pass_obj
def disable_user(invocation: Invocation, *, name: str) -> None:
    """Disable an account: its sessions end, and its tokens are refused. The last admin stays enabled."""

    def change(accounts: Accounts, account: Account) -> str:
        return f"Disabled {accounts.set_disabled(account, disabled=True).name}."

    _change(invocation, name, "user.disabled", change)


@user_group.command("enable", examples=("gatewayfilter user enable kim",))
@click.argument("name")
@click.pass_obj
def enable_user(invocation: Invocation, *, name: str) -> None:
    """Enable a disabled account."""

    def change(accounts: Accounts, account: Account) -> str:
        return f"Enabled {accounts.set_disabled(account, disabled=False).name}."

    _change(invocation, name, "user.enabled", change)


user_group.add_command(token_group)


def _identity(invocation: Invocation, subject: str) -> str:
    from gatewayfilter.use_cases.sign_on.people import external_id

    issuer = invocation.loaded().settings.web.oidc.issuer
    if not issuer:
        raise AccountError("there is no single sign-on; the setting web.oidc.issuer turns it on")
    return external_id(issuer, subject)


def _change(invocation: Invocation, name: str, action: str, change: Callable[[Accounts, Account], str], detail: str = "") -> None:
    """Changes an account, records it, and prints the sentence that `change` returns."""
    from gatewayfilter.use_cases.access.accounts import Accounts

    with invocation.store() as store:
        accounts = Accounts(store)
        account = accounts.find(name)
        sentence = change(accounts, account)
        record(store, action, account.name, detail)
    say(sentence)
