"""The file of a delta: what is written is read again, and each bound of it from both sides."""

import json

import pytest

from gatewayfilter.errors import FleetError
from gatewayfilter.fleet.deltas.delta_file import Delta, Kind, Part, read_delta, write_delta
from tests.case_tables import all_cases

PARTS = (Part("blacklist", Kind.TABLE, b"table"), Part("bloom", Kind.GATE, b""), Part("meta", Kind.PATCH, b"patch"))


def file(document: object, rest: bytes = b"", *, text_bytes: int = 0) -> bytes:
    text = json.dumps(document).encode().ljust(text_bytes)
    return b"GWFLDLT1" + len(text).to_bytes(4, "little") + text + rest


def sections(count: int) -> dict[str, object]:
    return {"head": 1, "sections": [["meta", "patch", 0]] * count}


def test_what_is_written_is_read_again() -> None:
    for parts in ((), PARTS[:1], PARTS):
        assert read_delta(write_delta(b"head", parts)) == Delta(b"head", parts)
    assert read_delta(write_delta(b"", ())) == Delta(b"", ())
    assert b'{"head":4,"sections":[["meta","patch",5]]}head' in write_delta(b"head", PARTS[2:])


@all_cases(
    ("good", "bad"),
    [
        (file(sections(64), b"h"), file(sections(65), b"h")),
        (file(sections(1), b"h", text_bytes=65_536), file(sections(1), b"h", text_bytes=65_537)),
        (file({"head": 0, "sections": []}), file({"head": -1, "sections": [["meta", "patch", 1]]})),
        (file({"head": 1, "sections": []}, b"h"), file({"head": 1, "sections": []}, b"hh")),
        (file({"head": 1, "sections": []}, b"h"), file({"head": 1, "sections": []})),
        (file({"head": 1, "sections": []}, b"h"), file({"head": 1, "sections": []}, b"h").replace(b"DLT1", b"DLT2")),
        (file({"head": 1, "sections": []}, b"h"), file({"head": 1, "sections": [["meta", "other", 0]]}, b"h")),
    ],
)
def test_bounds_of_a_file(good: bytes, bad: bytes) -> None:
    assert read_delta(good).head in {b"", b"h"}
    with pytest.raises(FleetError, match="delta"):
        read_delta(bad)
