"""Exact and approximate sets of 16-byte digests, side by side: memory, building, opening, looking up.

CPU time of one thread; the look-ups of all structures take turns and the median round counts. Digests that are asked for at
random miss the processor's caches, as most requests do; "again" asks for 200 of them over and over. Then the paper's own
experiment: comparisons in its bitmap hash table against a chained one.

    python scripts/bench/bench_tables.py [--full] [--rounds 5] [--plots docs/images]
"""

import argparse
import gc
import mmap
import random
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pybloom_live import BloomFilter as PybloomFilter
from rbloom import Bloom

from gatewayfilter.engine.tables.bitmap_table import BitmapTable, build_table
from gatewayfilter.engine.tables.bloom import BloomAnswer, BloomFilter, build_bloom
from gatewayfilter.engine.tables.counting_bloom import CountingBloom

SEED = 20160301
ERROR_RATE = 0.001
LOOK_UPS = 20_000
SIZES = (10_000, 100_000, 1_000_000, 5_000_000)
LARGEST = 10_000_000
LARGEST_FOR_SLOW_PEERS = 1_000_000
"""pybloom-live takes 6 µs and SQLite 3 µs to add a digest: no need to wait for millions of them."""
REPEATED = 200
"""Digests that are asked for over and over, so that they stay in the processor's caches."""

type Digests = NDArray[np.uint8]


@dataclass(slots=True)
class Built:
    """A structure that holds the digests.

    Attributes:
        contains: one look-up of a digest.
        size: bytes, estimated where the structure does not say.
        build_s, open_ms: CPU time; opening is `None` for what lives in memory only.
        many: looks up all rows at once, where it can.
    """

    name: str
    contains: Callable[[bytes], object]
    size: float
    build_s: float
    open_ms: float | None = None
    many: Callable[[Digests], object] | None = None


def timed[T](work: Callable[[], T]) -> tuple[T, float]:
    """Returns what the work returns, and its CPU seconds."""
    gc.collect()
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def mapped(path: Path) -> mmap.mmap:
    """Maps a file for reading."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def our_structures(digests: Digests, folder: Path) -> list[Built]:
    """Returns the bitmap table and the Bloom filter, mapped from files."""
    numbers = np.zeros(len(digests), dtype=np.uint32)
    built: list[Built] = []
    section, build_s = timed(lambda: build_table(digests, numbers))
    path = folder / "table"
    path.write_bytes(section)
    table, open_s = timed(lambda: BitmapTable(mapped(path), 0, path.stat().st_size))
    built.append(Built("bitmap table (mapped)", table.find, len(section), build_s, open_s * 1e3, table.find_many))
    section, build_s = timed(lambda: build_bloom(digests, ERROR_RATE))
    path = folder / "bloom"
    path.write_bytes(section)
    bloom, open_s = timed(lambda: BloomFilter(mapped(path), 0, path.stat().st_size))
    built.append(Built("Bloom gate (mapped)", bloom.ask, len(section), build_s, open_s * 1e3, bloom.ask_many))
    assert all(bloom.ask(row.tobytes()) is BloomAnswer.MAYBE for row in digests[:100])
    counting, build_s = timed(lambda: filled_counting(digests))
    built.append(Built("counting Bloom, 4 bits", counting.ask, counting.counters.nbytes, build_s, None, counting.ask_many))
    return built


def filled_counting(digests: Digests) -> CountingBloom:
    """Returns the publisher's counting filter."""
    counting = CountingBloom.for_digests(len(digests), ERROR_RATE)
    counting.add(digests)
    return counting


def peers(digests: Digests, rows: Sequence[bytes], folder: Path) -> list[Built]:
    """Returns what others would use."""
    held, build_s = timed(lambda: set(rows))
    size = float(sys.getsizeof(held) + len(rows) * sys.getsizeof(rows[0]))
    built = [Built("Python set", held.__contains__, size, build_s), sorted_array(digests), text_rules(len(rows), folder)]
    bloom, build_s = timed(lambda: filled_rbloom(rows))
    built.append(Built("rbloom", bloom.__contains__, bloom.size_in_bits / 8, build_s))
    if len(rows) <= LARGEST_FOR_SLOW_PEERS:
        slow, build_s = timed(lambda: filled_pybloom(rows))
        built.append(Built("pybloom-live", slow.__contains__, slow.num_bits / 8, build_s))
        built.append(sqlite_table(rows, folder / "digests.sqlite3"))
    return built


def sorted_array(digests: Digests) -> Built:
    """Returns a sorted array of first halves with the second halves beside it."""

    def build() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        halves = digests.view("<u8").reshape(-1, 2)
        order = np.argsort(halves[:, 0])
        return halves[order, 0], halves[order, 1]

    (first, second), build_s = timed(build)

    def contains(digest: bytes) -> bool:
        wanted = np.frombuffer(digest, dtype="<u8")
        place = first.searchsorted(wanted[0])
        return bool(place < len(first) and first[place] == wanted[0] and second[place] == wanted[1])

    def many(asked: Digests) -> object:
        wanted = asked.view("<u8").reshape(-1, 2)
        place = np.minimum(first.searchsorted(wanted[:, 0]), len(first) - 1)
        return (first[place] == wanted[:, 0]) & (second[place] == wanted[:, 1])

    return Built("numpy, sorted", contains, float(first.nbytes + second.nbytes), build_s, None, many)


def text_rules(count: int, folder: Path) -> Built:
    """Returns what engines of text rules make at every start: the list, read line by line into a dictionary of hosts.

    It is asked for hosts and needs no digest; those asked for are cut from the digest's hexadecimal form, so that they differ.
    """
    path = folder / "list.txt"
    source = np.random.default_rng(SEED).integers(0, 256, (count, 16), dtype=np.uint8)
    with path.open("w") as file:
        file.writelines(f"||{row.tobytes().hex()}.example^\n" for row in source)

    def load() -> dict[str, int]:
        rules: dict[str, int] = {}
        with path.open() as file:
            for number, line in enumerate(file):
                text = line.strip()
                if text.startswith("||") and text.endswith("^"):
                    rules[text[2:-1].lower()] = number
        return rules

    rules, load_s = timed(load)
    size = sys.getsizeof(rules) + sum(map(sys.getsizeof, rules)) + 32 * count

    def contains(digest: bytes) -> bool:
        return f"{digest.hex()}.example" in rules

    return Built("text rules in a dict", contains, float(size), load_s, load_s * 1e3)


def filled_rbloom(rows: Sequence[bytes]) -> Bloom:
    """Returns an rbloom filter that takes the digest's own bits as the hash."""
    bloom = Bloom(len(rows), ERROR_RATE, lambda digest: int.from_bytes(digest, "little", signed=True))
    bloom.update(rows)
    return bloom


def filled_pybloom(rows: Sequence[bytes]) -> PybloomFilter:
    """Returns a pybloom-live filter."""
    bloom = PybloomFilter(len(rows), ERROR_RATE)
    for row in rows:
        bloom.add(row)
    return bloom


def sqlite_table(rows: Sequence[bytes], path: Path) -> Built:
    """Returns a WITHOUT ROWID table on disk."""
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)

    def fill() -> None:
        database.execute("CREATE TABLE digests (digest BLOB PRIMARY KEY) WITHOUT ROWID")
        database.executemany("INSERT INTO digests VALUES (?)", ((row,) for row in sorted(rows)))
        database.commit()

    _, build_s = timed(fill)
    ask = "SELECT 1 FROM digests WHERE digest = ?"
    _, open_s = timed(lambda: sqlite3.connect(path).execute(ask, (rows[0],)).fetchone())

    def contains(digest: bytes) -> object:
        return database.execute(ask, (digest,)).fetchone()

    return Built("SQLite", contains, float(path.stat().st_size), build_s, open_s * 1e3)


def look_up_us(built: Sequence[Built], asked: Sequence[bytes], rounds: int) -> list[float]:
    """Returns CPU microseconds a look-up for each structure; they take turns, the median round counts."""
    figures: list[list[float]] = [[] for _ in built]
    for _ in range(rounds):
        for figure, one in zip(figures, built, strict=True):
            contains = one.contains
            start = time.process_time()
            for digest in asked:
                contains(digest)
            figure.append((time.process_time() - start) / len(asked) * 1e6)
    return [statistics.median(figure) for figure in figures]


def bulk_us(many: Callable[[Digests], object], asked: Digests, rounds: int) -> float:
    """Returns CPU microseconds a digest when all are asked for at once."""
    return statistics.median(timed(lambda: many(asked))[1] for _ in range(rounds)) / len(asked) * 1e6


def compare(count: int, rounds: int, largest_peer: int) -> dict[str, tuple[float, float, float]]:
    """Prints the rows of the table for one size. Returns CPU µs of a hit, a miss and a hit that is asked for again."""
    source = np.random.default_rng(SEED)
    digests = source.integers(0, 256, (count, 16), dtype=np.uint8)
    strangers = source.integers(0, 256, (LOOK_UPS, 16), dtype=np.uint8)
    rows = [row.tobytes() for row in digests]
    # Made anew, as a digest is when a request comes: where those lie that were put in is not what is measured.
    hits = [bytes(bytearray(row)) for row in random.Random(SEED).choices(rows, k=LOOK_UPS)]
    misses = [row.tobytes() for row in strangers]
    with TemporaryDirectory() as folder:
        built = our_structures(digests, Path(folder))
        if count <= largest_peer:
            built += peers(digests, rows, Path(folder))
        hit_us, miss_us = look_up_us(built, hits, rounds), look_up_us(built, misses, rounds)
        again_us = look_up_us(built, hits[:REPEATED] * (LOOK_UPS // REPEATED), rounds)
        figures: dict[str, tuple[float, float, float]] = {}
        for one, hit, miss, again in zip(built, hit_us, miss_us, again_us, strict=True):
            figures[one.name] = (hit, miss, again)
            many = "" if one.many is None else f"{bulk_us(one.many, strangers, rounds):.2f}"
            opened = "" if one.open_ms is None else f"{one.open_ms:.2f}"
            print(
                f"| {count:,} | {one.name} | {one.size / count:.1f} | {one.build_s / count * 1e6:.2f} | {opened}"
                f" | {hit:.2f} | {miss:.2f} | {again:.2f} | {many} |"
            )
    return figures


class GrowingBitmapTable:
    """The paper's bitmap hash table, which grows as digests come in, with its comparisons counted.

    Source: [url-filter, bitmap hash table].
    """

    def __init__(self, buckets: int, slots: int, width: int, list_growth: float) -> None:
        self._buckets: list[list[bytes | None]] = [[None] * slots for _ in range(buckets)]
        self._bitmaps = [0] * buckets
        self._width = width
        self._growth = list_growth
        self.comparisons = 0

    def _place(self, digest: bytes) -> tuple[int, int]:
        first, second = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")
        return first % len(self._buckets), second % self._width

    def insert(self, digest: bytes) -> None:
        """Writes the digest to its slot, or to the first empty one after it; a full array grows."""
        number, slot = self._place(digest)
        bucket = self._buckets[number]
        if self._bitmaps[number] >> slot & 1:
            while slot < len(bucket) and bucket[slot] is not None:
                slot += 1
            if slot == len(bucket):
                bucket += [None] * max(1, round(len(bucket) * (self._growth - 1)))
        bucket[slot] = digest
        if slot < self._width:
            self._bitmaps[number] |= 1 << slot

    def find(self, digest: bytes) -> bool:
        """Walks from the digest's slot to it, or to the first empty one."""
        number, slot = self._place(digest)
        if not self._bitmaps[number] >> slot & 1:
            return False
        bucket = self._buckets[number]
        for place in range(slot, len(bucket)):
            held = bucket[place]
            if held is None:
                return False
            self.comparisons += 1
            if held == digest:
                return True
        return False


class ChainedTable:
    """A plain hash table: a chain for each bucket, with its comparisons counted."""

    def __init__(self, buckets: int) -> None:
        self._buckets: list[list[bytes]] = [[] for _ in range(buckets)]
        self.comparisons = 0

    def _chain(self, digest: bytes) -> list[bytes]:
        return self._buckets[int.from_bytes(digest[:8], "little") % len(self._buckets)]

    def insert(self, digest: bytes) -> None:
        """Appends to the bucket's chain."""
        self._chain(digest).append(digest)

    def find(self, digest: bytes) -> bool:
        """Walks the chain from its beginning."""
        for held in self._chain(digest):
            self.comparisons += 1
            if held == digest:
                return True
        return False


def paper_experiment() -> list[tuple[str, int, float]]:
    """Prints comparisons and time of the paper's experiment: 10,000 black and 10,000 white URLs, 100 buckets in each table.

    Returns for each table its name, comparisons and CPU milliseconds.
    """
    black, white, unknown = (
        [md5(f"http://{name}{number}.example/".encode(), usedforsecurity=False).digest() for number in range(10_000)]
        for name in ("black", "white", "unknown")
    )
    kinds: dict[str, Callable[[], GrowingBitmapTable | ChainedTable]] = {
        "chained": lambda: ChainedTable(100),
        "bitmap, w = p = 128": lambda: GrowingBitmapTable(100, slots=128, width=128, list_growth=1.5),
        "bitmap, w = p = 256": lambda: GrowingBitmapTable(100, slots=256, width=256, list_growth=1.5),
    }
    print("\n10,000 black and 10,000 white URLs in 100 buckets a table; 30,000 URLs filtered, blacklist first [url-filter]:\n")
    print("| table | comparisons | a URL | CPU ms |")
    print("|---|---|---|---|")
    results: list[tuple[str, int, float]] = []
    for name, make in kinds.items():
        blacklist, whitelist = make(), make()
        for table, listed in ((blacklist, black), (whitelist, white)):
            for digest in listed:
                table.insert(digest)
        start = time.process_time()
        found = [blacklist.find(digest) or whitelist.find(digest) for digest in (*black, *white, *unknown)]
        spent = time.process_time() - start
        assert found == [True] * 20_000 + [False] * 10_000
        comparisons = blacklist.comparisons + whitelist.comparisons
        print(f"| {name} | {comparisons:,} | {comparisons / len(found):.1f} | {spent * 1e3:.0f} |")
        results.append((name, comparisons, spent * 1e3))
    return results


def plot_look_ups(figures: Mapping[int, Mapping[str, tuple[float, float, float]]], path: Path) -> None:
    """Draws the cost of a look-up over the number of entries."""
    from matplotlib import pyplot as plt  # noqa: PLC0415  only who asks for plots needs it

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    sizes = list(figures)
    for name, kind, style, label in (
        ("bitmap table (mapped)", 0, "o-", "bitmap table, at random"),
        ("bitmap table (mapped)", 2, "o--", "bitmap table, again"),
        ("Bloom gate (mapped)", 1, "s-", "Bloom gate, a miss"),
        ("Python set", 0, "^:", "Python set, at random"),
        ("rbloom", 0, "x:", "rbloom, at random"),
    ):
        known = [(size, figures[size][name][kind]) for size in sizes if name in figures[size]]
        axes.plot(*zip(*known, strict=True), style, label=label)
    axes.set(xscale="log", xlabel="entries", ylabel="CPU µs a look-up", ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend()
    _save(figure, path)


def plot_paper(results: Sequence[tuple[str, int, float]], path: Path) -> None:
    """Draws comparisons and time of the paper's experiment."""
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    names = [name.replace(", ", ",\n") for name, _, _ in results]
    left.bar(names, [comparisons / 30_000 for _, comparisons, _ in results], color=["#999", "#36c", "#36c"])
    left.set(title="comparisons a URL")
    right.bar(names, [spent for _, _, spent in results], color=["#999", "#36c", "#36c"])
    right.set(title="CPU ms for 30,000 URLs")
    for axes in (left, right):
        axes.bar_label(axes.containers[0], fmt="%.3g")
        axes.margins(y=0.15)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    """Writes an SVG that is the same for the same figures."""
    from matplotlib import rcParams  # noqa: PLC0415

    rcParams["svg.hashsalt"] = path.stem
    figure.savefig(path, metadata={"Date": None})


def main(argv: Sequence[str] | None = None) -> int:
    """Prints Markdown tables, and draws plots when asked to. Returns 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help=f"also {LARGEST:,} digests (5 GB of memory for the peers)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", type=int, default=LARGEST, help="most digests for which the peers are built")
    parser.add_argument("--plots", type=Path, help="folder for the plots (wants matplotlib)")
    options = parser.parse_args(argv)
    print("| digests | structure | bytes each | build µs each | open ms | hit µs | miss µs | hit again µs | in bulk µs |")
    print("|---|---|---|---|---|---|---|---|---|")
    figures: dict[int, dict[str, tuple[float, float, float]]] = {}
    for count in (*SIZES, LARGEST) if options.full else SIZES:
        figures[count] = compare(count, options.rounds, options.peers)
        gc.collect()
    results = paper_experiment()
    if options.plots:
        plot_look_ups(figures, options.plots / "look-up-cost.svg")
        plot_paper(results, options.plots / "paper-comparisons.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
