"""The followers that a publisher admits: names and SHA-256 of their tokens, in a file of mode 0600.

A token has 256 random bits, so a plain digest of it cannot be reversed by trying.
"""

import fcntl
import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gatewayfilter.errors import FleetError, MissingFollowerError
from gatewayfilter.private_files import private, replace_file

TOKEN_PREFIX: Final = "gwfleet_"  # noqa: S105  the beginning of every token
MOST_MEMBERS: Final = 10_000
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_TOKEN: Final = re.compile(r"gwfleet_[A-Za-z0-9_-]{43}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Member:
    """A follower: its name, the digest of its token, and when it was added (Unix seconds)."""

    name: str
    digest: str
    added_at: float


def read_token(text: str) -> str:
    """Returns a token as it was typed, without white space.

    Raises:
        FleetError: it is none.
    """
    token = text.strip()
    if not _TOKEN.fullmatch(token):
        raise FleetError(
            "the token of this follower is not one that `fleet follower add` printed (fleet.token, fleet.token_file)"
        )
    return token


class Members:
    """The file of followers. Other processes' changes are seen at the next call.

    Args:
        path: of the file.
        clock: Unix seconds.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._stamp: tuple[int, int] | None = None
        self._by_digest: dict[str, Member] = {}

    def all(self) -> list[Member]:
        """Returns the followers by name.

        Raises:
            FleetError: the file cannot be read.
        """
        try:
            found = self._path.stat()
        except FileNotFoundError:
            self._stamp, self._by_digest = None, {}
            return []
        except OSError as error:
            raise self._fault(error) from error
        stamp = found.st_mtime_ns, found.st_ino
        if stamp != self._stamp:
            self._by_digest = {member.digest: member for member in self._read()}
            self._stamp = stamp
        return sorted(self._by_digest.values(), key=lambda member: member.name)

    def find(self, token: str) -> str | None:
        """Returns the name of the follower with a token, `None` for none.

        Raises:
            FleetError: the file cannot be read.
        """
        self.all()
        digest = _digest(token)
        found = self._by_digest.get(digest)
        return found.name if found is not None and hmac.compare_digest(found.digest, digest) else None

    def add(self, name: str) -> str:
        """Adds a follower. Returns its token, which is stored nowhere.

        Raises:
            FleetError: the name cannot be used or is taken, or the file cannot be written.
        """
        if not _NAME.fullmatch(name):
            raise FleetError(f"{name[:80]!r} cannot be the name of a follower: 1 to 64 letters, digits, dots, dashes")
        token = TOKEN_PREFIX + secrets.token_urlsafe(32)
        with self._changing() as members:
            if name in members:
                raise FleetError(f"there is a follower {name!r} already: remove it first")
            if len(members) >= MOST_MEMBERS:
                raise FleetError(f"there are {MOST_MEMBERS:,} followers already")
            members[name] = Member(name, _digest(token), self._clock())
        return token

    def remove(self, name: str) -> None:
        """Removes a follower: its token is refused from now on.

        Raises:
            MissingFollowerError: there is none of this name.
            FleetError: the file cannot be written.
        """
        with self._changing() as members:
            if members.pop(name, None) is None:
                raise MissingFollowerError(f"there is no follower {name!r}")

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Member]]:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(self._path.with_suffix(".lock"), "ab", opener=private) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                members = {member.name: member for member in self._read()}
                yield members
                rows = [[member.name, member.digest, member.added_at] for member in members.values()]
                replace_file(self._path, json.dumps({"followers": rows}).encode())
        except OSError as error:
            raise self._fault(error) from error

    def _read(self) -> list[Member]:
        try:
            rows = json.loads(self._path.read_bytes())["followers"]
            return [Member(str(name), str(digest), float(added_at)) for name, digest, added_at in rows]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._fault(error) from error

    def _fault(self, error: Exception) -> FleetError:
        return FleetError(f"cannot use {self._path}: {getattr(error, 'strerror', None) or 'it is damaged'}")


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
