"""Tokens of the API."""

from typing import Any, Final

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.engine import Row

from gatewayfilter.errors import AccountError
from gatewayfilter.model import Account, ApiToken, Scope
from gatewayfilter.store.repositories.access.accounts import account_of
from gatewayfilter.store.sql.database import Area, Database
from gatewayfilter.store.sql.schema import ACCOUNTS, API_TOKENS

MOST_OF_ACCOUNT: Final = 50
"""Tokens of an account."""

_COLUMNS = API_TOKENS.c
_FIELDS = ("id", "digest", "name", "account_id", "scope", "created_at", "expires_at", "used_at")
_TOKEN = tuple(_COLUMNS[name].label(f"token_{name}") for name in _FIELDS)
_WITH_ACCOUNT = select(ACCOUNTS, *_TOKEN).join(API_TOKENS, _COLUMNS.account_id == ACCOUNTS.c.id)


class SqlApiTokens:
    """The tokens. Whether one is still good is decided by `use_cases.access.tokens`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, token: ApiToken) -> ApiToken:
        """Adds a token (its number does not count). Returns it with its number.

        Raises:
            AccountError: the account has a token of this name, or too many.
        """
        with self._database.write(Area.ACCESS) as connection:
            of_account = select(func.count()).where(_COLUMNS.account_id == token.account_id)
            if connection.scalar(of_account.where(_COLUMNS.name == token.name)):
                raise AccountError(f"the account has a token {token.name!r} already")
            if connection.execute(of_account).scalar_one() >= MOST_OF_ACCOUNT:
                raise AccountError(f"an account has at most {MOST_OF_ACCOUNT} tokens")
            values = {
                "digest": token.digest,
                "name": token.name,
                "account_id": token.account_id,
                "scope": token.scope.value,
                "created_at": token.created_at,
                "expires_at": token.expires_at,
                "used_at": token.used_at,
            }
            number = connection.execute(insert(API_TOKENS).returning(_COLUMNS.id), values).scalar_one()
            return _token(connection.execute(select(API_TOKENS).where(_COLUMNS.id == number)).one())

    def find(self, digest: bytes) -> tuple[Account, ApiToken] | None:
        """Returns a token and its account."""
        with self._database.read() as connection:
            row = connection.execute(_WITH_ACCOUNT.where(_COLUMNS.digest == digest)).one_or_none()
        if row is None:
            return None
        values = row._asdict()
        return account_of(values), _of_values([values[f"token_{name}"] for name in _FIELDS])

    def all(self, account_id: int | None = None) -> list[ApiToken]:
        """Returns the tokens of an account, or of all, the oldest first."""
        wanted = select(API_TOKENS).order_by(_COLUMNS.id)
        if account_id is not None:
            wanted = wanted.where(_COLUMNS.account_id == account_id)
        with self._database.read() as connection:
            return [_token(row) for row in connection.execute(wanted)]

    def touch(self, token_id: int, now: float) -> None:
        """Notes a request with a token."""
        with self._database.write(Area.ACCESS) as connection:
            connection.execute(update(API_TOKENS).where(_COLUMNS.id == token_id).values(used_at=now))

    def remove(self, token_id: int) -> bool:
        """Removes a token. Returns False when there was none."""
        with self._database.write(Area.ACCESS) as connection:
            return connection.execute(delete(API_TOKENS).where(_COLUMNS.id == token_id)).rowcount > 0


def _token(row: Row[Any]) -> ApiToken:
    return _of_values([getattr(row, name) for name in _FIELDS])


def _of_values(values: list[Any]) -> ApiToken:
    token_id, digest, name, account_id, scope, *times = values
    return ApiToken(token_id, bytes(digest), name, account_id, Scope(scope), *times)
