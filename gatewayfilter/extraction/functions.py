"""Python functions that extraction rules may name: `function = "json_ld"`.

A function gets the page and returns its values. The bundled ones stand here; a package adds its own by an entry point
of the group `gatewayfilter.extraction_functions`. They run in the confined process, under its limits.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.metadata import entry_points

from gatewayfilter.documents.html.markup import read_html
from gatewayfilter.errors import ClassifyError

ENTRY_POINTS = "gatewayfilter.extraction_functions"
MAX_DEPTH = 50

type ExtractionFunction = Callable[[str, str], Iterable[str]]
"""(html, url) → values."""

_FUNCTIONS: dict[str, ExtractionFunction] = {}
_JSON_LD = re.compile(r"(?i)<script[^>]{0,500}application/ld\+json[^>]{0,500}>([^<]*+(?:<(?!/script)[^<]*+)*+)")


def register(function: ExtractionFunction) -> ExtractionFunction:
    """Makes a function known under its own name."""
    _FUNCTIONS[function.__name__] = function
    return function


def extraction_function(name: str) -> ExtractionFunction:
    """Returns a function by its name.

    Raises:
        ClassifyError: there is none.
    """
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    for entry in entry_points(group=ENTRY_POINTS, name=name):
        return _loaded(entry.value, entry.load)
    known = sorted({*_FUNCTIONS, *entry_points(group=ENTRY_POINTS).names})
    raise ClassifyError(f"no function {name!r}; there are: {', '.join(known)}")


@cache
def _loaded(name: str, load: Callable[[], ExtractionFunction]) -> ExtractionFunction:
    try:
        return load()
    except Exception as error:
        raise ClassifyError(f"the function {name} cannot be loaded: {error}") from error


@register
def main_text(html: str, url: str) -> Iterable[str]:  # noqa: ARG001  the signature of all
    """The main text by density, one value a block."""
    return read_html(html).split_main()[0]


@register
def article_body(html: str, url: str) -> Iterator[str]:  # noqa: ARG001
    """`articleBody` of schema.org, which many news sites carry beside a page that a script builds."""
    for match in _JSON_LD.finditer(html):
        try:
            yield from _named(json.loads(match[1]), "articleBody")
        except (ValueError, RecursionError):
            continue


def _named(value: object, name: str, depth: int = 0) -> Iterator[str]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == name and isinstance(inner, str):
                yield inner
            else:
                yield from _named(inner, name, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _named(inner, name, depth + 1)
