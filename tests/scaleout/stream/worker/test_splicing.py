"""Verdicts as text: both implementations splice the same."""

from collections.abc import Callable

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
@settings(max_examples=30)
def test_both_implementations_splice_the_same(rows: list[tuple[bytes, int, bytes, bytes, int]]) -> None:
    assert COMPILED is not None
    values = [row[0] for row in rows]
    braces = [min(row[1], len(row[0])) for row in rows]
    given_all = (values, braces, [row[2] for row in rows], [row[3] for row in rows], [row[4] for row in rows])
    assert COMPILED.splice(*given_all) == splicing._splice(*given_all)
    for most, most_bytes in ((1, 100), (2, 100), (3, 9)):
        assert COMPILED.pack(*given_all, most, most_bytes) == splicing._pack(*given_all, most, most_bytes)
    prefixes = [row[3].ljust(3) for row in rows]
    assert COMPILED.keys(prefixes, given_all[4]) == splicing._keys(prefixes, given_all[4])


@pytest.mark.skipif(COMPILED is None, reason="the module is not built")
@pytest.mark.parametrize("brace", [-1, 3])
def test_no_place_outside_a_message_is_read(brace: int) -> None:
    assert COMPILED is not None
    with pytest.raises(ValueError, match="no place"):
        COMPILED.splice([b"{}"], [brace], [b"}"], [b""], [0])
    with pytest.raises(ValueError, match="no place"):
        COMPILED.pack([b"{}"], [brace], [b"}"], [b""], [0], 2, 100)


@pytest.mark.skipif(COMPILED is None, reason="the module is not built")
@pytest.mark.parametrize(("prefixes", "offsets"), [([b"ab", b"a"], [0, 1]), ([b"a", None], [0, 1]), ([b"a"], [0, 1])])
def test_keys_differ_in_no_length(prefixes: list[bytes | None], offsets: list[int]) -> None:
    assert COMPILED is not None
    with pytest.raises(ValueError, match="differ"):
        COMPILED.keys(prefixes, offsets)


def test_a_letter_has_key_and_value() -> None:
    (found,) = splicing.splice([b'{"url": "b"} \n'], [11], [b', "n": 1}'], [b"p"], [255])
    assert found == {"key": b"p00000000000000ff", "value": b'{"url": "b", "n": 1}'}


@pytest.mark.parametrize("pack", [splicing._pack, *([] if COMPILED is None else [COMPILED.pack])])
def test_several_records_of_a_message_are_lines(pack: Callable[..., list[splicing.Letter]]) -> None:
    values = [b'{"a":\r\n1}\n', b'{"b":2}', b'{"c":3}', b'{"dddddddddddd":4}']
    found = pack(values, [8, 6, 6, 17], [b', "v":0}'] * 4, [b"p"] * 4, [7, 8, 9, 10], 2, 38)
    lines = [letter["value"].split(b"\n") for letter in found]
    assert lines == [[b'{"a":  1, "v":0}', b'{"b":2, "v":0}'], [b'{"c":3, "v":0}'], [b'{"dddddddddddd":4, "v":0}']]
    assert [letter["key"][-1:] for letter in found] == [b"7", b"9", b"a"]


@pytest.mark.parametrize("together", [1, 7])
def test_runs_have_the_letters_of_all_rows(together: int) -> None:
    count = 2 * splicing.RUN + 3
    values = [b'{"n":%d}' % number for number in range(count)]
    braces = [len(value) - 1 for value in values]
    rows = (values, braces, [b', "v":0}'] * count, [b"p"] * count, list(range(count)))
    runs = list(splicing.Spliced(*rows, together).runs())
    whole = splicing.splice(*rows) if together == 1 else splicing.pack(*rows, together)
    assert [letter for run in runs for letter in run] == whole
    assert len(runs) == 3
