"""A gate without counters admits what it held and what was added."""

import numpy as np

from gatewayfilter.engine.tables.bloom import BloomFilter, build_bloom
from gatewayfilter.engine.tables.kept_gate import KeptGate

DIGESTS = np.random.default_rng(7).integers(0, 256, (2_000, 16), dtype=np.uint8)


def opened(section: bytes) -> BloomFilter:
    return BloomFilter(section, 0, len(section))


def test_added_digests_pass_and_removed_ones_may() -> None:
    gate = KeptGate.of(opened(build_bloom(DIGESTS[:1_000], 0.001)))
    assert gate.gate() == build_bloom(DIGESTS[:1_000], 0.001)
    gate.add(DIGESTS[1_000:1_100])
    gate.remove(DIGESTS[:50])
    bloom = opened(gate.gate())
    assert bloom.ask_many(DIGESTS[:1_100]).all()
    assert bloom.ask_many(DIGESTS[1_100:]).mean() < 0.02
    assert bloom.count == 1_050
