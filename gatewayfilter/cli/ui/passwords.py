"""New passwords of accounts, typed hidden and twice or read from standard input."""

from __future__ import annotations

import sys

import click

from gatewayfilter.errors import AccountError

_LONGEST_LINE = 2_000


def read_new_password(account_name: str, *, from_stdin: bool) -> str:
    """Returns a new password, from a prompt or from the first line of standard input.

    Raises:
        AccountError: it cannot be one, or there is no terminal to ask at.
    """
    from gatewayfilter.use_cases.access.passwords import check_new_password

    if from_stdin:
        password = sys.stdin.readline(_LONGEST_LINE).rstrip("\r\n")
    elif sys.stdin.isatty():
        password = str(click.prompt(f"New password of {account_name}", hide_input=True, confirmation_prompt=True))
    else:
        raise AccountError("there is no terminal to ask for a password at: give --password-stdin")
    check_new_password(password, account_name)
    return password
