"""The file of the hosts that subscribed lists block as a whole, made by reading the lists once more in a process of its own."""

import filecmp
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.engine.adblock.syntax.rule import AdblockReport
from gatewayfilter.integration.rpz.zone import reversed_labels
from gatewayfilter.model import ListAction
from gatewayfilter.private_files import private
from gatewayfilter.sources.formats.parse import parse_list
from gatewayfilter.sources.subscription import SourceFile
from gatewayfilter.urls import is_public_suffix

_NAME = re.compile(r"(?=.{1,240}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+(?!rpz-)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_NUMBER = re.compile(r"[0-9.]+")
_WHOLE_HOST = re.compile(r"\|\|([a-z0-9_.-]+)\^(?:\$(?:important|all|all,important|important,all))?")


@dataclass(frozen=True, slots=True)
class BaseCounts:
    """What lists gave to the file.

    Attributes:
        names: hosts and domains in it.
        left_out: entries that DNS cannot say.
    """

    names: int
    left_out: int


class _Names:
    """Implements `ListSink`: keeps the hosts of lists that block."""

    def __init__(self) -> None:
        self.hosts: set[str] = set()
        self.domains: set[str] = set()
        self.left_out = 0

    def add_keys(self, source: int, keys: Iterable[str]) -> int:
        del source
        count = 0
        for key in keys:
            count += 1
            name = key.removeprefix(".")
            if not is_zone_name(name):
                self.left_out += 1
            elif key is name:
                self.hosts.add(name)
            else:
                self.domains.add(name)
        return count

    def add_digests(self, source: int, digests: NDArray[np.uint8]) -> int:
        del source
        self.left_out += len(digests)
        return len(digests)

    def add_adblock_list(self, source: int, lines: Iterable[str]) -> AdblockReport:
        del source
        for line in lines:
            found = _WHOLE_HOST.fullmatch(line.strip().lower())
            if found is not None and is_zone_name(found[1]) and not is_public_suffix(found[1]):
                self.domains.add(found[1])
            elif line[:1] not in {"", "!", "["} and "##" not in line:
                self.left_out += 1
        return AdblockReport()


def is_zone_name(name: str) -> bool:
    """Returns whether a name can stand in a zone: a host name of two labels or more, and no address.

    Names below `rpz-…` are refused: a resolver takes them as triggers by address of client or server, so that one line of a
    list, as `1.0.0.0.0.rpz-client-ip`, would block half of all clients.
    """
    return _NAME.fullmatch(name) is not None and _NUMBER.fullmatch(name) is None


def write_base(files: Sequence[SourceFile], off_categories: Collection[str], path: Path) -> BaseCounts:
    """Writes the file of `BaseNames`; it appears whole or not at all. Some 3 µs a name.

    Args:
        files: lists; those that do not block, and those that cannot be read, are left out.
        off_categories: categories of lists that do not block.
        path: of the file.

    Raises:
        OSError: it cannot be written.
    """
    names = _Names()
    for item in files:
        if item.source.action is not ListAction.BLOCK or item.source.category in off_categories:
            continue
        try:
            with item.path.open("rb") as file:
                parse_list(file, item.list_format, names, action=item.source.action)
        except OSError:
            continue
    names.hosts -= names.domains
    marked = [(reversed_labels(name), "=") for name in names.hosts]
    marked += [(reversed_labels(name), "*") for name in names.domains]
    marked.sort()
    aside = path.with_suffix(".new")
    with open(aside, "w", encoding="ascii", opener=private) as out:
        out.writelines(f"{name}{mark}\n" for name, mark in marked)
    if path.exists() and filecmp.cmp(aside, path, shallow=False):
        aside.unlink()
    else:
        aside.replace(path)
    return BaseCounts(len(marked), names.left_out)
