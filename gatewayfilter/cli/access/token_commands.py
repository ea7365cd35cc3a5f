"""`gatewayfilter user token`: tokens of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gatewayfilter.cli.ui.actor import record
from gatewayfilter.cli.ui.command import FilterGroup
from gatewayfilter.cli.ui.dates import read_duration, show_moment
from gatewayfilter.cli.ui.output import print_json, print_table, say

if TYPE_CHECKING:
    from gatewayfilter.cli.ui.command_context import Invocation
    from gatewayfilter.model import ApiToken

_NEVER = "never"


@click.group(
    "token",
    cls=FilterGroup,
    short_help="Tokens of the API.",
    examples=("gatewayfilter user token add kim 'home assistant' --scope approve",),
)
def token_group() -> None:
    """Tokens with which programs use the API in the name of an account."""


@token_group.command(
    "add",
    examples=(
        "gatewayfilter user token add kim 'home assistant' --scope approve",
        "gatewayfilter user token add kim backup --scope admin --expires 30d --json",
    ),
    prints_data=True,
)
@click.argument("account")
@click.argument("name")
@click.option(
    "--scope", type=click.Choice(["read", "approve", "admin"]), default="read", show_default=True, help="What it may do."
)
@click.option("--expires", default="90d", show_default=True, metavar="TIME", help="When it ends: 90d, 1y or never.")
@click.pass_obj
def add_token(invocation: Invocation, *, account: str, name: str, scope: str, expires: str) -> None:
    """Make a token. It is shown once: the database has a digest alone."""
    from gatewayfilter.model import Scope
    from gatewayfilter.use_cases.access.accounts import Accounts
    from gatewayfilter.use_cases.access.tokens import ApiTokens

    lifetime_s = _lifetime(expires)
    with invocation.store() as store:
        owner = Accounts(store).find(account)
        text, made = ApiTokens(store).add(owner, name, Scope(scope), lifetime_s)
        record(store, "token.added", made.name, f"account {owner.name}, scope {scope}")
    if invocation.json:
        print_json({**_shown(made, owner.name), "token": text})
        return
    say(f"Token {made.token_id} of {owner.name}, scope {scope}, expires {show_moment(made.expires_at)}. It is shown only now:")
    say(text)


@token_group.command("list", examples=("gatewayfilter user token list",), prints_data=True)
@click.pass_obj
def list_tokens(invocation: Invocation) -> None:
    """Show the tokens of all accounts; not the secrets, which are not stored."""
    with invocation.store() as store:
        names = {account.account_id: account.name for account in store.accounts.all()}
        found = [token for token in store.tokens.all() if token.account_id in names]
    if invocation.json:
        print_json([_shown(token, names[token.account_id]) for token in found])
    elif not found:
        say("There are no tokens.")
    else:
        print_table(
            ("id", "account", "name", "scope", "expires", "last used"),
            [
                (
                    token.token_id,
                    names[token.account_id],
                    token.name,
                    token.scope,
                    show_moment(token.expires_at),
                    show_moment(token.used_at),
                )
                for token in found
            ],
        )


@token_group.command("remove", examples=("gatewayfilter user token remove 3",))
@click.argument("number", type=click.IntRange(1))
@click.pass_obj
def remove_token(invocation: Invocation, *, number: int) -> None:
    """Remove a token: requests with it are refused at once."""
    from gatewayfilter.use_cases.access.tokens import ApiTokens

    with invocation.store() as store:
        found = ApiTokens(store).remove(number)
        record(store, "token.removed", found.name)
    say(f"Removed the token {found.name}.")


def _lifetime(text: str) -> float | None:
    if text.strip().lower() == _NEVER:
        return None
    seconds = read_duration(text)
    if seconds is None:
        raise click.BadParameter(f"{text!r} is no duration: write 90d, 1y or {_NEVER}")
    return seconds


def _shown(token: ApiToken, account: str) -> dict[str, object]:
    return {
        "id": token.token_id,
        "account": account,
        "name": token.name,
        "scope": token.scope.value,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "used_at": token.used_at,
    }
