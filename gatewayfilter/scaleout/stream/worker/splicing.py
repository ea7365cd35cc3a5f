"""Verdicts as text in JSON objects: put behind the members that a message has, without parsing it."""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import TYPE_CHECKING

from gatewayfilter.compiled import load
from gatewayfilter.scaleout.stream.batch import VERDICT

if TYPE_CHECKING:
    from collections.abc import Sequence

_compiled = load("gatewayfilter.scaleout.stream.worker._splicing")


def splice(values: Sequence[bytes], rows: list[int], numbers: list[int], fragments: list[bytes]) -> list[bytes] | None:
    """Returns messages with the fragments of their verdicts in place of the last brace.

    `None` where verdicts cannot just be added: a message has a name of `VERDICT`, maybe escaped, or a byte order mark.

    Args:
        values: JSON objects with members.
        rows: places of the wanted ones.
        numbers: place of the fragment of each of `values`.
        fragments: members that are added, with a comma before them and a brace behind.
    """
    read = _compiled.splice if _compiled is not None else _splice
    return read(values, rows, numbers, fragments)


def _splice(values: Sequence[bytes], rows: list[int], numbers: list[int], fragments: list[bytes]) -> list[bytes] | None:
    blob = b"\n".join(values)
    if b"\\u" in blob or BOM_UTF8 in blob or any(f'"{name}"'.encode() in blob for name in VERDICT.names):
        return None
    return [values[row].rstrip()[:-1] + fragments[numbers[row]] for row in rows]
