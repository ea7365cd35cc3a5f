"""Names of browsers for people, from their `User-Agent`: what a list of sessions shows in place of a line of versions."""

from dataclasses import dataclass
from typing import Final

_NAMES: Final = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Vivaldi/", "Vivaldi"),
    ("FxiOS/", "Firefox"),
    ("Firefox/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
"""What a field contains → name. The first one counts: most browsers also claim to be those below theirs."""
_SYSTEMS: Final = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)
_LONGEST: Final = 60


@dataclass(frozen=True, slots=True)
class BrowserName:
    """A browser.

    Attributes:
        name: as people know it, or the beginning of the field.
        system: on which it runs, `""` where that is not told.
    """

    name: str
    system: str


def browser_name(agent: str) -> BrowserName:
    """Returns the name of a browser. The field is what the browser claims: it names, and proves nothing."""
    name = next((title for part, title in _NAMES if part in agent), "")
    if not name:
        return BrowserName(agent[:_LONGEST], "")
    return BrowserName(name, next((title for part, title in _SYSTEMS if part in agent), ""))
