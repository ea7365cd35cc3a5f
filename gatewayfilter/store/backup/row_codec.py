"""Rows as lines of JSON: one object a row, bytes as Base64. A reader checks each value against its column."""

import binascii
import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import JSON, BigInteger, Boolean, Column, Double, Integer, LargeBinary, String, Table

from gatewayfilter.errors import BackupError

MAX_LINE: Final = 32 * 1024 * 1024
"""Longest line in bytes: ten times the longest text that is stored."""
_MAX_32_BITS: Final = 2**31
_MAX_64_BITS: Final = 2**63


class RowCodec:
    """Writes and reads the rows of one table.

    Args:
        table: its schema.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self._names = frozenset(column.name for column in table.columns)
        self._binary = tuple(column.name for column in table.columns if isinstance(column.type, LargeBinary))

    def line(self, row: Mapping[str, Any]) -> bytes:
        """Returns a row as a line, with its end."""
        record = dict(row)
        for name in self._binary:
            if record[name] is not None:
                record[name] = b64encode(record[name]).decode()
        return json.dumps(record, ensure_ascii=True, separators=(",", ":"), sort_keys=True).encode() + b"\n"

    def row(self, line: bytes) -> dict[str, Any]:
        """Returns the row of a line.

        Raises:
            BackupError: it is no row of this table.
        """
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise self._refusal("is not valid JSON") from error
        if not isinstance(record, dict) or record.keys() != self._names:
            raise self._refusal("has other columns")
        return {column.name: self._value(column, record[column.name]) for column in self.table.columns}

    def _value(self, column: Column[Any], value: Any) -> Any:
        if value is None and (column.nullable or isinstance(column.type, JSON)):
            return None
        if isinstance(column.type, LargeBinary):
            value = self._decoded(value)
        if not _fits(column, value):
            raise self._refusal(f"has an unusable value for {column.name}")
        return float(value) if isinstance(column.type, Double) else value

    def _decoded(self, value: Any) -> bytes | None:
        try:
            return b64decode(value, validate=True) if isinstance(value, str) else None
        except (binascii.Error, ValueError):
            return None

    def _refusal(self, fault: str) -> BackupError:
        return BackupError(f"the backup cannot be used: a row of {self.table.name} {fault}")


def _fits(column: Column[Any], value: Any) -> bool:
    kind = column.type
    match kind:
        case JSON():
            return "\\u0000" not in json.dumps(value)  # PostgreSQL stores no NUL
        case Boolean():
            return isinstance(value, bool)
        case BigInteger() | Integer():
            most = _MAX_64_BITS if isinstance(kind, BigInteger) else _MAX_32_BITS
            return isinstance(value, int) and not isinstance(value, bool) and -most <= value < most
        case Double():
            return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # noqa: PLR0124  not NaN
        case LargeBinary():
            return isinstance(value, bytes) and (kind.length is None or len(value) <= kind.length)
        case String():
            return isinstance(value, str) and (kind.length is None or len(value) <= kind.length) and _is_text(value)
    return False


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value
