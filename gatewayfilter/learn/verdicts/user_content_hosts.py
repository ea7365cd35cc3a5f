"""Hosts of user content: one page of theirs is no evidence about the next."""

from collections.abc import Iterable
from pathlib import Path

from gatewayfilter.urls import host_suffixes


class UserContentHosts:
    """Hosts of user content, each with its subdomains.

    Hosts that give each user a name of their own (`alice.blog.example`) need not be here where the public suffix list has
    them: their users' hosts are counted apart anyway.
    """

    def __init__(self, hosts: Iterable[str]) -> None:
        self._hosts = frozenset(hosts)

    @classmethod
    def load(cls, path: Path) -> "UserContentHosts":
        """Reads a file with one host a line and `#` comments; a file that is not there is empty."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError:
            return cls(())
        return cls(filter(None, (line.partition("#")[0].strip().lower() for line in lines)))

    def holds(self, host: str) -> bool:
        """Returns whether this host has content of its users."""
        return any(name in self._hosts for name in host_suffixes(host))
