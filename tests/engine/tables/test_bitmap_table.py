"""The bitmap hash table equals a dict, whatever the digests."""

import mmap
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.tables import bitmap_table
from gatewayfilter.engine.tables.bitmap_table import BitmapTable, build_table
from gatewayfilter.errors import SnapshotError
from tests.case_tables import all_cases

type Rows = np.ndarray[tuple[int, int], np.dtype[np.uint8]]

entries = st.dictionaries(st.binary(min_size=16, max_size=16), st.integers(0, 2**32 - 1), max_size=200)
# Few buckets and homes, digests that share a half, and second halves like that of a free slot.
crowded = st.dictionaries(
    st.builds(lambda a, b: bytes([a]) * 8 + bytes([b]) * 8, st.integers(0, 3) | st.just(255), st.integers(0, 255)),
    st.integers(0, 2**32 - 1),
    max_size=400,
)


def rows(items: list[bytes]) -> Rows:
    return np.frombuffer(b"".join(items), dtype=np.uint8).reshape(-1, 16)


def built(held: dict[bytes, int]) -> bytes:
    return bytes(build_table(rows(list(held)), np.array(list(held.values()), dtype=np.uint32)))


def opened(section: bytes | memoryview) -> BitmapTable:
    return BitmapTable(section, 0, len(section))


@settings(max_examples=30)
@given(st.one_of(entries, crowded), st.lists(st.binary(min_size=16, max_size=16), max_size=50))
def test_equals_a_dict(held: dict[bytes, int], strangers: list[bytes]) -> None:
    table = opened(built(held))
    asked = list(held) + strangers
    assert table.count == len(held)
    assert [table.find(digest) for digest in asked] == [held.get(digest) for digest in asked]
    assert table.find_many(rows(asked)).tolist() == [held.get(digest, -1) for digest in asked]


def in_one_bucket(homes: list[int]) -> dict[bytes, int]:
    """Digests of bucket 0 (first half 0) with these homes."""
    return {bytes(8) + (home << 58 | number + 1).to_bytes(8, "little"): number for number, home in enumerate(homes)}


@pytest.mark.parametrize(
    "homes",
    [
        pytest.param([0, 0, 0, 1], id="a walk over another's home"),
        pytest.param([63, 63, 63], id="past the last slot that the bitmap knows"),
        pytest.param([62, 62, 62, 63, 5], id="a walk that crosses the end of the bitmap"),
        pytest.param([60] * 40, id="far past the end"),
        pytest.param(list(range(60)), id="no collision at all"),
        pytest.param([63], id="the last slot alone"),
    ],
)
def test_collisions_in_one_bucket(homes: list[int]) -> None:
    held = in_one_bucket(homes)
    table = opened(built(held))
    assert all(table.find(digest) == number for digest, number in held.items())
    strangers = [bytes(8) + (home << 58 | 2**58 - 1).to_bytes(8, "little") for home in range(64)]
    assert all(table.find(digest) is None for digest in strangers)
    assert (table.find_many(rows(strangers)) == -1).all()


@all_cases("first", [0, 1, 2, 3, 2**64 - 1])
def test_a_digest_that_ends_like_a_free_slot_is_none(first: int) -> None:
    odd = first.to_bytes(8, "little") + b"\xff" * 8
    beside = first.to_bytes(8, "little") + b"\xfe" * 8  # takes the same home
    assert opened(built({beside: 7})).find(odd) is None
    assert (opened(built({beside: 7})).find_many(rows([odd])) == -1).all()
    both = opened(built({beside: 7, odd: 9}))
    assert (both.find(beside), both.find(odd)) == (7, 9)
    assert both.find_many(rows([odd, beside])).tolist() == [9, 7]


def test_two_digests_that_share_their_second_half_are_told_apart() -> None:
    held = {first.to_bytes(8, "little") + b"\x11" * 8: first for first in range(0, 20, 2)}
    table = opened(built(held))
    assert [table.find(digest) for digest in held] == list(held.values())
    assert table.find((20).to_bytes(8, "little") + b"\x11" * 8) is None


@all_cases(("highest", "width"), [(0, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 4), (2**32 - 1, 4)])
def test_values_take_as_few_bytes_as_they_need(highest: int, width: int) -> None:
    section = built({b"a" * 16: 0, b"b" * 16: highest})
    assert opened(section).arrays().values.itemsize == width
    assert opened(section).find(b"b" * 16) == highest


@all_cases("count", [1, 59, 60, 61, 5_000])
def test_many_random_digests(count: int) -> None:
    random = np.random.default_rng(count)
    digests = random.integers(0, 256, (count, 16), dtype=np.uint8)
    values = random.integers(0, 2**32, count, dtype=np.uint32)
    table = opened(build_table(digests, values))
    assert (table.find_many(digests) == values).all()
    assert (table.find_many(random.integers(0, 256, (1_000, 16), dtype=np.uint8)) == -1).all()


@pytest.mark.parametrize("highest", [0, 300, 100_000])
def test_bytes_an_entry_stay_below_the_budget(highest: int) -> None:
    digests = np.random.default_rng(3).integers(0, 256, (200_000, 16), dtype=np.uint8)
    assert len(build_table(digests, np.full(len(digests), highest, dtype=np.uint32))) / len(digests) < 24


def test_it_is_read_in_place_from_a_mapped_file(tmp_path: Path) -> None:
    section = built({b"a" * 16: 5})
    path = tmp_path / "table"
    path.write_bytes(bytes(64) + section)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        table = BitmapTable(data, 64, len(section))
        assert table.find(b"a" * 16) == 5
        assert table.find(b"b" * 16) is None
        table.close()


@all_cases(("place", "value"), [(0, 0), (0, 1), (0, 3), (8, 1), (8, 99), (24, 0), (24, 2), (24, 3), (24, 8)])
def test_a_header_that_does_not_fit_is_refused(place: int, value: int) -> None:
    section = bytearray(built({b"a" * 16: 5}))
    section[place] = value  # number of buckets, of slots, width of values
    with pytest.raises(SnapshotError, match="not as long as its header says"):
        opened(bytes(section))


def test_tables_are_little_endian(monkeypatch: pytest.MonkeyPatch) -> None:
    section = built({b"a" * 16: 5})
    monkeypatch.setattr(sys, "byteorder", "big")
    with pytest.raises(SnapshotError, match="little-endian"):
        opened(section)


def test_slots_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    held = {bytes([number]) * 16: 0 for number in range(40)}
    slots = len(opened(built(held)).arrays().slots) - 1
    monkeypatch.setattr(bitmap_table, "MAX_SLOTS", slots)
    assert opened(built(held)).count == 40
    monkeypatch.setattr(bitmap_table, "MAX_SLOTS", slots - 1)
    with pytest.raises(SnapshotError, match="a table cannot hold 40 entries"):
        built(held)


@all_cases("cut", [0, 8, 23, 24, 50, -1])
def test_a_section_cut_short_is_refused(cut: int) -> None:
    with pytest.raises(SnapshotError):
        opened(built({b"a" * 16: 5})[:cut])
