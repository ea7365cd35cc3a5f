"""Search terms: words and phrases of a policy, found in what a request searches for however it is written.

Terms and searches are normalised alike, as pages are before their words are looked up (classify/normalize): compatibility forms
(full width), case, accents, invisible characters, traditional Chinese, look-alikes of other scripts in words that mix scripts,
digits in place of letters, words spelled out letter by letter. In scripts without spaces a term is found anywhere, in others as
whole words side by side.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_to_bytes

from gatewayfilter.characters import HOMOGLYPHS, INVISIBLE, simplified
from gatewayfilter.engine.policies.search_sites import SearchSite
from gatewayfilter.urls import Url, parameter_name

LONGEST_TEXT: Final = 2_000
"""Characters of one searched text that are looked through; search engines take a few hundred."""
MOST_TEXTS: Final = 200
"""Searched texts of one request that are looked through."""

_UNSPACED: Final = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_HAN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_HIDDEN: Final = re.compile(f"[{''.join(map(chr, INVISIBLE))}]+")
_TOKEN: Final = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_ONE_UNSPACED: Final = re.compile(f"[{_UNSPACED}]")
_LATIN: Final = re.compile("[a-z]")
_DIGITS: Final = str.maketrans("01345789", "oieastbg")
_FEWEST_SPELLED: Final = 4
_SEPARATOR: Final = re.compile("[&;]")
_COMBINING: Final = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u20d0-\u20ff]+")


def words_of(text: str) -> list[str]:
    """Returns the words of a text, normalised; each character of a script without spaces is a word."""
    text = _HIDDEN.sub("", unicodedata.normalize("NFKC", text[:LONGEST_TEXT]))[:LONGEST_TEXT].casefold()
    if not text.isascii():
        if _HAN.search(text):
            text = text.translate(_simplified())
        text = _COMBINING.sub("", unicodedata.normalize("NFD", text))
        text = unicodedata.normalize("NFC", text)  # Hangul was taken apart
    return [_latinised(word) for word in _TOKEN.findall(text)]


@lru_cache(maxsize=1)
def _simplified() -> dict[int, str]:
    return simplified()


def _latinised(word: str) -> str:
    return word.translate(HOMOGLYPHS) if not word.isascii() and _LATIN.search(word) else word


class SearchTerms:
    """Finds terms in searches. Immutable.

    Args:
        terms: words and phrases as the policy has them.
    """

    def __init__(self, terms: Iterable[str]) -> None:
        self._by_first: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        for term in terms:
            words = tuple(words_of(term))
            if words:
                self._by_first.setdefault(words[0], []).append((words, term))

    def find(self, text: str) -> str:
        """Returns the first term that a text contains, `""` for none."""
        words = words_of(text)
        found = self._find(words)
        if not found and (plain := [_undigited(word) for word in words]) != words:
            found = self._find(plain)
        return found or self._find_spelled(words)

    def find_any(self, texts: Iterable[str]) -> str | None:
        """Returns the first term that any text contains, `""` for none, `None` where they are too many or too long to be read."""
        for number, text in enumerate(texts):
            if number >= MOST_TEXTS or len(text) >= LONGEST_TEXT:
                return None
            if found := self.find(text):
                return found
        return ""

    def _find_spelled(self, words: Sequence[str]) -> str:
        for run in _spelled(words):
            for same in self._by_first.values():
                for term, written in same:
                    if len(term) == 1 and len(term[0]) >= _FEWEST_SPELLED and term[0] in run:
                        return written
        return ""

    def _find(self, words: Sequence[str]) -> str:
        for place, word in enumerate(words):
            for term, written in self._by_first.get(word, ()):
                if tuple(words[place : place + len(term)]) == term:
                    return written
        return ""


def _undigited(word: str) -> str:
    return word.translate(_DIGITS) if not word.isdecimal() and not word.isalpha() else word


def _spelled(words: Sequence[str]) -> Iterator[str]:
    """Yields runs of single letters, joined: words that are spelled out."""
    run = ""
    for word in [*words, ""]:
        if len(word) == 1 and not _ONE_UNSPACED.match(word):
            run += word
            continue
        if len(run) >= _FEWEST_SPELLED:
            yield run
        run = ""


def searched_texts(site: SearchSite, url: Url) -> Iterator[str]:
    """Yields what a request searches for by its URL: values of parameters, and the path where that holds it."""
    yield from searched_values(site, url.query[1:])
    if site.paths:
        path = decoded(site, url.path)
        lower = path.lower()
        for begin in site.paths:
            if lower.startswith(begin):
                yield path[len(begin) :].replace("/", " ").replace("_", " ").replace("-", " ")
                return


def searched_values(site: SearchSite, query: str) -> Iterator[str]:
    """Yields the values of the parameters of a query or form that hold what is searched, each of them that is repeated."""
    for piece in _SEPARATOR.split(query):
        name, mark, value = piece.partition("=")
        if mark and parameter_name(name) in site.parameters:
            yield decoded(site, value.replace("+", " "))


def searched_json(site: SearchSite, body: bytes) -> str | None:
    """Returns the text of a search that was posted as JSON, `""` where it has none, `None` where it cannot be read."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    text = found.get(site.json_field, "") if isinstance(found, dict) else ""
    return text if isinstance(text, str) else ""


def decoded(site: SearchSite, text: str) -> str:
    """Returns an escaped text."""
    found = unquote_to_bytes(text[: LONGEST_TEXT * 12])
    try:
        return found.decode()
    except UnicodeDecodeError:
        return found.decode(site.old_charset or "utf-8", "replace")
