"""The form of a page's text: whether it is written as prose or made of menus, tables and lists, whatever it speaks of."""

from math import log1p
from typing import NamedTuple

READ = 4_000
"""Characters of the visible text that count."""
SHORT_LINE = 16.0
"""Ideographs up to which a line is short; letters count less (`IDEOGRAPHS_A_LETTER`)."""
IDEOGRAPHS_A_LETTER = 0.4
_DIGITS = "0123456789"


class Form(NamedTuple):
    """The form of a text.

    Attributes:
        line: natural logarithm of the mean length of its lines, in ideographs.
        short: share of the text that stands in short lines.
        digits: share of its characters that are digits.
        latin: share of its characters that are ASCII.
    """

    line: float
    short: float
    digits: float
    latin: float


PLAIN = Form(3.0, 0.0, 0.0, 1.0)
"""Of ordinary prose."""


def form_of(text: str, *, ideographic: bool) -> Form:
    """Returns the form of a text in its normal view. Linear in the text, of which `READ` characters are read."""
    text = text[:READ]
    scale = 1.0 if ideographic else IDEOGRAPHS_A_LETTER
    lengths = [len(line) for line in text.split("\n") if line]
    total = sum(lengths)
    if not total:
        return PLAIN
    short = sum(length for length in lengths if length * scale <= SHORT_LINE)
    digits = sum(map(text.count, _DIGITS))
    latin = len(text.encode("ascii", "ignore"))
    return Form(log1p(scale * total / len(lengths)), short / total, digits / len(text), latin / len(text))
