"""People's entries as files: written in the formats of other programs, and read back from them, line by line."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gatewayfilter.cli.patterns import Pattern, read_pattern, read_url
from gatewayfilter.errors import ListError, RuleError, UrlError
from gatewayfilter.model import EntryKind, ListAction, PersonRule
from gatewayfilter.urls import is_ip_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_JSON_ARRAY = re.compile(r"\s*\[\s*[{\]\"]")
"""How JSON begins and neither an IPv6 address nor an Adblock header does."""
_HOSTS_LINE = re.compile(r"(?:0\.0\.0\.0|127\.0\.0\.1|::1?)\s+(\S.*)", re.ASCII)
_DNSMASQ_LINE = re.compile(r"(address|local|server)=/([^/\s]+)/(\S*)", re.ASCII)
_ANCHORED_LINE = re.compile(r"\|https?://([^|^]+)([|^]?)")
_SUBDOMAIN_LINE = re.compile(r"\|\|([^|^]*[/*][^|^]*)(\|?)")
_HOSTS_OWN = frozenset({"localhost", "localhost.localdomain", "local", "broadcasthost", "ip6-localhost", "ip6-loopback"})
"""Names that hosts files hold for the machine itself."""
_ADBLOCK_MARKS = frozenset("*^|$")


@dataclass(slots=True)
class ReadEntries:
    """What a file held.

    Attributes:
        rules: entries, `rule_id` 0.
        rejected: line number (or position in a JSON array), text and why.
    """

    rules: list[PersonRule] = field(default_factory=list)
    rejected: list[tuple[int, str, str]] = field(default_factory=list)


def read_entries(text: str, action: ListAction, *, force: bool = False) -> ReadEntries:
    """Reads entries: our JSON, or lines of patterns, hosts, dnsmasq and simple Adblock rules, mixed as they come.

    Args:
        text: the whole file.
        action: for entries that do not say their own (`@@`, dnsmasq `server=/…/#` and JSON do).
        force: also takes what is broader than people usually mean.

    Raises:
        ListError: it begins as JSON and is none of ours.
    """
    found = ReadEntries()
    items = enumerate(_json_items(text), 1) if _JSON_ARRAY.match(text) else _line_items(text)
    for position, item in items:
        try:
            found.rules += list(_rules(item, action, force=force))
        except (RuleError, UrlError) as error:
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


def _rules(item: object, action: ListAction, *, force: bool) -> Iterator[PersonRule]:
    if isinstance(item, str):
        body, _, comment = item.partition(" #")
        for said, pattern in _patterns_of_line(body.strip(), action, force=force):
            yield PersonRule(0, said, pattern.kind, pattern.text, comment=comment.strip())
    elif isinstance(item, dict):
        yield _rule_of_object(item, force=force)
    else:
        raise RuleError("neither an object nor a text")


def _patterns_of_line(line: str, action: ListAction, *, force: bool) -> Iterator[tuple[ListAction, Pattern]]:
    if hosts := _HOSTS_LINE.fullmatch(line):
        for name in hosts[1].split():
            if name.lower() not in _HOSTS_OWN and not name.startswith("0."):
                yield action, read_pattern(f"|{name}")
    elif dnsmasq := _DNSMASQ_LINE.fullmatch(line):
        allowed = dnsmasq[1] == "server" and dnsmasq[3] == "#"
        yield ListAction.ALLOW if allowed else action, read_pattern(dnsmasq[2], force=force)
    elif line.startswith("@@"):
        yield ListAction.ALLOW, _adblock_pattern(line[2:], force=force)
    else:
        yield action, _adblock_pattern(line, force=force)


def _adblock_pattern(line: str, *, force: bool) -> Pattern:
    if "$" in line and line.startswith("|"):
        raise RuleError("an Adblock rule with options: add the file as a source instead")
    if anchored := _ANCHORED_LINE.fullmatch(line):
        body, end = anchored.groups()
        if end == "^":
            return read_pattern(f"{body}/*" if "/" in body else f"|{body}", force=force)
        if end == "|" and "*" not in body:
            return read_url(body)
        return read_pattern(body if end else f"{body}*", force=force)
    if below := _SUBDOMAIN_LINE.fullmatch(line):
        body, end = below.groups()
        return read_pattern(f"*.{body}" if end else f"*.{body}*", force=force)
    return read_pattern(line, force=force)


def _rule_of_object(item: dict[str, Any], *, force: bool) -> PersonRule:
    try:
        kind, text = EntryKind(item["kind"]), str(item["pattern"])
        action = ListAction(item["action"])
        expires_at = None if item.get("expires_at") is None else float(item["expires_at"])
    except (KeyError, ValueError, TypeError) as error:
        raise RuleError(f"no entry with action, kind and pattern: {error}") from error
    pattern = Pattern(kind, text)
    if pattern != (read_url(text) if kind is EntryKind.URL else read_pattern(pattern.written(), force=force)):
        raise RuleError(f"{text[:200]!r} is not how an entry of kind {kind} is kept")
    comment, group = str(item.get("comment") or ""), str(item.get("group") or "")
    return PersonRule(0, action, kind, text, comment=comment, group=group, expires_at=expires_at)


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
    return [exception + body for body in _adblock_bodies(rule.kind, rule.pattern)]


def _adblock_bodies(kind: EntryKind, text: str) -> list[str]:
    match kind:
        case EntryKind.DOMAIN:
            return [f"||{text.removeprefix('.')}^"]
        case EntryKind.HOST:
            return _by_scheme(f"{text}^")
        case EntryKind.PREFIX:
            return _by_scheme(f"{text.removesuffix('/*')}^")
        case EntryKind.URL:
            return _by_scheme(f"{text}|") if _ADBLOCK_MARKS.isdisjoint(text) else []
        case EntryKind.WILDCARD:
            return _adblock_wildcard(text) if _ADBLOCK_MARKS.isdisjoint(text.replace("*", "")) else []
        case EntryKind.REGEX:
            return [f"/{text}/"]


def _adblock_wildcard(text: str) -> list[str]:
    """A wildcard fits a whole URL or, without a slash, a whole host; Adblock rules are parts of URLs unless anchored."""
    if "://" in text or not ("/" in text or text.endswith("*")):
        return []
    body, end = (text[:-1], "") if text.endswith("*") else (text, "|")
    if body.startswith("*."):
        return [f"||{body[2:]}{end}"]
    if body.startswith("*"):
        return [f"{body}{end or '*'}"]
    return _by_scheme(f"{body}{end}")


def _by_scheme(body: str) -> list[str]:
    return [f"|{scheme}://{body}" for scheme in ("http", "https")]


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
        file_format: one of `FORMATS`. JSON holds everything; the others neither comment nor expiry, and only plain domains
            can stand for hosts that are spliced.
    """
    if file_format == "json":
        return json.dumps([_object(rule) for rule in rules], ensure_ascii=False, indent=2).split("\n"), 0
    lines: list[str] = []
    left_out = 0
    for rule in rules:
        sayable = rule.action is not ListAction.SPLICE or file_format == "domains"
        written = _WRITERS[file_format](rule) if sayable else []
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
