"""Values by the row: the compiled twin makes what the constructors make."""

from typing import Any

import pytest

from gatewayfilter.compiled import load
from gatewayfilter.model import Evidence
from gatewayfilter.model.values.frozen import made_in_python

COMPILED: Any = load("gatewayfilter.model.values._frozen")
NAMES = ("word", "category", "weight", "zone", "position")
ROWS: list[tuple[Any, ...]] = [("w", "a", 1.5, "main", 3), ("", "b", -2.0, "title", -1)]
MAKERS = [made_in_python] + ([COMPILED.made] if COMPILED is not None else [])


@pytest.mark.parametrize("made", MAKERS)
def test_values_are_made_of_rows(made: Any) -> None:
    values = made(Evidence, NAMES, iter(ROWS))
    assert values == tuple(Evidence(*row) for row in ROWS)
    assert hash(values[0]) == hash(Evidence(*ROWS[0]))
    assert made(Evidence, NAMES, []) == ()
    with pytest.raises(AttributeError):  # frozen all the same
        values[0].word = "x"


@pytest.mark.parametrize("made", MAKERS)
def test_a_row_of_another_length_makes_no_value(made: Any) -> None:
    for row in (("w", "a"), (*ROWS[0], 1)):
        with pytest.raises(ValueError, match=r"number of attributes|argument"):
            made(Evidence, NAMES, [ROWS[0], row])


@pytest.mark.skipif(COMPILED is None, reason="the module is not built")
@pytest.mark.parametrize("rows", [[None], [["w", "a", 1.5, "main", 3]], None, 5])
def test_what_is_no_row_is_refused(rows: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        COMPILED.made(Evidence, NAMES, rows)


@pytest.mark.skipif(COMPILED is None, reason="the module is not built")
def test_other_attributes_are_refused() -> None:
    with pytest.raises(AttributeError):
        COMPILED.made(Evidence, (*NAMES[:4], "none"), ROWS)
