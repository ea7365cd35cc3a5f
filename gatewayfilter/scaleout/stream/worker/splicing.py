"""Verdicts as text in JSON objects: put behind the members that a message has, without parsing it, as letters with keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gatewayfilter.compiled import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_compiled = load("gatewayfilter.scaleout.stream.worker._splicing")

type Letter = dict[str, bytes]
"""A message to be sent: `key` and `value`."""

MOST_BYTES: Final = 262_144
"""Bytes of a message of several records: a quarter of what brokers take by default. A larger record has a message of its own."""
RUN: Final = 1_000
"""Records whose letters are made together: half a megabyte, which is in the processor's cache when the letters are sent."""


@dataclass(frozen=True, slots=True)
class Spliced:
    """Letters that are made when they are taken; lists have a row for each record.

    Attributes:
        values: JSON objects with members.
        braces: where the last brace of each is.
        fragments: members that are added, as in `splice`.
        prefixes: of the keys.
        offsets: likewise.
        together: records of a letter.
    """

    values: list[bytes]
    braces: list[int]
    fragments: list[bytes]
    prefixes: list[bytes]
    offsets: list[int]
    together: int = 1

    def runs(self) -> Iterator[list[Letter]]:
        """Yields the letters of all rows, some at a time."""
        step = self.together * max(1, RUN // self.together)
        for begin in range(0, len(self.values), step):
            part = slice(begin, begin + step)
            values, braces, fragments = self.values[part], self.braces[part], self.fragments[part]
            prefixes, offsets = self.prefixes[part], self.offsets[part]
            if self.together > 1:
                yield pack(values, braces, fragments, prefixes, offsets, self.together)
            else:
                yield splice(values, braces, fragments, prefixes, offsets)


def keys(prefixes: list[bytes], offsets: list[int]) -> bytes:
    """Returns the keys of letters, one behind the other; arguments have a row for each.

    Args:
        prefixes: of one length.
        offsets: not negative, behind the prefix in 16 hexadecimal digits.
    """
    return _compiled.keys(prefixes, offsets) if _compiled is not None else _keys(prefixes, offsets)


def _keys(prefixes: list[bytes], offsets: list[int]) -> bytes:
    return b"".join([b"%b%016x" % row for row in zip(prefixes, offsets, strict=True)])


def splice(
    values: Sequence[bytes], braces: list[int], fragments: Sequence[bytes], prefixes: Sequence[bytes], offsets: list[int]
) -> list[Letter]:
    """Returns messages with fragments in place of their last brace and what is behind; arguments have a row for each.

    Args:
        values: JSON objects with members.
        braces: where the last brace of each is.
        fragments: members that are added, with a comma before them and a brace behind.
        prefixes: of the keys.
        offsets: not negative, behind the prefix in 16 hexadecimal digits.
    """
    made = _compiled.splice if _compiled is not None else _splice
    return made(values, braces, fragments, prefixes, offsets)


def _splice(
    values: Sequence[bytes], braces: list[int], fragments: Sequence[bytes], prefixes: Sequence[bytes], offsets: list[int]
) -> list[Letter]:
    return [
        {"key": b"%b%016x" % (prefix, offset), "value": value[:brace] + fragment}
        for value, brace, fragment, prefix, offset in zip(values, braces, fragments, prefixes, offsets, strict=True)
    ]


def pack(
    values: list[bytes],
    braces: list[int],
    fragments: list[bytes],
    prefixes: list[bytes],
    offsets: list[int],
    most: int,
    most_bytes: int = MOST_BYTES,
) -> list[Letter]:
    """Returns what `splice` makes of messages as lines, several in one message, which has the key of its first one.

    Line ends in JSON are blanks: they become spaces.

    Args:
        values: JSON objects with members.
        braces: as the others, a row for each, as in `splice`.
        fragments: as there.
        prefixes: as there.
        offsets: as there.
        most: lines of a message.
        most_bytes: of a message of several lines.
    """
    made = _compiled.pack if _compiled is not None else _pack
    return made(values, braces, fragments, prefixes, offsets, most, most_bytes)


def _pack(
    values: list[bytes],
    braces: list[int],
    fragments: list[bytes],
    prefixes: list[bytes],
    offsets: list[int],
    most: int,
    most_bytes: int,
) -> list[Letter]:
    letters: list[Letter] = []
    lines: list[bytes] = []
    size = 0
    blank = bytes.maketrans(b"\n\r", b"  ")
    lines_of = [value[:brace].translate(blank) for value, brace in zip(values, braces, strict=True)]
    for letter in _splice(lines_of, [len(line) for line in lines_of], fragments, prefixes, offsets):
        line = letter["value"]
        if lines and len(lines) < most and size + 1 + len(line) <= most_bytes:
            lines.append(line)
            size += 1 + len(line)
        else:
            _complete(letters, lines)
            letters.append(letter)
            lines, size = [line], len(line)
    _complete(letters, lines)
    return letters


def _complete(letters: list[Letter], lines: list[bytes]) -> None:
    if lines:
        letters[-1]["value"] = b"\n".join(lines)
