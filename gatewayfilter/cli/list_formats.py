"""People's entries as files: written in the formats of other programs, and read back from them, line by line."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gatewayfilter.cli.patterns import Pattern, read_pattern
from gatewayfilter.errors import ListError, RuleError
from gatewayfilter.model import EntryKind, ListAction, PersonRule
from gatewayfilter.urls import is_ip_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_JSON_ARRAY = re.compile(r"\s*\[\s*[{\]\"]")
"""How JSON begins and neither an IPv6 address nor an Adblock header does."""
_HOSTS_LINE = re.compile(r"(?:0\.0\.0\.0|127\.0\.0\.1|::1?)\s+(\S.*)", re.ASCII)
_DNSMASQ_LINE = re.compile(r"(address|local|server)=/([^/\s]+)/(\S*)", re.ASCII)
_ANCHORED_LINE = re.compile(r"\|https?://([^|^*]+)([|^])", re.ASCII)
_HOSTS_OWN = frozenset({"localhost", "localhost.localdomain", "local", "broadcasthost", "ip6-localhost", "ip6-loopback"})
"""Names that hosts files hold for the machine itself."""


@dataclass(slots=True)
class ReadEntries:
    """What a file held.

    Attributes:
        rules: entries, `rule_id` 0.
        rejected: line number (or position in a JSON array), text and why.
    """

    rules: list[PersonRule] = field(default_factory=list)
    rejected: list[tuple[int, str, str]] = field(default_factory=list)


def read_entries(text: str, action: ListAction, objection: Callable[[Pattern], str]) -> ReadEntries:
    """Reads entries: our JSON, or lines of patterns, hosts, dnsmasq and simple Adblock rules, mixed as they come.

    Args:
        text: the whole file.
        action: for entries that do not say their own (`@@`, dnsmasq `server=/…/#` and JSON do).
        objection: returns why a pattern is refused, `""` for one that is fine (`patterns.too_broad`).

    Raises:
        ListError: it begins as JSON and is none of ours.
    """
    found = ReadEntries()
    items = enumerate(_json_items(text), 1) if _JSON_ARRAY.match(text) else _line_items(text)
    for position, item in items:
        try:
            for rule in _rules(item, action):
                if why := objection(Pattern(rule.kind, rule.pattern)):
                    raise RuleError(why)  # noqa: TRY301  a refusal is counted like any other bad line
                found.rules.append(rule)
        except RuleError as error:
            found.rejected.append((position, str(item)[:200], str(error)))
    return found


def _json_items(text: str) -> list[Any]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ListError(f"the file begins like JSON and is not: {error}") from error
    if not isinstance(document, list):
        raise ListError("the file is JSON, but no array of entries")
    return document


def _line_items(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip().removeprefix("\ufeff")
        if stripped and not stripped.startswith(("#", "!", "[Adblock")):
            yield number, stripped


def _rules(item: object, action: ListAction) -> Iterator[PersonRule]:
    if isinstance(item, str):
        yield from _rules_of_line(item, action)
    elif isinstance(item, dict):
        yield _rule_of_object(item)
    else:
        raise RuleError("neither an object nor a text")


def _rules_of_line(line: str, action: ListAction) -> Iterator[PersonRule]:
    body, _, comment = line.partition(" #")
    body = body.strip()
    if hosts := _HOSTS_LINE.fullmatch(body):
        for name in hosts[1].split():
            if name.lower() not in _HOSTS_OWN and not name.startswith("0."):
                yield _rule(action, read_pattern(name, exact=True), comment)
        return
    if dnsmasq := _DNSMASQ_LINE.fullmatch(body):
        allowed = dnsmasq[1] == "server" and dnsmasq[3] == "#"
        yield _rule(ListAction.ALLOW if allowed else action, read_pattern(dnsmasq[2]), comment)
        return
    if body.startswith("@@"):
        action, body = ListAction.ALLOW, body[2:]
    if anchored := _ANCHORED_LINE.fullmatch(body):
        yield _rule(action, _anchored(anchored[1], exact=anchored[2] == "|"), comment)
        return
    if "$" in body and body.startswith("|"):
        raise RuleError("an Adblock rule with options: add the file as a source instead")
    yield _rule(action, read_pattern(body), comment)


def _anchored(text: str, *, exact: bool) -> Pattern:
    if exact:
        return read_pattern(f"http://{text}")
    return read_pattern(f"{text}/*" if "/" in text else text, exact=True)


def _rule(action: ListAction, pattern: Pattern, comment: str = "") -> PersonRule:
    return PersonRule(0, action, pattern.kind, pattern.text, comment=comment.strip())


def _rule_of_object(item: dict[str, Any]) -> PersonRule:
    try:
        kind, pattern = EntryKind(item["kind"]), str(item["pattern"])
        action = ListAction(item["action"])
        expires_at = None if item.get("expires_at") is None else float(item["expires_at"])
    except (KeyError, ValueError, TypeError) as error:
        raise RuleError(f"no entry with action, kind and pattern: {error}") from error
    read = read_pattern(Pattern(kind, pattern).written(), exact=kind is EntryKind.HOST)
    if kind is EntryKind.WILDCARD and read.kind is not kind:
        read = Pattern(kind, pattern)
    if read != Pattern(kind, pattern):
        raise RuleError(f"{pattern[:200]!r} is not how an entry of kind {kind} is kept")
    comment, group = str(item.get("comment") or ""), str(item.get("group") or "")
    return PersonRule(0, action, kind, pattern, comment=comment, group=group, expires_at=expires_at)


def _hosts(rule: PersonRule) -> list[str]:
    named = rule.kind in {EntryKind.DOMAIN, EntryKind.HOST} and not is_ip_literal(rule.pattern)
    return [f"0.0.0.0 {rule.pattern.removeprefix('.')}"] if named and rule.action is ListAction.BLOCK else []


def _domains(rule: PersonRule) -> list[str]:
    whole = rule.kind is EntryKind.DOMAIN or (rule.kind is EntryKind.HOST and is_ip_literal(rule.pattern))
    return [rule.pattern.removeprefix(".")] if whole else []


def _dnsmasq(rule: PersonRule) -> list[str]:
    if rule.kind is not EntryKind.DOMAIN:
        return []
    host = rule.pattern.removeprefix(".")
    return [f"address=/{host}/0.0.0.0", f"address=/{host}/::"] if rule.action is ListAction.BLOCK else [f"server=/{host}/#"]


def _adblock(rule: PersonRule) -> list[str]:
    exception = "@@" if rule.action is ListAction.ALLOW else ""
    match rule.kind:
        case EntryKind.DOMAIN:
            bodies = [f"||{rule.pattern.removeprefix('.')}^"]
        case EntryKind.HOST:
            bodies = [f"|{scheme}://{rule.pattern}^" for scheme in ("http", "https")]
        case EntryKind.PREFIX:
            bodies = [f"|{scheme}://{rule.pattern.removesuffix('/*')}^" for scheme in ("http", "https")]
        case EntryKind.URL:
            bodies = [f"|{scheme}://{rule.pattern}|" for scheme in ("http", "https")]
        case EntryKind.WILDCARD:
            bodies = [rule.pattern]
        case EntryKind.REGEX:
            bodies = [f"/{rule.pattern}/"]
    return [exception + body for body in bodies]


_WRITERS: dict[str, Callable[[PersonRule], list[str]]] = {
    "hosts": _hosts,
    "domains": _domains,
    "adblock": _adblock,
    "dnsmasq": _dnsmasq,
}
FORMATS = ("json", *_WRITERS)


def write_entries(rules: Iterable[PersonRule], file_format: str) -> tuple[list[str], int]:
    """Returns the entries as lines, and how many the format has no way to say.

    Args:
        rules: what to write.
        file_format: one of `FORMATS`. JSON holds everything; the others neither comment nor expiry.
    """
    if file_format == "json":
        return json.dumps([_object(rule) for rule in rules], ensure_ascii=False, indent=2).split("\n"), 0
    lines: list[str] = []
    left_out = 0
    for rule in rules:
        written = _WRITERS[file_format](rule)
        left_out += not written
        lines += written
    return list(dict.fromkeys(lines)), left_out


def _object(rule: PersonRule) -> dict[str, object]:
    return {
        "action": rule.action.value,
        "kind": rule.kind.value,
        "pattern": rule.pattern,
        "comment": rule.comment,
        "group": rule.group,
        "expires_at": rule.expires_at,
    }
