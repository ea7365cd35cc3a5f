"""Sections of a snapshot file: where they are, and what of a header with a good checksum is refused all the same."""

from hashlib import blake2b
from struct import pack

import pytest

from gatewayfilter.engine.snapshot.format import (
    ALIGNMENT,
    MAGIC,
    MAX_SECTIONS,
    VERSION,
    mark_of,
    pack_sections,
    read_sections,
    read_verified,
    verify_sections,
)
from gatewayfilter.errors import SnapshotError
from tests.case_tables import all_cases


def checksum(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def file_of(rows: list[tuple[int, int]], body: bytes, *, more: int = 0) -> bytes:
    """Returns a file whose header is as it was written: sections at (offset, length), and what is behind the header."""
    head_size = 64 + 48 * len(rows)
    whole = bytes(head_size) + body
    table = b"".join(
        pack("<16sQQ16s", f"s{number}".encode(), offset, length, checksum(whole[offset : offset + length]))
        for number, (offset, length) in enumerate(rows)
    )
    plain = pack("<8sIIQ24x", MAGIC, VERSION, len(rows), len(whole) + more)
    return plain + checksum(plain + table) + table + body


@all_cases("lengths", [[], [0], [1], [63], [64], [65], [0, 64, 1, 0, 200]])
def test_sections_are_read_where_they_were_put(lengths: list[int]) -> None:
    content = {f"s{number}": bytes([number + 1]) * length for number, length in enumerate(lengths)}
    data = b"".join(pack_sections(list(content.items())))
    sections = read_sections(data)
    assert list(sections) == list(content)
    assert {name: read_verified(data, section) for name, section in sections.items()} == content
    assert [section.length for section in sections.values()] == lengths
    assert all(section.offset % ALIGNMENT == 0 for section in sections.values())
    verify_sections(data, sections)
    used = 64 + 48 * len(lengths)
    assert len(data) == -(-used // 64) * 64 + sum(-(-length // 64) * 64 for length in lengths)
    assert mark_of(data) == data[48:64]


def test_checksums_that_are_known_are_not_computed_again() -> None:
    data = b"".join(pack_sections([("a", b"1"), ("b", b"2")], {"a": b"x" * 16}))
    sections = read_sections(data)
    assert (sections["a"].checksum, sections["b"].checksum) == (b"x" * 16, checksum(b"2"))
    assert read_verified(data, sections["b"]) == b"2"
    with pytest.raises(SnapshotError, match="its section 'a' is damaged"):
        read_verified(data, sections["a"])
    with pytest.raises(SnapshotError, match="its section 'a' is damaged"):
        verify_sections(data, sections)


def test_sections_are_few() -> None:
    some = [(f"s{number}", b"") for number in range(MAX_SECTIONS + 1)]
    assert len(read_sections(b"".join(pack_sections(some[:-1])))) == MAX_SECTIONS
    with pytest.raises(SnapshotError, match="its header is damaged"):
        read_sections(b"".join(pack_sections(some)))


@all_cases(
    ("rows", "whole"),
    [
        ([(128, 64)], True),
        ([(128, 0)], True),
        ([(128, 65)], False),
        ([(192, 0)], True),
        ([(192, 1)], False),
        ([(256, 0)], False),
        ([(127, 1)], False),
        ([(129, 1)], False),
        ([(160, 1)], False),
        ([(0, 1)], True),  # within the header: a reader finds it, `verify_sections` refuses it
    ],
)
def test_sections_lie_in_the_file_at_multiples_of_a_cache_line(rows: list[tuple[int, int]], *, whole: bool) -> None:
    data = file_of(rows, bytes(80))
    assert len(data) == 192
    if whole:
        assert [(section.offset, section.length) for section in read_sections(data).values()] == rows
    else:
        with pytest.raises(SnapshotError, match="its header is damaged"):
            read_sections(data)


@all_cases(
    ("rows", "filled", "good"),
    [
        ([(192, 64), (256, 64)], range(192, 320), True),
        ([(256, 64), (192, 64)], range(192, 320), True),
        ([(192, 60), (256, 64)], range(192, 252), True),
        ([(192, 60), (256, 64)], range(192, 253), False),
        ([(192, 64), (256, 60)], range(192, 316), True),
        ([(192, 64), (256, 60)], range(192, 317), False),
        ([(192, 65), (256, 64)], range(192, 320), False),
        ([(256, 1), (256, 64)], range(256, 320), False),
        ([(192, 64), (256, 64)], range(191, 320), False),
        ([(192, 64), (256, 64)], range(160, 161), False),
        ([(128, 64), (256, 64)], range(192, 193), False),
        ([(0, 64), (256, 64)], range(256, 320), False),
    ],
)
def test_nothing_lies_between_sections(rows: list[tuple[int, int]], filled: range, *, good: bool) -> None:
    body = bytes(1 if number in filled else 0 for number in range(160, 320))
    data = file_of(rows, body)
    sections = read_sections(data)
    if good:
        verify_sections(data, sections)
    else:
        with pytest.raises(SnapshotError):
            verify_sections(data, sections)


def test_a_file_is_as_long_as_its_header_says() -> None:
    for more in (-1, 1):
        with pytest.raises(SnapshotError, match=f"it has 320 bytes instead of {320 + more}"):
            read_sections(file_of([(192, 64)], bytes(208), more=more))


def test_a_header_behind_which_rows_are_missing_is_damaged() -> None:
    data = file_of([(128, 0), (128, 0)], b"")
    for end in (64, 100, len(data) - 1):
        with pytest.raises(SnapshotError, match="its header is damaged"):
            read_sections(data[:end])
    for end in (0, 8, 63):
        with pytest.raises(SnapshotError, match="it is not a snapshot"):
            read_sections(data[:end])
