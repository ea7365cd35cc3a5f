"""The starter lists that come with the program, as read-only sources."""

import re
from functools import lru_cache
from pathlib import Path

from gatewayfilter.model import ListAction
from gatewayfilter.sources.categories import OTHER, Categories
from gatewayfilter.sources.formats.list_format import ListFormat, ParseReport
from gatewayfilter.sources.subscription import Definition, Subscription

PREFIX = "starter-"
"""How the names of the starter lists begin; no other source may be called so."""

_CATEGORY_LINE = re.compile(r"[!#]\s*Category:\s*([a-z0-9-]+)\s*$", re.ASCII | re.IGNORECASE | re.MULTILINE)
_OFF_LINE = re.compile(r"[!#]\s*Enabled:\s*no\s*$", re.ASCII | re.IGNORECASE | re.MULTILINE)
_HEADER_SIZE = 2048
_COMMENTS = ("!", "#")


def starter_lists(folder: Path, categories: Categories) -> dict[str, Subscription]:
    """Returns the starter lists by name, as they are until somebody switches one; a line `! Category: ads` names the category.

    `! Enabled: no` keeps a list off until it is switched on. The tests hold that the lists have one entry a line.

    Args:
        folder: holds `*.txt`: in Adblock syntax where the category blocks, a domain a line where it does not. A missing folder
            holds none.
        categories: define what being in a category means.
    """
    found: dict[str, Subscription] = {}
    for path in sorted(folder.glob("*.txt")):
        category, enabled, entries = _read(path.read_text(encoding="utf-8", errors="replace"))
        name = f"{PREFIX}{path.stem}"
        action = categories.get(category).action
        list_format = ListFormat.ADBLOCK if action is ListAction.BLOCK else ListFormat.DOMAINS
        definition = Definition(name, str(path), list_format, category, action, interval_h=0, enabled=enabled, bundled=True)
        found[name] = Subscription(definition, path, report=ParseReport(list_format, entries))
    return found


@lru_cache(maxsize=32)
def _read(text: str) -> tuple[str, bool, int]:
    """Returns the category, whether the list is on, and its entries. Pages and commands ask for these lists many times."""
    head = text[:_HEADER_SIZE]
    header = _CATEGORY_LINE.search(head)
    entries = sum(1 for line in text.splitlines() if line.strip() and not line.startswith(_COMMENTS))
    return header[1].lower() if header else OTHER, _OFF_LINE.search(head) is None, entries
