"""The writing of the decision log, end to end: workers at a rate, their writer threads, a database, and the learner's counts.

Each worker is a process with the store writer of the proxy and a database of the filter; a thread offers records as the event
loop does. A further process counts and indexes, as the learner does. Printed are records that were lost, the CPU of each part for
a record, and the longest waits: of a caller (what a request would wait), of a record until it is stored, of one transaction.

    python scripts/bench/bench_log_writer.py [--rate 5000] [--workers 2] [--seconds 60] [--lock-s 0] [--folder FOLDER]

`--lock-s` has another thread hold the database's write lock for so long in the middle. With a FOLDER on a small file system
the disk becomes full.
"""

import argparse
import multiprocessing
import os
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import partial
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any, Final

from bench_log import Traffic

from gatewayfilter.errors import StoreError
from gatewayfilter.model import LogRecord
from gatewayfilter.processes.learner import FOLLOW_LOG_SHARE
from gatewayfilter.proxy.sync.store_writer import StoreWriter
from gatewayfilter.store import Store
from gatewayfilter.store.reconnecting_store import ReconnectingStore
from gatewayfilter.telemetry import Counters

TICK_S: Final = 0.002
INDEX_S: Final = 1.0
"""Time for the index before the counts have their turn again."""
MOST_BYTES: Final = 500e6


class TimedLog:
    """Writes batches, and keeps the longest waits.

    Args:
        store: as a worker has it.
    """

    def __init__(self, store: ReconnectingStore) -> None:
        self._store = store
        self.longest_batch_s = self.longest_wait_s = self.cpu_s = 0.0

    def write(self, records: Sequence[LogRecord]) -> None:
        """Writes a batch."""
        begun, cpu = time.monotonic(), time.thread_time()
        try:
            self._store.log.write(records)
        finally:
            self.cpu_s += time.thread_time() - cpu
            self.longest_batch_s = max(self.longest_batch_s, time.monotonic() - begun)
        self.longest_wait_s = max(self.longest_wait_s, time.time() - records[0].at)


def work(url: str, rate: float, seconds: float, answers: "Queue[dict[str, Any]]") -> None:
    """Runs a worker: offers records at a rate, evenly, and reports."""
    counters = Counters()
    store = ReconnectingStore(partial(Store.open, url), MOST_BYTES)
    log = TimedLog(store)
    writer = StoreWriter(lambda _offers, _now: 0, log.write, counters)
    writer.start()
    records = list(Traffic().rows(20_000, 0.0, 0.0))
    offered, longest_s, deepest, cpu = 0, 0.0, 0, time.thread_time()
    begun = time.monotonic()
    while (passed := time.monotonic() - begun) < seconds:
        while offered < passed * rate:
            record = records[offered % len(records)]._replace(at=time.time())
            before = time.perf_counter()
            writer.log.write(record)
            longest_s = max(longest_s, time.perf_counter() - before)
            offered += 1
        deepest = max(deepest, len(writer.log))
        time.sleep(TICK_S)
    cpu = time.thread_time() - cpu
    stopped = writer.stop(60.0)
    store.close()
    answers.put(
        {
            "offered": offered,
            "written": counters["log_written"],
            "dropped": counters["log_dropped"],
            "refused": counters["store_errors"],
            "longest_call_s": longest_s,
            "longest_wait_s": log.longest_wait_s,
            "longest_batch_s": log.longest_batch_s,
            "deepest": deepest,
            "writer_cpu_us": log.cpu_s / max(counters["log_written"], 1) * 1e6,
            "stopped": stopped,
        }
    )


def follow(url: str, ended: Any, answers: "Queue[dict[str, Any]]") -> None:
    """Counts and indexes as the learner does, until it is told that all is written, and all is counted."""
    store: Store | None = None
    cpu = time.process_time()
    while True:
        finished = ended.is_set()
        with suppress(StoreError):
            store = store or Store.open(url)
            while step_and_rest(store.log_counter.step):
                pass
            if finished:
                break
            until = time.monotonic() + INDEX_S
            while time.monotonic() < until and step_and_rest(store.log_indexer.step):
                pass
        time.sleep(0.1)
    assert store is not None
    total, rows = store.log_stats.summary().decisions, store.log_stats.covered()[1]
    answers.put({"counted": total, "rows": rows, "cpu_s": time.process_time() - cpu})


def step_and_rest(step: Any) -> int:
    """Runs a step, and rests as the learner does, with the same share of the time."""
    begun = time.monotonic()
    count = int(step())
    if count:
        time.sleep((time.monotonic() - begun) * (1 - FOLLOW_LOG_SHARE) / FOLLOW_LOG_SHARE)
    return count


def hold_lock(file: Path, after_s: float, hold_s: float) -> None:
    """Holds the write lock of the database for a while. Polls for it: SQLite's own waiting loses against busy writers."""
    time.sleep(after_s)
    with closing(sqlite3.connect(file, isolation_level=None, timeout=0.0)) as connection:
        while not connection.in_transaction:
            with suppress(sqlite3.OperationalError):
                connection.execute("BEGIN IMMEDIATE")
            time.sleep(0.001)
        time.sleep(hold_s)
        connection.execute("ROLLBACK")


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a Markdown table. Returns 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=5_000.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--lock-s", type=float, default=0.0)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        run(options, (options.folder or Path(name)) / "log.sqlite3")
    return 0


def run(options: argparse.Namespace, file: Path) -> None:
    """Runs and prints."""
    url = f"sqlite:///{file}"
    Store.open(url).close()
    context = multiprocessing.get_context("spawn")
    answers, followed, ended = context.Queue(), context.Queue(), context.Event()
    workers = [
        context.Process(target=work, args=(url, options.rate / options.workers, options.seconds, answers))
        for _ in range(options.workers)
    ]
    follower = context.Process(target=follow, args=(url, ended, followed))
    for process in (*workers, follower):
        process.start()
    if options.lock_s:
        threading.Thread(target=hold_lock, args=(file, options.seconds / 3, options.lock_s), daemon=True).start()
    found = [answers.get() for _ in workers]
    for process in workers:
        process.join()
    ended.set()
    learned = followed.get()
    follower.join()
    load = os.getloadavg()[0]
    print(f"{options.rate:,.0f}/s for {options.seconds:.0f} s, {options.workers} workers, load {load:.0f}\n")
    print(
        "| worker | offered | written | dropped | refused batches | longest call, µs | longest wait, ms "
        "| longest batch, ms | deepest queue | CPU µs each |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for number, one in enumerate(found):
        print(
            f"| {number} | {one['offered']:,} | {one['written']:,} | {one['dropped']:,} | {one['refused']} "
            f"| {one['longest_call_s'] * 1e6:.0f} | {one['longest_wait_s'] * 1000:.0f} | {one['longest_batch_s'] * 1000:.0f} "
            f"| {one['deepest']:,} | {one['writer_cpu_us']:.1f} |"
        )
    each_us = learned["cpu_s"] / max(learned["rows"], 1) * 1e6
    print(f"\nCounted {learned['counted']:,} of {learned['rows']:,} stored.")
    print(f"Counts and a part of the index took {each_us:.1f} µs of CPU each.")


if __name__ == "__main__":
    sys.exit(main())
