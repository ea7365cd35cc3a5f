"""Password hashes with argon2id (RFC 9106), and the rules for new passwords."""

import threading
import unicodedata
from typing import Final

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError

from gatewayfilter.errors import AccountError
from gatewayfilter.model import folded_name

SHORTEST: Final = 10
"""Characters. Length is asked for, not kinds of characters (NIST SP 800-63B, 5.1.1)."""
LONGEST: Final = 256

_MEMORY_KIB: Final = 19_456
_PASSES: Final = 2
_LANES: Final = 1
"""The parameters that OWASP recommends as the least: 19 MiB, two passes, one lane. Some 30 ms of one core.

More memory would be a burden: the web process may use 120 MB in all, and stays on small gateways.
"""

_OF_NO_PASSWORD: Final = f"$argon2id$v=19$m={_MEMORY_KIB},t={_PASSES},p={_LANES}${'A' * 22}${'A' * 43}"
"""Checked where there is no hash, so that an unknown name takes as long as a known one."""

_REFUSED: Final = frozenset(
    {
        "0123456789",
        "1111111111",
        "1234567890",
        "12345678910",
        "1q2w3e4r5t",
        "1qaz2wsx3edc",
        "abcdefghij",
        "administrator",
        "adminadmin",
        "asdfghjkl;",
        "changeme123",
        "gatewayfilter",
        "iloveyou123",
        "letmein123",
        "password01",
        "password12",
        "password123",
        "passwordpassword",
        "qwerty1234",
        "qwerty12345",
        "qwertyuiop",
        "welcome123",
        "woaini1314",
        "woaini520520",
    }
)
"""Long enough, and tried first by everybody."""


class Passwords:
    """Makes and checks password hashes, one at a time: concurrent log-ins use the memory and the core of one."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher(time_cost=_PASSES, memory_cost=_MEMORY_KIB, parallelism=_LANES, type=Type.ID)
        self._turn = threading.Lock()

    def hash(self, password: str) -> str:
        """Returns the hash of a password under a salt of its own, in the PHC string format."""
        with self._turn:
            return self._hasher.hash(_normal(password))

    def fits(self, password_hash: str, password: str) -> bool:
        """Returns whether a password has this hash. Takes the same time for `""`, which no password has."""
        if len(password) > LONGEST:
            password = ""
        found = bool(password_hash)
        with self._turn:
            try:
                return self._hasher.verify(password_hash or _OF_NO_PASSWORD, _normal(password)) and found
            except (VerificationError, InvalidHashError):
                return False

    def is_outdated(self, password_hash: str) -> bool:
        """Returns whether a hash has other parameters than new ones."""
        try:
            return self._hasher.check_needs_rehash(password_hash)
        except InvalidHashError:
            return True


def check_new_password(password: str, account_name: str) -> None:
    """Checks a password that somebody chose.

    Raises:
        AccountError: it is too short, too long, the name, or among the first that are tried.
    """
    normal = _normal(password)
    if len(normal) < SHORTEST:
        raise AccountError(f"a password has at least {SHORTEST} characters")
    if len(normal) > LONGEST:
        raise AccountError(f"a password has at most {LONGEST} characters")
    folded = normal.casefold()
    if len(set(folded)) < 4 or folded in _REFUSED:
        raise AccountError("this password is among the first that are tried; choose another one")
    name = folded_name(account_name)
    if name and (folded == name or folded.strip("0123456789!.-_ ") == name):
        raise AccountError("a password is not the name of the account")


def _normal(password: str) -> str:
    """Returns the same text however a keyboard composes it; without lone surrogates, which cannot be encoded."""
    return unicodedata.normalize("NFKC", password.encode("utf-8", "replace").decode("utf-8"))
