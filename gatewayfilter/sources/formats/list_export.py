"""The reader of lists that `list export` wrote, as JSON or CSV, entry by entry, one in memory at a time."""

import codecs
import csv
import json
import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from gatewayfilter.engine.state.manual_rules import classify_pattern
from gatewayfilter.errors import RuleError, UrlError
from gatewayfilter.model import EntryKind, ListAction
from gatewayfilter.sources.formats.line_blocks import BLOCK_SIZE, MAX_LINE_LENGTH, text_lines
from gatewayfilter.urls import parse_loose_url

type Item = tuple[int, object]
"""Line number, and what stands there: a mapping for an entry, RuleError where the file cannot be read on."""

_BETWEEN = re.compile(r"[\s,]*")
_HEADER = frozenset({"action", "kind", "pattern"})


def json_items(file: BinaryIO) -> Iterator[Item]:
    """Yields the items of a JSON array with the lines that they begin on; what is no JSON ends it with a RuleError."""
    decode = json.JSONDecoder().raw_decode
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    buffer, at, line, ended = "", 0, 1, False
    while True:
        between = _BETWEEN.match(buffer, at)
        begin = between.end() if between else at
        line += buffer.count("\n", at, begin)
        at = begin
        if buffer.startswith("]", at):
            return
        try:
            item, end = decode(buffer, at)
        except (ValueError, RecursionError):
            if not ended and len(buffer) - at <= MAX_LINE_LENGTH:
                chunk = file.read(BLOCK_SIZE)
                ended = not chunk
                was_empty = not buffer
                buffer, at = buffer[at:] + decoder.decode(chunk, ended), 0
                if was_empty:
                    at = len(buffer) - len(buffer.lstrip().removeprefix("["))
                    line += buffer.count("\n", 0, at)
                continue
            yield line, RuleError(f"{buffer[at : at + 60]!r} is no JSON")
            return
        yield line, item
        line += buffer.count("\n", at, end)
        at = end


def csv_items(file: BinaryIO) -> Iterator[Item]:
    """Yields the rows of a CSV file as mappings of column to text; what is no CSV ends it with a RuleError."""
    reader = csv.DictReader(f"{line}\n" for line in text_lines(file))
    try:
        if _HEADER.difference(reader.fieldnames or ()):
            yield 1, RuleError("the first line does not name the columns action, kind and pattern")
            return
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        yield reader.line_num, RuleError(f"it is no CSV: {error}")


def entry_key(item: object, action: ListAction) -> str:
    """Returns the list key of an exported entry.

    Args:
        item: an item of `json_items` or `csv_items`.
        action: what the list means.

    Raises:
        RuleError: it is no entry, means something else than the list, or has no key.
    """
    if isinstance(item, RuleError):
        raise item
    if not isinstance(item, Mapping):
        raise RuleError("no object with action, kind and pattern")
    said, kind, pattern = (str(item.get(column) or "") for column in ("action", "kind", "pattern"))
    if said != action:
        raise RuleError(f"means {said or 'nothing'}, in a list that means {action}")
    if kind in {EntryKind.WILDCARD, EntryKind.REGEX}:
        raise RuleError(f"a {kind}, which only manual rules can be: `list import` accepts it")
    if kind not in EntryKind:
        raise RuleError(f"{kind!r} is no kind of entry")
    if canonical(EntryKind(kind), pattern) != pattern:
        raise RuleError(f"not how an entry of kind {kind} is kept")
    return pattern


def canonical(kind: EntryKind, pattern: str) -> str:
    """Returns the key that a pattern of this kind is kept as.

    Raises:
        RuleError: it is none, or too broad.
    """
    try:
        if kind is EntryKind.URL:
            return parse_loose_url(pattern).key
        written = f"|{pattern}" if kind is EntryKind.HOST else pattern
        found, key = classify_pattern(written)
    except UrlError as error:
        raise RuleError(str(error)) from error
    if found is not kind:
        raise RuleError(f"a {found}, not a {kind}")
    return key
