"""Suggestions of exception phrases, from rejected pages: phrases around a word in which it is harmless."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from ahocorasick_rs import AhoCorasick

from gatewayfilter.model import ReviewTask

_MOST_OF_WORD = 3
"""Phrases that are proposed for one word."""
_NEIGHBOURS = 2
"""Words to either side of an alphabetic hit."""
_CHARACTERS = 3
"""Characters to either side of a hit in a script without spaces."""
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_PLAIN = re.compile(r"[\w\s'\u2019-]*")
_HAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_FUNCTION_WORDS = """
a about after all also an and any are as at be been but by can could do does for from get had has have he her his how
i if in into is it its just me more my no not now of off on one or our out over she so some than that the their them
then there these they this to too up us very was we were what when which who will with would you your
的 了 在 和 是 与 及 或 也 都 就 而 被 把 这 那 我 你 他 她 它 们 有 个 为 以 于 对 等 着 地 得 之 其 上 下 中 到 从 向 很 不
"""
_SAYS_LITTLE = frozenset(_FUNCTION_WORDS.split())
"""One beside a sensitive word makes no other meaning of it, and stands beside it on harmful pages too."""
MAX_OCCURRENCES = 50
"""Occurrences of one word in one page that are examined."""
MAX_COUNTED = 200_000
"""Phrases that are counted at a time: beyond it those that were met least often are forgotten."""
MAX_CHECKED = 20_000
"""Most useful phrases that are searched on harmful pages, all in one pass over each."""


@dataclass(frozen=True, slots=True)
class ProposedPhrase:
    """A phrase that covers a word.

    Attributes:
        word: the sensitive word that counted against harmless pages.
        category: category of the word.
        phrase: what covers it.
        pages: harmless pages on which it stands.
    """

    word: str
    category: str
    phrase: str
    pages: int


def propose(
    rejected: Iterable[ReviewTask],
    approved: Iterable[ReviewTask],
    limit: int = 20,
    known: Collection[str] = (),
) -> list[ProposedPhrase]:
    """Returns phrases that stand around sensitive words on rejected pages and on no approved one, the most useful first.

    Of phrases that stand on equally many pages the shortest is proposed; at most three for a word. Beside the word there must be
    one with meaning of its own: "the casino" would cover the word nearly everywhere. A reviewer accepts them
    (`gatewayfilter review phrases --take`); nothing else does.

    Args:
        rejected: tasks that a reviewer rejected: harmless pages.
        approved: tasks that a reviewer approved: harmful pages.
        limit: most phrases.
        known: exceptions that are there already, of whatever category.
    """
    pages: Counter[tuple[str, str, str]] = Counter()
    for task in rejected:
        text = task.text.lower()
        words = {hit.word.lower() for hit in task.classification.evidence if hit.weight > 0}
        found = {
            (hit.word, hit.category, phrase)
            for hit in task.classification.evidence
            if hit.weight > 0 and hit.category == task.classification.category
            for phrase in _around(hit.word.lower(), text)
            if _says_something(rest := phrase.replace(hit.word.lower(), "\0", 1)) and not any(word in rest for word in words)
        }
        pages.update(found)
        if len(pages) > MAX_COUNTED:
            pages = Counter(dict(pages.most_common(MAX_COUNTED // 2)))
    counted = (ProposedPhrase(word, category, phrase, count) for (word, category, phrase), count in pages.items())
    candidates = sorted((candidate for candidate in counted if candidate.phrase not in known), key=_usefulness)[:MAX_CHECKED]
    if not candidates:
        return []
    harmful = _found_on(approved, {candidate.phrase for candidate in candidates})
    by_word: Counter[tuple[str, str]] = Counter()
    proposed: list[ProposedPhrase] = []
    for candidate in candidates:
        of_word = (candidate.word, candidate.category)
        if candidate.phrase not in harmful and by_word[of_word] < _MOST_OF_WORD:
            by_word[of_word] += 1
            proposed.append(candidate)
    return proposed[:limit]


def _found_on(tasks: Iterable[ReviewTask], phrases: Collection[str]) -> set[str]:
    """Returns the phrases that stand on the page of any of these tasks. One pass over each text, however many phrases."""
    patterns = list(phrases)
    automaton = AhoCorasick(patterns)
    found: set[int] = set()
    for task in tasks:
        found.update(pattern for pattern, _, _ in automaton.find_matches_as_indexes(task.text.lower(), overlapping=True))
    return {patterns[pattern] for pattern in found}


def _says_something(rest: str) -> bool:
    """Returns whether what stands beside a word is more than function words and numbers."""
    pieces = rest if _HAN.search(rest) else _WORD.findall(rest)
    return any(piece not in _SAYS_LITTLE and piece.isalpha() for piece in pieces)


def _usefulness(proposed: ProposedPhrase) -> tuple[int, int, str]:
    return -proposed.pages, len(proposed.phrase), proposed.phrase


def _around(word: str, text: str) -> Iterator[str]:
    start = -1
    for _ in range(MAX_OCCURRENCES):
        start = text.find(word, start + 1)
        if start < 0:
            return
        line_start = text.rfind("\n", 0, start) + 1
        line_end = text.find("\n", start)
        line = text[line_start : line_end if line_end >= 0 else len(text)]
        at = start - line_start
        yield from _phrases(line, at, at + len(word))


def _phrases(line: str, start: int, end: int) -> Iterator[str]:
    if _HAN.search(line[start:end]):
        for before in range(_CHARACTERS + 1):
            for after in range(_CHARACTERS + 1):
                phrase = line[max(0, start - before) : end + after]
                if before + after and len(phrase) == before + after + end - start and _WORD.fullmatch(phrase):
                    yield phrase
        return
    left = [match.start() for match in _WORD.finditer(line[:start])][-_NEIGHBOURS:]
    right = [end + match.end() for match in _WORD.finditer(line[end : end + 80])][:_NEIGHBOURS]
    for begin in (*left, start):
        for stop in (end, *right):
            around = f"{line[begin:start]} {line[end:stop]}"
            if (begin < start or stop > end) and _PLAIN.fullmatch(around):
                yield " ".join(line[begin:stop].split())
