"""The Bloom gate: no false negatives, the promised error rate, single and bulk queries alike."""

import math
import mmap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.tables.bloom import BloomAnswer, BloomFilter, build_bloom, filled_bloom, optimal_size, pack_bloom
from gatewayfilter.errors import SnapshotError
from tests.case_tables import all_cases

digests = st.lists(st.binary(min_size=16, max_size=16), max_size=60)


def rows(items: list[bytes]) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    return np.frombuffer(b"".join(items), dtype=np.uint8).reshape(-1, 16)


def opened(section: bytes) -> BloomFilter:
    return BloomFilter(section, 0, len(section))


@all_cases(
    ("count", "error_rate", "bits_per_entry", "positions"),
    [(1_000_000, 0.01, 9.6, 7), (1_000_000, 0.001, 14.4, 10), (1_000_000, 0.5, 1.44, 1), (1_000_000, 0.49, 1.485, 1)],
)
def test_size_follows_the_formulas(count: int, error_rate: float, bits_per_entry: float, positions: int) -> None:
    bits, k = optimal_size(count, error_rate)
    assert bits / count == pytest.approx(bits_per_entry, rel=0.01)
    assert bits >= count * math.log2(1 / error_rate) / math.log(2)
    assert bits % 8 == 0
    assert k == positions


@all_cases("error_rate", [0.0, 1.0, -1.0, 2.0])
def test_a_rate_that_is_none_is_refused(error_rate: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        optimal_size(10, error_rate)


@settings(max_examples=30)
@given(digests)
def test_no_false_negatives(items: list[bytes]) -> None:
    bloom = opened(build_bloom(rows(items), 0.01))
    assert all(bloom.ask(item) is BloomAnswer.MAYBE for item in items)
    assert bloom.ask_many(rows(items)).all()


@settings(max_examples=30)
@given(digests, digests)
def test_single_and_bulk_queries_agree(held: list[bytes], asked: list[bytes]) -> None:
    bloom = opened(build_bloom(rows(held), 0.3))
    single = [bloom.ask(item) is BloomAnswer.MAYBE for item in asked]
    assert bloom.ask_many(rows(asked)).tolist() == single


@pytest.mark.parametrize("error_rate", [0.1, 0.01, 0.001])
def test_false_positives_stay_near_the_wanted_rate(error_rate: float) -> None:
    random = np.random.default_rng(7)
    bloom = opened(build_bloom(random.integers(0, 256, (20_000, 16), dtype=np.uint8), error_rate))
    strangers = random.integers(0, 256, (200_000, 16), dtype=np.uint8)
    assert 0.5 * error_rate < bloom.ask_many(strangers).mean() < 1.5 * error_rate


def test_an_empty_filter_says_no() -> None:
    bloom = opened(build_bloom(rows([]), 0.001))
    assert bloom.count == 0
    assert bloom.ask(bytes(16)) is BloomAnswer.NO


def test_it_is_read_in_place_from_a_mapped_file(tmp_path: Path) -> None:
    path = tmp_path / "bits"
    section = build_bloom(rows([b"a" * 16]), 0.001)
    path.write_bytes(b"before--" + section)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        bloom = BloomFilter(data, 8, len(section))
        assert bloom.ask(b"a" * 16) is BloomAnswer.MAYBE
        assert bloom.ask(b"b" * 16) is BloomAnswer.NO
        bloom.close()


@all_cases("cut", [0, 10, 23, 24, -1])
def test_a_section_cut_short_is_refused(cut: int) -> None:
    section = build_bloom(rows([b"a" * 16]), 0.001)
    with pytest.raises(SnapshotError):
        opened(section[:cut])


@all_cases(
    ("bits", "positions", "held"),
    [(1024, 3, 127), (1024, 0, 128), (1016, 3, 127), (1028, 3, 128), (1032, 3, 128), (1032, 3, 130)],
)
def test_a_header_that_does_not_fit_is_refused(bits: int, positions: int, held: int) -> None:
    with pytest.raises(SnapshotError, match="not as long as its header says"):
        opened(pack_bloom(bits, positions, 1, bytes(held)))
    assert opened(pack_bloom(1032, 1, 7, bytes(129))).count == 7


def test_few_digests_have_the_smallest_filter_and_the_positions_of_their_rate() -> None:
    assert [optimal_size(count, 0.001) for count in (0, 1, 71)] == [(1024, 10)] * 3
    assert optimal_size(72, 0.001)[0] == 1040
    assert optimal_size(1, 0.99) == (1024, 1)


def test_positions_go_on_at_the_first_behind_the_last() -> None:
    digest = (1023).to_bytes(8, "little") + bytes(8)  # begins at the last position, in steps of one
    bloom = opened(filled_bloom(1024, 3, [rows([digest, digest]), rows([digest])]))
    assert (bloom.bits, bloom.positions, bloom.count) == (1024, 3, 3)
    assert bytes(bloom.held) == b"\x03" + bytes(126) + b"\x80"
    for other, found in ((digest, True), (bytes(16), False), ((1022).to_bytes(16, "little"), False)):
        assert bloom.ask(other) is (BloomAnswer.MAYBE if found else BloomAnswer.NO)
        assert bloom.ask_many(rows([other])).tolist() == [found]


def test_a_maybe_is_no_yes() -> None:
    assert {answer.name for answer in BloomAnswer} == {"NO", "MAYBE"}
    assert all(not isinstance(answer, (bool, int)) for answer in BloomAnswer)
