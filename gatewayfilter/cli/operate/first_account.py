"""The first account of the dashboard, an admin: asked for by `gatewayfilter setup`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import click

from gatewayfilter.cli.ui.actor import record, user_name
from gatewayfilter.cli.ui.output import say
from gatewayfilter.cli.ui.passwords import read_new_password
from gatewayfilter.errors import AccountError

if TYPE_CHECKING:
    from gatewayfilter.config import Settings
    from gatewayfilter.store import Store


class FirstAccount(StrEnum):
    """What becomes of the first account."""

    THERE = "there"
    """There is an account already."""
    ADDED = "added"
    """It was added now."""
    BROWSER = "browser"
    """The first visit of the dashboard makes it."""
    SKIPPED = "skipped"
    """It was left out, or the dashboard is off."""


class Credentials(NamedTuple):
    """The name and the password that were typed."""

    name: str
    password: str


def ask_first_account() -> Credentials:
    """Asks for a name and, hidden and twice, for a password, until both can be used."""
    from gatewayfilter.model import check_account_name
    from gatewayfilter.use_cases.access.passwords import SHORTEST

    say(f"The first account of the dashboard is an admin. Its password has at least {SHORTEST} characters.")
    default = _usable(user_name())
    while True:
        try:
            name = check_account_name(str(click.prompt("Name", default=default)))
            break
        except AccountError as error:
            say(f"{error}.", err=True)
    while True:
        try:
            return Credentials(name, read_new_password(name, from_stdin=False))
        except AccountError as error:
            say(f"{error}.", err=True)


def add_first_account(store: Store, credentials: Credentials) -> FirstAccount:
    """Adds the first account as an admin, and records it; does nothing when another one was made meanwhile."""
    from gatewayfilter.model import Role
    from gatewayfilter.use_cases.access.accounts import Accounts

    try:
        account = Accounts(store).add(credentials.name, Role.ADMIN, credentials.password, only_first=True)
    except AccountError:
        if not store.accounts.exist():
            raise
        return FirstAccount.THERE
    record(store, "user.added", account.name, f"role {account.role}")
    return FirstAccount.ADDED


def first_account_step(settings: Settings, listen: str) -> str:
    """Returns how the first account is made in the browser.

    Args:
        settings: as they were loaded.
        listen: of the proxy from now on.
    """
    from gatewayfilter.use_cases.access.dashboard_access import needs_setup_code

    later = settings.model_copy(update={"proxy": settings.proxy.model_copy(update={"listen": listen})})
    if needs_setup_code(later):
        step = "make the first account of the dashboard: open the address that gatewayfilter run prints"
    else:
        scheme = "https" if settings.web.uses_tls else "http"
        step = f"make the first account of the dashboard: open {scheme}://{settings.web.listen}/ in the browser of this machine"
    return f"{step}, or gatewayfilter user add NAME"


def _usable(name: str) -> str:
    from gatewayfilter.model import check_account_name

    try:
        return check_account_name(name)
    except AccountError:
        return "admin"
