"""Sets of seen URLs beside each other, as in [cloud-crawler, figure 7]: time and memory as they grow.

    python scripts/bench/bench_dedup.py [--sizes 1000000 10000000] [--plot FILE.svg] [--limit-s 60]

The MD5 tree and the scalable Bloom filter of the crawler beside Python's set, a chained hash table (as the paper's peer) and
pybloom-live's filter of one size. Each runs in a process of its own; the same digests for all. Prints a Markdown table: CPU
microseconds to add one digest and to ask for one that is not there, resident bytes an entry, false positives. A set that takes
longer than the limit (CPU seconds) to fill is left at the size that it has reached then, which the table says. With the plot, all
takes four minutes.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import psutil
from pybloom_live import BloomFilter

from gatewayfilter.crawl.frontier.digest_tree import DigestTree
from gatewayfilter.crawl.frontier.seen_filter import SeenFilter

SEED = 7
CHUNK = 100_000
ASKED = 100_000


class Digests(Protocol):
    """A set of digests."""

    def add(self, digest: bytes, /) -> object:
        """Adds one."""

    def __contains__(self, digest: bytes, /) -> bool:
        """Returns whether one is there."""


class ChainedTable:
    """A hash table whose buckets are lists, of a size that is right for the entries to come."""

    def __init__(self, entries: int) -> None:
        self._size = entries
        self._buckets: list[list[bytes] | None] = [None] * entries

    def add(self, digest: bytes) -> None:
        """Adds one."""
        place = int.from_bytes(digest[:8]) % self._size
        bucket = self._buckets[place]
        if bucket is None:
            self._buckets[place] = [digest]
        elif digest not in bucket:
            bucket.append(digest)

    def __contains__(self, digest: bytes) -> bool:
        """Returns whether one is there."""
        bucket = self._buckets[int.from_bytes(digest[:8]) % self._size]
        return bucket is not None and digest in bucket


def make(name: str, size: int) -> Digests:
    """Returns an empty set."""
    sets: dict[str, type[Digests]] = {"MD5 tree": DigestTree, "Bloom, grows": SeenFilter, "Python set": set}
    if name == "chained hash table":
        return ChainedTable(size)
    if name == "Bloom, one size":
        made: Digests = BloomFilter(size, 0.001)
        return made
    return sets[name]()


NAMES = ("MD5 tree", "Bloom, grows", "Bloom, one size", "Python set", "chained hash table")


def chunks(size: int, seed: int) -> Iterator[list[bytes]]:
    """Yields digests."""
    source = np.random.default_rng(seed)
    for _ in range(size // CHUNK):
        block = source.bytes(16 * CHUNK)
        yield [block[at : at + 16] for at in range(0, len(block), 16)]


def one(name: str, size: int, limit_s: float) -> list[float]:
    """Returns what one set does: microseconds to add and to ask, bytes an entry, share of false positives, size reached."""
    process = psutil.Process()
    strangers = next(chunks(ASKED, SEED + 1))
    before = process.memory_info().rss
    digests = make(name, size)
    add_s = 0.0
    held = 0
    for chunk in chunks(size, SEED):
        begun = time.process_time()
        for digest in chunk:
            digests.add(digest)
        add_s += time.process_time() - begun
        held += len(chunk)
        if add_s > limit_s:
            break
    del chunk
    memory = process.memory_info().rss - before
    begun = time.process_time()
    wrong = sum(digest in digests for digest in strangers)
    ask_s = time.process_time() - begun
    return [add_s / held * 1e6, ask_s / ASKED * 1e6, memory / held, wrong / ASKED, held]


def plot(found: dict[tuple[str, int], list[float]], path: Path) -> None:
    """Draws the times and the memory of each."""
    import matplotlib as mpl  # noqa: PLC0415  slow to import

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "bench_dedup"  # the same figures make the same file
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, all_axes = plt.subplots(1, 3, figsize=(12, 3.8))
    sizes = sorted({size for _, size in found})
    for axes, column, title in zip(all_axes, (0, 1, 2), ("µs to add one", "µs to ask for one", "bytes an entry"), strict=True):
        for number, name in enumerate(NAMES):
            places = [at + (number - 2) * 0.16 for at in range(len(sizes))]
            axes.bar(places, [found[name, size][column] for size in sizes], 0.15, label=name)
        axes.set_xticks(range(len(sizes)), [f"{size:,} URLs" for size in sizes])
        axes.set_title(title)
    figure.legend(*all_axes[0].get_legend_handles_labels(), loc="lower center", ncols=len(NAMES), frameon=False)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(path, metadata={"Date": None})


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--limit-s", type=float, default=60.0)
    parser.add_argument("--one", nargs=2, metavar=("NAME", "SIZE"), help="one set, for this script itself")
    options = parser.parse_args(argv)
    if options.one:
        print(json.dumps(one(options.one[0], int(options.one[1]), options.limit_s)))
        return 0
    found: dict[tuple[str, int], list[float]] = {}
    print("| URLs | set | add µs | ask µs | bytes an entry | false positives |\n|---|---|---|---|---|---|")
    for size in options.sizes:
        for name in NAMES:
            command = [sys.executable, __file__, "--limit-s", str(options.limit_s), "--one", name, str(size)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            add_us, ask_us, memory, wrong, held = found[name, size] = json.loads(done.stdout)
            stopped = "" if held == size else f" (left at {held:,.0f})"
            print(f"| {size:,} | {name}{stopped} | {add_us:.2f} | {ask_us:.2f} | {memory:.0f} | {wrong:.3%} |", flush=True)
    if options.plot:
        plot(found, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
