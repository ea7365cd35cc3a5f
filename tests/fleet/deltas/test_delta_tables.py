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
