"""The extraction rules in use: the first that matches a page's URL reads the page, in a sandboxed process.

Follows changes of the rule folder like the words do. A rule that cannot be read is left out and logged once for each state.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from typing import Any

from gatewayfilter.documents.encoding.charset import decode
from gatewayfilter.documents.sandbox import Sandbox, SandboxError
from gatewayfilter.errors import ClassifyError
from gatewayfilter.extraction.match_counts import MatchCounts
from gatewayfilter.extraction.rule_folder import RuleFolder
from gatewayfilter.extraction.rules import Extracted, ExtractionRule, parse_rule
from gatewayfilter.interfaces import Page

_log = logging.getLogger(__name__)

TIME_LIMIT_S = 3.0
CHECK_EVERY_S = 1.0
MAX_BODY = 2_000_000
_HTML_TYPES = frozenset({"", "text/html", "application/xhtml+xml", "application/xml", "text/xml"})
MOST_VALUES = 20
"""Values of a field that are kept with a verdict."""
MOST_CHARACTERS = 500
"""Of a value likewise."""
_KEPT = 4
"""Results remembered: a page is judged, its text kept and its links read right after each other."""


@dataclass(frozen=True, slots=True)
class RuleResult:
    """Result of a rule for a page."""

    rule: ExtractionRule
    extracted: Extracted

    @property
    def is_empty(self) -> bool:
        """Whether it found neither a field nor a link."""
        return not any(self.extracted.fields.values()) and not self.extracted.links

    def kept(self) -> dict[str, list[str]]:
        """Returns the fields that were found, as they are kept with the verdict: bounded."""
        found = self.extracted.fields.items()
        return {name: [_text(value) for value in values[:MOST_VALUES]] for name, values in found if values}

    def zones(self) -> dict[str, str]:
        """Returns what takes the place of the page's own zones; a field that was not found leaves its zone alone."""
        found = self.extracted.fields
        return {field.zone: "\n".join(found[field.name]) for field in self.rule.fields if field.zone and found[field.name]}


def _text(value: str) -> str:
    """Returns the beginning of a value, without what a database takes for no text."""
    return value[:MOST_CHARACTERS].replace("\0", "").encode("utf-8", "replace").decode()


class RuleBook:
    """Finds the rule for a page and has it read. Safe to share between threads.

    Args:
        folder: the rule folder; need not exist.
        clock: seconds, monotonic.
        matches: counts the pages that are read, if anything does.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic, matches: MatchCounts | None = None) -> None:
        self._matches = matches
        self._folder = RuleFolder(folder)
        self._clock = clock
        self._one = threading.Lock()
        self._confined = Sandbox("gatewayfilter.extraction.rule_book:extract_confined", TIME_LIMIT_S)
        self._signature: object = None
        self._rules: tuple[ExtractionRule, ...] = ()
        self._version = ""
        self._look_at = float("-inf")
        self._recent: OrderedDict[int, tuple[Page, RuleResult | None]] = OrderedDict()

    def rule_for(self, url: str) -> ExtractionRule | None:
        """Returns the first rule, by name, that is for this URL."""
        self._follow()
        return next((rule for rule in self._rules if rule.matches(url)), None)

    def read(self, page: Page) -> RuleResult | None:
        """Has the page's rule read it; `None` where it has none, is no HTML, or cannot be read. Asked twice, it reads once."""
        rule = self.rule_for(page.final_url) if page.content_type in _HTML_TYPES and page.body else None
        if rule is None:
            return None
        with self._one:
            known = self._recent.get(id(page))
            if known is not None and known[0] is page and (known[1] is None or known[1].rule is rule):
                return known[1]
        result = None
        try:
            result = extract(rule, page, self._confined)
        except SandboxError as error:
            _log.warning("the rule %s read nothing: %s", rule.name, error)
        if self._matches is not None:
            self._matches.count(rule.name, empty=result is None or result.is_empty)
        with self._one:
            self._recent[id(page)] = page, result
            while len(self._recent) > _KEPT:
                self._recent.popitem(last=False)
        return result

    def version(self) -> str:
        """Returns what names the rules in use: others have another name; `""` for none."""
        self._follow()
        return self._version

    def close(self) -> None:
        """Ends the confined process."""
        self._confined.close()

    def _follow(self) -> None:
        with self._one:
            if self._clock() < self._look_at:
                return
            self._look_at = self._clock() + CHECK_EVERY_S
            signature = self._folder.signature()
            if signature == self._signature:
                return
            self._signature = signature
            rules = []
            for name in self._folder.names():
                try:
                    rules.append(self._folder.rule(name))
                except ClassifyError as error:
                    _log.warning("an extraction rule is left out: %s", error)
            self._rules = tuple(rules)
            sources = "\0".join(f"{rule.name}\0{rule.source}" for rule in rules)
            self._version = md5(sources.encode(), usedforsecurity=False).hexdigest() if rules else ""


def extract(rule: ExtractionRule, page: Page, confined: Sandbox | None = None) -> RuleResult:
    """Has a rule read a page in a confined process.

    Raises:
        SandboxError: it took too long or too much memory.
    """
    own = confined or Sandbox("gatewayfilter.extraction.rule_book:extract_confined", TIME_LIMIT_S)
    try:
        html = decode(page.body[:MAX_BODY], page.headers.get("content-type", "")).text
        question = {"name": rule.name, "rule": rule.source, "url": page.final_url}
        found: dict[str, Any] = own.ask(question, html.encode("utf-8", "replace"))
    finally:
        if confined is None:
            own.close()
    links = [(link, urls) for link, urls in found["links"]]
    return RuleResult(rule, Extracted(found["fields"], links, found["errors"]))


def extract_confined(question: dict[str, str], body: bytes) -> dict[str, Any]:
    """Reads a page by a rule; runs in the confined process."""
    rule = parse_rule(question["rule"], question["name"])
    found = rule.extract(body.decode("utf-8", "replace"), question["url"])
    return {"fields": found.fields, "links": found.links, "errors": found.errors}
