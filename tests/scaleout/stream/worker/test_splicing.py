"""Verdicts as text: both implementations splice the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.compiled import load
from gatewayfilter.scaleout.stream.worker import splicing

COMPILED = load("gatewayfilter.scaleout.stream.worker._splicing")

_rows = st.tuples(
    st.binary(max_size=9), st.integers(0, 9), st.binary(max_size=3), st.binary(max_size=3), st.integers(0, 2**63 - 1)
)


@pytest.mark.skipif(COMPILED is None, reason="the module is not built")
@given(st.lists(_rows, max_size=3))
@settings(max_examples=100)
def test_both_implementations_splice_the_same(rows: list[tuple[bytes, int, bytes, bytes, int]]) -> None:
    assert COMPILED is not None
    values = [row[0] for row in rows]
    braces = [min(row[1], len(row[0])) for row in rows]
    given_all = (values, braces, [row[2] for row in rows], [row[3] for row in rows], [row[4] for row in rows])
    assert COMPILED.splice(*given_all) == splicing._splice(*given_all)


@pytest.mark.skipif(COMPILED is None, reason="the module is not built")
@pytest.mark.parametrize("brace", [-1, 3])
def test_no_place_outside_a_message_is_read(brace: int) -> None:
    assert COMPILED is not None
    with pytest.raises(ValueError, match="no place"):
        COMPILED.splice([b"{}"], [brace], [b"}"], [b""], [0])


def test_a_letter_has_key_and_value() -> None:
    (found,) = splicing.splice([b'{"url": "b"} \n'], [11], [b', "n": 1}'], [b"p"], [255])
    assert found == {"key": b"p00000000000000ff", "value": b'{"url": "b", "n": 1}'}
