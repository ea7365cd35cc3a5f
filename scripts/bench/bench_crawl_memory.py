"""What memory the crawler takes with a long queue: `gatewayfilter run`, a million links that wait, while it works them off.

    python scripts/bench/bench_crawl_memory.py [--queued 1000000] [--seconds 30]

Queues that many links to the origin of bench_crawl.py (real pages on loopback) in the state folder's SQLite database, starts the
filter, and reads the resident memory of each process that crawls every half second. Prints a Markdown table: pages that were
judged meanwhile, memory at first and at most, in decimal megabytes. `unique` leaves out what processes share.
"""

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import batched
from pathlib import Path

import psutil
from bench_crawl import HOSTS, serve
from filter_process import Filter

from gatewayfilter.interfaces import CrawlRequest, Priority
from gatewayfilter.store import Store

BATCH = 5000
WORKERS = 2


def crawlers(state: Path) -> dict[str, psutil.Process]:
    """Returns the processes that crawl, by what they are."""
    paths = [*(state / "run").glob("learner*.json"), *(state / "run").glob("crawler-*.json")]
    return {path.stem: psutil.Process(json.loads(path.read_text())["pid"]) for path in sorted(paths)}


def fill(state: Path, port: int, queued: int) -> None:
    """Queues links."""
    store = Store.open(f"sqlite:///{state}/gatewayfilter.sqlite3")
    store.frontier.max_waiting = 2 * queued
    for numbers in batched(range(queued), BATCH):
        offers = [CrawlRequest(f"http://127.0.0.{2 + number % HOSTS}:{port}/{number}", Priority.LINK) for number in numbers]
        store.frontier.add(offers, time.time())
    store.close()


def watch(state: Path, queued: int, seconds: float) -> None:
    """Runs the filter on the state folder and prints what its crawlers take."""
    settings = {
        "GATEWAYFILTER_CRAWL__ALLOW_NETWORKS": "127.0.0.0/8",
        "GATEWAYFILTER_CRAWL__PER_HOST_DELAY_S": "0",
        "GATEWAYFILTER_CRAWL__WORKERS": str(WORKERS),
        "GATEWAYFILTER_CRAWL__MAX_WAITING": str(2 * queued),
    }
    running = Filter(state, "--no-web", settings=settings)
    running.start()
    try:
        seen: dict[str, list[tuple[int, int]]] = {}
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.5)
            for name, process in crawlers(state).items():
                memory = process.memory_full_info()
                seen.setdefault(name, []).append((memory.rss, memory.uss))
        stats = json.loads(running.command("queue", "stats", "--json"))
    finally:
        running.stop()
    judged = queued - stats["waiting"] - stats.get("leased", 0)
    print(f"{queued:,} links queued; {judged:,} pages fetched and judged in {seconds:.0f} s\n")
    print("| process | resident at first | at most | unique at most |\n|---|---|---|---|")
    for name, sizes in seen.items():
        most_rss, most_unique = max(rss for rss, _ in sizes), max(unique for _, unique in sizes)
        print(f"| {name} | {sizes[0][0] / 1e6:.0f} MB | {most_rss / 1e6:.0f} MB | {most_unique / 1e6:.0f} MB |")


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queued", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args(argv)
    ours, theirs = multiprocessing.Pipe()
    origin = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    origin.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            state = Path(folder) / "state"
            state.mkdir(mode=0o700)
            fill(state, ours.recv(), options.queued)
            watch(state, options.queued, options.seconds)
    finally:
        origin.terminate()
        origin.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
