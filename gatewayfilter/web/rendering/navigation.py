"""The map of the dashboard: the entries of the rail on wide screens and of the bar on phones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final


def _n(message: str) -> str:
    """Marks a message for translation."""
    return message


@dataclass(frozen=True, slots=True)
class NavEntry:
    """A page in the navigation.

    Attributes:
        key: what a page passes as `active`.
        label: in English; templates translate it.
        icon: of the sprite.
        group: key of the entry below which it stands, `""` for the first level.
        phone: whether it stands in the bar of phones.
        counted: whether a number stands beside it: what waits for a person (`WebServices.waiting`).
        role: the lowest role that sees it, as a number (1 viewer, 2 approver, 3 admin).
    """

    key: str
    url: str
    label: str
    icon: str
    group: str = ""
    phone: bool = False
    counted: bool = False
    role: int = 1


ENTRIES: Final = (
    NavEntry("today", "/", _n("Today"), "today", phone=True),
    NavEntry("requests", "/requests", _n("Requests"), "request", "today", phone=True, counted=True),
    NavEntry("review", "/review", _n("Review"), "review", "today", counted=True),
    NavEntry("reports", "/reports", _n("Reports"), "report", "today"),
    NavEntry("log", "/log", _n("Log"), "log", phone=True),
    NavEntry("people", "/clients", _n("People"), "people", phone=True),
    NavEntry("policies", "/policies", _n("Policies"), "policy", "people"),
    NavEntry("rules", "/rules", _n("Rules"), "rule"),
    NavEntry("lists", "/lists", _n("Lists"), "list", "rules"),
    NavEntry("check", "/check", _n("Check an address"), "check", "rules"),
    NavEntry("words", "/words", _n("Words"), "word", "rules"),
    NavEntry("crawler", "/crawler", _n("Crawler"), "crawler", "rules"),
    NavEntry("system", "/system", _n("System"), "system", role=3),
    NavEntry("https", "/https", _n("HTTPS"), "lock", "system", role=3),
    NavEntry("device", "/device", _n("Add a device"), "device", "system"),
    NavEntry("settings", "/settings", _n("Settings"), "settings", "system", role=3),
    NavEntry("backup", "/backup", _n("Backup"), "backup", "system", role=3),
    NavEntry("users", "/users", _n("Users"), "user", "system", role=3),
    NavEntry("audit", "/audit", _n("Audit"), "audit", "system", role=3),
)


class Waiting:
    """What waits for a person, by the key of an entry; read when a page shows its first entry.

    Args:
        read: returns the numbers.
    """

    def __init__(self, read: Callable[[], Mapping[str, int]]) -> None:
        self._read = read
        self._found: Mapping[str, int] | None = None

    def get(self, key: str) -> int:
        """Returns the number of an entry, 0 for none."""
        if self._found is None:
            self._found = self._read()
        return self._found.get(key, 0)


def entries_for(role: int) -> tuple[NavEntry, ...]:
    """Returns the entries that a role sees, in order."""
    return tuple(entry for entry in ENTRIES if entry.role <= role)
