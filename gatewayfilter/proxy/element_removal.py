"""Elements taken out of an HTML document before it is delivered (`##^`).

The document is parsed as a browser does it and written anew, but only when something was found in it. A selector that is not
CSS finds nothing; `:has-text(…)` at its end, in any of its spellings, is understood.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from resiliparse.parse.html import HTMLTree

from gatewayfilter.engine.adblock.regex_guard import guard_regex
from gatewayfilter.errors import RuleError

_HAS_TEXT = re.compile(r"(?P<css>.*?):(?:has-text|contains|-abp-contains)\((?P<text>.*)\)\Z", re.DOTALL)
_LONGEST_TEXT: Final = 200_000
"""Characters of an element in which a text is looked for."""
_LONGEST_KEY: Final = 500
"""A longer selector is read anew each time: lists choose them, and thousands are remembered."""
_MOST_LOOKED_INTO: Final = 300
"""Elements whose text one selector may look into: pages have some dozens of scripts, and the event loop waits meanwhile."""


def remove_elements(html: str, selectors: Sequence[str]) -> str:
    """Returns the document without the elements that match; the very same text when none does."""
    tree = HTMLTree.parse(html)
    document = tree.document
    found = [node for selector in selectors for node in _matching(document, selector)]
    if not found:
        return html
    for node in found:
        if node.parent is not None and node.tag not in {"html", "body", "head"}:
            node.decompose()
    return str(document)


def _matching(document: Any, selector: str) -> Iterable[Any]:
    css, accepts = (_understood if len(selector) <= _LONGEST_KEY else _understood.__wrapped__)(selector)
    if not css:
        return ()
    try:
        nodes = document.query_selector_all(css)
    except (ValueError, RuntimeError):
        return ()
    return list(nodes) if accepts is None else [node for node in nodes[:_MOST_LOOKED_INTO] if accepts(node.text[:_LONGEST_TEXT])]


@lru_cache(maxsize=4096)
def _understood(selector: str) -> tuple[str, Callable[[str], bool] | None]:
    """Returns the CSS part, and the test of the text; `""` for a selector that can find nothing safely."""
    found = _HAS_TEXT.match(selector)
    if found is None:
        return selector, None
    css, text = found["css"].strip() or "*", found["text"]
    regex = re.fullmatch(r"/(?P<body>.+)/(?P<flags>[imsu]*)", text, re.DOTALL)
    if regex is None:
        plain = text.strip("\"'") if text[:1] == text[-1:] and text[:1] in {'"', "'"} else text
        return css, lambda of_node: plain in of_node
    try:
        guarded = guard_regex(regex["body"], match_case="i" not in regex["flags"])
    except RuleError:
        return "", None
    pattern = guarded.compile()
    longest = guarded.max_length
    if guarded.match_case:
        return css, lambda of_node: pattern.search(of_node[:longest]) is not None
    return css, lambda of_node: pattern.search(of_node[:longest].lower()) is not None
