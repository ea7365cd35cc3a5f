"""Counters on disk: save and open are identity, and whatever is wrong with the file is one sentence."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gatewayfilter.engine.tables.counter_file import read_counters, write_counters
from gatewayfilter.engine.tables.counting_bloom import CounterBits, CountingBloom
from gatewayfilter.errors import SnapshotError

MARK = b"m" * 16


def filled(counter_bits: CounterBits = 4) -> CountingBloom:
    counters = CountingBloom(1024, 3, counter_bits=counter_bits)
    counters.add(np.random.default_rng(1).integers(0, 256, (100, 16), dtype=np.uint8))
    return counters


@pytest.mark.parametrize("counter_bits", [4, 32])
def test_save_and_open_are_identity(tmp_path: Path, counter_bits: CounterBits) -> None:
    kept = filled(counter_bits)
    write_counters(tmp_path / "counters", kept, MARK)
    found = read_counters(tmp_path / "counters", MARK)
    assert (found.bits, found.positions, found.count, found.counter_bits) == (1024, 3, 100, counter_bits)
    assert (found.counters == kept.counters).all()
    found.remove(np.random.default_rng(1).integers(0, 256, (100, 16), dtype=np.uint8))
    assert not found.counters.any()


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda data: b"", "cut short"),
        (lambda data: data[:71], "cut short"),
        (lambda data: data[:-1], "damaged"),
        (lambda data: data[: len(data) // 2], "damaged"),
        (lambda data: data + b"\0", "damaged"),
        (lambda data: b"X" + data[1:], "another format"),
        (lambda data: data[:8] + b"\2" + data[9:], "another format"),
        (lambda data: data[:12] + b"\5" + data[13:], "another format"),
    ],
)
def test_a_spoilt_file_is_refused(tmp_path: Path, spoil: Callable[[bytes], bytes], why: str) -> None:
    path = tmp_path / "counters"
    write_counters(path, filled(), MARK)
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(SnapshotError, match=why):
        read_counters(path, MARK)


def test_every_flipped_byte_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "counters"
    write_counters(path, filled(), MARK)
    data = path.read_bytes()
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(SnapshotError):
            read_counters(path, MARK)


def test_those_of_another_snapshot_are_refused(tmp_path: Path) -> None:
    write_counters(tmp_path / "counters", filled(), MARK)
    with pytest.raises(SnapshotError, match="belong to another snapshot"):
        read_counters(tmp_path / "counters", b"o" * 16)


def test_none_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match=r"^the counters none cannot be used: [^\n]+$"):
        read_counters(tmp_path / "none", MARK)
