"""Names are found in the table of names as in a dictionary, and a damaged table raises."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.adblock.index.name_table import NameTable, in_parts, pack_name_table
from gatewayfilter.engine.adblock.index.sections import SectionReader, pack_names, pack_numbers, pack_sections
from gatewayfilter.errors import SnapshotError
from tests.case_tables import all_cases

_NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), min_size=1, max_size=6)


def _open(sections: list[bytes]) -> NameTable:
    return NameTable(SectionReader(memoryview(pack_sections(sections))))


@settings(max_examples=30)
@given(st.sets(_NAMES), st.lists(_NAMES))
def test_finds_what_a_dictionary_finds(names: set[str], others: list[str]) -> None:
    ordered = in_parts(names)
    table = _open(pack_name_table(ordered))
    expected = {name: number for number, name in enumerate(ordered)}
    assert table.count == len(names)
    for name in (*names, *others):
        assert table.number(name) == expected.get(name)


@all_cases(
    ("names", "heads", "numbers"),
    [
        (["aab"], ["aa"], [0, 0, 4]),
        (["aab"], ["aa"], [0, 0, 5, 1]),
        (["aab", "aab"], ["aa"], [0, 0, 8, 2]),
        (["aab", "aac"], ["aa"], [0, 0, 8, 3]),
        (["aab", "bac"], ["aa"], [0, 0, 8, 2]),
        (["aab", "aac"], ["aa"], [900, 0, 8, 2]),
        (["aa\udcff"], ["aa"], [0, 0, 4, 1]),
    ],
)
def test_a_damaged_table_raises(names: list[str], heads: list[str], numbers: list[int]) -> None:
    text = "\n".join(names).encode(errors="surrogateescape")
    with pytest.raises(SnapshotError):
        _open([text, pack_names(heads), pack_numbers(numbers)]).number("aab")
