"""Names in the order in which people look for them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.use_cases.people.name_order import name_order

NAMES = st.text("aB1290 \u0660\u00b2\u4e2d", max_size=12)


@pytest.mark.parametrize(
    "names",
    [
        ["class 1", "class 2", "class 10"],
        ["Ann", "ben", "Carl"],
        ["7", "12", "a"],
        ["a", "a1", "a1b", "a2"],
        ["tablet", "tablet 9" * 30],
    ],
)
def test_numbers_count_as_numbers(names: list[str]) -> None:
    names_in_disorder = {*names}
    assert sorted(names_in_disorder, key=name_order) == names


@given(st.lists(NAMES, unique=True))
def test_any_names_have_one_order(names: list[str]) -> None:
    ordered = [name_order(name) for name in sorted(names, key=name_order)]
    assert all(one < other for one, other in pairwise(ordered))
