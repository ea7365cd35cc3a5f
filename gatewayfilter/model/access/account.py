"""Accounts of the dashboard, with roles, sessions and API tokens. Secrets are held as digests."""

import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gatewayfilter.errors import AccountError

_LONGEST_NAME: Final = 64
_MARKS: Final = frozenset("._-@+")


class Role(StrEnum):
    """What an account may do. Each role includes those before it."""

    VIEWER = "viewer"
    """Reads."""
    APPROVER = "approver"
    """Answers requests, decides reviews, and pauses filtering."""
    ADMIN = "admin"
    """Changes everything."""

    def covers(self, needed: "Role") -> bool:
        """Returns whether this role includes another one."""
        return _RANKS[self] >= _RANKS[needed]


_RANKS: Final = {Role.VIEWER: 0, Role.APPROVER: 1, Role.ADMIN: 2}


class Scope(StrEnum):
    """What an API token may do, within the role of its account."""

    READ = "read"
    APPROVE = "approve"
    ADMIN = "admin"

    @property
    def role(self) -> Role:
        """The role that the scope corresponds to."""
        return _ROLES[self]

    def within(self, role: Role) -> Role:
        """Returns the role of a request with a token of this scope, of an account with that role: the lower one."""
        return min(self.role, role, key=_RANKS.__getitem__)


_ROLES: Final = {Scope.READ: Role.VIEWER, Scope.APPROVE: Role.APPROVER, Scope.ADMIN: Role.ADMIN}


@dataclass(frozen=True, slots=True)
class Account:
    """An account.

    Attributes:
        name: as it was given; unique, without regard to case.
        password_hash: of argon2id, `""` when the account has no password (single sign-on alone).
        totp_secret: 20 bytes in base32, `""` without a second factor.
        totp_step: the newest time step of which a code was accepted.
        recovery_digests: SHA-256 of the unused recovery codes, hexadecimal.
        language: of pages, as `en` or `zh`; `""` for that of the browser.
        external_id: issuer and subject of single sign-on, `""` for none.
        networks: from which it has logged in, the newest last.
        created_at, changed_at, logged_in_at: Unix seconds; `None` for never.
    """

    account_id: int
    name: str
    role: Role
    password_hash: str = ""
    totp_secret: str = ""
    totp_step: int = 0
    recovery_digests: tuple[str, ...] = ()
    language: str = ""
    external_id: str = ""
    networks: tuple[str, ...] = ()
    created_at: float = 0.0
    changed_at: float = 0.0
    logged_in_at: float | None = None
    disabled: bool = False

    @property
    def has_second_factor(self) -> bool:
        """Whether a log-in needs a code."""
        return bool(self.totp_secret)


@dataclass(frozen=True, slots=True)
class WebSession:
    """A session of a browser.

    Attributes:
        digest: SHA-256 of its token, which only the browser has.
        csrf: the token that forms and scripts must repeat.
        seen_at: of a request, at most a minute old.
        expires_at: Unix seconds, whatever happens.
        network: of the log-in: an IPv4 address or an IPv6 /64.
        agent: `User-Agent` of the log-in, cut.
    """

    digest: bytes
    account_id: int
    csrf: str
    created_at: float
    seen_at: float
    expires_at: float
    network: str
    agent: str

    @property
    def public_id(self) -> str:
        """Identifies the session in lists; does not open it."""
        return self.digest[:8].hex()


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token of the API.

    Attributes:
        digest: SHA-256 of the token, which is shown once.
        name: what it is for.
        expires_at: Unix seconds, `None` for never.
        used_at: of a request, at most a minute old; `None` for never.
    """

    token_id: int
    digest: bytes
    name: str
    account_id: int
    scope: Scope
    created_at: float
    expires_at: float | None = None
    used_at: float | None = None


def folded_name(name: str) -> str:
    """Returns what identifies an account: its name without regard to case and to forms of the same characters."""
    text = name.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")  # databases refuse others
    return unicodedata.normalize("NFKC", text).strip().casefold()


def check_account_name(name: str) -> str:
    """Returns a name as it is stored.

    Raises:
        AccountError: it is empty, too long, or has other characters than letters, digits and `. _ - @ +`.
    """
    name = unicodedata.normalize("NFKC", name).strip()
    if not 1 <= len(name) <= _LONGEST_NAME:
        raise AccountError(f"the name of an account has 1 to {_LONGEST_NAME} characters")
    if not all(mark.isalnum() or mark in _MARKS or unicodedata.category(mark) == "Mn" for mark in name):
        raise AccountError("the name of an account consists of letters, digits and . _ - @ +")
    if not name[0].isalnum():
        raise AccountError("the name of an account begins with a letter or a digit")
    return name
