"""The starter lists that come with the program, as read-only sources."""

import re
from pathlib import Path

from gatewayfilter.model import ListAction
from gatewayfilter.sources.categories import OTHER, Categories
from gatewayfilter.sources.formats.list_format import ListFormat
from gatewayfilter.sources.subscription import Definition

PREFIX = "starter-"
"""How the names of the starter lists begin; no other source may be called so."""

_CATEGORY_LINE = re.compile(r"[!#]\s*Category:\s*([a-z0-9-]+)\s*$", re.ASCII | re.IGNORECASE | re.MULTILINE)
_OFF_LINE = re.compile(r"[!#]\s*Enabled:\s*no\s*$", re.ASCII | re.IGNORECASE | re.MULTILINE)
_HEADER_SIZE = 2048


def starter_lists(folder: Path, categories: Categories) -> dict[str, tuple[Definition, Path]]:
    """Returns the starter lists by name, each with its file; a header line `! Category: ads` names the category.

    `! Enabled: no` keeps a list off until it is switched on.

    Args:
        folder: holds `*.txt`: in Adblock syntax where the category blocks, a domain a line where it does not. A missing folder
            holds none.
        categories: define what being in a category means.
    """
    found: dict[str, tuple[Definition, Path]] = {}
    for path in sorted(folder.glob("*.txt")):
        with path.open(encoding="utf-8", errors="replace") as file:
            head = file.read(_HEADER_SIZE)
        header = _CATEGORY_LINE.search(head)
        category = header[1].lower() if header else OTHER
        name = f"{PREFIX}{path.stem}"
        action = categories.get(category).action
        list_format = ListFormat.ADBLOCK if action is ListAction.BLOCK else ListFormat.DOMAINS
        definition = Definition(
            name, str(path), list_format, category, action, interval_h=0, enabled=_OFF_LINE.search(head) is None, bundled=True
        )
        found[name] = (definition, path)
    return found
