"""The search for lines of lists that match a URL, or hold a text; it reads the lists, as the snapshot has no line numbers."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, Final

import numpy as np

from gatewayfilter.engine.state.manual_rules import hosts_of_prefixes
from gatewayfilter.errors import RuleError
from gatewayfilter.model import ListAction
from gatewayfilter.sources.formats.line_blocks import MAX_LINE_LENGTH, text_lines
from gatewayfilter.sources.formats.line_formats import LineFormat, line_format, read_line
from gatewayfilter.sources.formats.list_export import csv_items, entry_key, json_items
from gatewayfilter.sources.formats.list_format import SAMPLE_LENGTH, ListFormat
from gatewayfilter.sources.subscription import SourceFile
from gatewayfilter.urls import Url, digest_of, domain_key, host_key, host_suffixes, registrable_domain

_SEARCHED_AT_ONCE: Final = 1 << 20
_LINE_END: Final = ord("\n")
_EXPORTED = {ListFormat.JSON: json_items, ListFormat.CSV: csv_items}


@dataclass(frozen=True, slots=True)
class ListLine:
    """A line of a list that was found.

    Attributes:
        line: its number, from 1; 0 for one that the list is known to have, but which is written in a form that is not found.
        text: as it stands there, cut to `SAMPLE_LENGTH` characters.
        key: the list key by which it matches the URL, `""` for one found by its text.
    """

    line: int
    text: str
    key: str = ""


def covering_keys(url: Url) -> frozenset[str]:
    """Returns every list key by which a list can match a URL: its own, its prefixes, its host, the domains above it."""
    domains = (domain_key(suffix) for suffix in host_suffixes(url.host))
    prefixes = (key for host in hosts_of_prefixes(url) for key in url.prefix_keys(host))
    return frozenset({url.key, host_key(url.host), *domains, *prefixes})


def lines_about(item: SourceFile, url: Url, listed: frozenset[str] | None = None) -> Iterator[ListLine]:
    """Yields the lines of a list that match a URL, in order; none of an Adblock list, whose rules the engine matches.

    Reads the whole file, about 2 s of CPU a gigabyte: only lines that name the host's registrable domain are parsed. So one that
    writes it in another way, as `exam%70le.com`, is not found: it has number 0 where `listed` says that there is one.

    Args:
        item: the list.
        url: the URL.
        listed: the keys by which the list is known to have the URL; the file is not read where there is none. `None`: not known.

    Raises:
        OSError: the file cannot be read.
    """
    keys = covering_keys(url) if listed is None else listed
    if item.list_format is ListFormat.ADBLOCK or not keys:
        return
    missing = set(listed or ())
    for found in _lines_of_keys(item, url, keys):
        missing.discard(found.key)
        yield found
    for key in sorted(missing):
        yield ListLine(0, key[:SAMPLE_LENGTH], key)


def _lines_of_keys(item: SourceFile, url: Url, keys: frozenset[str]) -> Iterator[ListLine]:
    with item.path.open("rb") as file:
        if item.list_format in _EXPORTED:
            yield from _exported_lines(file, item.list_format, item.source.action, keys)
        elif item.list_format is ListFormat.DIGESTS:
            digests = {digest_of(key).hex(): key for key in keys}
            for found in _lines_with(file, _either(digests)):
                if found.text.lower() in digests:
                    yield ListLine(found.line, found.text, digests[found.text.lower()])
        elif item.list_format is ListFormat.RPZ:
            yield from _read_lines(_all_lines(file), line_format(item.list_format, item.source.action), keys)
        else:
            yield from _read_lines(_lines_with(file, _names(url)), line_format(item.list_format, item.source.action), keys)


def lines_with_text(item: SourceFile, text: str) -> Iterator[ListLine]:
    """Yields the lines of a list in which a text stands, capitals or not, in order.

    Raises:
        OSError: the file cannot be read.
    """
    with item.path.open("rb") as file:
        for found in _lines_with(file, _either([text.lower()])):
            yield ListLine(found.line, found.text[:SAMPLE_LENGTH])


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is looked for in lines, in lower case.

    Attributes:
        pattern: found in every such line.
        literal: stands in every such line that is ASCII, `""` for nothing: it is looked for first, which is faster.
    """

    pattern: re.Pattern[str]
    literal: str

    @property
    def in_bytes(self) -> re.Pattern[bytes]:
        """The pattern for lines in UTF-8 whose ASCII letters are lower case; it may find others beyond ASCII, too."""
        text = self.pattern.pattern.replace(_BEYOND_ASCII, _BEYOND_ASCII_BYTES)
        if not self.literal.isascii():
            text = f"{text}|{_BEYOND_ASCII_BYTES}"  # capitals beyond ASCII are made small when a line is looked at
        return re.compile(text.encode())


_BEYOND_ASCII: Final = r"[^\x00-\x7f]"
_BEYOND_ASCII_BYTES: Final = r"[\x80-\xff]"
_NOT_WITHIN: Final = r"(?![a-z0-9-])"
"""What follows a name is no letter of it: `casino` is not looked for in `casino7.example`."""


def _either(texts: Iterable[str]) -> _Wanted:
    """Returns what finds one of these texts; a single one of any characters, several of ASCII alone."""
    found = list(texts)
    return _Wanted(re.compile("|".join(map(re.escape, found))), found[0] if len(found) == 1 else "")


def _names(url: Url) -> _Wanted:
    """Returns what every line about the host holds, as lists write it: the registrable domain, in ASCII or not."""
    name = registrable_domain(url.host).strip("[]")
    if "xn--" in name:
        names = {name, "xn--"}
        with suppress(UnicodeError):
            names.add(name.encode().decode("idna"))
        return _Wanted(re.compile(f"{'|'.join(map(re.escape, names))}|{_BEYOND_ASCII}"), "xn--")
    name = name.partition(":")[0]  # an IPv6 address may be written in several ways, all of which begin like this
    return _Wanted(re.compile(f"{re.escape(name)}{_NOT_WITHIN}"), name)


def _all_lines(file: BinaryIO) -> Iterator[ListLine]:
    for number, line in enumerate(text_lines(file), 1):
        yield ListLine(number, line.strip())


def _lines_with(file: BinaryIO, wanted: _Wanted) -> Iterator[ListLine]:
    """Yields the lines in which something is found. Lines are counted and decoded where something is found alone."""
    literal, search = wanted.literal.encode(), wanted.in_bytes.search
    rest, begin, cut = b"", 0, 0
    lines = _LineNumbers(file)
    while read := file.read(_SEARCHED_AT_ONCE):
        block = read
        if cut:  # of the line that `rest` begins
            over, end, block = block.partition(b"\n")
            cut += len(over)
            if not end:
                continue
            yield from _found_in(rest, begin, literal, search, wanted.pattern, lines)
            begin, rest, cut = begin + len(rest) + cut + 1, b"", 0
        head, end, tail = block.rpartition(b"\n")
        if not end:
            rest += block
            cut = max(0, len(rest) - MAX_LINE_LENGTH - 1)
            rest = rest[: MAX_LINE_LENGTH + 1]
            continue
        whole, rest = rest + head + end, tail
        yield from _found_in(whole, begin, literal, search, wanted.pattern, lines)
        begin += len(whole)
    yield from _found_in(rest, begin, literal, search, wanted.pattern, lines)


def _found_in(
    block: bytes,
    begin: int,
    literal: bytes,
    search: Callable[[bytes, int], re.Match[bytes] | None],
    pattern: re.Pattern[str],
    lines: "_LineNumbers",
) -> Iterator[ListLine]:
    """Yields what is found in whole lines that begin at an offset of the file."""
    if not block.endswith(b"\n"):  # the last line of a file, or one that was cut
        block += b"\n"
    lowered = block.lower()
    if literal not in lowered and lowered.isascii():
        return
    at = 0
    while at < len(block) and (found := search(lowered, at)) is not None:
        start = block.rfind(b"\n", 0, found.start()) + 1
        end = block.index(b"\n", found.start())
        at = end + 1
        text = block[start:end][: MAX_LINE_LENGTH + 1].decode("utf-8", "replace")
        if begin + start == 0:
            text = text.removeprefix("\ufeff")
        if pattern.search(text.lower()):
            yield ListLine(lines.of(begin + start), text.strip())


class _LineNumbers:
    """Numbers of lines by their offsets, which ascend: what lies between two of them is read once more, and counted."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file.fileno()
        self._at = 0
        self._number = 1

    def of(self, offset: int) -> int:
        """Returns the number of the line that begins at an offset."""
        while self._at < offset:
            block = os.pread(self._file, min(_SEARCHED_AT_ONCE, offset - self._at), self._at)
            if not block:  # cut off meanwhile
                break
            self._number += int(np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == _LINE_END))
            self._at += len(block)
        return self._number


def _read_lines(lines: Iterator[ListLine], reader: LineFormat, keys: frozenset[str]) -> Iterator[ListLine]:
    nothing: Callable[[str], None] = lambda _why: None  # noqa: E731  a line's bad parts are of no interest here
    for found in lines:
        with suppress(RuleError):
            for key in dict.fromkeys(read_line(reader, found.text, nothing) or ()):
                if key in keys:
                    yield ListLine(found.line, found.text[:SAMPLE_LENGTH], key)


def _exported_lines(file: BinaryIO, kind: ListFormat, action: ListAction, keys: frozenset[str]) -> Iterator[ListLine]:
    for line, item in _EXPORTED[kind](file):
        with suppress(RuleError):
            key = entry_key(item, action)
            if key in keys:
                yield ListLine(line, key, key)
