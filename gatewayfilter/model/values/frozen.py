"""Values of frozen slotted dataclasses by the row: a constructor of one costs six times as much as setting its attributes."""

from collections.abc import Iterable
from typing import Any

from gatewayfilter.compiled import load

_compiled = load("gatewayfilter.model.values._frozen")


def made_in_python[T](kind: type[T], names: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> tuple[T, ...]:
    """Returns a value of a class for each row, its attributes in the order of these names; all of its attributes.

    Raises:
        ValueError: a row has another number of them.
    """
    return tuple(kind(**dict(zip(names, row, strict=True))) for row in rows)


made = made_in_python if _compiled is None else _compiled.made
"""As `made_in_python`, compiled where that is built. The class has no `__post_init__`."""
