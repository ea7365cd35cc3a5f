"""Merging lists: each digest once, with exactly the sources that hold it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.tables.source_sets import SourceSets

# Digests of few first halves, so that different digests share them.
digest = st.builds(lambda a, b: bytes([a]) * 8 + bytes([b]) * 8, st.integers(0, 4), st.integers(0, 4))
lists = st.lists(st.tuples(st.integers(0, 5), st.lists(digest, max_size=20)), max_size=8)


@settings(max_examples=30)
@given(lists)
def test_equals_a_dict_of_sets(chunks: list[tuple[int, list[bytes]]]) -> None:
    expected: dict[bytes, set[int]] = {}
    for source, items in chunks:
        for item in items:
            expected.setdefault(item, set()).add(source)
    sets = SourceSets()
    merged = sets.merge([(source, np.frombuffer(b"".join(items), dtype=np.uint8).reshape(-1, 16)) for source, items in chunks])
    interned = sets.as_lists()
    found = {row.tobytes(): interned[number] for row, number in zip(merged.digests, merged.sets, strict=True)}
    assert len(found) == len(merged.digests)
    assert found == {item: sorted(sources) for item, sources in expected.items()}


def test_equal_sets_of_two_merges_share_a_number() -> None:
    sets = SourceSets()
    first = sets.merge([(0, np.zeros((1, 16), dtype=np.uint8)), (1, np.zeros((1, 16), dtype=np.uint8))])
    second = sets.merge([(0, np.ones((1, 16), dtype=np.uint8)), (1, np.ones((1, 16), dtype=np.uint8))])
    assert first.sets.tolist() == second.sets.tolist()
    assert sets.as_lists() == [[0, 1]]
