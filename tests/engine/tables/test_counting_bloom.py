"""The counting Bloom filter equals a multiset as far as a filter can, and its gate is the Bloom filter of what is left."""

from collections import Counter
from hashlib import md5

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gatewayfilter.engine.tables import counting_bloom
from gatewayfilter.engine.tables.bloom import BloomAnswer, BloomFilter, build_bloom, filled_bloom
from gatewayfilter.engine.tables.counting_bloom import CounterBits, CountingBloom, salted_positions
from tests.case_tables import all_cases

type Rows = np.ndarray[tuple[int, int], np.dtype[np.uint8]]

digests = st.binary(min_size=16, max_size=16) | st.integers(0, 9).map(lambda number: bytes([number]) * 16)
WIDTHS: tuple[CounterBits, ...] = (4, 32)


def rows(items: list[bytes]) -> Rows:
    return np.frombuffer(b"".join(items), dtype=np.uint8).reshape(-1, 16)


def gate_of(filter_: CountingBloom) -> BloomFilter:
    section = filter_.gate()
    return BloomFilter(section, 0, len(section))


class Multiset(RuleBasedStateMachine):
    """Any sequence of additions and removals, beside a Counter; in steps of one and in bulk."""

    @initialize(counter_bits=st.sampled_from(WIDTHS), small=st.booleans())
    def start(self, counter_bits: CounterBits, *, small: bool) -> None:
        self.filter = CountingBloom(1024 if small else 8192, 5, counter_bits=counter_bits)
        self.model: Counter[bytes] = Counter()

    @rule(items=st.lists(digests, max_size=8))
    def add(self, items: list[bytes]) -> None:
        self.filter.add(rows(items))
        self.model.update(items)

    @precondition(lambda self: self.model.total())
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        leaving = data.draw(st.lists(st.sampled_from(sorted(self.model.elements())), max_size=6))
        leaving = list((Counter(leaving) & self.model).elements())
        self.filter.remove(rows(leaving))
        self.model -= Counter(leaving)

    @invariant()
    def forgets_nothing_that_it_holds(self) -> None:
        if not hasattr(self, "filter"):
            return
        assert self.filter.count == self.model.total()
        held = sorted(self.model)
        assert self.filter.ask_many(rows(held)).all()
        assert all(self.filter.ask(digest) is BloomAnswer.MAYBE for digest in held)
        assert gate_of(self.filter).ask_many(rows(held)).all()

    @invariant()
    def counts_exactly_unless_a_counter_is_stuck(self) -> None:
        if not hasattr(self, "filter") or self.filter.stuck:
            return
        afresh = CountingBloom(self.filter.bits, self.filter.positions, counter_bits=self.filter.counter_bits)
        afresh.add(rows(sorted(self.model.elements())))
        assert (self.filter.counters == afresh.counters).all()


TestMultiset = Multiset.TestCase
TestMultiset.settings = settings(max_examples=30, stateful_step_count=12, deadline=None)


@settings(max_examples=30)
@given(st.lists(digests, max_size=60), st.sampled_from(WIDTHS))
def test_the_gate_is_the_bloom_filter_of_the_same_digests(items: list[bytes], counter_bits: CounterBits) -> None:
    counting = CountingBloom.for_digests(len(items), 0.01, counter_bits=counter_bits)
    counting.add(rows(items))
    assert counting.gate() == build_bloom(rows(items), 0.01)


@pytest.mark.parametrize("counter_bits", WIDTHS)
def test_many_digests_are_counted_as_one_by_one(counter_bits: CounterBits) -> None:
    many = np.random.default_rng(1).integers(0, 256, (5_000, 16), dtype=np.uint8)
    at_once = CountingBloom.for_digests(len(many), 0.001, counter_bits=counter_bits)
    at_once.add(many)
    in_steps = CountingBloom.for_digests(len(many), 0.001, counter_bits=counter_bits)
    for begin in range(0, len(many), 50):
        in_steps.add(many[begin : begin + 50])
    assert (at_once.counters == in_steps.counters).all()
    assert at_once.count == in_steps.count
    at_once.remove(many[:2_500])
    afresh = CountingBloom(at_once.bits, at_once.positions, counter_bits=counter_bits)
    afresh.add(many[2_500:])
    assert (at_once.counters == afresh.counters).all()


@all_cases("times", [14, 15, 16, 255, 256, 257, 5_000])
def test_four_bits_that_are_full_stay_full(times: int) -> None:
    digest = md5(b"often", usedforsecurity=False).digest()
    counting = CountingBloom(1024, 3)
    counting.add(rows([digest] * times))
    assert counting.stuck == (0 if times < 15 else len({*counting._places(rows([digest])).reshape(-1).tolist()}))
    counting.remove(rows([digest] * (times - 1)))
    assert counting.ask(digest) is BloomAnswer.MAYBE
    counting.remove(rows([digest]))
    assert counting.ask(digest) is (BloomAnswer.NO if times < 15 else BloomAnswer.MAYBE)


def test_thirty_two_bits_of_the_paper_count_on() -> None:
    digest = bytes(range(16))
    counting = CountingBloom(1024, 3, counter_bits=32)
    counting.add(rows([digest] * 300))
    counting.remove(rows([digest] * 300))
    assert counting.ask(digest) is BloomAnswer.NO
    assert (counting.stuck, counting.counters.nbytes) == (0, 8 * CountingBloom(1024, 3).counters.nbytes)


@all_cases("leaving", [[b"x" * 16], [b"a" * 16, b"a" * 16], [b"a" * 16, b"x" * 16]])
def test_what_was_never_added_is_not_removed(leaving: list[bytes]) -> None:
    counting = CountingBloom(4096, 5)
    counting.add(rows([b"a" * 16, b"b" * 16]))
    before = counting.counters.copy()
    with pytest.raises(ValueError, match="never added"):
        counting.remove(rows(leaving))
    assert (counting.counters == before).all()
    assert counting.count == 2


@all_cases(("bits", "positions"), [(0, 1), (12, 1), (1024, 0), (2**33, 3)])
def test_a_shape_that_is_none_is_refused(bits: int, positions: int) -> None:
    with pytest.raises(ValueError, match="a filter cannot have"):
        CountingBloom(bits, positions)
    with pytest.raises(ValueError, match="bytes of counters"):
        CountingBloom(1024, 3, counters=np.zeros(7, np.uint8))


def test_a_shape_at_its_bounds_is_taken() -> None:
    small = CountingBloom(8, 1)
    small.add(rows([b"a" * 16]))
    assert small.ask(b"a" * 16) is BloomAnswer.MAYBE
    with pytest.raises(ValueError, match="bytes of counters"):  # so many positions are possible
        CountingBloom(2**32, 1, counters=np.zeros(7, np.uint8))


def test_counters_of_32_bits_can_be_full() -> None:
    full = CountingBloom(64, 2, counter_bits=32, counters=np.full(64, 2**32 - 1, np.uint32))
    assert (full.stuck, full.most) == (64, 2**32 - 1)
    full.counters[3] -= 1
    assert full.stuck == 63
    full.add(rows([b"a" * 16] * 3))
    assert full.stuck in {63, 64}
    assert CountingBloom(64, 2).most == 15


@all_cases("counter_bits", WIDTHS)
def test_digests_in_several_chunks_are_counted_as_in_one(counter_bits: CounterBits) -> None:
    many = np.random.default_rng(3).integers(0, 256, (100, 16), dtype=np.uint8)
    many = np.concatenate((many, many[:30]))
    whole = CountingBloom(4096, 5, counter_bits=counter_bits)
    whole.add(many)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting_bloom, "_CHUNK", 7)
        in_chunks = CountingBloom(4096, 5, counter_bits=counter_bits)
        in_chunks.add(many)
        assert (in_chunks.counters == whole.counters).all()
        in_chunks.remove(many[50:])
        with pytest.raises(ValueError, match="never added"):
            in_chunks.remove(np.concatenate((many[:50], many[:1])))
    whole.remove(many[50:])
    assert (in_chunks.counters == whole.counters).all()
    assert in_chunks.count == whole.count == 50


@all_cases(("counter_bits", "times"), [(bits, times) for bits in WIDTHS for times in (1, 200)])
def test_positions_go_on_at_the_first_behind_the_last(counter_bits: CounterBits, times: int) -> None:
    digest = (1023).to_bytes(8, "little") + bytes(8)  # begins at the last position, in steps of one
    counting = CountingBloom(1024, 3, counter_bits=counter_bits)
    counting.add(rows([digest] * times))
    assert counting.gate() == filled_bloom(1024, 3, [rows([digest] * times)])
    assert counting.ask(digest) is BloomAnswer.MAYBE
    assert counting.ask_many(rows([digest, bytes(16)])).tolist() == [True, False]
    counting.remove(rows([digest] * min(times, 15)))
    assert counting.count == max(0, times - 15)


def test_the_papers_positions_come_from_salted_digests() -> None:
    found = salted_positions(b"http://x.example/", 6, 10_000)
    words = (
        md5(b"\x00http://x.example/", usedforsecurity=False).digest()
        + md5(b"\x01http://x.example/", usedforsecurity=False).digest()
    )
    assert found == [int.from_bytes(words[place : place + 4], "big") % 10_000 for place in range(0, 24, 4)]
    counting = CountingBloom(10_000, 6)
    assert counting.ask_at(found) is BloomAnswer.NO
    counting.counters[:] = 0x11
    assert counting.ask_at(found) is BloomAnswer.MAYBE


def test_false_positives_stay_near_the_wanted_rate_after_removals() -> None:
    random = np.random.default_rng(5)
    held = random.integers(0, 256, (20_000, 16), dtype=np.uint8)
    gone = random.integers(0, 256, (20_000, 16), dtype=np.uint8)
    counting = CountingBloom.for_digests(20_000, 0.01)
    counting.add(np.concatenate((held, gone)))
    counting.remove(gone)
    assert counting.ask_many(held).all()
    assert 0.005 < counting.ask_many(gone).mean() < 0.015
