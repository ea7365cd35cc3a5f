"""Words of a page that do not count, because its request put them there.

Search pages repeat what they are asked, in title and headings too. Matching is generous: a word of the page goes when it stands
anywhere in the ignored text, also across separators there (`ca.sino` is repeated as `casino`), and Chinese text by pairs of
characters, since it has no spaces. Too much may be removed: callers test whether a verdict still stands without these words.
"""

import re
from itertools import pairwise
from typing import Final

from gatewayfilter.classify.normalize.views import normal_view

_HAN: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_RUN: Final = re.compile(rf"[{_HAN}]+|[^\W_{_HAN}]+")
_HAN_RUN: Final = re.compile(rf"[{_HAN}]+")
_APART: Final = re.compile(r"[\W_]+")
_SHORT: Final = 3
"""Letters below which a word goes only when it is one of the ignored text: every text has `in` and `at` somewhere inside."""


class IgnoredWords:
    """Takes words out of texts in the normal view.

    Args:
        text: what is ignored; lines are apart from each other.
    """

    def __init__(self, text: str) -> None:
        seen = normal_view(text)
        self._words = frozenset(_RUN.findall(seen))
        self._squeezed = "\n".join(_APART.sub("", line) for line in seen.split("\n"))
        self._pairs = frozenset(pair for run in _HAN_RUN.findall(self._squeezed) for pair in pairwise(run))

    def taken_out_of(self, text: str) -> str:
        """Returns a text without the ignored words. Linear in it."""
        return _RUN.sub(self._left_of, text)

    def _left_of(self, match: re.Match[str]) -> str:
        word = match[0]
        if word in self._words:
            return " "
        if _HAN_RUN.match(word):
            gone = {place for at, pair in enumerate(pairwise(word)) if pair in self._pairs for place in (at, at + 1)}
            return "".join(" " if at in gone else mark for at, mark in enumerate(word))
        return " " if len(word) >= _SHORT and word in self._squeezed else word
