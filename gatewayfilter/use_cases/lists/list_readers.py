"""Readers of manual rules from files: what `list export` writes and other programs keep, line by line."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gatewayfilter.errors import ListError, RuleError, UrlError
from gatewayfilter.model import EntryKind, ListAction, ManualRule
from gatewayfilter.use_cases.lists.patterns import Pattern, has_adblock_options, read_pattern, read_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_JSON_ARRAY = re.compile(r"\s*\[\s*[{\]\"]")
"""How JSON begins and neither an IPv6 address nor an Adblock header does."""
_HOSTS_LINE = re.compile(r"(?:0\.0\.0\.0|127\.0\.0\.1|::1?)\s+(\S.*)", re.ASCII)
_DNSMASQ_LINE = re.compile(r"(address|local|server)=/([^/\s]+)/(\S*)", re.ASCII)
_ANCHORED_LINE = re.compile(r"\|https?://([^|^]+)([|^]?)")
_SUBDOMAIN_LINE = re.compile(r"\|\|([^|^]*[/*][^|^]*|[^|^]*\.)(\|?)")
_ENDING_LINE = re.compile(r"(\*[^|^]*/[^|^]*)\|")
_ZONE_LINE = re.compile(r"(\S+)\s+(?:\d+\s+)?(?:IN\s+)?CNAME\s+(\.|\*\.|rpz-drop\.|rpz-passthru\.)\s*(?:;.*)?", re.IGNORECASE)
_A_ZONE = re.compile(r"^[^\s\[{\",]+\s+(?:\d+\s+)?(?:IN\s+)?CNAME\s", re.IGNORECASE | re.MULTILINE)
_OF_THE_ZONE = re.compile(r"\$TTL\s.*|@\s.*\b(?:SOA|NS)\s.*|;.*", re.IGNORECASE)
_HOSTS_OWN = frozenset({"localhost", "localhost.localdomain", "local", "broadcasthost", "ip6-localhost", "ip6-loopback"})
"""Names that hosts files hold for the machine itself."""
_NO = frozenset({"false", "no", "0", "off"})


@dataclass(slots=True)
class ReadEntries:
    """What a file held.

    Attributes:
        rules: entries, `rule_id` 0.
        rejected: line number (or position in a JSON array), text and why.
    """

    rules: list[ManualRule] = field(default_factory=list)
    rejected: list[tuple[int, str, str]] = field(default_factory=list)


def read_entries(
    text: str, action: ListAction, *, force: bool = False, report: Callable[[int], None] | None = None, most: int = 0
) -> ReadEntries:
    """Reads entries: our JSON and CSV, or lines of patterns, hosts, dnsmasq, zones and simple Adblock rules, mixed as they come.

    Args:
        text: the whole file.
        action: for entries without one of their own (`@@`, `server=/…/#`, `rpz-passthru.`, JSON and CSV have one).
        force: also accepts patterns that are usually too broad.
        report: called now and then with the line or position.
        most: entries and bad lines together, 0 for any number.

    Raises:
        ListError: it begins as JSON and is none of ours, or holds more than `most`.
    """
    found = ReadEntries()
    for position, item in _items(text):
        if report is not None and position % 1000 == 0:
            report(position)
        try:
            found.rules += list(_rules(item, action, force=force))
        except (RuleError, UrlError) as error:
            found.rejected.append((position, str(item)[:200], str(error)))
        if most and len(found.rules) + len(found.rejected) > most:
            raise ListError(f"these are more than {most:,} lines; a list of this size belongs among the lists")
    if _A_ZONE.search(text):
        found.rules = _joined_names(found.rules)
    return found


def _items(text: str) -> Iterable[tuple[int, Any]]:
    if _JSON_ARRAY.match(text):
        return enumerate(_json_items(text), 1)
    header = text.lstrip("\ufeff").partition("\n")[0].replace('"', "").replace(";", ",").strip().split(",")
    return _csv_items(text) if {"action", "kind", "pattern"} <= set(header) else _line_items(text)


def _json_items(text: str) -> list[Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ListError(f"the file begins like JSON and is not: {error}") from error
    if not isinstance(document, list):
        raise ListError("the file is JSON, but no array of entries")
    return document


def _csv_items(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    text = text.removeprefix("\ufeff")
    head = text.partition("\n")[0]
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=";" if head.count(";") > head.count(",") else ",")
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise ListError(f"the file begins like CSV and is not: line {reader.line_num}, {error}") from error


def _line_items(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip().removeprefix("\ufeff")
        if stripped and not stripped.startswith(("#", "!", "[Adblock")) and not _OF_THE_ZONE.fullmatch(stripped):
            yield number, stripped


def _rules(item: object, action: ListAction, *, force: bool) -> Iterator[ManualRule]:
    if isinstance(item, str):
        body, _, comment = item.partition(" #")
        for source_text, pattern in _patterns_of_line(body.strip(), action, force=force):
            yield ManualRule(0, source_text, pattern.kind, pattern.text, comment=comment.strip())
    elif isinstance(item, dict):
        yield _rule_of_object(item, force=force)
    else:
        raise RuleError("neither an object nor a text")


def _patterns_of_line(line: str, action: ListAction, *, force: bool) -> Iterator[tuple[ListAction, Pattern]]:
    if hosts := _HOSTS_LINE.fullmatch(line):
        for name in hosts[1].split():
            if name.lower() not in _HOSTS_OWN and not name.startswith("0."):
                yield action, read_pattern(f"|{name}", force=force)
    elif dnsmasq := _DNSMASQ_LINE.fullmatch(line):
        allowed = dnsmasq[1] == "server" and dnsmasq[3] == "#"
        yield ListAction.ALLOW if allowed else action, read_pattern(dnsmasq[2], force=force)
    elif zone := _ZONE_LINE.fullmatch(line):
        name = zone[1].removesuffix(".")
        passes = zone[2].lower() == "rpz-passthru."
        yield ListAction.ALLOW if passes else action, read_pattern(name if name.startswith("*.") else f"|{name}", force=force)
    elif line.startswith("@@"):
        yield ListAction.ALLOW, _adblock_pattern(line[2:], force=force)
    else:
        yield action, _adblock_pattern(line, force=force)


def _joined_names(rules: list[ManualRule]) -> list[ManualRule]:
    """A zone has two records for a host and its subdomains: leaves out the host where the domain is there, too."""
    domains = {(rule.action, rule.pattern) for rule in rules if rule.kind is EntryKind.DOMAIN}
    return [rule for rule in rules if rule.kind is not EntryKind.HOST or (rule.action, f".{rule.pattern}") not in domains]


def _adblock_pattern(line: str, *, force: bool) -> Pattern:
    if ("$" in line and line.startswith("|")) or (not force and has_adblock_options(line)):
        raise RuleError("an Adblock rule with options: add the file as a source instead")
    if anchored := _ANCHORED_LINE.fullmatch(line):
        body, end = anchored.groups()
        if end == "^":
            return read_pattern(f"{body}/*" if "/" in body else f"|{body}", force=force)
        if end == "|" and "*" not in body:
            return read_url(body)
        return read_pattern(body if end else f"{body}*", force=force)
    if ending := _ENDING_LINE.fullmatch(line):
        return read_pattern(ending[1], force=force)
    if below := _SUBDOMAIN_LINE.fullmatch(line):
        body, end = below.groups()
        return read_pattern(f"*.{body}" if end or body.endswith("*") else f"*.{body}*", force=force)
    return read_pattern(line, force=force)


def _rule_of_object(item: Mapping[str, Any], *, force: bool) -> ManualRule:
    try:
        kind, text = EntryKind(item["kind"]), str(item["pattern"])
        action = ListAction(item["action"])
        expires_at = _moment(item.get("expires_at"))
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        raise RuleError(f"no entry with action, kind and pattern: {error}") from error
    pattern = Pattern(kind, text)
    if pattern != (read_url(text) if kind is EntryKind.URL else read_pattern(pattern.written(), force=force)):
        raise RuleError(f"{text[:200]!r} is not how an entry of kind {kind} is kept")
    if action is ListAction.SPLICE and kind not in {EntryKind.DOMAIN, EntryKind.HOST}:
        raise RuleError(f"only hosts can pass unread, not a {kind}")
    enabled = str(item.get("enabled", "")).strip().lower() not in _NO
    comment, group = str(item.get("comment") or ""), str(item.get("group") or "")
    scope = str(item.get("scope") or "")
    if scope and not scope.startswith(("client:", "group:")):
        raise RuleError(f"{scope[:200]!r} is no client:NAME or group:NAME")
    return ManualRule(0, action, kind, text, comment, group, expires_at, enabled, scope)


def _moment(value: object) -> float | None:
    """Returns Unix seconds from a number or an ISO time, `None` for nothing."""
    if value is None or value == "":
        return None
    if isinstance(value, str) and "-" in value[1:] and "e" not in value.lower():
        return datetime.fromisoformat(value).timestamp()
    if not isinstance(value, str | int | float):
        raise TypeError(f"{value!r} is no time")
    moment = float(value)
    if moment != moment or moment in {float("inf"), float("-inf")}:  # noqa: PLR0124  NaN alone is unlike itself
        raise ValueError(f"{value!r} is no time")
    return moment
