"""Rows of a backup as lines: each kind of column at its bounds."""

import json
from typing import Any

import pytest
from sqlalchemy import JSON, BigInteger, Boolean, Column, Double, Integer, LargeBinary, MetaData, String, Table, Uuid

from gatewayfilter.errors import BackupError
from gatewayfilter.store.backup.row_codec import RowCodec

TABLE = Table(
    "rows",
    MetaData(),
    Column("number", Integer, nullable=False),
    Column("long", BigInteger, nullable=True),
    Column("flag", Boolean, nullable=False),
    Column("moment", Double, nullable=False),
    Column("digest", LargeBinary(2), nullable=True),
    Column("content", LargeBinary, nullable=False),
    Column("name", String(3), nullable=False),
    Column("text", String, nullable=True),
    Column("facts", JSON, nullable=False),
)
ROW: dict[str, Any] = {
    "number": 1, "long": None, "flag": True, "moment": 1.5, "digest": b"\0\xff", "content": b"", "name": "ü", "text": None,
    "facts": {"a": [1]},
}  # fmt: skip


def test_a_row_is_one_line_and_comes_back() -> None:
    codec = RowCodec(TABLE)
    line = codec.line(ROW)
    assert line == (
        b'{"content":"","digest":"AP8=","facts":{"a":[1]},"flag":true,"long":null,"moment":1.5,"name":"\\u00fc","number":1,"text":null}\n'
    )
    assert codec.row(line) == ROW
    assert codec.row(codec.line(ROW | {"digest": None, "facts": None})) == ROW | {"digest": None, "facts": None}
    assert isinstance(codec.row(codec.line(ROW | {"moment": 2}))["moment"], float)


@pytest.mark.parametrize(
    ("column", "good", "bad"),
    [
        ("number", (2**31 - 1, -(2**31), 0), (2**31, -(2**31) - 1, True, 1.0, "1", None)),
        ("long", (2**63 - 1, -(2**63), 2**31, None), (2**63, -(2**63) - 1, False, 0.5, "1")),
        ("flag", (True, False), (1, 0, None, "true")),
        ("moment", (1, 1.5, -1e300, float("inf")), (float("nan"), True, "1", None)),
        ("digest", ("AAA=", "", None), ("AAAA", "A", "AA=A", "!!!!", 7)),
        ("content", ("AAAA" * 9, ""), (None, [])),
        ("name", ("abc", ""), ("abcd", "a\0", "\ud800", 7, None)),
        ("text", ("x" * 999, None), ("\0", "\ud800", 7)),
        ("facts", ({}, [], "a", None, 7), ({"a": "\0"},)),
    ],
)
def test_the_values_of_a_column(column: str, good: tuple[Any, ...], bad: tuple[Any, ...]) -> None:
    codec = RowCodec(TABLE)
    record = json.loads(codec.line(ROW))
    for value in good:
        codec.row(json.dumps(record | {column: value}).encode())
    for value in bad:
        with pytest.raises(BackupError, match=f"^the backup cannot be used: a row of rows has an unusable value for {column}$"):
            codec.row(json.dumps(record | {column: value}).encode())


def test_no_value_fits_a_column_of_another_kind() -> None:
    codec = RowCodec(Table("rows", MetaData(), Column("number", Uuid, nullable=False)))
    for value in ("0" * 32, 7):
        with pytest.raises(BackupError, match="unusable value for number"):
            codec.row(json.dumps({"number": value}).encode())


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"no", "valid JSON"),
        (b"\xff", "valid JSON"),
        (b"[" * 100_000, "valid JSON"),
        (b"[]", "other columns"),
        (b"{}", "other columns"),
    ],
)
def test_a_line_that_is_no_row(line: bytes, fault: str) -> None:
    with pytest.raises(BackupError, match=fault):
        RowCodec(TABLE).row(line)


def test_a_row_has_these_columns_and_no_others() -> None:
    record = json.loads(RowCodec(TABLE).line(ROW))
    for other in (record | {"more": 1}, {name: value for name, value in record.items() if name != "text"}):
        with pytest.raises(BackupError, match="other columns"):
            RowCodec(TABLE).row(json.dumps(other).encode())
