"""The search for lines of lists that match a URL, or hold a text; it reads the lists, as the snapshot has no line numbers."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

from gatewayfilter.engine.state.manual_rules import hosts_of_prefixes
from gatewayfilter.errors import RuleError
from gatewayfilter.model import ListAction
from gatewayfilter.sources.formats.line_blocks import text_blocks
from gatewayfilter.sources.formats.line_formats import LineFormat, line_format, read_line
from gatewayfilter.sources.formats.list_export import csv_items, entry_key, json_items
from gatewayfilter.sources.formats.list_format import SAMPLE_LENGTH, ListFormat
from gatewayfilter.sources.subscription import SourceFile
from gatewayfilter.urls import Url, digest_of, domain_key, host_key, host_suffixes, registrable_domain

_EXPORTED = {ListFormat.JSON: json_items, ListFormat.CSV: csv_items}


@dataclass(frozen=True, slots=True)
class ListLine:
    """A line of a list that was found.

    Attributes:
        line: its number, from 1.
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


def lines_about(item: SourceFile, url: Url) -> Iterator[ListLine]:
    """Yields the lines of a list that match a URL, in order; none of an Adblock list, whose rules the engine matches.

    Reads the whole file, about 3 s a gigabyte: only lines that name the host's registrable domain are parsed.

    Raises:
        OSError: the file cannot be read.
    """
    keys = covering_keys(url)
    if item.list_format is ListFormat.ADBLOCK:
        return
    with item.path.open("rb") as file:
        if item.list_format in _EXPORTED:
            yield from _exported_lines(file, item.list_format, item.source.action, keys)
        elif item.list_format is ListFormat.DIGESTS:
            digests = {digest_of(key).hex(): key for key in keys}
            for found in _lines_with(file, re.compile("|".join(digests))):
                if found.text.lower() in digests:
                    yield ListLine(found.line, found.text, digests[found.text.lower()])
        elif item.list_format is ListFormat.RPZ:
            yield from _read_lines(_lines_with(file, None), line_format(item.list_format, item.source.action), keys)
        else:
            yield from _read_lines(_lines_with(file, _names(url)), line_format(item.list_format, item.source.action), keys)


def lines_with_text(item: SourceFile, text: str) -> Iterator[ListLine]:
    """Yields the lines of a list in which a text stands, capitals or not, in order.

    Raises:
        OSError: the file cannot be read.
    """
    with item.path.open("rb") as file:
        for found in _lines_with(file, re.compile(re.escape(text.lower()))):
            yield ListLine(found.line, found.text[:SAMPLE_LENGTH])


def _names(url: Url) -> re.Pattern[str]:
    """Returns what every line about the host holds, as lists write it: the registrable domain, in ASCII or not."""
    name = registrable_domain(url.host).strip("[]")
    names = {name.partition(":")[0]}  # an IPv6 address may be written in several ways, all of which begin like this
    if "xn--" in name:
        with suppress(UnicodeError):
            names = {name, name.encode().decode("idna")}
        names.add("xn--")
        return re.compile("|".join(map(re.escape, names)) + r"|[^\x00-\x7f]")
    return re.compile("|".join(map(re.escape, names)))


def _lines_with(file: BinaryIO, names: re.Pattern[str] | None) -> Iterator[ListLine]:
    number = 0
    for block in text_blocks(file):
        text = block.removesuffix("\n")
        lowered = text.lower()
        if names is None or names.search(lowered):
            for line_number, line in enumerate(text.split("\n"), number + 1):
                if names is None or names.search(line.lower()):
                    yield ListLine(line_number, line.strip())
        number += text.count("\n") + 1


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
