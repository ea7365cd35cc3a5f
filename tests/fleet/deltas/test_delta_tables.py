"""Changes of a table give the table that a full build makes of the same entries, whatever they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.tables.bitmap_table import arrays_of, build_table
from gatewayfilter.engine.tables.table_patch import patch_table
from gatewayfilter.errors import FleetError
from gatewayfilter.fleet.deltas.canonical_form import canonical
from gatewayfilter.fleet.deltas.table_changes import changed_table, changes_between
from gatewayfilter.urls import digest_of

ENTRIES = st.dictionaries(st.integers(0, 60), st.sampled_from([0, 1, 2, 300, 70_000]))


def section(entries: dict[int, int]) -> memoryview:
    digests = np.frombuffer(b"".join(digest_of(str(key)) for key in entries), np.uint8).reshape(-1, 16)
    return build_table(digests, np.array(list(entries.values()), np.uint32))


@settings(max_examples=40)
@given(ENTRIES, ENTRIES)
def test_a_table_becomes_any_other(before: dict[int, int], after: dict[int, int]) -> None:
    old, new = section(before), section(after)
    part = changes_between(arrays_of(old, 0), arrays_of(new, 0))
    assert changed_table(arrays_of(old, 0), part) == new


def test_changes_of_another_table_are_refused() -> None:
    old, new = section(dict.fromkeys(range(50), 1)), section(dict.fromkeys(range(40), 1))
    part = changes_between(arrays_of(old, 0), arrays_of(new, 0))
    with pytest.raises(FleetError):
        changed_table(arrays_of(section({1: 1}), 0), part)
    with pytest.raises(FleetError):
        changed_table(arrays_of(section({1: 9}), 0), changes_between(arrays_of(old, 0), arrays_of(old, 0)))


def part_of(removed: list[int], renumbered: list[int], given: list[int]) -> bytes:
    counts = np.array([len(removed), len(renumbered), len(given)], "<u8").tobytes()
    added = b"".join(digest_of(f"added {number}") for number in range(len(given)))
    return counts + np.array([*removed, *renumbered, *given], "<u4").tobytes() + added


def test_the_last_entry_and_the_last_number_are_those_of_the_older_table() -> None:
    for count in (1, 5):
        old = arrays_of(section(dict.fromkeys(range(count), 2)), 0)
        left = arrays_of(changed_table(old, part_of([count - 1], [0, 0, 7], [])), 0)
        assert sorted(left.values[left.values != 0]) == [7] * (count - 1)
        for removed, renumbered in (([count], [0, 0, 7]), ([count - 1], [0, 0]), ([], [])):
            with pytest.raises(FleetError, match="belong to another one"):
                changed_table(old, part_of(removed, renumbered, []))
    empty = arrays_of(section({}), 0)
    assert changed_table(empty, part_of([], [], [])) == section({})
    with pytest.raises(FleetError, match="belong to another one"):
        changed_table(empty, part_of([0], [], []))


def test_changes_are_as_long_as_their_header_says() -> None:
    old = arrays_of(section({1: 1}), 0)
    whole = part_of([0], [0, 1], [1, 1])
    assert arrays_of(changed_table(old, whole), 0).values.max() == 1
    for length in (0, 23):
        with pytest.raises(FleetError, match="are cut short"):
            changed_table(old, whole[:length])
    for other in (whole[:24], whole[:-1], whole + b"x", bytes(7) + b"\xff" + whole[8:]):
        with pytest.raises(FleetError, match="are not as long as their header says"):
            changed_table(old, other)


def test_entries_whose_number_changes_with_most_others_move_nothing() -> None:
    old = section({**dict.fromkeys(range(50), 1), **dict.fromkeys(range(50, 60), 2)})
    new = section({**dict.fromkeys(range(48), 5), **dict.fromkeys(range(48, 60), 9)})
    part = changes_between(arrays_of(old, 0), arrays_of(new, 0))
    assert (*np.frombuffer(part, "<u8", 3),) == (2, 3, 2)
    assert (*np.frombuffer(part, "<u4", 3, 24 + 8),) == (0, 5, 9)
    assert changed_table(arrays_of(old, 0), part) == new
    empty = arrays_of(section({}), 0)
    assert changes_between(empty, empty) == part_of([], [0], [])


def test_a_patched_table_gets_the_form_of_a_full_build() -> None:
    whole = dict.fromkeys(range(2_000), 1)
    added = np.frombuffer(b"".join(digest_of(str(key)) for key in range(1_990, 2_000)), np.uint8).reshape(-1, 16)
    gone = np.frombuffer(digest_of("9999"), np.uint8).reshape(-1, 16)
    old = section({**dict.fromkeys(range(1_990), 1), 9_999: 1})
    patched = patch_table(arrays_of(old, 0), gone, added, np.ones(10, np.uint32))
    empty, gate = section({}), (1_024).to_bytes(8, "little") + (3).to_bytes(8, "little") + bytes(8 + 128)
    tables = {"blacklist": patched, "whitelist": empty, "splicelist": empty, "learned": empty}
    made = canonical({"meta": b"{}", "bloom": gate, **tables})
    assert patched != section(whole)
    assert made["blacklist"] == section(whole)
    assert made["meta"] == b"{}"
    assert len(made["bloom"]) == len(gate)
    assert any(made["bloom"][24:])
