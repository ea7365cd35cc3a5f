"""The users of the proxy, in the file that `proxy.auth_file` names. A running filter applies a change within a second."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from gatewayfilter.errors import ConfigError
from gatewayfilter.proxy.auth.user_file import PasswordHash, read_users, write_users

if TYPE_CHECKING:
    from pathlib import Path

    from gatewayfilter.config import Settings

_WRITING: Final = threading.Lock()
"""The file is read and written as a whole."""


class ProxyUsers:
    """The users of the proxy.

    Args:
        settings: with the file.

    Attributes:
        path: the file; it may not exist yet.

    Raises:
        ConfigError: there is no such setting.
    """

    def __init__(self, settings: Settings) -> None:
        path = settings.proxy.auth_file
        if path is None:
            raise ConfigError("set proxy.auth_file to the file that the users shall be kept in")
        self.path: Path = path

    def names(self) -> list[str]:
        """Returns the names in order.

        Raises:
            StartupError: the file cannot be read.
        """
        return sorted(self._read())

    def put(self, name: str, password: str) -> bool:
        """Adds a user, or changes the password of one. Returns whether there was one of that name.

        Raises:
            ConfigError: the name or the password cannot be used.
            StartupError: the file cannot be read or written.
        """
        check_name(name)
        if not password:
            raise ConfigError("a password must not be empty")
        made = PasswordHash.of(password)
        with _WRITING:
            users = self._read()
            known = name in users
            write_users(self.path, {**users, name: made})
        return known

    def remove(self, name: str) -> bool:
        """Removes a user. Returns whether there was one.

        Raises:
            StartupError: the file cannot be read or written.
        """
        with _WRITING:
            users = self._read()
            if users.pop(name, None) is None:
                return False
            write_users(self.path, users)
        return True

    def _read(self) -> dict[str, PasswordHash]:
        return read_users(self.path) if self.path.exists() else {}


def check_name(name: str) -> None:
    """Checks the name of a user.

    Raises:
        ConfigError: it cannot stand in the file, or in a header.
    """
    if not name.isprintable() or not name or any(mark in name for mark in ":# "):
        raise ConfigError("a user's name has neither colons, spaces nor number signs")
