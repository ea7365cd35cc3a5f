"""Extraction rules: for which URLs, which fields stand where on a page, and which links are followed (docs/crawler.md).

Source: [cloud-crawler §5.2]: URL pattern, fields by CSS, XPath, regular expression or a function, out-links for the scheduler.
Deviation: functions are registered Python functions only; a rule carries no program text, so that a file cannot run any.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from gatewayfilter.errors import ClassifyError, RuleError
from gatewayfilter.extraction.selectors import (
    MAX_EXPRESSION,
    MAX_VALUES,
    CssSelector,
    FunctionSelector,
    RegexSelector,
    RulePage,
    XPathSelector,
    values_of,
)
from gatewayfilter.safe_regex.re2 import compile_linear

MAX_FILE = 100_000
MAX_FIELDS = 50
MAX_LINK_TABLES = 10
DEFAULT_LINKS = 20
ZONES = ("title", "description", "keywords", "main")
"""Zones of a page that a field may take the place of."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
_WAYS = ("css", "xpath", "regex", "function")

type AnySelector = CssSelector | XPathSelector | RegexSelector | FunctionSelector


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a rule.

    Attributes:
        many: all values, not only the first.
        zone: the zone of the page that it takes the place of when the page is judged, `""` for none.
    """

    name: str
    selector: AnySelector
    many: bool = False
    zone: str = ""


@dataclass(frozen=True, slots=True)
class LinkTable:
    """Out-links: what is found, which of them (an expression over the absolute URL, `""` for all), and how many."""

    selector: AnySelector
    urls: str = ""
    limit: int = DEFAULT_LINKS


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a rule found on a page.

    Attributes:
        fields: field → its values; a field that was not found has none.
        links: references as written, each once, with the expression that their absolute form must match.
        errors: field → why it could not be read.
    """

    fields: dict[str, list[str]]
    links: list[tuple[str, str]]
    errors: dict[str, str]


@dataclass(frozen=True, slots=True)
class ExtractionRule:
    """A rule that was read and checked.

    Attributes:
        urls: RE2 expression that has to match the canonical URL from its beginning to its end.
        version: counts the states of the rule; 0 for a file that was not added yet.
        source: the TOML text.
    """

    name: str
    urls: str
    fields: tuple[Field, ...]
    links: tuple[LinkTable, ...]
    source: str
    version: int = 0

    def matches(self, url: str) -> bool:
        """Returns whether the rule is for this URL; the fragment does not count. Linear."""
        try:
            return compile_linear(self.urls).fullmatch(url.partition("#")[0]) is not None
        except UnicodeError:  # lone surrogates
            return False

    def extract(self, html: str, url: str) -> Extracted:
        """Reads fields and links of a page. CSS and XPath take as long as the page's maker likes: call it confined."""
        page = RulePage(html, url)
        found = Extracted({}, [], {})
        for field in self.fields:
            found.fields[field.name] = []
            try:
                found.fields[field.name] = values_of(field.selector, page, MAX_VALUES if field.many else 1)
            except Exception as error:  # noqa: BLE001  any library's error is the page's or the rule's fault, and is shown
                found.errors[field.name] = f"{type(error).__name__}: {error}"[:300]
        for number, table in enumerate(self.links, 1):
            try:
                links = values_of(table.selector, page, MAX_VALUES if table.urls else table.limit)
                found.links.extend((link, table.urls) for link in dict.fromkeys(links))
            except Exception as error:  # noqa: BLE001
                found.errors[f"links {number}"] = f"{type(error).__name__}: {error}"[:300]
        return found


def parse_rule(text: str, name: str, version: int = 0) -> ExtractionRule:
    """Reads and checks a rule.

    Args:
        text: TOML.
        name: used where the file gives none; the file's own has to be the same in the rule folder.
        version: of this state of the rule.

    Raises:
        ClassifyError: something in it cannot be used; the sentence names the key.
    """
    if len(text) > MAX_FILE:
        raise ClassifyError(f"the rule is longer than {MAX_FILE} characters")
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ClassifyError(f"the rule is not valid TOML: {error}") from error
    _check_keys(table, ("name", "urls", "fields", "links", "comment"), "the rule")
    own = _text(table, "name", "the rule") or name
    if not _NAME.fullmatch(own):
        raise ClassifyError(f"a rule's name has 1 to 60 small letters, digits, - and _, not {own[:80]!r}")
    urls = _text(table, "urls", "the rule")
    if not urls:
        raise ClassifyError("the rule needs 'urls', an expression for the URLs that it is for")
    _check_expression(urls, "urls")
    fields, links = table.get("fields", {}), table.get("links", [])
    if not isinstance(fields, dict) or not all(isinstance(field, dict) for field in fields.values()):
        raise ClassifyError("'fields' must be tables, as [fields.title]")
    if not isinstance(links, list) or not all(isinstance(link, dict) for link in links):
        raise ClassifyError("'links' must be tables, as [[links]]")
    if not fields and not links:
        raise ClassifyError("the rule has neither fields nor links")
    if len(fields) > MAX_FIELDS or len(links) > MAX_LINK_TABLES:
        raise ClassifyError(f"a rule has at most {MAX_FIELDS} fields and {MAX_LINK_TABLES} tables of links")
    read = tuple(_field(key, field) for key, field in fields.items())
    zones = [field.zone for field in read if field.zone]
    if len(zones) != len(set(zones)):
        raise ClassifyError("two fields take the place of the same zone")
    return ExtractionRule(own, urls, read, tuple(_link_table(n, link) for n, link in enumerate(links, 1)), text, version)


def _field(name: str, table: Mapping[str, Any]) -> Field:
    where = f"the field {name!r}"
    _check_keys(table, (*_WAYS, "attribute", "text", "many", "zone"), where)
    zone = _text(table, "zone", where)
    if zone and zone not in ZONES:
        raise ClassifyError(f"{where}: a zone is one of {', '.join(ZONES)}, not {zone!r}")
    return Field(name, _selector(table, where), _flag(table, "many", where), zone)


def _link_table(number: int, table: Mapping[str, Any]) -> LinkTable:
    where = f"table {number} of links"
    _check_keys(table, (*_WAYS, "attribute", "text", "urls", "limit"), where)
    urls = _text(table, "urls", where)
    if urls:
        _check_expression(urls, f"{where}: urls")
    limit = table.get("limit", DEFAULT_LINKS)
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MAX_VALUES:
        raise ClassifyError(f"{where}: 'limit' is a whole number from 1 to {MAX_VALUES}")
    table = {"attribute": "href", **table} if "css" in table else table
    return LinkTable(_selector(table, where), urls, limit)


def _selector(table: Mapping[str, Any], where: str) -> AnySelector:
    ways = [way for way in _WAYS if way in table]
    if len(ways) != 1:
        raise ClassifyError(f"{where} needs one of {', '.join(_WAYS)}{', not several' if ways else ''}")
    way = ways[0]
    expression = _text(table, way, where)
    if not expression or len(expression) > MAX_EXPRESSION:
        raise ClassifyError(f"{where}: {way!r} has 1 to {MAX_EXPRESSION} characters")
    attribute, of_text = _text(table, "attribute", where), _flag(table, "text", where)
    if attribute and way != "css":
        raise ClassifyError(f"{where}: 'attribute' goes with css only")
    if of_text and way != "regex":
        raise ClassifyError(f"{where}: 'text' goes with regex only")
    selector: AnySelector
    match way:
        case "css":
            selector = CssSelector(expression, attribute)
        case "xpath":
            selector = XPathSelector(expression)
        case "regex":
            selector = RegexSelector(expression, of_text)
        case _:
            selector = FunctionSelector(expression)
    try:
        selector.check()
    except ClassifyError as error:
        raise ClassifyError(f"{where}: {error}") from error
    return selector


def _check_expression(expression: str, where: str) -> None:
    try:
        compile_linear(expression)
    except RuleError as error:
        raise ClassifyError(f"{where}: {error}") from error


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, n=1, cutoff=0.5)
            raise ClassifyError(f"unknown key {key!r} in {where}{f'; did you mean {near[0]!r}?' if near else ''}")


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise ClassifyError(f"{where}: {key!r} must be text")
    return value


def _flag(table: Mapping[str, Any], key: str, where: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise ClassifyError(f"{where}: {key!r} is true or false")
    return value
