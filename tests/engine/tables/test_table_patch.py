"""A table that entries leave and enter stays what a table of the same entries would be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gatewayfilter.engine.tables.bitmap_table import FREE, WIDTH, BitmapTable, build_table
from gatewayfilter.engine.tables.table_patch import MOST_UNUSED, entries_of, patch_table
from tests.case_tables import all_cases

type Rows = np.ndarray[tuple[int, int], np.dtype[np.uint8]]

# Two buckets' worth of first halves, few homes, and digests that end like a free slot.
digests = st.builds(
    lambda first, home, rest: first.to_bytes(8, "little") + (home << 58 | rest).to_bytes(8, "little"),
    st.integers(0, 5) | st.just(2**64 - 1),
    st.sampled_from([0, 1, 2, 31, 62, 63]),
    st.integers(0, 3) | st.just(2**58 - 1),
)
numbers = st.integers(0, 3) | st.integers(0, 70_000)


def rows(items: list[bytes]) -> Rows:
    return np.frombuffer(b"".join(items), dtype=np.uint8).reshape(-1, 16)


def opened(section: memoryview) -> BitmapTable:
    return BitmapTable(section, 0, len(section))


def built(held: dict[bytes, int]) -> BitmapTable:
    return opened(build_table(rows(list(held)), np.array(list(held.values()), dtype=np.uint32)))


class PatchedTable(RuleBasedStateMachine):
    """Any sequence of patches, beside a dict."""

    @initialize(held=st.dictionaries(digests, numbers, max_size=40))
    def start(self, held: dict[bytes, int]) -> None:
        self.model = dict(held)
        self.table = built(held)

    @rule(leaving=st.lists(digests, max_size=10), entering=st.dictionaries(digests, numbers, max_size=10))
    def patch(self, leaving: list[bytes], entering: dict[bytes, int]) -> None:
        values = np.array(list(entering.values()), dtype=np.uint32)
        self.table = opened(patch_table(self.table.arrays(), rows(leaving), rows(list(entering)), values))
        for digest in leaving:
            self.model.pop(digest, None)
        self.model.update(entering)

    @rule()
    def renumber(self) -> None:
        changed = np.arange(max(self.model.values(), default=0), -1, -1, dtype=np.uint32)
        self.table = opened(patch_table(self.table.arrays(), rows([]), rows([]), np.empty(0, np.uint32), changed))
        self.model = {digest: int(changed[number]) for digest, number in self.model.items()}

    @rule(strangers=st.lists(digests, min_size=1, max_size=10))
    def ask(self, strangers: list[bytes]) -> None:
        assert [self.table.find(digest) for digest in strangers] == [self.model.get(digest) for digest in strangers]
        assert self.table.find_many(rows(strangers)).tolist() == [self.model.get(digest, -1) for digest in strangers]

    @invariant()
    def marks_the_slots_that_are_taken(self) -> None:
        if not hasattr(self, "table"):
            return
        table = self.table.arrays()
        buckets = len(table.taken)
        for bucket, (taken, first, length) in enumerate(zip(table.taken, table.first, table.length, strict=True)):
            run = table.slots[int(first) : int(first) + int(length)].tolist()[:WIDTH]
            held = [place for place, (one, two) in enumerate(run) if two != FREE or one % buckets == bucket]
            assert int(taken) == sum(1 << place for place in held)

    @invariant()
    def holds_what_the_dict_holds(self) -> None:
        if not hasattr(self, "table"):
            return
        assert self.table.count == len(self.model)
        held, values = entries_of(self.table.arrays())
        assert dict(zip(map(bytes, held), values.tolist(), strict=True)) == self.model
        assert [self.table.find(digest) for digest in self.model] == list(self.model.values())
        assert self.table.unused <= MOST_UNUSED


TestPatchedTable = PatchedTable.TestCase
TestPatchedTable.settings = settings(max_examples=30, stateful_step_count=15, deadline=None)


@pytest.mark.parametrize(
    ("leaving", "entering"), [(0, 0), (1, 0), (0, 1), (500, 700), (19_000, 0), (0, 30_000), (20_000, 20_000)]
)
def test_many_leave_and_enter_at_once(leaving: int, entering: int) -> None:
    random = np.random.default_rng(leaving + entering)
    old = random.integers(0, 256, (20_000, 16), dtype=np.uint8)
    new = random.integers(0, 256, (entering, 16), dtype=np.uint8)
    table = opened(build_table(old, np.full(len(old), 7, dtype=np.uint32)))
    table = opened(patch_table(table.arrays(), old[:leaving], new, np.full(entering, 300, dtype=np.uint32)))
    assert (table.find_many(old[:leaving]) == -1).all()
    assert (table.find_many(old[leaving:]) == 7).all()
    assert (table.find_many(new) == 300).all()
    assert table.count == 20_000 - leaving + entering
    assert all(table.find(bytes(digest)) == 300 for digest in new[:200])


def test_a_full_bucket_moves_behind_the_others_and_what_it_leaves_is_bounded() -> None:
    random = np.random.default_rng(1)
    table = opened(build_table(random.integers(0, 256, (2_000, 16), dtype=np.uint8), np.zeros(2_000, dtype=np.uint32)))
    moved = 0.0
    for _ in range(60):
        new = random.integers(0, 256, (10, 16), dtype=np.uint8)
        table = opened(patch_table(table.arrays(), new[:0], new, np.ones(10, dtype=np.uint32)))
        assert (table.find_many(new) == 1).all()
        assert table.unused <= MOST_UNUSED
        moved = max(moved, table.unused)
    assert moved > 0
    assert table.count == 2_600


@all_cases(("left", "buckets"), [(120, 3), (72, 3), (71, 2), (10, 2)])
def test_a_table_of_which_less_than_half_is_used_is_made_again(left: int, buckets: int) -> None:
    held = np.random.default_rng(2).integers(0, 256, (120, 16), dtype=np.uint8)
    table = opened(build_table(held, np.full(120, 7, dtype=np.uint32)))
    table = opened(patch_table(table.arrays(), held[left:], held[:0], np.empty(0, np.uint32)))
    assert (len(table.arrays().taken), table.count, table.unused) == (buckets, left, 0.0)
    assert (table.find_many(held) == np.where(np.arange(120) < left, 7, -1)).all()


def test_the_smallest_table_stays_as_it_is() -> None:
    held = np.random.default_rng(2).integers(0, 256, (90, 16), dtype=np.uint8)
    before = build_table(held, np.zeros(90, dtype=np.uint32))
    after = patch_table(opened(before).arrays(), held[3:], held[:0], np.empty(0, np.uint32))
    assert (len(after), opened(after).count) == (len(before), 3)


def test_a_table_that_is_too_full_is_made_again() -> None:
    held = np.random.default_rng(4).integers(0, 256, (300, 16), dtype=np.uint8)
    table = opened(build_table(held[:96], np.zeros(96, dtype=np.uint32)))
    assert len(table.arrays().taken) == 2
    table = opened(patch_table(table.arrays(), held[:0], held[96:], np.zeros(204, dtype=np.uint32)))
    assert (len(table.arrays().taken), table.unused, table.count) == (7, 0.0, 300)


@settings(max_examples=30)
@given(st.dictionaries(digests, numbers, min_size=1, max_size=30))
def test_leaving_all_is_an_empty_table(held: dict[bytes, int]) -> None:
    table = opened(patch_table(built(held).arrays(), rows(list(held)), rows([]), np.empty(0, np.uint32)))
    assert table.count == 0
    assert all(table.find(digest) is None for digest in held)


def test_a_digest_of_any_place_gets_its_new_number() -> None:
    held = {bytes([number]) * 16: number for number in range(1, 40)}
    for digest in held:
        section = patch_table(built(held).arrays(), rows([]), rows([digest]), np.array([99], np.uint32))
        found = opened(section)
        assert [found.find(other) for other in held] == list((held | {digest: 99}).values())
        assert len(entries_of(found.arrays())[1]) == len(held)
