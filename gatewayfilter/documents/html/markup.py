"""Reading HTML: texts and references of a page in one linear pass, compiled where it was built (`_markup.pyx`), else in Python.

Both give the same of any input; tests/documents/html/test_markup_twins.py holds them to it.
"""

from collections.abc import Callable
from typing import NamedTuple

from gatewayfilter.compiled import load
from gatewayfilter.documents.html.html_text import HtmlText, texts_of
from gatewayfilter.documents.html.references import References, references_of
from gatewayfilter.documents.html.tags import MAX_HTML, Token, bounded, text_before, text_beyond, tokens_of, tokens_of_bounded
from gatewayfilter.documents.text_density import Block

MAX_NESTED = 500_000
"""Characters of all documents within a page (`srcdoc`, `data:`) that are read."""
MAX_NESTING = 2
"""How deep documents within documents are read."""


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
    read = bounded(html)
    tokens = tokens_of_bounded(read)
    return Markup(_texts_of(html, read, tokens), references_of(tokens))


def _pure_html(html: str) -> HtmlText:
    read = bounded(html)
    return _texts_of(html, read, tokens_of_bounded(read))


def _texts_of(html: str, read: str, tokens: list[Token]) -> HtmlText:
    texts = texts_of(text_before(read), tokens)
    if len(read) < min(len(html), MAX_HTML):
        texts.is_unusual = True
        if beyond := text_beyond(html, len(read)):
            texts.blocks.append(Block(beyond, 0))
    return texts


def _pure_references(html: str) -> References:
    return references_of(tokens_of(html))


def compiled_reading() -> Reading | None:
    """Returns the compiled reading, `None` where Python shall do its work."""
    module = load("gatewayfilter.documents.html._markup")
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
    markup = _reading.markup(html)
    _complete(markup.texts)
    return markup


def read_html(html: str) -> HtmlText:
    """Returns the text of a page. Never raises; linear and bounded as `read_markup`."""
    texts = _reading.html(html)
    _complete(texts)
    return texts


def read_references(html: str) -> References:
    """Returns what a page refers to. Never raises; linear and bounded as `read_markup`."""
    return _reading.references(html)


def _complete(texts: HtmlText) -> None:
    """Adds what stands in documents within the page."""
    if texts.documents:
        _add_documents(texts)


def _add_documents(texts: HtmlText) -> None:
    room = MAX_NESTED
    level = texts.documents
    for _ in range(MAX_NESTING):
        inner: list[str] = []
        for document in level:
            if room <= 0:
                return
            found = _reading.html(document[:room])
            room -= len(document)
            texts.blocks += found.blocks
            texts.labels += found.labels
            texts.hidden += found.hidden
            inner += found.documents
        level = inner
