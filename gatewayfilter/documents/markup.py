"""Reading HTML: texts and references of a page in one linear pass, compiled where it was built (`_markup.pyx`), else in Python.

Both give the same of any input; tests/documents/test_markup_twins.py holds them to it.
"""

from collections.abc import Callable
from typing import NamedTuple

from gatewayfilter.compiled import load
from gatewayfilter.documents.html_text import HtmlText, texts_of
from gatewayfilter.documents.references import References, references_of
from gatewayfilter.documents.tags import text_before, tokens_of


class Markup(NamedTuple):
    """Text and references of a page."""

    texts: HtmlText
    references: References


class Reading(NamedTuple):
    """A way to read markup. None of its functions ever raises; each is linear and bounded by `MAX_HTML` and `MAX_TAGS`.

    Attributes:
        markup: reads both at once.
        html: reads the texts alone.
        references: reads the references alone.
    """

    markup: Callable[[str], Markup]
    html: Callable[[str], HtmlText]
    references: Callable[[str], References]


def _pure_markup(html: str) -> Markup:
    tokens = tokens_of(html)
    return Markup(texts_of(text_before(html), tokens), references_of(tokens))


def _pure_html(html: str) -> HtmlText:
    return texts_of(text_before(html), tokens_of(html))


def _pure_references(html: str) -> References:
    return references_of(tokens_of(html))


def compiled_reading() -> Reading | None:
    """Returns the compiled reading, `None` where Python shall do its work."""
    module = load("gatewayfilter.documents._markup")
    if module is None:
        return None
    read = module.read
    return Reading(
        lambda html: Markup(*read(html, texts=True, references=True)),
        lambda html: read(html, texts=True, references=False)[0],
        lambda html: read(html, texts=False, references=True)[1],
    )


PURE = Reading(_pure_markup, _pure_html, _pure_references)
_reading = compiled_reading() or PURE


def read_markup(html: str) -> Markup:
    """Returns the text and the references of a page. Never raises; linear, bounded by `MAX_HTML` and `MAX_TAGS`."""
    return _reading.markup(html)


def read_html(html: str) -> HtmlText:
    """Returns the text of a page. Never raises; linear and bounded as `read_markup`."""
    return _reading.html(html)


def read_references(html: str) -> References:
    """Returns what a page refers to. Never raises; linear and bounded as `read_markup`."""
    return _reading.references(html)
