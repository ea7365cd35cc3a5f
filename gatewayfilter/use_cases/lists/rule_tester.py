"""A tester of rules: what each line means, where it is wrong, and which requests it would block or allow. Nothing is stored."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.engine.adblock.syntax.parser import LineKind, ParsedLine, parse_line
from gatewayfilter.engine.state.manual_rules import ManualRules
from gatewayfilter.errors import BroadRuleError, RuleError, UrlError
from gatewayfilter.model import EntryKind, ListAction, ManualRule, Request, ResourceType
from gatewayfilter.urls import Url, parse_loose_url, parse_url
from gatewayfilter.use_cases.lists.list_readers import read_entries
from gatewayfilter.use_cases.lists.patterns import Pattern, has_adblock_options, host_of_key
from gatewayfilter.use_cases.lists.rule_editing import read_wanted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gatewayfilter.store import Store

MOST_LINES: Final = 50
MOST_URLS: Final = 50
_LONGEST_TEXT: Final = 20_000
_LOGGED: Final = 1_000
"""Newest logged requests that each line is tried on."""
_MOST_HOSTS: Final = 5
_ELSEWHERE: Final = parse_url("https://elsewhere.invalid/")
_LIKE_ADBLOCK: Final = re.compile(r"\|\||@@|\||.*(?:\$|#@?#)")
_POSITION: Final = re.compile(r"at position (\d+)")
_QUOTED: Final = re.compile(r"'([^']{1,200})'|\"([^\"]{1,200})\"")


class TestedKind(StrEnum):
    """What a line is.

    `RULE`: a rule of one's own. `ADBLOCK`, `HIDING`: a rule that only a list may hold; it blocks, or hides parts of pages.
    """

    __test__ = False  # pytest would take it for a test

    RULE = "rule"
    ADBLOCK = "adblock"
    HIDING = "hiding"
    COMMENT = "comment"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class TriedUrl:
    """An address that a line was tried on, and whether the line applies to it."""

    url: str
    applies: bool


@dataclass(frozen=True, slots=True)
class TestedLine:
    """A line of the text.

    Attributes:
        line: its number, from 1.
        action: what it does; `None` where it does nothing.
        pattern: of a `RULE`.
        error: why it cannot be used; `column` is where, from 1, 0 where that is not known.
        broad: it is usually too broad; it can be added on purpose.
        tried: the addresses of the test, or examples where there are none.
        logged: how many of the newest logged requests it applies to; `hosts` are the most frequent of them.
    """

    __test__ = False

    line: int
    text: str
    kind: TestedKind
    action: ListAction | None = None
    pattern: Pattern | None = None
    error: str = ""
    column: int = 0
    broad: bool = False
    tried: tuple[TriedUrl, ...] = ()
    logged: int = 0
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UrlOutcome:
    """What all lines together do to an address; `None`: nothing. Allow outranks block."""

    url: str
    action: ListAction | None


@dataclass(frozen=True, slots=True)
class RuleTest:
    """The outcome of a test; `looked_at` is how many logged requests there were to try."""

    __test__ = False

    lines: tuple[TestedLine, ...]
    urls: tuple[UrlOutcome, ...]
    looked_at: int


class _Rule:
    """The compiled form of a line, as a function of requests."""

    def __init__(self, own: Sequence[ManualRule] = (), adblock: AdblockMatcher | None = None) -> None:
        # Splicing is about connections to hosts: here it is tried like a block.
        self._own = ManualRules([ManualRule(0, ListAction.BLOCK, rule.kind, rule.pattern) for rule in own])
        if own and own[0].action is ListAction.ALLOW:
            self._own = ManualRules(list(own))
        self._adblock = adblock

    def applies(self, url: Url, resource_type: ResourceType | None = None) -> bool:
        """Returns whether it applies to a request; of no type in particular for `None`."""
        if self._adblock is None:
            return bool(self._own.matching(url, self._own.for_host(url), 0.0))
        if resource_type is not None:
            return bool(self._adblock.match_all(Request(url, resource_type=resource_type)))
        ways = [Request(url), *(Request(url, _ELSEWHERE, kind) for kind in ResourceType)]
        return any(self._adblock.match_all(way) for way in ways)


def try_rules(text: str, addresses: str, action: ListAction, store: Store | None = None) -> RuleTest:
    """Tries rules, one a line, on addresses, one a line, and on what was requested lately.

    Args:
        text: the rules: patterns, `@@` before those that allow, or Adblock rules.
        addresses: URLs or hosts; empty for examples.
        action: of lines without one of their own.
        store: with the log; `None` tries the addresses alone.

    Raises:
        RuleError: there are too many lines or addresses.
        UrlError: an address is none.
    """
    lines = text.splitlines()
    if len(lines) > MOST_LINES or len(text) > _LONGEST_TEXT:
        raise RuleError(f"a test has at most {MOST_LINES} lines; import longer lists with their preview")
    urls = _addresses(addresses)
    logged = _logged(store) if store is not None else []
    tested: list[TestedLine] = []
    rules: list[tuple[_Rule, ListAction]] = []
    for number, line in enumerate(lines, 1):
        found, rule = _tested(number, line.strip(), action, urls, logged)
        tested.append(found)
        if rule is not None and found.action is not None:
            rules.append((rule, found.action))
    return RuleTest(tuple(tested), tuple(UrlOutcome(url.text, _outcome(url, rules)) for url in urls), len(logged))


def _addresses(text: str) -> list[Url]:
    found = [line.strip() for line in text.splitlines() if line.strip()]
    if len(found) > MOST_URLS:
        raise RuleError(f"a test has at most {MOST_URLS} addresses")
    return [parse_loose_url(line) for line in found]


def _logged(store: Store) -> list[tuple[Url, ResourceType]]:
    found: list[tuple[Url, ResourceType]] = []
    for _, record in store.log.tail(_LOGGED):
        try:
            kind = ResourceType(record.resource_type) if record.resource_type in ResourceType else ResourceType.OTHER
            found.append((parse_loose_url(record.url), kind))
        except UrlError:
            continue
    return found


def _outcome(url: Url, rules: Iterable[tuple[_Rule, ListAction]]) -> ListAction | None:
    actions = {action for rule, action in rules if rule.applies(url)}
    return next((action for action in (ListAction.ALLOW, ListAction.SPLICE, ListAction.BLOCK) if action in actions), None)


def _tested(
    number: int, text: str, action: ListAction, urls: Sequence[Url], logged: Sequence[tuple[Url, ResourceType]]
) -> tuple[TestedLine, _Rule | None]:
    if not text or text.startswith(("!", "# ", "[Adblock")):
        return TestedLine(number, text, TestedKind.COMMENT), None
    if parse_line(text).kind is LineKind.COSMETIC:  # else it would be read as an address with a fragment
        return TestedLine(number, text, TestedKind.HIDING), None
    try:
        (own,) = _own_rule(text, action)
    except RuleError as error:
        return _tested_adblock(number, text, error, urls, logged)
    rule = _Rule([own])
    pattern = Pattern(own.kind, own.pattern)
    tried = urls or _examples(pattern)
    count, hosts = _counted(rule, logged)
    line = TestedLine(
        number,
        text,
        TestedKind.RULE,
        own.action,
        pattern,
        broad=_is_broad(text),
        tried=tuple(TriedUrl(url.text, rule.applies(url)) for url in tried),
        logged=count,
        hosts=hosts,
    )
    return line, rule


def _own_rule(text: str, action: ListAction) -> list[ManualRule]:
    if has_adblock_options(text):
        raise RuleError("an Adblock rule with options: add the file as a source instead")
    found = read_entries(text, action, force=True)
    if found.rejected or len(found.rules) != 1:
        raise RuleError(found.rejected[0][2] if found.rejected else "a line of the tester holds one rule")
    return found.rules


def _is_broad(text: str) -> bool:
    try:
        read_wanted(text.removeprefix("@@"))
    except BroadRuleError:
        return True
    except RuleError:
        return False
    return False


def _tested_adblock(
    number: int, text: str, reason: RuleError, urls: Sequence[Url], logged: Sequence[tuple[Url, ResourceType]]
) -> tuple[TestedLine, _Rule | None]:
    parsed = parse_line(text)
    if not _LIKE_ADBLOCK.match(text) or parsed.kind in {LineKind.REJECTED, LineKind.UNSUPPORTED, LineKind.COMMENT}:
        error = _sentence(parsed, reason, text)
        return TestedLine(number, text, TestedKind.WRONG, error=error, column=column_of(text, error)), None
    builder = AdblockBuilder()
    report = builder.add_list(0, [text])
    if report.refused:
        error = report.samples[0][2]
        return TestedLine(number, text, TestedKind.WRONG, error=error, column=column_of(text, error)), None
    rule = _Rule(adblock=AdblockMatcher(builder.build()))
    count, hosts = _counted(rule, logged)
    line = TestedLine(
        number,
        text,
        TestedKind.ADBLOCK,
        ListAction.ALLOW if text.startswith("@@") else ListAction.BLOCK,
        tried=tuple(TriedUrl(url.text, rule.applies(url)) for url in urls),
        logged=count,
        hosts=hosts,
    )
    return line, rule


def _sentence(parsed: ParsedLine, reason: RuleError, text: str) -> str:
    if not _LIKE_ADBLOCK.match(text) or not parsed.note:
        return str(reason)
    return f"not supported: {parsed.note}" if parsed.kind is LineKind.UNSUPPORTED else parsed.note


def column_of(text: str, error: str) -> int:
    """Returns where in a line an error is, by the part of it that the error's sentence names: from 1, 0 for nowhere."""
    if position := _POSITION.search(error):
        return min(int(position[1]) + 1 + text.startswith("/"), len(text))
    for quoted in _QUOTED.finditer(error):
        part = quoted[1] or quoted[2]
        if part != text and (at := text.find(part)) >= 0:
            return at + 1
    name = error.removeprefix("not supported: ")
    at = text.rfind(name) if name != error else -1
    return at + 1 if at >= 0 else 0


def _counted(rule: _Rule, logged: Sequence[tuple[Url, ResourceType]]) -> tuple[int, tuple[str, ...]]:
    hosts = Counter(url.host for url, kind in logged if rule.applies(url, kind))
    return hosts.total(), tuple(host for host, _ in hosts.most_common(_MOST_HOSTS))


def _examples(pattern: Pattern) -> list[Url]:
    found: list[Url] = []
    for example in _example_texts(pattern):
        with suppress(UrlError):  # of a host that is as long as hosts may be, for instance
            found.append(parse_url(example))
    return found


def _example_texts(pattern: Pattern) -> tuple[str, ...]:
    """Returns addresses that show where a pattern ends: some that it applies to, and one beside it."""
    text = pattern.text
    match pattern.kind:
        case EntryKind.DOMAIN:
            host = text.removeprefix(".")
            return f"https://{host}/", f"https://www.{host}/page?q=1", f"https://not{host}/"
        case EntryKind.HOST:
            return (
                (f"https://{text}/", f"https://{text}/page")
                if _is_address(text)
                else (f"https://{text}/", f"https://www.{text}/")
            )
        case EntryKind.PREFIX:
            stem = text.removesuffix("*").removesuffix("/")
            beside = f"{stem}beside" if "/" in stem else host_of_key(stem)
            return f"https://{stem}/", f"https://{stem}/page?q=1", f"https://{beside}"
        case EntryKind.URL:
            query = "&" if "?" in text else "?"
            return f"https://{text}", f"http://{text}{query}q=1", f"https://{text.rstrip('/')}/below"
        case EntryKind.WILDCARD | EntryKind.REGEX:
            return ()


def _is_address(host: str) -> bool:
    return host.startswith("[") or host.replace(".", "").isdecimal()
