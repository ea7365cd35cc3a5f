"""Publishing: millions of domains from text, then changes that the next snapshot follows from without reading the lists again.

    python scripts/bench/bench_publish.py [--domains 5000000] [--learned 100000]

Each publication runs in a process of its own, as the learner starts it; its wall time, CPU time and peak memory are printed as a
Markdown table. The list is a plain text file of made-up domains, taken in by `source add`. "Of the lists" is what was there
already and is neither parsed, hashed nor placed again.
"""

import argparse
import multiprocessing
import random
import resource
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.queues import Queue
from pathlib import Path
from tempfile import TemporaryDirectory

from gatewayfilter.config import SourceSettings, bundled_folder
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.model import EntryKind, LearnedEntry, ListAction
from gatewayfilter.sources import Subscriptions
from gatewayfilter.sources.publish import PublishReport, publish
from gatewayfilter.store import Store
from gatewayfilter.urls import digest_of

SEED = 20160301
SPAWN = multiprocessing.get_context("spawn")
WORDS = ("play", "casino", "track", "ads", "shop", "news", "mail", "cdn", "img", "win", "bet", "free", "live", "data", "my", "go")
ENDINGS = ("com", "net", "org", "info", "xyz", "top", "de", "ru", "cn", "io")


@dataclass(frozen=True, slots=True)
class Cost:
    """What a publication took: seconds, and the process's peak memory in MB."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    report: PublishReport


def write_domains(path: Path, count: int) -> None:
    """Writes different made-up domains, one a line."""
    source = random.Random(SEED)
    with path.open("w") as file:
        for number in range(count):
            first, second = source.choice(WORDS), source.choice(WORDS)
            file.write(f"{first}{number:x}-{second}{source.randrange(1000)}.{source.choice(ENDINGS)}\n")


def subscriptions(state: Path) -> Subscriptions:
    """Returns the subscriptions of a state folder; a list may be large."""
    bundled = state / "bundled"  # a copy: an edit of the starter lists meanwhile would have all lists read again
    if not bundled.exists():
        shutil.copytree(bundled_folder(), bundled)
    return Subscriptions(state / "sources", SourceSettings(max_bytes=2_000_000_000), bundled)


def open_store(state: Path) -> Store:
    """Returns the database of a state folder."""
    return Store.open(f"sqlite:///{state}/gatewayfilter.sqlite3")


def _publish(state: Path, queue: "Queue[Cost]") -> None:
    store = open_store(state)
    lists = subscriptions(state)
    wall, cpu = time.perf_counter(), time.process_time()
    report = publish(SnapshotFolder(state / "snapshots"), lists, store.lists, store.feed)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    store.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    queue.put(Cost(wall, cpu, peak, report))


def published(state: Path) -> Cost:
    """Publishes in a process of its own."""
    queue: Queue[Cost] = SPAWN.Queue()
    process = SPAWN.Process(target=_publish, args=(state, queue))
    process.start()
    cost = queue.get()
    process.join()
    return cost


def learned(number: int) -> LearnedEntry:
    """Returns an entry as the learner makes it."""
    key = f"site{number % 20_000}.example/page/{number}"
    detail = "score 42.0 (limit 20.0): casino, betting, roulette"
    return LearnedEntry(key, ListAction.BLOCK, "gambling", f"http://{key}", detail, 0.0, 4e9)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a Markdown table. Returns 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domains", type=int, default=5_000_000)
    parser.add_argument("--learned", type=int, default=100_000)
    options = parser.parse_args(argv)
    with TemporaryDirectory(prefix="bench-publish-") as folder:
        state = Path(folder)
        text = state / "domains.txt"
        write_domains(text, options.domains)
        subscriptions(state).add(str(text), name="domains", category="gambling")
        store = open_store(state)
        keys = [learned(number).key for number in range(options.learned)]
        few = keys[:10]
        steps: list[tuple[str, Callable[[], object]]] = [
            (f"{options.domains:,} domains from text, everything rebuilt", lambda: None),
            ("a person's rule comes", lambda: store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, ".x.example")),
            (f"{len(keys):,} learned entries come", lambda: store.lists.put_learned([learned(n) for n in range(len(keys))])),
            ("10 learned entries go", lambda: store.lists.remove_learned(few)),
            (f"{len(keys) - 10:,} learned entries go", lambda: store.lists.remove_learned(keys[10:])),
        ]
        print("| published | wall s | CPU s | peak MB | file MB |\n|---|---|---|---|---|")
        for number, (name, change) in enumerate(steps):
            change()
            cost = published(state)
            assert bool(cost.report.rebuilt) is (number == 0), cost.report.rebuilt
            size = cost.report.size_bytes / 1e6
            print(f"| {name} | {cost.wall_s:.2f} | {cost.cpu_s:.2f} | {cost.peak_mb:,.0f} | {size:.0f} |", flush=True)
        snapshot, refused = SnapshotFolder(state / "snapshots").open_newest()
        assert not refused
        assert all(snapshot.blacklist.find(digest_of(key)) is None for key in keys)
        print(
            f"\n{snapshot.info.blacklist:,} entries of the lists stayed; {snapshot.blacklist.unused:.1%} of the slots are unused."
        )
        snapshot.close()
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
