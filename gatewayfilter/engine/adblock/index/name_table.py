"""The table of names in a compiled form: names with the same first characters are read when one of them is first looked up.

Reading a hundred thousand names into a dictionary is half the time of opening the compiled form, and traffic needs few of them.
"""

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter

from gatewayfilter.engine.adblock.index.sections import SectionReader, pack_names, pack_numbers
from gatewayfilter.errors import SnapshotError

HEAD = 2
"""Characters of a name that select its part; one part of EasyList holds some ninety names, and a thousand at most."""

_MOST_HEADS = 10_000
"""Heads that are kept, those without a part among them: hosts that clients choose have few others."""


def in_parts(names: Iterable[str]) -> list[str]:
    """Returns names in the order in which `pack_name_table` takes them."""
    return sorted(names, key=_head)


_head = itemgetter(slice(HEAD))


def pack_name_table(names: list[str]) -> list[bytes]:
    """Returns the sections that `NameTable` reads.

    Args:
        names: distinct, without line breaks, ordered by `in_parts`; a name's number is its position.
    """
    heads: list[str] = []
    starts: list[int] = []
    offset = count = 0
    for head, part in groupby(names, _head):
        heads.append(head)
        starts += offset, count
        together = list(part)
        count += len(together)
        offset += len("\n".join(together).encode()) + 1
    return [pack_names(names), pack_names(heads), pack_numbers([*starts, offset, count])]


class NameTable(dict[str, dict[str, int]]):
    """Head → the names that begin so, each with its number: `name in table[name[:HEAD]]`. A part is read at its first use.

    Threads need no lock: two may read the same part, with the same result.

    Attributes:
        count: number of names.

    Raises:
        SnapshotError: the sections do not fit together; at the first use of a part when its names do not.
    """

    __slots__ = ("_heads", "_starts", "_text", "count")

    def __init__(self, sections: SectionReader) -> None:
        super().__init__()
        self._text = sections.raw()
        self._heads = sections.numbered_names()
        self._starts = sections.numbers()
        if len(self._starts) != 2 * len(self._heads) + 2:
            raise SnapshotError("the compiled Adblock rules are damaged")
        self.count = self._starts[-1]
        if self._starts[-2] != len(self._text) + bool(self._text):
            raise SnapshotError("the compiled Adblock rules are damaged")

    def __missing__(self, head: str) -> dict[str, int]:
        place = self._heads.get(head)
        part = {} if place is None else self._read(head, place)
        if len(self) < _MOST_HEADS:
            self[head] = part
        return part

    def number(self, name: str) -> int | None:
        """Returns the number of a name, `None` where the table does not have it."""
        return self[name[:HEAD]].get(name)

    def _read(self, head: str, place: int) -> dict[str, int]:
        begin, first, end, last = self._starts[2 * place : 2 * place + 4]
        try:
            names = str(self._text[begin : end - 1], "utf-8").split("\n")
        except UnicodeDecodeError as error:
            raise SnapshotError("the compiled Adblock rules are damaged") from error
        part = dict(zip(names, range(first, last), strict=False))
        if not len(part) == len(names) == last - first or any(name[:HEAD] != head for name in part):
            raise SnapshotError("the compiled Adblock rules are damaged")
        return part
