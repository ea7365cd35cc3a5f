"""Import and export of manual rules: a file is read and previewed before it is stored, and written in the formats of others."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gatewayfilter.errors import ListError, RuleError
from gatewayfilter.model import LearnedEntry, ListAction, ManualRule
from gatewayfilter.sources.download.compression import DAMAGE, decompressed
from gatewayfilter.use_cases.lists.list_readers import ReadEntries, read_entries
from gatewayfilter.use_cases.lists.list_writers import COMPLETE_FORMATS, FORMATS, EntryWriter
from gatewayfilter.use_cases.lists.patterns import pattern_of_key, refuse_unspliceable
from gatewayfilter.use_cases.lists.rule_editing import RuleValues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO

    from gatewayfilter.store import Store

MOST_RULES = 100_000
"""Manual rules are in every worker's memory and are read at each start: longer lists belong among the sources."""
LARGEST_FILE = 256_000_000
MOST_SMALL = 20_000
"""Rules of a file that a small process imports: it keeps and shows them in its memory."""
LARGEST_SMALL_FILE = 4_000_000
_CHUNK = 1 << 18
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_BLOCKING_FORMATS = frozenset({"hosts", "domains"})
"""Formats that have no actions: they hold what is blocked unless another action is asked for."""


@dataclass(frozen=True, slots=True)
class RejectedLine:
    """A line (or position in a JSON array) that was not read, with its text and why; 0 where it has no number."""

    line: int
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class RulesRead:
    """What a file holds: rules that are not stored yet (`rule_id` 0), and lines that are none."""

    rules: tuple[ManualRule, ...]
    rejected: tuple[RejectedLine, ...]


@dataclass(frozen=True, slots=True)
class ImportPreview:
    """What an import would do: rules that are new, that would change, and that are there as they are."""

    new: int
    changed: int
    same: int


@dataclass(frozen=True, slots=True)
class RuleExport:
    """Which rules are written: those of an action, of a group (`None` for any), or what the crawler learned."""

    file_format: str = "json"
    action: ListAction | None = None
    group: str | None = None
    learned: bool = False


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file of rules, with its type and a name for it."""

    name: str
    media_type: str
    text: str


def text_of(file: BinaryIO, name: str, largest: int = LARGEST_FILE) -> str:
    """Reads a text file, which may be compressed.

    Args:
        file: at its beginning; it can be searched (`seek`), or is not compressed.
        name: for error messages.
        largest: bytes, after decompression.

    Raises:
        ListError: it is too large, damaged, or no UTF-8 nor UTF-16 text.
        OSError: it cannot be read.
    """
    data = _plain_bytes(file, name, largest) if file.seekable() else file.read(largest + 1)
    if len(data) > largest:
        raise ListError(f"{name} is larger than {largest:,} bytes; add it as a source instead")
    mark = next((mark for mark in _MARKS if data.startswith(mark)), b"")
    try:
        return data[len(mark) :].decode(_MARKS.get(mark, "utf-8"))
    except UnicodeDecodeError as error:
        raise ListError(f"{name} is not UTF-8 text: byte {error.start}") from error


def _plain_bytes(file: BinaryIO, name: str, largest: int) -> bytes:
    stream = decompressed(file)
    if stream is None:
        return file.read(largest + 1)
    plain = bytearray()
    try:
        while len(plain) <= largest and (chunk := stream.read(_CHUNK)):
            plain += chunk
    except DAMAGE as error:
        raise ListError(f"{name} is damaged or cut off") from error
    return bytes(plain)


def read_rules(
    text: str, values: RuleValues, name: str, *, force: bool = False, report: Callable[[int], None] | None = None, most: int = 0
) -> RulesRead:
    """Reads rules from a text: what an export writes, patterns, or lines of hosts files, dnsmasq, zones and Adblock lists.

    Args:
        text: of the file.
        values: action, comment, group and expiry of lines that have none of their own.
        name: of the file, for error messages.
        force: also accepts patterns that are usually too broad.
        report: called now and then with the line.
        most: rules and bad lines together, 0 for any number.

    Raises:
        ListError: nothing in it can be used, or it holds more than `most`.
    """
    found = read_entries(text, values.action, force=force, report=report, most=most)
    if values.action is ListAction.SPLICE:
        found = _spliceable(found)
    if not found.rules and found.rejected:
        position, sample, why = found.rejected[0]
        raise ListError(f"{name} holds no usable entry; line {position}, {sample!r}: {why}")
    rules = (
        replace(
            rule,
            comment=rule.comment or values.comment,
            group=rule.group or values.group,
            expires_at=values.expires_at if rule.expires_at is None else rule.expires_at,
        )
        for rule in found.rules
    )
    return RulesRead(tuple(rules), tuple(RejectedLine(*reject) for reject in found.rejected))


def _spliceable(found: ReadEntries) -> ReadEntries:
    kept = [rule for rule in found.rules if not _why_unspliceable(rule)]
    refused = [(0, rule.pattern, why) for rule in found.rules if (why := _why_unspliceable(rule))]
    return ReadEntries(kept, [*found.rejected, *refused])


def _why_unspliceable(rule: ManualRule) -> str:
    try:
        refuse_unspliceable(rule.action, rule.kind)
    except RuleError as error:
        return str(error)
    return ""


def read_small_file(text: str, values: RuleValues, *, force: bool = False, name: str = "the file") -> RulesRead:
    """Reads rules as `read_rules`, of a file that fits into a small process.

    Raises:
        ListError: it is too large, or nothing in it can be used.
    """
    if len(text) > LARGEST_SMALL_FILE:
        raise ListError(f"{name} is longer than {LARGEST_SMALL_FILE:,} characters; a list of this size belongs among the lists")
    return read_rules(text, values, name, force=force, most=MOST_SMALL)


def preview_import(store: Store, rules: Iterable[ManualRule]) -> ImportPreview:
    """Returns what storing these rules would do; of several with the same kind, pattern, group and scope the last one counts."""
    wanted = {_identity(rule): replace(rule, rule_id=0) for rule in rules}
    there = {_identity(rule): replace(rule, rule_id=0) for rule in store.lists.rules()}
    new = sum(identity not in there for identity in wanted)
    same = sum(there.get(identity) == rule for identity, rule in wanted.items())
    return ImportPreview(new, len(wanted) - new - same, same)


def _identity(rule: ManualRule) -> tuple[str, str, str, str]:
    return (rule.kind, rule.pattern, rule.group, rule.scope)


def import_rules(store: Store, rules: Iterable[ManualRule]) -> int:
    """Stores rules in one transaction. Returns the number of new or changed ones."""
    return store.lists.add_rules(list(rules))


def exported_rules(store: Store, wanted: RuleExport, now: float) -> Iterator[ManualRule]:
    """Yields the rules that an export writes.

    Rules that are switched off are in complete formats alone; expired ones in none.
    """
    action = ListAction.BLOCK if wanted.action is None and wanted.file_format in _BLOCKING_FORMATS else wanted.action
    for rule in map(_as_rule, store.lists.learned()) if wanted.learned else store.lists.rules():
        if (
            action in {None, rule.action}
            and wanted.group in {None, rule.group}
            and (rule.expires_at is None or rule.expires_at > now)
            and (rule.enabled or wanted.file_format in COMPLETE_FORMATS)
        ):
            yield rule


def exported_file(store: Store, file_format: str, action: ListAction | None, group: str | None, now: float) -> ExportedFile:
    """Returns rules as a file.

    Raises:
        ListError: there is no such format.
    """
    if file_format not in FORMATS:
        raise ListError(f"there is no format {file_format!r}: there are {', '.join(FORMATS)}")
    rules = exported_rules(store, RuleExport(file_format, action, group), now)
    text = "".join(f"{line}\n" for line in EntryWriter(file_format).lines(rules))
    complete = file_format in COMPLETE_FORMATS
    kind = {"json": "application/json", "csv": "text/csv"}.get(file_format, "text/plain")
    return ExportedFile(f"rules.{file_format if complete else 'txt'}", f"{kind}; charset=utf-8", text)


def _as_rule(entry: LearnedEntry) -> ManualRule:
    pattern = pattern_of_key(entry.key)
    return ManualRule(0, entry.action, pattern.kind, pattern.text, f"{entry.category}: {entry.detail}", "", entry.expires_at)
