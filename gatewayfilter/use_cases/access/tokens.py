"""Tokens of the API: made for an account, shown once, with a scope and an expiry."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from gatewayfilter.errors import AccountError, MissingAccountError
from gatewayfilter.model import Account, ApiToken, Role, Scope
from gatewayfilter.store import Store
from gatewayfilter.use_cases.access.random_secrets import TOKEN_PREFIX, digest_of_secret, new_api_token

LONGEST_S: Final = 3_660 * 86_400.0

_LONGEST_NAME: Final = 80
_USED_EVERY_S: Final = 60.0


class ApiTokens:
    """Makes, finds and removes tokens.

    Args:
        store: the database.
        clock: Unix seconds.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    def add(
        self, account: Account, name: str, scope: Scope, lifetime_s: float | None, *, within: Role = Role.ADMIN
    ) -> tuple[str, ApiToken]:
        """Makes a token. Returns its text, which is not stored, and what is.

        Args:
            account: in whose name it acts.
            name: of the program.
            scope: what it may do.
            lifetime_s: seconds, `None` for ever.
            within: role of the request that makes it: a token does not make one that may do more.

        Raises:
            AccountError: the name is taken or cannot be one, the lifetime makes no sense, or the role does not include the scope.
        """
        name = " ".join(name.split())
        if not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable():
            raise AccountError(f"the name of a token has 1 to {_LONGEST_NAME} visible characters")
        if not (account.role.covers(scope.role) and within.covers(scope.role)):
            raise AccountError(f"a token of {account.name} cannot have the scope {scope}: the role is {account.role}")
        if lifetime_s is not None and not 60 <= lifetime_s <= LONGEST_S:
            raise AccountError("a token lasts from a minute to ten years, or `never` expires")
        now = self._clock()
        text = new_api_token()
        expires_at = None if lifetime_s is None else now + lifetime_s
        made = ApiToken(0, digest_of_secret(text), name, account.account_id, scope, now, expires_at)
        return text, self._store.tokens.add(made)

    def find(self, text: str) -> tuple[Account, ApiToken] | None:
        """Returns account and token of a text; `None` when there is none, it has expired, or the account is disabled.

        Its last use is written once a minute.
        """
        if not text.startswith(TOKEN_PREFIX):
            return None
        found = self._store.tokens.find(digest_of_secret(text))
        if found is None:
            return None
        account, token = found
        now = self._clock()
        if account.disabled or (token.expires_at is not None and now >= token.expires_at):
            return None
        if token.used_at is None or now - token.used_at >= _USED_EVERY_S:
            self._store.tokens.touch(token.token_id, now)
            token = replace(token, used_at=now)
        return account, token

    def of_account(self, account: Account) -> list[ApiToken]:
        """Returns the tokens of an account, the oldest first."""
        return self._store.tokens.all(account.account_id)

    def remove(self, token_id: int, account: Account | None = None) -> ApiToken:
        """Removes a token, of an account or of any. Returns it.

        Raises:
            AccountError: there is none.
        """
        every = self._store.tokens.all(account.account_id if account is not None else None)
        found = next((token for token in every if token.token_id == token_id), None)
        if found is None or not self._store.tokens.remove(token_id):
            raise MissingAccountError(f"there is no token {token_id}")
        return found
