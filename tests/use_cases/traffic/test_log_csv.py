"""CSV of decisions: whatever a client puts into a URL, no spreadsheet evaluates it, with any separator."""

import csv
import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.use_cases.traffic.log_csv import Separator, safe_cell, write_csv

FORMULA = re.compile("[ \u3000]*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(1)", "'@SUM(1)"),
        ("\t=1", "'\ufffd=1"),
        (" =1", "' =1"),
        ("\uff1d1", "'\uff1d1"),
        ("a\r\n=1", "a\ufffd\ufffd=1"),
        ("\u202ea", "\ufffda"),
        ("http://a.example/", "http://a.example/"),
        ("http://a.example/?a=1;b=2", "http://a.example/?a=1;b=2"),
        ("http://a.example/;=1+1;", "http://a.example/;'=1+1;"),
        ("http://a.example/; @SUM(1)", "http://a.example/; '@SUM(1)"),
        ("http://a.example/@48.1,-11.5", "http://a.example/@48.1,-11.5"),
        (7, 7),
        (-7.5, -7.5),
    ],
)
def test_no_cell_is_a_formula(text: object, cell: object) -> None:
    assert safe_cell(text) == cell


def test_a_comma_parts_no_cells_of_semicolons() -> None:
    assert safe_cell("http://a.example/@48.1,-11.5;-2", Separator.SEMICOLON) == "http://a.example/@48.1,'-11.5;-2"


HOSTILE = st.text(st.sampled_from("=+-@\t\r\n;, \"'a1/\uff1d\u3000\x1b\u202e|")) | st.text()


@settings(max_examples=50)
@given(st.lists(st.lists(HOSTILE, min_size=3, max_size=3), min_size=1, max_size=5), st.sampled_from(Separator))
def test_hostile_rows_are_read_back_as_rows_without_formulas(rows: list[list[str]], separator: Separator) -> None:
    file = io.StringIO(newline="")
    assert write_csv(file, ("a", "b", "c"), rows, separator) == len(rows)
    found = list(csv.reader(io.StringIO(file.getvalue(), newline=""), delimiter=separator.character))
    assert found[0] == ["a", "b", "c"]
    assert [len(row) for row in found[1:]] == [3] * len(rows)
    for row in found[1:]:
        for cell in row:
            for part in re.split("[;,\t]", cell) if separator is Separator.TAB else [cell]:
                assert not FORMULA.match(part), cell
    for other in Separator:  # a spreadsheet that ignores quotes and takes another separator
        if other is not separator:
            for cell in (cell for row in found[1:] for cell in row):
                assert not any(FORMULA.match(part) for part in cell.split(other.character)[1:]), cell


def test_a_table_without_rows_is_its_head() -> None:
    file = io.StringIO(newline="")
    assert write_csv(file, ("a", "b"), []) == 0
    assert file.getvalue() == "a,b\r\n"
