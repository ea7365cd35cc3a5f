"""The queue when it is long: how soon a user's visit is handed out, and what a crawler takes with it.

    python scripts/bench/bench_frontier.py [--queued 100000 1000000]

Offers that many links, then visits one by one. Prints a Markdown table: wall milliseconds from the offer of a visit to its lease
(the visit is the first URL leased, or the script fails), CPU microseconds to queue a link, and the resident memory of the
process, which is that of a crawler before its first page.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import batched

import psutil

from gatewayfilter.interfaces import CrawlRequest, Priority
from gatewayfilter.store import Store

VISITS = 200
BATCH = 5000


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queued", type=int, nargs="+", default=[100_000, 1_000_000])
    options = parser.parse_args(argv)
    print("| links that wait | visit to lease p50 | p99 | to queue a link | memory |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(f"sqlite:///{folder}/bench.sqlite3")
        store.frontier.max_waiting = 10 * max(options.queued)
        held = 0
        for queued in sorted(options.queued):
            begun = time.process_time()
            for numbers in batched(range(held, queued), BATCH):
                store.frontier.add([CrawlRequest(f"http://s{n % 5000}.example/{n}", Priority.LINK) for n in numbers], 1.0)
            add_us = (time.process_time() - begun) / (queued - held) * 1e6
            held = queued
            waits_ms = []
            for number in range(VISITS):
                url = f"http://visit.example/{queued}/{number}"
                start = time.perf_counter()
                store.frontier.add([CrawlRequest(url)], 2.0)
                (lease,) = store.frontier.lease(1, 60.0, 3.0)
                waits_ms.append((time.perf_counter() - start) * 1000)
                if lease.url != url:
                    raise RuntimeError("a link went before a visit")
                store.frontier.done(lease)
            memory_mb = psutil.Process().memory_info().rss / 1e6
            p50, p99 = statistics.median(waits_ms), sorted(waits_ms)[int(VISITS * 0.99)]
            print(f"| {queued:,} | {p50:.1f} ms | {p99:.1f} ms | {add_us:.0f} µs | {memory_mb:.0f} MB |", flush=True)
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
