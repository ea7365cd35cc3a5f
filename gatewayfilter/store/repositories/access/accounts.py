"""Accounts of the dashboard."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import Connection, delete, exists, func, insert, select, update
from sqlalchemy.engine import Row

from gatewayfilter.errors import AccountError
from gatewayfilter.model import Account, Role, folded_name
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import ACCOUNTS, API_TOKENS, WEB_SESSIONS

MOST: Final = 1000
"""Accounts that there can be."""

_COLUMNS = ACCOUNTS.c
_ALL = select(ACCOUNTS).order_by(_COLUMNS.folded)

type Edit = Callable[[Account, Sequence[Account]], Account | None]
"""Returns an account as it is to be, for the account and for all of them; `None` removes it."""


class SqlAccounts:
    """The accounts. Each method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[Account]:
        """Returns all accounts by name."""
        with self._database.read() as connection:
            return _all(connection)

    def exist(self) -> bool:
        """Returns whether there is any account."""
        with self._database.read() as connection:
            return connection.execute(select(exists(select(_COLUMNS.id)))).scalar_one()

    def get(self, account_id: int) -> Account | None:
        """Returns the account with a number."""
        return self._find(_COLUMNS.id == account_id)

    def find(self, name: str) -> Account | None:
        """Returns the account with a name, without regard to case."""
        return self._find(_COLUMNS.folded == folded_name(name))

    def find_external(self, external_id: str) -> Account | None:
        """Returns the account of an identity of single sign-on."""
        return self._find(_COLUMNS.external_id == external_id) if external_id else None

    def add(self, account: Account, *, only_first: bool = False) -> Account:
        """Adds an account (its number does not count). Returns it with its number.

        Args:
            account: the account.
            only_first: refuse it when there is any account already.

        Raises:
            AccountError: the name or the external identity is taken, or there are too many accounts; nothing was changed.
        """
        with self._database.write(Area.ACCESS) as connection:
            count = connection.execute(select(func.count()).select_from(ACCOUNTS)).scalar_one()
            if only_first and count:
                raise AccountError("there is an account already")
            if count >= MOST:
                raise AccountError(f"there are {MOST:,} accounts already")
            _refuse_taken(connection, account)
            number = connection.execute(insert(ACCOUNTS).returning(_COLUMNS.id), _values(account)).scalar_one()
            return _account(connection.execute(select(ACCOUNTS).where(_COLUMNS.id == number)).one())

    def change(self, account_id: int, edit: Edit) -> Account | None:
        """Changes an account, or removes it with its sessions and tokens. Returns it as it is then, `None` without it.

        Args:
            account_id: number of the account.
            edit: returns what it shall be; it may raise, and nothing is changed.

        Raises:
            AccountError: the new name or external identity is taken.
        """
        with self._database.write(Area.ACCESS) as connection:
            every = _all(connection)
            before = next((account for account in every if account.account_id == account_id), None)
            if before is None:
                return None
            after = edit(before, every)
            if after is None:
                _remove(connection, account_id)
            elif after != before:
                _refuse_taken(connection, after)
                connection.execute(update(ACCOUNTS).where(_COLUMNS.id == account_id).values(**_values(after)))
            return after

    def _find(self, condition: Any) -> Account | None:
        with self._database.read() as connection:
            row = connection.execute(select(ACCOUNTS).where(condition)).first()
        return None if row is None else _account(row)


def account_of(values: dict[str, Any]) -> Account:
    """Returns the account of a row by column."""
    return Account(
        account_id=values["id"],
        name=values["name"],
        role=Role(values["role"]),
        password_hash=values["password_hash"],
        totp_secret=values["totp_secret"],
        totp_step=values["totp_step"],
        recovery_digests=tuple(values["recovery"]),
        language=values["language"],
        external_id=values["external_id"],
        networks=tuple(values["networks"]),
        created_at=values["created_at"],
        changed_at=values["changed_at"],
        logged_in_at=values["logged_in_at"],
        disabled=values["disabled"],
    )


def _account(row: Row[Any]) -> Account:
    return account_of(row._asdict())


def _all(connection: Connection) -> list[Account]:
    return [_account(row) for row in connection.execute(_ALL)]


def _refuse_taken(connection: Connection, account: Account) -> None:
    same = (_COLUMNS.folded == folded_name(account.name)) & (_COLUMNS.id != account.account_id)
    if connection.scalar(select(_COLUMNS.id).where(same)) is not None:
        raise AccountError(f"there is an account {account.name!r} already")
    linked = (_COLUMNS.external_id == account.external_id) & (_COLUMNS.id != account.account_id)
    if account.external_id and (name := connection.scalar(select(_COLUMNS.name).where(linked))) is not None:
        raise AccountError(f"the account {name!r} is linked to this identity already")


def _remove(connection: Connection, account_id: int) -> None:
    connection.execute(delete(WEB_SESSIONS).where(WEB_SESSIONS.c.account_id == account_id))
    connection.execute(delete(API_TOKENS).where(API_TOKENS.c.account_id == account_id))
    connection.execute(delete(ACCOUNTS).where(_COLUMNS.id == account_id))


def _values(account: Account) -> dict[str, Any]:
    return {
        "name": account.name,
        "folded": folded_name(account.name),
        "role": account.role.value,
        "password_hash": account.password_hash,
        "totp_secret": account.totp_secret,
        "totp_step": account.totp_step,
        "recovery": list(account.recovery_digests),
        "language": account.language,
        "external_id": account.external_id,
        "networks": list(account.networks),
        "created_at": account.created_at,
        "changed_at": account.changed_at,
        "logged_in_at": account.logged_in_at,
        "disabled": account.disabled,
    }
