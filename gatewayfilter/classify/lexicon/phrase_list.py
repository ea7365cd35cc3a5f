"""Reads word lists of others: plain ones, a word a line, and e2guardian's weighted phrase lists."""

import re
from dataclasses import dataclass, field
from math import isfinite

from gatewayfilter.classify.lexicon.proximity import Proximity
from gatewayfilter.classify.lexicon.word_file import check_phrase
from gatewayfilter.classify.normalize.views import normal_view
from gatewayfilter.documents.encoding.charset import decode

E2GUARDIAN_SCALE = 0.2
"""e2guardian's limit for the young is 50 to 100 where ours is 20."""
PLAIN_WEIGHT = 5.0
_MAX_SAMPLES = 20
_PHRASES = re.compile(r"<([^<>]*)>")
_NUMBER = re.compile(r"\s*-?\d{1,6}(?:\.\d{1,6})?\s*")
_CATEGORY = re.compile(r'#\s*listcategory:\s*"?([^"\r\n]*)', re.IGNORECASE)


@dataclass(slots=True)
class PhraseList:
    """A word list of a foreign format.

    Attributes:
        words: phrase → weight; negative counts against.
        combinations: phrases that count only together → weight.
        rejected: lines that could not be read; `samples` are the first of them: (line number, why).
        near: lists of phrases that count near each other; only word files have them.
        title: the category's name in the list, `""` when it has none.
    """

    words: dict[str, float] = field(default_factory=dict)
    combinations: dict[tuple[str, ...], float] = field(default_factory=dict)
    rejected: int = 0
    samples: list[tuple[int, str]] = field(default_factory=list)
    title: str = ""
    near: list[Proximity] = field(default_factory=list)


def parse_phrase_list(
    data: bytes, *, weight: float = PLAIN_WEIGHT, scale: float = E2GUARDIAN_SCALE, charset: str = ""
) -> PhraseList:
    """Reads a list in either format, line by line; bad lines are counted, never raised.

    In e2guardian's format a blank inside the angle brackets is a word's boundary; without one the phrase is also found inside
    longer words. A list without weights there (a banned list) gets `weight` for each.

    Args:
        data: the file.
        weight: what a word without a weight counts.
        scale: what e2guardian's weights are multiplied by.
        charset: how to read the bytes (`gb2312`, `big5` …); found out by itself when empty.
    """
    text = decode(data, f"charset={charset}" if charset else "").text
    found = PhraseList()
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith(("#", ".")):
            if match := _CATEGORY.match(line):
                found.title = match[1].strip()
            continue
        try:
            _read_line(found, line, weight, scale)
        except ValueError as error:
            found.rejected += 1
            if len(found.samples) < _MAX_SAMPLES:
                found.samples.append((number, str(error)))
    return found


def _read_line(found: PhraseList, line: str, weight: float, scale: float) -> None:
    if not line.startswith("<"):
        found.words[normal_view(check_phrase(line))] = weight
        return
    items = _PHRASES.findall(line)
    if len(items) > 1 and _NUMBER.fullmatch(items[-1]):
        weight = float(items.pop()) * scale
    if not items:
        raise ValueError(f"no phrase in {line[:60]!r}")
    if not isfinite(weight) or weight == 0:
        raise ValueError(f"a weight of 0 in {line[:60]!r}")
    phrases = tuple(dict.fromkeys(_bounded(item) for item in items))
    if len(phrases) == 1:
        found.words[phrases[0]] = weight
    else:
        found.combinations[tuple(sorted(phrases))] = weight


def _bounded(item: str) -> str:
    bare = normal_view(check_phrase(item.replace("*", " ")))
    ascii_start, ascii_end = bare[0].isascii(), bare[-1].isascii()
    left = "" if item.startswith(" ") or not ascii_start else "*"
    right = "" if item.endswith(" ") or not ascii_end else "*"
    return f"{left}{bare}{right}"
