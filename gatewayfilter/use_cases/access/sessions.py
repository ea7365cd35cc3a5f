"""Sessions of browsers: opened by a log-in, ended by log-out, idleness, age and changes of the password."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from gatewayfilter.model import Account, WebSession
from gatewayfilter.store import Store
from gatewayfilter.use_cases.access.random_secrets import digest_of_secret, new_session_secret

IDLE_S: Final = 7 * 86_400.0
"""A session that is not used ends after so long."""
LONGEST_S: Final = 30 * 86_400.0
"""A session ends after so long, used or not."""

_SEEN_EVERY_S: Final = 60.0


class Sessions:
    """Opens, finds and ends sessions.

    Args:
        store: the database.
        clock: Unix seconds.
        idle_s: a session that is not used ends after so long.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.time, *, idle_s: float = IDLE_S) -> None:
        self._store = store
        self._clock = clock
        self._idle_s = idle_s

    def open(self, account: Account, network: str, agent: str) -> tuple[str, WebSession]:
        """Opens a session with a new secret, and deletes those that are over. Returns the secret, which is not stored."""
        now = self._clock()
        self._store.sessions.sweep(now, now - self._idle_s)
        secret = new_session_secret()
        csrf = new_session_secret()
        made = WebSession(digest_of_secret(secret), account.account_id, csrf, now, now, now + LONGEST_S, network, agent)
        self._store.sessions.add(made)
        return secret, made

    def find(self, secret: str) -> tuple[Account, WebSession] | None:
        """Returns the account and the session of a secret; `None` when it is over or the account is disabled.

        Its last use is written once a minute.
        """
        found = self._store.sessions.find(digest_of_secret(secret))
        if found is None:
            return None
        account, session = found
        now = self._clock()
        if account.disabled or now >= session.expires_at or now - session.seen_at >= self._idle_s:
            return None
        if now - session.seen_at >= _SEEN_EVERY_S:
            self._store.sessions.touch(session.digest, now)
            session = replace(session, seen_at=now)
        return account, session

    def rotate(self, account: Account, session: WebSession) -> tuple[str, WebSession]:
        """Replaces a session by one with a new secret, and ends all other sessions of the account."""
        secret, made = self.open(account, session.network, session.agent)
        self._store.sessions.remove_of(account.account_id, but=made.digest)
        return secret, made

    def close(self, session: WebSession) -> None:
        """Ends a session."""
        self._store.sessions.remove(session.digest)

    def close_one(self, account: Account, public_id: str) -> bool:
        """Ends the session of an account with this `public_id`. Returns False when there is none."""
        wanted = [found for found in self._store.sessions.of_account(account.account_id) if found.public_id == public_id]
        return any(self._store.sessions.remove(found.digest) for found in wanted)

    def close_all(self, account: Account, *, but: WebSession | None = None) -> int:
        """Ends all sessions of an account, except one. Returns their number."""
        return self._store.sessions.remove_of(account.account_id, but=but.digest if but is not None else b"")
