"""Two views of a text: the normal one that people read, and the squashed one without the tricks that hide words.

plain_views.py describes them. _views.pyx does the same, where it was compiled, in one pass each and a tenth of the time: a
character at a time for the normal view, and lines that squashing would change for the squashed one. What a character becomes it
asks here, once a process.
"""

import unicodedata
from array import array
from collections.abc import Iterable

from gatewayfilter.characters import HOMOGLYPHS, INVISIBLE
from gatewayfilter.classify.normalize import plain_views
from gatewayfilter.compiled import load

__all__ = ["changed_lines", "folded_alone", "normal_view", "squashed_view"]

_ALONE = (
    (0, 0x900), (0x10A0, 0x1100), (0x1E00, 0xA000), (0xAC00, 0xD7A4), (0xE000, 0xF900), (0xFB00, 0x10000), (0x1F000, 0x1FB00)
)  # fmt: skip
"""Codes of characters that may stand alone. Of all that compose with a character before them there are only those here that
`combining` decides; texts with others, Indic ones mostly, are left to Python."""
_BEYOND = 0x1FB00
_CAPITAL_SIGMA = "\u03a3"
"""Another small letter at the end of a word."""


def folded_alone(character: str) -> str | None:
    """Returns what a character becomes in the normal view whatever stands beside it; `None` when its neighbours matter."""
    if not _stands_alone(character):
        return None
    seen = plain_views.normal_view(f"x{character}x")
    folded = seen[1:-1]
    return folded if seen == f"x{folded}x" and folded and all(map(_stands_alone, folded)) else None


def _stands_alone(character: str) -> bool:
    if unicodedata.combining(character) or character == _CAPITAL_SIGMA:
        return False
    return any(first <= ord(character) < end for first, end in _ALONE)


def _kinds() -> "array[int]":
    """Returns the bits of what each character is, in the order of _views.pyx."""
    small = "abcdefghijklmnopqrstuvwxyz"
    kinds = array("H", bytes(2 * 0x10000))
    groups: tuple[Iterable[int], ...] = (
        map(ord, small),
        map(ord, "0123456789@$"),
        plain_views.LEET,
        (*range(0xC0, 0x250), *range(0x370, 0x530)),
        INVISIBLE,
        (*range(0x3400, 0x4DC0), *range(0x4E00, 0xA000)),
        map(ord, plain_views.IN_WORD),
        map(ord, plain_views.SEPARATORS),
        map(ord, plain_views.HAN_MARKS),
    )
    for bit, group in enumerate(groups):
        for code in group:
            kinds[code] |= 1 << bit
    return kinds


def _table(letters: dict[int, str], size: int) -> "array[int]":
    codes: Iterable[int] = (ord(letters.get(code, chr(code))) for code in range(size))
    return array("H", codes)


_compiled = load("gatewayfilter.classify.normalize._views")
_FOLDER = None if _compiled is None else _compiled.Folder(folded_alone, _BEYOND)
_SQUASHER = (
    None
    if _compiled is None
    else _compiled.Squasher(
        _kinds(), _table(HOMOGLYPHS, 0x530), _table({code: chr(new) for code, new in plain_views.LEET.items()}, 0x80)
    )
)


def normal_view(text: str) -> str:
    """Returns the text in NFKC, lower case, simplified characters; blanks folded to one, hyphens too, lines kept.

    Characters are simplified one for one (characters.py). Never raises, whatever the text; linear in it.
    """
    folded: str | None = None if _FOLDER is None else _FOLDER.fold(text)
    return plain_views.normal_view(text) if folded is None else folded


def squashed_view(normal: str) -> str:
    """Returns a normal view without inserted symbols, invisible characters, look-alikes, leet and spelled-out words.

    Sentence marks stay: they part words that stand side by side by chance. Equal to its input when there is nothing to undo.
    """
    if _SQUASHER is not None:
        squashed: str = _SQUASHER.squashed_view(normal)
        return squashed
    return plain_views.squashed_view(normal)


def changed_lines(normal: str) -> str:
    """Returns the lines of a normal view that squashing changes, squashed: what the others hold is known."""
    if _SQUASHER is not None:
        changed: str = _SQUASHER.changed_lines(normal)
        return changed
    return plain_views.changed_lines(normal)
