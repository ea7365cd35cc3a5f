"""HTML element removal before a document is delivered (`##^`).

The document is parsed as in a browser, and serialised again only when an element was removed. A selector that is not CSS matches
nothing; `:has-text(…)` at its end, in any of its spellings, is supported.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from resiliparse.parse.html import HTMLTree

from gatewayfilter.errors import RuleError
from gatewayfilter.safe_regex.cost_guard import guard_regex

_HAS_TEXT = re.compile(r"(?P<css>.*?):(?:has-text|contains|-abp-contains)\((?P<text>.*)\)\Z", re.DOTALL)
_LONGEST_TEXT: Final = 200_000
"""Characters of an element in which a text is searched."""
_LONGEST_KEY: Final = 500
"""A longer selector is not cached: lists choose them, and the cache holds thousands."""
_MOST_SEARCHED: Final = 300
"""Elements that one selector may search by text: pages have some dozens of scripts, and the event loop is blocked meanwhile."""

_MOST_STEPS: Final = 50_000_000
"""Steps of regular expressions that one document may cost, about 0.5 s: elements that were not searched by then stay."""


@dataclass(frozen=True, slots=True)
class _Selector:
    """A selector, parsed.

    Attributes:
        css: `""` for one that can find nothing safely.
        accepts: whether an element's text matches; `None` for any.
        steps: steps that this takes at most for a text of a length.
    """

    css: str
    accepts: Callable[[str], bool] | None = None
    steps: Callable[[int], int] = lambda length: length // 64


def remove_elements(html: str, selectors: Sequence[str]) -> str:
    """Returns the document without the elements that match; the very same text when none does."""
    tree = HTMLTree.parse(html)
    document = tree.document
    found: list[Any] = []
    left = _MOST_STEPS
    for selector in selectors:
        understood = _understood if len(selector) <= _LONGEST_KEY else _understood.__wrapped__
        nodes, left = _matching(document, understood(selector), left)
        found += nodes
    if not found:
        return html
    for node in found:
        if node.parent is not None and node.tag not in {"html", "body", "head"}:
            node.decompose()
    return str(document)


def _matching(document: Any, selector: _Selector, left: int) -> tuple[list[Any], int]:
    """Returns the elements that match, and how many of the steps are left."""
    if not selector.css:
        return [], left
    try:
        nodes = document.query_selector_all(selector.css)
    except (ValueError, RuntimeError):
        return [], left
    if selector.accepts is None:
        return nodes[:], left  # a slice: each single index makes a Python object of every node, so that a loop is quadratic
    found: list[Any] = []
    for node in nodes[:_MOST_SEARCHED]:
        text = node.text[:_LONGEST_TEXT]
        left -= selector.steps(len(text))
        if left < 0:
            return found, 0
        if selector.accepts(text):
            found.append(node)
    return found, left


@lru_cache(maxsize=4096)
def _understood(selector: str) -> _Selector:
    """Reads a selector of a rule."""
    found = _HAS_TEXT.match(selector)
    if found is None:
        return _Selector(selector)
    css, text = found["css"].strip() or "*", found["text"]
    regex = re.fullmatch(r"/(?P<body>.+)/(?P<flags>[imsu]*)", text, re.DOTALL)
    if regex is None:
        plain = text.strip("\"'") if text[:1] == text[-1:] and text[:1] in {'"', "'"} else text
        return _Selector(css, lambda of_node: plain in of_node)
    try:
        guarded = guard_regex(regex["body"], match_case="i" not in regex["flags"])
    except RuleError:
        return _Selector("")
    pattern = guarded.compile()
    longest = guarded.max_length
    if guarded.match_case:
        return _Selector(css, lambda of_node: pattern.search(of_node[:longest]) is not None, guarded.steps)
    return _Selector(css, lambda of_node: pattern.search(of_node[:longest].lower()) is not None, guarded.steps)
