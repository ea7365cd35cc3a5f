"""What the dashboard needs of accounts: one object of each use case, over one database."""

import base64
import hmac
import time
from collections.abc import Callable
from typing import Final

from gatewayfilter.config import Settings, split_address
from gatewayfilter.errors import MissingAccountError
from gatewayfilter.model import Account, Actor, Role
from gatewayfilter.settings import PasswordUse
from gatewayfilter.settings.web import is_loopback
from gatewayfilter.store import Store
from gatewayfilter.store.secret_key import load_key
from gatewayfilter.use_cases.access.accounts import Accounts
from gatewayfilter.use_cases.access.audit_trail import AuditTrail
from gatewayfilter.use_cases.access.log_in import From, LogIn, LogInResult
from gatewayfilter.use_cases.access.passwords import Passwords
from gatewayfilter.use_cases.access.sessions import Sessions
from gatewayfilter.use_cases.access.throttle import LogInThrottle
from gatewayfilter.use_cases.access.tokens import ApiTokens
from gatewayfilter.use_cases.access.undo import RuleUndo, SourceUndo, Undo
from gatewayfilter.wiring import review_service

WEB_KEY: Final = "web.key"
"""File of the state folder with the key that signs marks of browsers and makes the set-up code."""

_CODE_BYTES: Final = 10


class DashboardAccess:
    """The use cases of accounts. Threads may share one.

    Args:
        settings: the state folder, and how long sessions last.
        store: the database.
        extraction: takes changes of extraction rules back.
        clock: Unix seconds.
        sources: undoes changes of subscriptions.

    Raises:
        StartupError: the key can be neither read nor made.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        extraction: RuleUndo,
        clock: Callable[[], float] = time.time,
        sources: SourceUndo | None = None,
    ) -> None:
        key = load_key(settings.data_dir, WEB_KEY)
        passwords = Passwords()
        self._store = store
        self._setup_code = setup_code(key)
        self.accounts = Accounts(store, passwords, clock)
        self.sessions = Sessions(store, clock, idle_s=settings.web.session_hours * 3600.0)
        self.tokens = ApiTokens(store, clock)
        oidc = settings.web.oidc
        admins_only = oidc.is_on and oidc.passwords is PasswordUse.ADMINS
        self.log_in = LogIn(store, key, passwords, LogInThrottle(), clock, admins_only=admins_only)
        self.trail = AuditTrail(store, clock)
        self.undo = Undo(store, lambda: review_service(settings, store), extraction, clock, sources)

    def has_accounts(self) -> bool:
        """Returns whether there is an account; without any, the browser offers to make the first one."""
        return self._store.accounts.exist()

    def is_setup_code(self, code: str) -> bool:
        """Returns whether somebody may make the first account from another machine."""
        typed = "".join(mark for mark in code[:100].upper() if mark.isalnum())
        return hmac.compare_digest(typed.encode(), self._setup_code.replace("-", "").encode())

    def add_first(self, name: str, password: str, source: From, actor: Actor) -> LogInResult:
        """Makes the first account, an admin, and logs it in.

        Raises:
            AccountError: there is an account already, or name or password cannot be used.
        """
        account = self.accounts.add(name, Role.ADMIN, password, only_first=True)
        self.trail.record(actor, "user.added", account.name, f"role {account.role}")
        return self.log_in.open(account, source)

    def account(self, account_id: int) -> Account:
        """Returns the account with a number.

        Raises:
            AccountError: there is none.
        """
        found = self._store.accounts.get(account_id)
        if found is None:
            raise MissingAccountError(f"there is no account {account_id}")
        return found


def needs_setup_code(settings: Settings) -> bool:
    """Returns whether the first account is made with the code only: where another machine could reach the dashboard.

    It could do so through the proxy, too, which would connect from this machine.
    """
    listened = [address for address in (settings.web.listen, settings.proxy.listen) if address]
    return settings.proxy.mode == "transparent" or not all(is_loopback(split_address(address)[0]) for address in listened)


def setup_code(key: bytes) -> str:
    """Returns the code with which the first account is made from another machine: sixteen characters in four groups.

    It is made of the key, so that `run` prints the same one at each start, and useless once there is an account.
    """
    text = base64.b32encode(hmac.digest(key, b"set-up code", "sha256")[:_CODE_BYTES]).decode()
    return "-".join(text[start : start + 4] for start in range(0, len(text), 4))
