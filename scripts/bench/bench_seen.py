"""The crawler's filter of seen links (pybloom-live, scalable) beside filters of one size: cost and memory as it grows.

    python scripts/bench/bench_seen.py [--largest 1000000]

Prints a Markdown table: CPU microseconds to add one digest and to ask for one, bytes an entry and the false positives that were
found, for the same digests. The filters of one size are made for `--largest` digests, which the crawler cannot know beforehand.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
from rbloom import Bloom

from gatewayfilter.crawl.frontier.seen_filter import SeenFilter
from gatewayfilter.engine.tables.bloom import BloomAnswer
from gatewayfilter.engine.tables.counting_bloom import CountingBloom

SEED = 7
ERROR_RATE = 0.001
"""Of the filters of one size; what the growing one comes to is in the table."""
ASKED = 20_000


def cpu_us(work: Callable[[], object], count: int) -> float:
    """Returns CPU microseconds an operation."""
    start = time.process_time()
    work()
    return (time.process_time() - start) / count * 1e6


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a Markdown table. Returns 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=1_000_000)
    options = parser.parse_args(argv)
    source = np.random.default_rng(SEED)
    strangers = [row.tobytes() for row in source.integers(0, 256, (ASKED, 16), dtype=np.uint8)]
    seen = SeenFilter()
    fixed = Bloom(options.largest, ERROR_RATE, lambda digest: int.from_bytes(digest, "little", signed=True))
    counting = CountingBloom.for_digests(options.largest, ERROR_RATE)
    print("| entries | filter | add µs | ask µs | bytes an entry | false positives |\n|---|---|---|---|---|---|")
    held = 0
    for size in (options.largest // 100, options.largest // 10, options.largest):
        rows = source.integers(0, 256, (size - held, 16), dtype=np.uint8)
        news = [row.tobytes() for row in rows]
        held = size
        filters: list[tuple[str, Callable[[], object], Callable[[bytes], bool], Callable[[], float]]] = [
            (
                "seen links: pybloom-live, grows",
                lambda news=news: [seen.add(digest) for digest in news],
                seen.__contains__,
                lambda: seen.size_bits / 8,
            ),
            ("rbloom, one size", lambda news=news: fixed.update(news), fixed.__contains__, lambda: fixed.size_in_bits / 8),
            (
                "counting filter, one size, in bulk",
                lambda rows=rows: counting.add(rows),
                lambda digest: counting.ask(digest) is BloomAnswer.MAYBE,
                lambda: float(counting.counters.nbytes),
            ),
        ]
        for name, add, contains, size_of in filters:
            add_us = cpu_us(add, len(news))
            found: list[bool] = []
            ask_us = cpu_us(lambda contains=contains, found=found: found.extend(map(contains, strangers)), ASKED)
            each = size_of() / held
            print(f"| {held:,} | {name} | {add_us:.2f} | {ask_us:.2f} | {each:.1f} | {sum(found) / ASKED:.3%} |", flush=True)
            assert all(map(contains, news[:1000]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
