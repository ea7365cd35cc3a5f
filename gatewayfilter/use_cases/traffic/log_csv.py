"""CSV files of decisions that spreadsheets open without evaluating a cell."""

import csv
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import IO, Final

_FORMULA: Final = "=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20"
"""First characters that make a spreadsheet evaluate a cell, for a regular expression."""
_STARTS: Final = re.compile(rf"[ \u3000]*[{_FORMULA}]")


class Separator(StrEnum):
    """What parts the cells of a row. Spreadsheets expect a semicolon where numbers have a decimal comma."""

    COMMA = "comma"
    SEMICOLON = "semicolon"
    TAB = "tab"

    @property
    def character(self) -> str:
        """The character itself."""
        return {"comma": ",", "semicolon": ";", "tab": "\t"}[self.value]


_AFTER_ANOTHER: Final = {
    one: re.compile(rf"([{''.join(other.character for other in Separator if other is not one)}] *)(?=[{_FORMULA}])")
    for one in Separator
}
"""Where a cell would begin if a spreadsheet took another character for the separator."""


def safe_cell(value: object, separator: Separator = Separator.COMMA) -> object:
    """Returns a cell that no spreadsheet takes for a formula, without characters that steer a terminal.

    An apostrophe stands before what would be one: at the beginning, and after a character that a spreadsheet with another
    separator would take for the beginning of a cell.

    Source: OWASP, CSV Injection.
    """
    if not isinstance(value, str):
        return value
    text = "".join(mark if mark.isprintable() or mark == " " else "\ufffd" for mark in value)
    text = _AFTER_ANOTHER[separator].sub(r"\1'", text)
    return f"'{text}" if _STARTS.match(value) else text


def write_csv(
    file: IO[str], columns: Sequence[str], rows: Iterable[Iterable[object]], separator: Separator = Separator.COMMA
) -> int:
    """Writes a head and rows. Returns the number of rows.

    Args:
        file: opened with `newline=""`.
        columns: the head.
        rows: cells in the order of the columns.
        separator: of the cells.
    """
    writer, count = csv.writer(file, delimiter=separator.character), 0
    writer.writerow(columns)
    for count, row in enumerate(rows, 1):  # noqa: B007  the last one counts
        writer.writerow([safe_cell(value, separator) for value in row])
    return count
