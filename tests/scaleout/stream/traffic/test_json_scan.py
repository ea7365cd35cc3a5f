"""Simple JSON messages: the compiled scan gives the records that are read one by one, or leaves the message to them."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.scaleout.stream.batch import RECORD, VERDICT
from gatewayfilter.scaleout.stream.traffic.json_scan import _compiled, scan
from gatewayfilter.scaleout.stream.traffic.lines import JsonReader, NotARecordError, SkippedLineError, checked
from tests.case_tables import all_cases

pytestmark = pytest.mark.skipif(_compiled is None, reason="the module is not built")

_NAMES = [*RECORD.names, *VERDICT.names, "id", "\u00e9", "ur", 'u"l']
_numbers = st.one_of(
    st.integers(-(2**70), 2**70),
    st.integers(-(2**31) - 1, 2**31),
    st.floats(allow_nan=False),
    st.floats(0, 2e9).map(lambda x: round(x, 4)),
)
_values = st.one_of(
    st.text(max_size=9),
    st.sampled_from(["http://a.test/", "a" * 8, "b" * 9]),
    _numbers,
    st.none(),
    st.booleans(),
    st.just([]),
    st.just({"a": 1}),
)
_objects = st.dictionaries(st.sampled_from(_NAMES), _values, max_size=6).map(lambda found: {"url": "http://u.test/", **found})
_lines = st.builds(
    lambda found, ascii_only, spaced: json.dumps(
        found, ensure_ascii=ascii_only, separators=(", ", ": ") if spaced else (",", ":"), indent=2 if spaced is None else None
    ).encode("utf-8", "replace"),
    _objects,
    st.booleans(),
    st.sampled_from([True, False, None]),
)


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    """A line with some of its bytes removed, doubled or replaced."""
    line = draw(_lines)
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(line)))
        line = (
            line[:at]
            + draw(st.sampled_from([b"", b"0", b".", b"e", b'"', b"\\", b",", b"}", b"\x00", b"\xff", line[at : at + 9]]))
            + line[at + 1 :]
        )
    return line


def _one_by_one(line: bytes) -> dict[str, Any] | None:
    """Returns a record as it is read by itself; `None` for none."""
    try:
        found = checked(JsonReader().record(line))
    except (NotARecordError, SkippedLineError):
        return None
    return {name: found.get(name) for name in RECORD.names}


@given(st.lists(st.one_of(_lines, _damaged()), max_size=6))
@settings(max_examples=30)
def test_what_is_scanned_is_what_is_read_one_by_one(lines: list[bytes]) -> None:
    scanned = scan(lines)
    assert scanned is not None
    assert scanned.batch.to_pylist() == [_one_by_one(lines[row]) for row in scanned.rows.tolist()]
    for row, brace in enumerate(scanned.braces.tolist()):
        if brace >= 0:  # members may be added there, and none of them is there already
            pairs = json.loads(lines[row][:brace] + b', "action": 7}', object_pairs_hook=list)
            assert pairs[-1] == ("action", 7)
            assert [name for name, _ in pairs[:-1] if name in VERDICT.names] == []


@all_cases(
    ("line", "is_simple"),
    [
        (b'{"url": "http://a/", "time": 1793449800.1234, "status": 200, "bytes": -1, "client": null, "x": "\\n"} \r\n', True),
        (b'{"url":""}', True),
        (b'{"url": "a", "time": 0.1, "other": -0.5, "more": true, "last": false}', True),
        (b'{"url": "a", "action": "block"}', True),
        (b'{"url": "a", "status": 2147483647}', True),
        (b'{"url": "a", "status": 2147483648}', False),
        (b'{"url": "a", "status": 1.0}', False),
        (b'{"url": "a", "status": true}', False),
        (b'{"url": "a", "time": 1e3}', False),
        (b'{"url": "a", "time": 1000000000000}', False),
        (b'{"url": "a", "time": 0.12345678901234567}', False),
        (b'{"url": "a", "time": 01}', False),
        (b'{"url": "a", "x": 01}', False),
        (b'{"url": "a", "x": 1.}', False),
        (b'{"url": "a", "x": -}', False),
        (b'{"url": "a", "x": nul}', False),
        (b'{"url": "a", "x": "\\u0061"}', False),
        (b'{"url": "a", "x": [1]}', False),
        (b'{"url": "a", "url": "b"}', False),
        (b'{"url": "a\\/"}', False),
        (b'{"url": "\xc3\xa9"}', False),
        (b'{"url": "a\t"}', False),
        (b'{"url": "a",}', False),
        (b'{"url": "a"', False),
        (b'{"url": "a"} x', False),
        (b'{"url": null}', False),
        (b"{}", False),
        (b"", False),
        (b'{"url": "' + b"a" * 65_536 + b'"}', False),
    ],
)  # fmt: skip
def test_what_is_simple(line: bytes, is_simple: bool) -> None:  # noqa: FBT001  # a column of the table
    scanned = scan([line])
    assert scanned is not None
    assert (scanned.left == []) is is_simple
    if is_simple:
        assert scanned.batch.to_pylist() == [_one_by_one(line)]


def test_simple_and_other_lines_keep_their_order() -> None:
    lines = [b'{"url": "a"}', b'{"url": "\xc3\xa9"}', b"{", b'{"url": "c", "type": "script"}', b'{"url": "\\u0064"}']
    read = JsonReader().read(lines)
    assert read.batch["url"].to_pylist() == ["a", "\u00e9", "c", "d"]
    assert read.batch["type"].to_pylist() == [None, None, "script", None]
    assert list(read.rows) == [0, 1, 3, 4]
    assert read.bad == [(2, "not JSON")]
    assert read.braces is not None
    assert read.braces.tolist() == [11, -1, -1, 29, -1]


def test_many_words_of_one_hash_are_told_apart() -> None:
    """Words beyond the bound of probes have a number of their own each, and are found all the same."""
    words = [f"{number:08d}" for number in range(3_000)]
    scanned = scan([json.dumps({"url": "a", "client": word}).encode() for word in words * 2])
    assert scanned is not None
    assert scanned.batch["client"].to_pylist() == words * 2


@all_cases("message", [None, bytearray(b"{}"), "{}"])
def test_what_is_no_bytes_is_refused(message: Any) -> None:
    assert _compiled is not None
    with pytest.raises(TypeError):
        _compiled.scan([b"{}", message])


@all_cases("place", range(70))
def test_each_place_of_a_long_text_is_looked_at(place: int) -> None:
    """Long texts are tested in blocks of bytes."""
    text = "a" * 70
    for odd in ("\\n", "\x7f", "\xe9"):
        line = b'{"url": "' + f"{text[:place]}{odd}{text[place:]}".encode("latin-1") + b'"}'
        scanned = scan([line, b'{"url": "' + text[:place].encode() + b'"}'])
        assert scanned is not None
        assert (scanned.left, scanned.batch["url"].to_pylist()) == ([0], [text[:place]])
