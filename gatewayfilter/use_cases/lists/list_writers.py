"""Writers of manual rules in the formats of other programs, one at a time; what a format cannot express is counted."""

from __future__ import annotations

import csv
import io
import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gatewayfilter.model import EntryKind, ListAction, ManualRule
from gatewayfilter.urls import is_ip_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_ADBLOCK_MARKS = frozenset("*^|$")
_PLAIN = {EntryKind.DOMAIN: ".a.example", EntryKind.HOST: "a.example"}
"""What all formats can say, if they can say anything about an action."""
_ACTIONS = {ListAction.ALLOW: "allow", ListAction.BLOCK: "block", ListAction.SPLICE: "leave connections unread"}
_KINDS = {
    EntryKind.DOMAIN: "domains with the names below them",
    EntryKind.HOST: "hosts without the names below them",
    EntryKind.URL: "pages",
    EntryKind.PREFIX: "paths and ports",
    EntryKind.WILDCARD: "patterns",
    EntryKind.REGEX: "regular expressions",
}
_COLUMNS = ("action", "kind", "pattern", "group", "enabled", "expires_at", "comment", "scope")
_LONGEST_NAME = 253
"""Characters of a host name; `*.` before it must fit, too."""


def _named(rule: ManualRule) -> bool:
    return rule.kind in {EntryKind.DOMAIN, EntryKind.HOST} and not is_ip_literal(rule.pattern)


def _hosts(rule: ManualRule) -> list[str]:
    return [f"0.0.0.0 {rule.pattern.removeprefix('.')}"] if _named(rule) and rule.action is ListAction.BLOCK else []


def _domains(rule: ManualRule) -> list[str]:
    whole = rule.kind is EntryKind.DOMAIN or (rule.kind is EntryKind.HOST and is_ip_literal(rule.pattern))
    return [rule.pattern.removeprefix(".")] if whole else []


def _dnsmasq(rule: ManualRule) -> list[str]:
    if rule.kind is not EntryKind.DOMAIN:
        return []
    host = rule.pattern.removeprefix(".")
    blocked = [f"address=/{host}/0.0.0.0", f"address=/{host}/::"]
    return {ListAction.BLOCK: blocked, ListAction.ALLOW: [f"server=/{host}/#"]}.get(rule.action, [])


def _rpz(rule: ManualRule) -> list[str]:
    target = {ListAction.BLOCK: ".", ListAction.ALLOW: "rpz-passthru."}.get(rule.action)
    if target is None or not _named(rule):
        return []
    name = rule.pattern.removeprefix(".")
    if rule.kind is EntryKind.HOST:
        return [f"{name} CNAME {target}"]
    return [f"{name} CNAME {target}", f"*.{name} CNAME {target}"] if len(name) + 2 <= _LONGEST_NAME else []


def _adblock(rule: ManualRule) -> list[str]:
    if rule.action is ListAction.SPLICE:
        return []
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
        name_alone = not end and "/" not in body and "*" not in body[2:]  # would be taken for a domain without the asterisk
        return [f"||{body[2:]}{'*' if name_alone else end}"]
    if body.startswith("*"):
        return [f"{body}{end or '*'}"]
    return _by_scheme(f"{body}{end}")


def _by_scheme(body: str) -> list[str]:
    return [f"|{scheme}://{body}" for scheme in ("http", "https")]


_WRITERS: dict[str, Callable[[ManualRule], list[str]]] = {
    "hosts": _hosts,
    "domains": _domains,
    "adblock": _adblock,
    "dnsmasq": _dnsmasq,
    "rpz": _rpz,
}
COMPLETE_FORMATS = ("json", "csv")
"""Formats that hold everything, group, comment, expiry, scope and whether it is switched off included."""

FORMATS = (*COMPLETE_FORMATS, *_WRITERS)


class EntryWriter:
    """Writes entries in one of `FORMATS`.

    Attributes:
        left_out: how many entries the format has no way to say, of those written so far.
    """

    def __init__(self, file_format: str) -> None:
        self._format = file_format
        self.left_out = 0

    def lines(self, rules: Iterable[ManualRule]) -> Iterator[str]:
        """Yields the file line by line. A line is written once."""
        if self._format == "json":
            yield from _json_lines(rules)
        elif self._format == "csv":
            yield from _csv_lines(rules)
        else:
            if self._format == "rpz":
                yield from _zone_head()
            yield from self._other_lines(rules)

    def _other_lines(self, rules: Iterable[ManualRule]) -> Iterator[str]:
        write, seen = _WRITERS[self._format], set[str]()
        for rule in rules:
            lines = write(rule) if not rule.scope else []
            self.left_out += not lines
            for line in lines:
                if line not in seen:
                    seen.add(line)
                    yield line


def left_out(rules: Iterable[ManualRule], file_format: str) -> Iterator[tuple[ManualRule, str]]:
    """Yields the entries that a format has no way to say, each with the reason."""
    if file_format in COMPLETE_FORMATS:
        return
    write = _WRITERS[file_format]
    for rule in rules:
        if rule.scope:
            yield rule, f"it holds for {rule.scope} alone: no other program has such rules"
        elif not write(rule):
            yield rule, _reason(rule, file_format, write)


def _reason(rule: ManualRule, file_format: str, write: Callable[[ManualRule], list[str]]) -> str:
    if not any(write(replace(rule, kind=kind, pattern=text)) for kind, text in _PLAIN.items()):
        return f"{file_format} has no rules that {_ACTIONS[rule.action]}"
    if rule.kind in _PLAIN and is_ip_literal(rule.pattern):
        return f"{file_format} has no addresses"
    if rule.kind in _PLAIN and write(replace(rule, pattern=_PLAIN[rule.kind])):
        return f"the name is too long for {file_format}"
    return f"{file_format} has no {_KINDS[rule.kind]}"


def write_entries(rules: Iterable[ManualRule], file_format: str) -> tuple[list[str], int]:
    """Returns the entries as lines, and how many the format has no way to say."""
    writer = EntryWriter(file_format)
    return list(writer.lines(rules)), writer.left_out


def _json_lines(rules: Iterable[ManualRule]) -> Iterator[str]:
    """An array with an object a line, so that it can be compared, cut and read line by line."""
    held: str | None = None
    yield "["
    for rule in rules:
        if held is not None:
            yield f"{held},"
        held = f" {json.dumps(_object(rule), ensure_ascii=False)}"
    if held is not None:
        yield held
    yield "]"


def _object(rule: ManualRule) -> dict[str, object]:
    return {
        "action": rule.action.value,
        "kind": rule.kind.value,
        "pattern": rule.pattern,
        "comment": rule.comment,
        "group": rule.group,
        "expires_at": rule.expires_at,
        "enabled": rule.enabled,
        "scope": rule.scope,
    }


def _csv_lines(rules: Iterable[ManualRule]) -> Iterator[str]:
    yield ",".join(_COLUMNS)
    for rule in rules:
        row = {**_object(rule), "enabled": "yes" if rule.enabled else "no", "expires_at": _csv_moment(rule.expires_at)}
        out = io.StringIO()
        csv.writer(out, lineterminator="").writerow([row[column] for column in _COLUMNS])
        yield out.getvalue()


def _csv_moment(moment: float | None) -> str:
    """Whole seconds as people read them, all else as it is, so that nothing is lost."""
    if moment is None:
        return ""
    return datetime.fromtimestamp(moment, UTC).isoformat() if moment == int(moment) and 0 <= moment < 4e9 else repr(moment)


def _zone_head() -> Iterator[str]:
    yield "$TTL 300"
    yield f"@ SOA localhost. root.localhost. {int(time.time())} 3600 600 86400 300"
    yield "@ NS localhost."
