"""Pages and texts as JSON lines, classified in batches: the inner loop of `classify --lines`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gatewayfilter.cli.bulk.json_lines import BadLineError, JsonLines
from gatewayfilter.content_encoding import media_type
from gatewayfilter.errors import ClassifyError, UrlError
from gatewayfilter.interfaces import Page
from gatewayfilter.settings import Strictness
from gatewayfilter.urls import parse_loose_url

if TYPE_CHECKING:
    from gatewayfilter.interfaces import Classify
    from gatewayfilter.model import Classification
    from gatewayfilter.settings import Settings

_MARKUP = ("text/html", "application/xhtml+xml")


class PageLines(JsonLines):
    """Classifies the pages of lines.

    Args:
        classifier: judges them.
    """

    added = frozenset({"category", "score", "limit", "harmful", "certainty", "doubt", "error"})
    max_line = 1 << 24
    """16 MB: the classifier reads 2 MB of a page, which JSON may write six times as long."""

    def __init__(self, classifier: Classify) -> None:
        super().__init__()
        self._classify = classifier.classify_page

    def answer(self, record: dict[str, Any]) -> tuple[tuple[str, str], str]:
        """Returns the result with its category, and the judgement as JSON.

        Raises:
            BadLineError: the record holds neither markup nor text, or another field is unusable.
        """
        page = _page(record)
        try:
            found = self._classify(page)
        except ClassifyError as error:
            raise BadLineError("not classified", str(error)) from error
        return _result(found), json.dumps(_judgement(found))[1:] + "\n"


@dataclass(frozen=True, slots=True)
class PageWorker:
    """What a worker process judges by. Implements `line_workers.OpenLines`.

    Attributes:
        settings: for the words, models and rules of the state folder.
    """

    preload: ClassVar[tuple[str, ...]] = (
        "gatewayfilter.cli.learning.page_lines",
        "gatewayfilter.classify",
        "gatewayfilter.wiring",
    )
    settings: Settings

    def open(self) -> JsonLines:
        """Returns what classifies lines at the strictness `standard`.

        Raises:
            ClassifyError: the words or models cannot be used.
        """
        from gatewayfilter.wiring import classifier

        standard = self.settings.classify.model_copy(update={"strictness": Strictness.STANDARD})
        return PageLines(classifier(self.settings.model_copy(update={"classify": standard})))


def _page(record: dict[str, Any]) -> Page:
    """Returns the page of a record. Its text is decoded already, so it is read as UTF-8 whatever its headers name."""
    content, kind = record.get("html"), _MARKUP[0]
    headers = _headers(record.get("headers"))
    if not isinstance(content, str):
        content, kind = record.get("text"), "text/plain"
        if not isinstance(content, str):
            raise BadLineError("no html or text")
    elif (named := media_type(headers.get("content-type", ""))) in _MARKUP:
        kind = named
    url = _url(record.get("url"))
    return Page(url, url, 200, {**headers, "content-type": f"{kind}; charset=utf-8"}, content.encode(errors="replace"))


def _url(value: object) -> str:
    if value is None or value == "":
        return ""
    if not isinstance(value, str):
        raise BadLineError("not a URL")
    try:
        return parse_loose_url(value).text
    except UrlError as error:
        raise BadLineError("not a URL", str(error)) from error


def _headers(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadLineError("headers are no object")
    return {name.lower(): content for name, content in value.items() if isinstance(content, str)}


def _judgement(found: Classification) -> dict[str, object]:
    return {
        "category": found.category,
        "score": round(found.score, 3),
        "limit": round(found.limit, 3),
        "harmful": found.harmful,
        "certainty": None if found.certainty is None else round(found.certainty, 5),
        "doubt": found.doubt,
    }


def _result(found: Classification) -> tuple[str, str]:
    if found.harmful:
        return "harmful", found.category
    return ("doubtful", found.doubt) if found.doubt else ("harmless", "")
