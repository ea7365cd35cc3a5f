"""Log-in with a password, and with a one-time code where the account has a second factor."""

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from gatewayfilter.model import Account, Role, WebSession, folded_name
from gatewayfilter.store import Store
from gatewayfilter.use_cases.access.accounts import Accounts
from gatewayfilter.use_cases.access.passwords import Passwords
from gatewayfilter.use_cases.access.random_secrets import read_device, sign_device
from gatewayfilter.use_cases.access.sessions import Sessions
from gatewayfilter.use_cases.access.throttle import LogInThrottle

_PENDING_S: Final = 300.0
_MOST_PENDING: Final = 1_000
_MOST_CODES: Final = 5
_MOST_NETWORKS: Final = 8


class LogInStatus(StrEnum):
    """How an attempt ended."""

    DONE = "done"
    WRONG = "wrong"
    """Name, password or code: it is not told which."""
    CODE_NEEDED = "code-needed"
    """The password is right; a one-time code is needed, with `pending`."""
    WAIT = "wait"
    """Too many attempts: `wait_s`."""


@dataclass(frozen=True, slots=True)
class LogInResult:
    """The result of an attempt.

    Attributes:
        secret: of the new session, for the cookie.
        device: a mark for the browser (`random_secrets.sign_device`).
        pending: identifies the log-in that a code completes.
        wait_s: seconds until the next attempt is permitted.
    """

    status: LogInStatus
    account: Account | None = None
    session: WebSession | None = None
    secret: str = ""
    device: str = ""
    pending: str = ""
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class From:
    """Where an attempt comes from.

    Attributes:
        network: by `network_of`.
        agent: `User-Agent`.
        device: the mark of the browser, `""` for none.
    """

    network: str
    agent: str = ""
    device: str = ""


@dataclass(slots=True)
class _Pending:
    account_id: int
    network: str
    until: float
    codes: int = 0


class LogIn:
    """Logs accounts in. Threads may share one.

    Args:
        store: the database.
        key: signs the marks of browsers.
        passwords: hashes.
        throttle: delays.
        clock: Unix seconds.
        admins_only: no other account logs in with a password.
    """

    def __init__(
        self,
        store: Store,
        key: bytes,
        passwords: Passwords | None = None,
        throttle: LogInThrottle | None = None,
        clock: Callable[[], float] = time.time,
        *,
        admins_only: bool = False,
    ) -> None:
        self._store = store
        self._key = key
        self._passwords = passwords or Passwords()
        self._throttle = throttle or LogInThrottle()
        self._clock = clock
        self._admins_only = admins_only
        self._accounts = Accounts(store, self._passwords, clock)
        self._sessions = Sessions(store, clock)
        self._lock = threading.Lock()
        self._pending: OrderedDict[str, _Pending] = OrderedDict()

    def with_password(self, name: str, password: str, source: From) -> LogInResult:
        """Checks name and password. An unknown name, or a disabled account, takes as long as a wrong password."""
        folded = folded_name(name)[:100]
        account = self._store.accounts.find(folded)
        wait = self._begin(folded, account, source)
        if wait > 0:
            return LogInResult(LogInStatus.WAIT, wait_s=wait)
        usable = account is not None and not account.disabled and (account.role is Role.ADMIN or not self._admins_only)
        fits = self._passwords.fits(account.password_hash if account is not None and usable else "", password)
        if account is None or not usable or not fits:
            return LogInResult(LogInStatus.WRONG)
        if self._passwords.is_outdated(account.password_hash):
            account = self._rehashed(account, password)
        if account.has_second_factor:
            return LogInResult(LogInStatus.CODE_NEEDED, account, pending=self._wait_for_code(account, source))
        self._succeeded(folded, account, source)
        return self.open(account, source)

    def with_code(self, pending: str, code: str, source: From) -> LogInResult:
        """Checks a one-time code or a recovery code for a log-in whose password was right; five attempts in five minutes."""
        with self._lock:
            found = self._pending.get(pending)
            if found is None or found.until <= self._clock() or found.network != source.network:
                self._pending.pop(pending, None)
                return LogInResult(LogInStatus.WRONG)
            found.codes += 1
            if found.codes >= _MOST_CODES:
                del self._pending[pending]
        account = self._store.accounts.get(found.account_id)
        if account is None or account.disabled:
            return LogInResult(LogInStatus.WRONG)
        folded = folded_name(account.name)
        if found.codes > 1:  # the first one belongs to the attempt that the password has counted
            wait = self._begin(folded, account, source)
            if wait > 0:
                return LogInResult(LogInStatus.WAIT, wait_s=wait)
        device = self._device(account, source)
        wait = self._throttle.begin_code(folded, device=device)
        if wait > 0:
            return LogInResult(LogInStatus.WAIT, wait_s=wait)
        if not self._accounts.use_code(account, code):
            still = found.codes < _MOST_CODES
            return LogInResult(LogInStatus.CODE_NEEDED if still else LogInStatus.WRONG, pending=pending if still else "")
        self._throttle.code_succeeded(folded, device=device)
        with self._lock:
            self._pending.pop(pending, None)
        self._succeeded(folded, account, source)
        return self.open(account, source)

    def confirm(self, account: Account, password: str, source: From) -> LogInResult:
        """Checks the password of an account that is logged in, before a change of its log-in; delayed as a log-in is."""
        folded = folded_name(account.name)
        wait = self._begin(folded, account, source)
        if wait > 0:
            return LogInResult(LogInStatus.WAIT, wait_s=wait)
        if not self._passwords.fits(account.password_hash, password):
            return LogInResult(LogInStatus.WRONG)
        self._succeeded(folded, account, source)
        return LogInResult(LogInStatus.DONE, account)

    def open(self, account: Account, source: From) -> LogInResult:
        """Opens a session for an account whose owner was identified, and notes the log-in."""
        now = self._clock()

        def note(before: Account, _: Sequence[Account]) -> Account:
            networks = [network for network in before.networks if network != source.network]
            return replace(before, logged_in_at=now, networks=(*networks, source.network)[-_MOST_NETWORKS:])

        account = self._store.accounts.change(account.account_id, note) or account
        secret, session = self._sessions.open(account, source.network, source.agent)
        return LogInResult(LogInStatus.DONE, account, session, secret, sign_device(self._key, account.account_id))

    def _begin(self, folded: str, account: Account | None, source: From) -> float:
        return self._throttle.begin(
            folded, source.network, known=self._knows(account, source), device=self._device(account, source)
        )

    def _succeeded(self, folded: str, account: Account, source: From) -> None:
        known, device = self._knows(account, source), self._device(account, source)
        self._throttle.succeeded(folded, source.network, known=known, device=device)

    def _knows(self, account: Account | None, source: From) -> bool:
        return account is not None and source.network in account.networks

    def _device(self, account: Account | None, source: From) -> str:
        return read_device(self._key, account.account_id, source.device) if account is not None and source.device else ""

    def _wait_for_code(self, account: Account, source: From) -> str:
        now = self._clock()
        made = secrets.token_urlsafe(24)
        with self._lock:
            while self._pending and next(iter(self._pending.values())).until <= now:
                self._pending.popitem(last=False)
            while len(self._pending) >= _MOST_PENDING:
                self._pending.popitem(last=False)
            self._pending[made] = _Pending(account.account_id, source.network, now + _PENDING_S)
        return made

    def _rehashed(self, account: Account, password: str) -> Account:
        password_hash = self._passwords.hash(password)

        def edit(now: Account, _: Sequence[Account]) -> Account:
            return replace(now, password_hash=password_hash) if now.password_hash == account.password_hash else now

        return self._store.accounts.change(account.account_id, edit) or account
