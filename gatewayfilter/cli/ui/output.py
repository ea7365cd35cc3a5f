"""Output: tables for terminals, JSON for programs. Text from the network is escaped before it reaches a terminal."""

from __future__ import annotations

import dataclasses
import json
import sys
import unicodedata
from typing import TYPE_CHECKING, Any

import click

from gatewayfilter.program_name import as_callable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_HARMLESS_FORMATS = frozenset("\u200c\u200d")
"""Joiners that scripts of India and Persia and emoji need; the other format characters reorder or hide text."""


def printable(text: str) -> str:
    """Returns text without what could steer a terminal or reorder a line: controls, bidirectional marks, lone surrogates."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(mark if _is_harmless(mark) else "\ufffd" for mark in text)


def _is_harmless(mark: str) -> bool:
    return mark in _HARMLESS_FORMATS or unicodedata.category(mark) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def say(text: str = "", *, err: bool = False) -> None:
    """Prints a line of text."""
    click.echo("\n".join(printable(line) for line in text.split("\n")), err=err)


def hint(text: str, *, err: bool = False) -> None:
    """Prints a line of text that names commands: each `gatewayfilter COMMAND` in it as it has to be typed here."""
    say(as_callable(text), err=err)


def counted(count: int, noun: str, plural: str = "") -> str:
    """Returns a number with its noun: `1 entry`, `2,000 entries` (`plural` only where an s does not do)."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def plain(value: object) -> Any:
    """Returns a value in JSON types: dataclasses as objects, bytes as hexadecimal, other types as their text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(plain(item) for item in value)
    if isinstance(value, bytes):
        return value.hex()
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)


def _washed(document: str) -> str:
    """Returns JSON in which what `printable` replaces is written as an escape: JSON itself leaves all beyond ASCII as it is."""
    if document.isascii() and "\x7f" not in document:
        return document
    return "".join(mark if mark == "\n" or _is_harmless(mark) else json.dumps(mark)[1:-1] for mark in document).replace(
        "\x7f", "\\u007f"
    )


def print_json(value: object) -> None:
    """Prints one JSON document."""
    click.echo(_washed(json.dumps(plain(value), ensure_ascii=False, indent=2)))


def print_json_line(value: object) -> None:
    """Prints one line of JSON lines."""
    click.echo(_washed(json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints a table: fitted to a terminal, else one unbroken line a row, so that `grep` and `cut` work on it."""
    cells = [["" if cell is None else printable(str(cell)) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_fitted(columns, cells)
        return
    widths = [max(len(line[column]) for line in ([*cells, columns])) for column in range(len(columns))]
    for line in (columns, *cells):
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


_LEAST_FOLDED = 24
"""Columns narrower than this are not folded: dates, names and numbers stay whole."""
_GAP = 3


def _print_fitted(columns: Sequence[str], cells: list[list[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()

    def widths_of(columns: Sequence[str], cells: list[list[str]]) -> list[int]:
        return [max(cell_len(line[column]) for line in (*cells, columns)) for column in range(len(columns))]

    def fits(widths: list[int]) -> bool:
        return sum(min(width, _LEAST_FOLDED) + _GAP for width in widths) - _GAP <= console.width

    widths = widths_of(columns, cells)
    if not fits(widths):
        filled = [number for number, _ in enumerate(columns) if any(row[number] for row in cells)]
        columns, cells = [columns[number] for number in filled], [[row[number] for number in filled] for row in cells]
        widths = widths_of(columns, cells)
    if not fits(widths):
        _print_records(columns, cells, console.width)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column, width in zip(columns, widths, strict=True):
        table.add_column(Text(column), overflow="fold", no_wrap=width <= _LEAST_FOLDED, min_width=min(width, _LEAST_FOLDED))
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def _print_records(columns: Sequence[str], cells: list[list[str]], width: int) -> None:
    """Prints rows that do not fit: the first cell on a line, the others that hold something below it, whole wherever they fit."""
    from rich.cells import cell_len, chop_cells

    for row in cells:
        for part in chop_cells(row[0], width):
            click.secho(part, bold=True)
        line = ""
        for name, cell in zip(columns[1:], row[1:], strict=True):
            if not cell:
                continue
            part = f"{name}: {cell}"
            if line and cell_len(line) + len(" · ") + cell_len(part) > width:
                click.echo(line)
                line = ""
            line = f"{line} · {part}" if line else f"  {part}"
            *full, line = chop_cells(line, width)
            for folded in full:
                click.echo(folded)
        if line:
            click.echo(line)
