"""What an extraction rule takes from one page, and what an editor shows of that page: work for a child process.

Arguments and results are plain values. Selectors may take as long as the page's maker likes: the child has a limit of time.
"""

from dataclasses import asdict
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from gatewayfilter.classify import RuleResult
from gatewayfilter.config import Settings
from gatewayfilter.crawl import rule_links
from gatewayfilter.documents.encoding.charset import decode
from gatewayfilter.errors import ClassifyError
from gatewayfilter.extraction.page_outline import PageOutline, read_outline
from gatewayfilter.extraction.rule_form import FieldRow, LinkRow, RuleForm, form_of
from gatewayfilter.extraction.rules import Extracted, ExtractionRule, parse_rule
from gatewayfilter.extraction.selector_proposals import SelectorFinder
from gatewayfilter.extraction.selectors import MAX_VALUES, RulePage, values_of
from gatewayfilter.urls import parse_loose_url
from gatewayfilter.use_cases.learning.extraction_jobs import read_form
from gatewayfilter.use_cases.learning.single_page import fetch_now

MOST_HTML: Final = 600_000
"""Characters of a page that is edited with."""
_MOST_VALUES: Final = 50
"""Values of a field, and links of a table, that are shown."""
_MOST_TEXT: Final = 500
"""Characters of each."""
_NO_ADDRESS: Final = "http://page.invalid/"
_NONE_PICKED: Final = -1
_HTML: Final = frozenset({"", "text/html", "application/xhtml+xml", "application/xml", "text/xml"})


def fetch_page(settings: Settings, url: str) -> dict[str, str]:
    """Fetches a page by the crawler's rules of safety; nothing is learned, kept or queued.

    Raises:
        UrlError: it is no URL.
        FetchError: it was refused or could not be fetched.
        ClassifyError: it is no HTML.
    """
    page = fetch_now(settings, parse_loose_url(url))
    if page.content_type not in _HTML:
        raise ClassifyError(f"the page is no HTML: {page.content_type[:80]}")
    text = decode(page.body[: 4 * MOST_HTML], page.headers.get("content-type", "")).text
    return {"html": text[:MOST_HTML], "url": page.final_url}


def outline(settings: Settings, html: str) -> dict[str, Any]:
    """Returns a page as the editor shows it.

    Returns:
        `pieces` of its body, `hidden` elements (title and meta) with number, tag, label and text, and whether the outline
        `is_whole`.
    """
    del settings
    found = _opened(html).outline
    hidden = [asdict(element) for element in found.elements if element.tag in {"title", "meta"} and element.text]
    return {"pieces": found.pieces, "hidden": hidden, "is_whole": found.is_whole}


def preview(settings: Settings, html: str, url: str, form: dict[str, Any], picked: int) -> dict[str, Any]:
    """Reads a page by the rows of a form, each for itself, and returns proposals for an element.

    Args:
        settings: for what may be crawled.
        html: the page.
        url: its address, `""` for none.
        form: a `RuleForm` as plain values.
        picked: number of an element, -1 for none.

    Returns:
        `fields` and `links`, row by row with `values`, `marked` (numbers of elements) and `error`; `problem` of the rule as a
        whole; `matches`, whether it is for the address; `picked`.
    """
    page, address = _opened(html), parse_loose_url(url).text if url else ""
    rows, problem, matches = read_form(form), "", None
    try:
        rule = parse_rule(rows.source(), "rule")
        matches = rule.matches(address) if address else None
    except ClassifyError as error:
        problem = str(error)
    found = page.finder.picked(picked)
    return {
        "fields": [_field(page, row, address) for row in rows.fields],
        "links": [_links(page, row, address, settings) for row in rows.links],
        "problem": problem,
        "matches": matches,
        "picked": asdict(found) if found is not None else None,
    }


def read_page(settings: Settings, html: str, url: str, source: str) -> dict[str, Any]:
    """Returns what a rule takes from a page, as `preview`, with names of fields.

    Raises:
        ClassifyError: the rule cannot be used.
    """
    rule = parse_rule(source, "rule")
    read = preview(settings, html, url, asdict(form_of(rule)), _NONE_PICKED)
    named = [{"name": field.name, **found} for field, found in zip(rule.fields, read["fields"], strict=True)]
    return {"fields": named, "links": read["links"], "matches": read["matches"]}


class _OpenPage:
    """A page that somebody edits a rule with: read once."""

    def __init__(self, html: str) -> None:
        self.html = html.encode("utf-8", "replace").decode()
        self._page = RulePage(self.html, "")
        self.outline: PageOutline = read_outline(self._page)
        self.finder = SelectorFinder(self._page, self.outline)

    def values(self, rule: ExtractionRule, url: str) -> list[str]:
        """Returns what the only row of a rule finds."""
        self._page.url = url
        selector = rule.fields[0].selector if rule.fields else rule.links[0].selector
        return values_of(selector, self._page, MAX_VALUES)


@lru_cache(maxsize=2)
def _opened(html: str) -> _OpenPage:
    return _OpenPage(html[:MOST_HTML])


def _field(page: _OpenPage, row: FieldRow, url: str) -> dict[str, Any]:
    found: dict[str, Any] = {"values": [], "count": 0, "marked": [], "error": ""}
    try:
        rule = parse_rule(RuleForm(".*", "", (row,)).source(), "rule")
        values = page.values(rule, url)
    except Exception as error:  # noqa: BLE001  any library's error is the page's or the rule's fault, and is shown
        return found | {"error": _sentence(error)}
    taken = values if row.many else values[:1]
    marked = page.finder.marked(row.expression) if row.way == "css" else []
    shown = [value[:_MOST_TEXT] for value in taken[:_MOST_VALUES]]
    return found | {"values": shown, "count": len(values), "marked": marked if row.many else marked[:1]}


def _links(page: _OpenPage, row: LinkRow, url: str, settings: Settings) -> dict[str, Any]:
    found: dict[str, Any] = {"values": [], "count": 0, "marked": [], "error": ""}
    try:
        rule = parse_rule(RuleForm(".*", "", (), (row,)).source(), "rule")
        references = list(dict.fromkeys(page.values(rule, url)))
        limited = references if row.urls else references[: row.limit]
        result = RuleResult(rule, Extracted({}, [(reference, row.urls) for reference in limited], {}))
        links = [link.text for link in rule_links(result, url or _NO_ADDRESS, settings.crawl)]
    except Exception as error:  # noqa: BLE001
        return found | {"error": _sentence(error)}
    marked = page.finder.marked(row.expression) if row.way == "css" else []
    shown = [link[:_MOST_TEXT] for link in islice(links, _MOST_VALUES)]
    return found | {"values": shown, "count": len(references), "marked": marked}


def _sentence(error: Exception) -> str:
    text = str(error) if isinstance(error, ClassifyError) else f"{type(error).__name__}: {error}"
    return text.removeprefix("the field '' ")[:300]
