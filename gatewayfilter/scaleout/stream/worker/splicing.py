"""Verdicts as text in JSON objects: put behind the members that a message has, without parsing it, as letters with keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatewayfilter.compiled import load

if TYPE_CHECKING:
    from collections.abc import Sequence

_compiled = load("gatewayfilter.scaleout.stream.worker._splicing")

type Letter = dict[str, bytes]
"""A message to be sent: `key` and `value`."""


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
