"""Words of the request (query, posted form): a page that repeats them is no evidence against its site.

Any client, and any web page that a client opens, chooses the query of a URL; a client chooses its header fields too.
"""

import html
import re
from typing import Final
from urllib.parse import unquote_to_bytes

from gatewayfilter.classify import IgnoredWords
from gatewayfilter.interfaces import Page
from gatewayfilter.model import Classification
from gatewayfilter.urls import parse_url

_CHARSETS: Final = ("utf-8", "gb18030", "big5", "cp1252", "cp1251")
"""In which sites read escapes; what is wrong in one of them gives words that no page has."""
_TAG: Final = re.compile(r"<[^>]*>")
_MOST_UNESCAPED: Final = 3
_PARTS: Final = re.compile(r"[&;]")


def asked_words(page: Page) -> str:
    """Returns the words of the request for a page, in the spellings in which a site may repeat them; `""` for none."""
    urls = [parse_url(text) for text in dict.fromkeys((page.url, page.final_url)) if text]
    return _spellings([*(url.query[1:] for url in urls if url.query), page.said])


def address_words(page: Page) -> str:
    """Returns the words in the path and the query of a page's URLs: a site may repeat its path as well."""
    urls = [parse_url(text) for text in dict.fromkeys((page.url, page.final_url)) if text]
    return _spellings([*(url.path for url in urls if url.path != "/"), *(url.query[1:] for url in urls if url.query), page.said])


def touches(said: str, found: Classification) -> bool:
    """Returns whether a verdict may rest on these words: they are in its evidence, or part of that has no place in a text."""
    words = IgnoredWords(said)
    return any(hit.position < 0 or words.taken_out_of(hit.word) != hit.word for hit in found.evidence)


def _spellings(said: list[str]) -> str:
    found: dict[str, None] = {}
    for text in filter(None, said):
        for spelling in _unescaped(text):
            for part in (spelling, _TAG.sub("", spelling), html.unescape(spelling)):
                found[part] = None
                found |= dict.fromkeys(_PARTS.split(part))
    return "\n".join(filter(None, found))


def _unescaped(text: str) -> list[str]:
    found = [text]
    for _ in range(_MOST_UNESCAPED):
        data = unquote_to_bytes(text.replace("+", " "))
        found += [data.decode(charset, errors="replace") for charset in _CHARSETS]
        if found[-len(_CHARSETS)] == text:
            break
        text = found[-len(_CHARSETS)]
    return list(dict.fromkeys(found))
