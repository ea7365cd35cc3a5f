"""The ways in which an extraction rule finds its values on a page: CSS, XPath, a regular expression or a Python function."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from html import unescape
from itertools import islice
from typing import Any, Protocol

from resiliparse.parse.html import HTMLTree

from gatewayfilter.documents.html.markup import read_html
from gatewayfilter.documents.html.tags import bounded, with_few_attributes
from gatewayfilter.errors import ClassifyError, RuleError
from gatewayfilter.extraction.functions import extraction_function
from gatewayfilter.safe_regex.re2 import compile_linear

MAX_EXPRESSION = 1_000
MAX_VALUES = 200
"""Values of one field or link table that are read."""
MAX_CHARS = 200_000
"""Characters of one value."""
_MARKUP = re.compile(r"<[^>]*+>")


class RulePage:
    """A page as selectors see it: each tree is made when first asked for."""

    def __init__(self, html: str, url: str) -> None:
        self.html = with_few_attributes(bounded(html))
        self.url = url

    @cached_property
    def text(self) -> str:
        """The visible text, a line for each block."""
        return "\n".join(block.text for block in read_html(self.html).blocks)

    @cached_property
    def css_tree(self) -> Any:
        """The document by resiliparse, or `None` where it sees none."""
        return HTMLTree.parse(self.html).document

    @cached_property
    def xpath_tree(self) -> Any:
        """The document by lxml, which fetches nothing, or `None` for an empty page."""
        from lxml import html as lxml_html  # noqa: PLC0415  an optional extra, and only rules with XPath need it

        if not self.html.strip():
            return None
        parser = lxml_html.HTMLParser(no_network=True, recover=True, huge_tree=False, encoding="utf-8")
        return lxml_html.document_fromstring(self.html.encode("utf-8", "replace"), parser=parser)


class Selector(Protocol):
    """Finds values on a page."""

    def select(self, page: RulePage) -> Iterable[str]:
        """Yields the values in the order of the page; may raise anything that a foreign library raises."""
        ...


@dataclass(frozen=True, slots=True)
class CssSelector:
    """A CSS selector; the value is the element's text, or one of its attributes."""

    expression: str
    attribute: str = ""

    def check(self) -> None:
        """Raises `ClassifyError` when the expression is not valid."""
        try:
            RulePage("<p>", "").css_tree.query_selector_all(self.expression)
        except Exception as error:
            raise ClassifyError(f"not a CSS selector: {self.expression!r}: {error}") from error

    def select(self, page: RulePage) -> Iterator[str]:
        """Yields texts or attributes."""
        if page.css_tree is None:
            return
        # A slice: each single index makes a Python object of every node, so that a loop is quadratic.
        for element in page.css_tree.query_selector_all(self.expression)[:MAX_VALUES]:
            value = element.getattr(self.attribute) if self.attribute else element.text
            if value is not None:
                yield value


@dataclass(frozen=True, slots=True)
class XPathSelector:
    """An XPath 1.0 expression that gives elements, texts, attributes or one value. Needs the extra `xpath`."""

    expression: str

    def check(self) -> None:
        """Raises `ClassifyError` when the expression is not valid or lxml is missing."""
        try:
            from lxml import etree  # noqa: PLC0415  an optional extra
        except ImportError as error:
            raise ClassifyError("XPath needs the extra 'xpath': pip install 'gatewayfilter[xpath]'") from error
        try:
            etree.XPath(self.expression)
        except etree.XPathError as error:
            raise ClassifyError(f"not an XPath expression: {self.expression!r}: {error}") from error

    def select(self, page: RulePage) -> Iterator[str]:
        """Yields the string values."""
        if page.xpath_tree is None:
            return
        found = page.xpath_tree.xpath(self.expression)
        for value in found if isinstance(found, list) else [found]:
            yield "".join(value.itertext()) if hasattr(value, "itertext") else str(value)


@dataclass(frozen=True, slots=True)
class RegexSelector:
    """A regular expression (RE2: linear, no look-around) over the markup or the visible text; the first group, else all of it."""

    expression: str
    of_text: bool = False

    def check(self) -> None:
        """Raises `ClassifyError` when the expression is not valid."""
        try:
            compile_linear(self.expression)
        except RuleError as error:
            raise ClassifyError(f"{error}: {self.expression!r}") from error

    def select(self, page: RulePage) -> Iterator[str]:
        """Yields the matches; of markup, without tags and entities."""
        regex = compile_linear(self.expression)
        text = (page.text if self.of_text else page.html).encode("utf-8", "replace").decode()
        for match in regex.finditer(text):
            value = (match[1] if regex.groups else match[0]) or ""
            yield value if self.of_text else unescape(_MARKUP.sub(" ", value))


@dataclass(frozen=True, slots=True)
class FunctionSelector:
    """A registered Python function."""

    name: str

    def check(self) -> None:
        """Raises `ClassifyError` when there is no such function."""
        extraction_function(self.name)

    def select(self, page: RulePage) -> Iterable[str]:
        """Yields what the function returns."""
        return extraction_function(self.name)(page.html, page.url)


def values_of(selector: Selector, page: RulePage, limit: int) -> list[str]:
    """Returns at most `limit` values: white space folded, empty ones left out, bounded."""
    read = (" ".join(value[:MAX_CHARS].split()) for value in islice(selector.select(page), MAX_VALUES))
    return list(islice((value for value in read if value), limit))
