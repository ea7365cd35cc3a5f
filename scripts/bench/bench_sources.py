"""Taking in a list: read, recognised, counted, and searched, beside the plainest thing that Python can do with its lines.

    python scripts/bench/bench_sources.py [--lines 1000000] [--formats hosts domains dnsmasq urls rpz adblock]

Each figure comes from a process of its own: `source add` of a file with so many different entries, then `list search` for a host
in the middle of it. The peer reads the same file into a set, line by line, without looking at what a line says.
"""

import argparse
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from multiprocessing.queues import Queue
from pathlib import Path
from tempfile import TemporaryDirectory

from gatewayfilter.config import SourceSettings, bundled_folder
from gatewayfilter.sources import Subscriptions
from gatewayfilter.sources.search import lines_about
from gatewayfilter.urls import parse_loose_url

SPAWN = multiprocessing.get_context("spawn")
LINES: dict[str, str] = {
    "hosts": "0.0.0.0 ads{0:x}.site{1}.com\n",
    "domains": "ads{0:x}.site{1}.com\n",
    "dnsmasq": "address=/ads{0:x}.site{1}.com/0.0.0.0\n",
    "urls": "http://ads{0:x}.site{1}.com/page?x={0}\n",
    "rpz": "ads{0:x}.site{1}.com CNAME .\n",
    "adblock": "||ads{0:x}.site{1}.com^$third-party\n",
}


def measured(work: Callable[[], object]) -> tuple[float, float]:
    """Returns the CPU seconds of a call and the process's peak memory in MB afterwards."""
    started = time.process_time()
    work()
    return time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def take_in(path: Path, folder: Path, host: str, answer: "Queue[tuple[float, float, float]]") -> None:
    """Adds the source, then searches it."""
    subscriptions = Subscriptions(folder, SourceSettings(max_bytes=4_000_000_000), bundled_folder())
    seconds, megabytes = measured(lambda: subscriptions.add(str(path), name="list"))
    (item,) = [item for item in subscriptions.files() if item.source.name == "list"]
    found: list[object] = []
    searching, _ = measured(lambda: found.extend(lines_about(item, parse_loose_url(host))))
    assert found or path.suffix == ".adblock"
    answer.put((seconds, megabytes, searching))


def read_into_set(path: Path, answer: "Queue[tuple[float, float, float]]") -> None:
    """The peer."""

    def read() -> None:
        with path.open(encoding="utf-8") as file:
            kept = {line.strip() for line in file}
        assert kept

    answer.put((*measured(read), 0.0))


def in_a_process(work: Callable[..., None], *arguments: object) -> tuple[float, float, float]:
    """Runs the work in a process of its own."""
    answer = SPAWN.Queue()
    child = SPAWN.Process(target=work, args=(*arguments, answer))
    child.start()
    result: tuple[float, float, float] = answer.get()
    child.join()
    return result


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--formats", nargs="+", choices=LINES, default=list(LINES))
    chosen = parser.parse_args()
    print(f"\n| {chosen.lines:,} lines | CPU s | µs/line | peak MB | search CPU s | lines into a set: CPU s | peak MB |")
    print("|---|---|---|---|---|---|---|")
    for name in chosen.formats:
        with TemporaryDirectory(prefix="gatewayfilter-bench-") as work:
            path = Path(work) / f"list.{name}"
            with path.open("w", encoding="utf-8") as file:
                file.writelines(LINES[name].format(number, number % 50_000) for number in range(chosen.lines))
            middle = chosen.lines // 2
            host = LINES["urls"].format(middle, middle % 50_000).strip()
            peer = in_a_process(read_into_set, path)
            ours = in_a_process(take_in, path, Path(work) / "sources", host)
            row = (f"{ours[0]:.1f}", f"{ours[0] / chosen.lines * 1e6:.2f}", f"{ours[1]:,.0f}", f"{ours[2]:.2f}")
            print(f"| `{name}` | {' | '.join(row)} | {peer[0]:.1f} | {peer[1]:,.0f} |")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
