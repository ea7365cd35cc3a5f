"""The order in which people look for names: class 2 before class 10, whatever their case."""

import re
from typing import Final

_NUMBER: Final = re.compile(r"([0-9]{1,15})")

type NameOrder = tuple[tuple[str | int, ...], str]
"""Texts and numbers by turns, and the name itself: no two names are equal."""


def name_order(name: str) -> NameOrder:
    """Returns what names are sorted by."""
    pieces = _NUMBER.split(name.casefold())
    return tuple(int(piece) if at % 2 else piece for at, piece in enumerate(pieces)), name
