"""The user file of the proxy: names and salted scrypt hashes, and the check of a `Proxy-Authorization` header against it.

One line a user: `name:scrypt:N:r:p:salt:hash`, salt and hash in base64. RFC 7617 for the header, RFC 7914 for the hash.
"""

import binascii
import hmac
import os
import secrets
from base64 import b64decode, b64encode
from dataclasses import dataclass, replace
from hashlib import blake2b, scrypt
from pathlib import Path
from typing import Final

from gatewayfilter.errors import StartupError

_COST: Final = 16_384
_BLOCK: Final = 8
_PARALLEL: Final = 1
_MOST_MEMORY: Final = 67_108_864
_SALT_BYTES: Final = 16
_HASH_BYTES: Final = 32
_LONGEST_HEADER: Final = 1_024
_MOST_REMEMBERED: Final = 1_024


@dataclass(frozen=True, slots=True)
class PasswordHash:
    """A password as the file keeps it."""

    cost: int
    block: int
    parallel: int
    salt: bytes
    digest: bytes

    @classmethod
    def of(cls, password: str) -> "PasswordHash":
        """Returns the hash of a new password, under a salt of its own. Takes about 50 ms."""
        salt = secrets.token_bytes(_SALT_BYTES)
        return cls(_COST, _BLOCK, _PARALLEL, salt, _scrypt(password, _COST, _BLOCK, _PARALLEL, salt))

    @classmethod
    def parse(cls, text: str) -> "PasswordHash":
        """Reads what `str` wrote.

        Raises:
            ValueError: it is none.
        """
        kind, cost, block, parallel, salt, digest = text.split(":")
        if kind != "scrypt":
            raise ValueError(f"unknown kind of hash {kind!r}")
        made = cls(int(cost), int(block), int(parallel), b64decode(salt, validate=True), b64decode(digest, validate=True))
        if 128 * made.cost * made.block * made.parallel > _MOST_MEMORY or made.cost < 2 or len(made.digest) < 16:
            raise ValueError("a hash that takes too much memory, or none")
        return made

    def fits(self, password: str) -> bool:
        """Returns whether it is this password's. Takes about 50 ms."""
        return hmac.compare_digest(
            self.digest, _scrypt(password, self.cost, self.block, self.parallel, self.salt, len(self.digest))
        )

    def __str__(self) -> str:
        salt, digest = b64encode(self.salt).decode(), b64encode(self.digest).decode()
        return f"scrypt:{self.cost}:{self.block}:{self.parallel}:{salt}:{digest}"


def _scrypt(password: str, cost: int, block: int, parallel: int, salt: bytes, length: int = _HASH_BYTES) -> bytes:
    return scrypt(password.encode(), salt=salt, n=cost, r=block, p=parallel, maxmem=2 * _MOST_MEMORY, dklen=length)


def read_users(path: Path) -> dict[str, PasswordHash]:
    """Returns the users of a file, by name.

    Raises:
        StartupError: it cannot be read, or a line has no user; the message names the line.
    """
    users: dict[str, PasswordHash] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise StartupError(
            f"cannot read the users of the proxy in {path}: {getattr(error, 'strerror', None) or error}"
        ) from error
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, rest = line.partition(":")
        try:
            users[name] = PasswordHash.parse(rest.strip())
        except (ValueError, binascii.Error) as error:
            raise StartupError(f"{path}, line {number} is no user: make it with `gatewayfilter proxy-user add`") from error
    return users


def write_users(path: Path, users: dict[str, PasswordHash]) -> None:
    """Writes a file of users, whole, readable for its owner alone.

    Raises:
        StartupError: it cannot be written.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(f"{name}:{kept}\n" for name, kept in sorted(users.items()))
        aside.replace(path)
    except OSError as error:
        raise StartupError(f"cannot write the users of the proxy to {path}: {error.strerror}") from error


class Users:
    """Checks what clients send against a file, which may change while they do.

    The hash is slow on purpose: a header that was right once is remembered, under a key of this process, until the file changes.

    Args:
        path: the file.

    Raises:
        StartupError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._key = secrets.token_bytes(32)
        self._users = read_users(path)
        self._version = self._stat()
        self._known: dict[bytes, str] = {}
        self._nobody = _nobody_like(self._users)

    def refresh(self) -> None:
        """Reads the file again when it has changed; one that cannot be read leaves the users as they are. Does I/O."""
        version = self._stat()
        if version == self._version:
            return
        try:
            users = read_users(self._path)
        except StartupError:
            return
        self._users, self._version, self._nobody = users, version, _nobody_like(users)
        self._known = {}
        self._key = secrets.token_bytes(32)

    def recall(self, header: str) -> str:
        """Returns the user of a header that was right before, `""` for none. Takes microseconds."""
        return self._known.get(self.digest(header), "") if header else ""

    def verify(self, header: str) -> str:
        """Returns the user that a `Proxy-Authorization` header is right for, `""` for none. 50 ms: call it from a thread."""
        name, password = _read_basic(header)
        known = self._users
        digest = self.digest(header)
        kept = known.get(name)
        right = (kept or self._nobody).fits(password)  # as long for a name that does not exist
        if kept is None or not right:
            return ""
        if known is self._users:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known = {}
            self._known[digest] = name
        return name

    def named(self, header: str) -> str:
        """Returns the existing user that a header names, with whatever password, `""` for none.

        What else stands there is not for logs: people write passwords into the wrong field.
        """
        name, _ = _read_basic(header)
        return name if name in self._users else ""

    def digest(self, header: str) -> bytes:
        """Returns what stands for the name and password of a header, however they are written, until the file changes."""
        text = "\0".join(_read_basic(header)).encode("utf-8", "surrogateescape")
        return blake2b(text, key=self._key, digest_size=32).digest()

    def _stat(self) -> tuple[int, int]:
        try:
            found = self._path.stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_ino


def _nobody_like(users: dict[str, PasswordHash]) -> PasswordHash:
    """Returns the hash that names which do not exist are held against: it takes as long as the most expensive one of a user."""
    made = PasswordHash.of(secrets.token_hex(8))
    if not users:
        return made
    model = max(users.values(), key=lambda kept: kept.cost * kept.block * kept.parallel)
    return replace(made, cost=model.cost, block=model.block, parallel=model.parallel)


def _read_basic(header: str) -> tuple[str, str]:
    scheme, _, credentials = header.strip().partition(" ")
    if scheme.lower() != "basic" or len(header) > _LONGEST_HEADER:
        return "", ""
    try:
        text = b64decode(credentials.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return "", ""
    name, _, password = text.partition(":")
    return name, password
