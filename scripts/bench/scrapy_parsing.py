"""What a Scrapy project would parse with Scrapy's own tools: the peer of bench_crawl_peers.py.

Title, description, keywords and images come by parsel selectors, links by Scrapy's `LinkExtractor` (or by `quick_links`, as who
finds the extractor slow writes them), the main text by text density over the blocks of lxml's tree (the algorithm of
[cloud-crawler §5.1], with our constants), the words of our lexicon by one Aho-Corasick automaton. It is written as a careful user
would: selectors are compiled once, the tree is parsed once and walked once, numpy smooths. It judges by a plain sum of weights:
less than ours does, never more.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

import numpy as np
from ahocorasick_rs import AhoCorasick, Implementation, MatchKind
from lxml import etree
from scrapy.http import TextResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.utils.response import get_base_url

from gatewayfilter.classify import Lexicon
from gatewayfilter.documents.text_density import LEAST_SUM, LINK_HEAVY, LINK_WEIGHT, MAX_DENSITY, SIGMA, THRESHOLD

_TITLE = etree.XPath("string(//title)")
_DESCRIPTION = etree.XPath("string(//meta[@name='description' or @property='og:description']/@content)")
_KEYWORDS = etree.XPath("string(//meta[@name='keywords']/@content)")
_IMAGES = etree.XPath("//img[@src]")
_ANCHORS = etree.XPath("//a[@href]")
_INLINE_TAGS = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q s samp small span strike strong sub "
    "sup time tt u var wbr"
)
_INLINE = frozenset(_INLINE_TAGS.split())
_SKIPPED = frozenset(["script", "style", "noscript", "iframe", "template", "title", "head"])
_WORD = re.compile(r"\w")
_KERNEL = np.exp(-(np.arange(-2, 3) ** 2) / (2 * SIGMA**2))
_KERNEL /= _KERNEL.sum()


@dataclass(slots=True)
class _Walk:
    """Blocks so far, and the one that is open."""

    blocks: list[tuple[str, int]]
    pieces: list[str]
    link_chars: int = 0

    def end(self) -> None:
        """Ends a block."""
        if self.pieces:
            text = " ".join("".join(self.pieces).split())
            if text:
                self.blocks.append((text, min(self.link_chars, len(text))))
            self.pieces.clear()
        self.link_chars = 0

    def text(self, text: str | None, *, in_link: bool) -> None:
        """Takes text."""
        if text:
            self.pieces.append(text)
            if in_link:
                self.link_chars += len(text)


def _walk(element: Any, walk: _Walk, *, in_link: bool) -> None:
    tag = element.tag
    if isinstance(tag, str) and tag not in _SKIPPED:
        inline = tag in _INLINE
        if not inline:
            walk.end()
        inside = in_link or tag == "a"
        walk.text(element.text, in_link=inside)
        for child in element:
            _walk(child, walk, in_link=inside)
        if not inline:
            walk.end()
    walk.text(element.tail, in_link=in_link)


def main_text(root: Any) -> list[str]:
    """Returns the blocks of the main text by text density."""
    walk = _Walk([], [])
    _walk(root, walk, in_link=False)
    walk.end()
    blocks = walk.blocks
    if not blocks:
        return []
    lengths = np.fromiter((len(text) for text, _ in blocks), float, len(blocks))
    links = np.fromiter((link for _, link in blocks), float, len(blocks))
    values = (
        np.convolve(np.minimum(lengths - links, MAX_DENSITY) - links * LINK_WEIGHT, _KERNEL, "same")[: len(blocks)] - THRESHOLD
    )
    best, run, total, start = LEAST_SUM, (0, len(blocks)), 0.0, 0
    for index, value in enumerate(values.tolist()):
        total += value
        if total <= 0.0:
            total, start = 0.0, index + 1
        elif total > best:
            best, run = total, (start, index + 1)
    return [text for text, link in blocks[run[0] : run[1]] if link <= len(text) * LINK_HEAVY]


class WordSum:
    """The lexicon's words as one automaton: which category a text speaks of, by the sum of its words' weights."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._words = [
            (phrase.strip("*"), name, weight, category.limit)
            for name, category in lexicon.categories.items()
            for phrase, weight in category.words.items()
        ]
        self._automaton = AhoCorasick(
            [word for word, *_ in self._words],
            matchkind=MatchKind.LeftmostLongest,
            implementation=Implementation.ContiguousNFA,
        )

    def judge(self, text: str) -> tuple[str, float]:
        """Returns the category that is most over its limit, `""` for none, and its sum."""
        lower = f" {text.lower()} "
        sums: dict[str, float] = {}
        limits: dict[str, float] = {}
        for index in {number for number, start, end in self._found(lower)}:
            _, name, weight, limit = self._words[index]
            sums[name] = sums.get(name, 0.0) + weight
            limits[name] = limit
        best = max(sums, key=lambda name: sums[name] / limits[name], default="")
        return (best, sums[best]) if best and sums[best] > limits[best] else ("", sums.get(best, 0.0))

    def _found(self, text: str) -> Iterator[tuple[int, int, int]]:
        for number, start, end in self._automaton.find_matches_as_indexes(text):
            if not (_WORD.match(text[start - 1]) and text[start].isascii()) and not (
                _WORD.match(text[end]) and text[end - 1].isascii()
            ):
                yield number, start, end


def quick_links(response: TextResponse) -> list[tuple[str, str]]:
    """Returns the links of a page, absolute and each once, with their texts: all that `LinkExtractor` is asked for here."""
    base = get_base_url(response)
    found: dict[str, str] = {}
    seen: set[str] = set()
    for anchor in _ANCHORS(response.selector.root):
        reference = anchor.get("href").strip()
        if reference in seen:
            continue
        seen.add(reference)
        try:
            url = urljoin(base, reference)
        except ValueError:
            continue
        if url.startswith(("http://", "https://")) and url not in found:
            found[url] = " ".join("".join(anchor.itertext()).split())
    return list(found.items())


class Parser:
    """Parses responses.

    Args:
        lexicon: whose words are looked for.
        quick: finds links by `quick_links`.
        judging: finds the category; otherwise it stays open.
    """

    def __init__(self, lexicon: Lexicon, *, quick: bool = False, judging: bool = True) -> None:
        self._extractor = LinkExtractor()
        self._links = quick_links if quick else self._extracted
        self._words = WordSum(lexicon) if judging else None

    def _extracted(self, response: TextResponse) -> list[tuple[str, str]]:
        return [(link.url, " ".join(link.text.split())) for link in self._extractor.extract_links(response)]

    def fields(self, response: TextResponse) -> dict[str, Any]:
        """Returns the fields of a page."""
        root = response.selector.root
        title = " ".join(_TITLE(root).split())
        main = main_text(root)
        description = " ".join(_DESCRIPTION(root).split())
        category, score = ("", 0.0) if self._words is None else self._words.judge("\n".join((title, description, *main)))
        return {
            "url": response.url,
            "title": title,
            "description": description,
            "keywords": _KEYWORDS(root),
            "links": self._links(response),
            "images": [(image.get("src"), image.get("alt", "")) for image in _IMAGES(root)],
            "main": main,
            "category": category,
            "score": score,
        }
