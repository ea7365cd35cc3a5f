"""Verdicts as text: both implementations splice the same, or refuse the same."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.compiled import load
from gatewayfilter.scaleout.stream.batch import VERDICT
from gatewayfilter.scaleout.stream.worker import splicing

COMPILED = load("gatewayfilter.scaleout.stream.worker._splicing")

_PARTS = [b'"', b"\\", b"u", b"}", b" \n", b"\x0b", b"\xef", b"\xbb\xbf", b"acti", b"on"]
_texts = st.lists(st.sampled_from([*_PARTS, *(name.encode() for name in VERDICT.names)]), max_size=7).map(b"".join)


@pytest.mark.skipif(COMPILED is None, reason="the module is not built")
@given(st.lists(_texts, min_size=1, max_size=3))
@settings(max_examples=200)
def test_both_implementations_splice_the_same(values: list[bytes]) -> None:
    assert COMPILED is not None
    rows = list(range(len(values)))
    given_all = (values, rows, [row % 2 for row in rows], [b", 1}", b", 2}"])
    assert COMPILED.splice(*given_all) == splicing._splice(*given_all)


def test_only_the_wanted_are_spliced() -> None:
    (found,) = splicing.splice([b'{"url": "a"}', b'{"url": "b"} \n'], [1], [0, 1], [b', "n": 0}', b', "n": 1}']) or []
    assert json.loads(found) == {"url": "b", "n": 1}
