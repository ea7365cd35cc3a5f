"""What a decision costs: 5 million synthetic list entries, EasyList and EasyPrivacy when the test data is there.

CPU time of one thread, the median of interleaved rounds. "warm" repeats the same requests, with what is known of their hosts
in the cache; "cold" begins each round with an empty cache; "new URLs" also parses and canonicalises each URL.

    python scripts/bench/bench_decision.py [--entries 5000000] [--requests 15000] [--rounds 5]
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.errors import UrlError
from gatewayfilter.model import EntryKind, ListAction, ManualRule, Request, ResourceType, Source
from gatewayfilter.urls import parse_url

SEED = 20160301
BUDGET_US = 25.0
AIM_US = 8.0
LISTED_SHARE = 0.1
"""Of the requests' hosts are put on the blacklist, as many on the whitelist."""


def test_data() -> Path | None:
    """Returns the folder of real lists and requests, `None` when it is not there."""
    folder = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
    return folder if folder.is_dir() else None


def synthetic_lines(count: int) -> list[dict[str, str]]:
    """Returns requests made up when there are no real ones."""
    types = [kind.value for kind in ResourceType]
    return [
        {
            "url": f"https://h{n % 997}.site{n % 211}.example/path/{n}/item-{n * 7}.js?n={n}",
            "source": f"https://www.site{n % 53}.example/",
            "type": types[n % 12],
        }
        for n in range(count)
    ]


def as_request(line: dict[str, str]) -> Request | None:
    """Returns the request that a line of requests.jsonl stands for, `None` when it is none."""
    try:
        return Request(
            parse_url(line["url"]),
            parse_url(line["source"]) if line.get("source") else None,
            ResourceType(line["type"]) if line["type"] in ResourceType else ResourceType.OTHER,
        )
    except UrlError:
        return None


def build(requests: Sequence[Request], entries: int, lists: Sequence[Path]) -> bytes:
    """Returns a snapshot of random digests, a tenth of the requests' hosts on each list, and the Adblock lists."""
    random = np.random.default_rng(SEED)
    hosts = sorted({request.url.host for request in requests})
    picked = random.permutation(hosts)[: int(2 * LISTED_SHARE * len(hosts))].tolist()
    builder = SnapshotBuilder(created_at=0.0)
    black = builder.add_source(Source("black", category="gambling"))
    white = builder.add_source(Source("white", ListAction.ALLOW))
    builder.add_digests(black, random.integers(0, 256, (entries * 4 // 5, 16), dtype=np.uint8))
    builder.add_digests(white, random.integers(0, 256, (entries - entries * 4 // 5, 16), dtype=np.uint8))
    builder.add_keys(black, [f".{host}" for host in picked[::2]])
    builder.add_keys(white, [f".{host}" for host in picked[1::2]])
    for path in lists:
        source = builder.add_source(Source(path.stem, category="ads"))
        with path.open(encoding="utf-8") as lines:
            builder.add_adblock_list(source, lines)
    builder.set_rules(
        [
            ManualRule(1, ListAction.BLOCK, EntryKind.DOMAIN, ".blocked.example"),
            ManualRule(2, ListAction.ALLOW, EntryKind.URL, "allowed.example/page"),
            ManualRule(3, ListAction.BLOCK, EntryKind.WILDCARD, "*.blocked-*.example/*"),
        ]
    )
    return builder.build()


def cpu_us(work: Callable[[], object], count: int) -> float:
    """Returns CPU microseconds for each of `count` items of the work."""
    start = time.process_time()
    work()
    return (time.process_time() - start) / count * 1e6


def main(argv: Sequence[str] | None = None) -> int:
    """Prints a Markdown table. Returns 0; the budget is reported, not enforced, on an unknown machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=5_000_000)
    parser.add_argument("--requests", type=int, default=15_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(argv)

    data = test_data()
    if data is None:
        print("The test data folder is not there: made-up requests, no Adblock rules.\n")
        lines, lists = synthetic_lines(options.requests), []
    else:
        with (data / "requests" / "requests.jsonl").open(encoding="utf-8") as file:
            lines = [json.loads(line) for line, _ in zip(file, range(options.requests), strict=False)]
        lists = [data / "lists" / "easylist.txt", data / "lists" / "easyprivacy.txt"]
    requests = [request for request in map(as_request, lines) if request is not None]

    start = time.process_time()
    blob = build(requests, options.entries, lists)
    build_s = time.process_time() - start
    with TemporaryDirectory() as folder:
        path = SnapshotFolder(Path(folder)).publish(blob)
        del blob
        report(requests, lines, path, options.rounds, build_s)
    return 0


def report(requests: Sequence[Request], lines: Sequence[dict[str, str]], path: Path, rounds: int, build_s: float) -> None:
    """Measures and prints."""
    opening = statistics.median(cpu_us(lambda: Snapshot.open(path, verify=False), 1) for _ in range(9)) / 1e3
    verifying = cpu_us(lambda: Snapshot.open(path, verify=True), 1) / 1e3
    snapshot = Snapshot.open(path, verify=False)
    adblock_ms = cpu_us(lambda: snapshot.adblock, 1) / 1e3
    engine = FilterEngine(snapshot)
    info = snapshot.info
    reasons = Counter(engine.decide(request).reason for request in requests).most_common()
    figures = measure(engine, requests, lines, rounds)

    print(
        f"{info.blacklist:,} black and {info.whitelist:,} white entries, {info.adblock_rules:,} Adblock rules,"
        f" {info.size_bytes / 1e6:.0f} MB; {len(requests):,} requests:"
        f" {', '.join(f'{count:,} {reason}' for reason, count in reasons)}\n"
    )
    print("| what | median | least |")
    print("|---|---|---|")
    for name, values in figures.items():
        print(f"| {name} | {statistics.median(values):.2f} µs | {min(values):.2f} µs |")
    print(f"| building the snapshot | {build_s:.1f} s | |")
    print(f"| opening it, without / with verifying | {opening:.2f} ms / {verifying:.0f} ms | |")
    print(f"| opening its Adblock rules | {adblock_ms:.0f} ms | |")
    print(f"\nBudget for a decision: {BUDGET_US:.0f} µs, aim {AIM_US:.0f} µs.")


def measure(
    engine: FilterEngine, requests: Sequence[Request], lines: Sequence[dict[str, str]], rounds: int
) -> dict[str, list[float]]:
    """Returns for each way of deciding the CPU microseconds a request, one figure a round; the ways take turns."""
    adblock = engine.snapshot.adblock

    def warm() -> None:
        for request in requests:
            engine.decide(request)

    def cold() -> None:
        engine.swap(engine.snapshot)  # the caches go with the old state
        warm()

    def new_urls() -> None:
        for request in map(as_request, lines):
            if request is not None:
                engine.decide(request)

    ways: dict[str, Callable[[], object]] = {
        "decision, warm": warm,
        "decision, cold host cache": cold,
        "parsing URL and source + decision, warm": new_urls,
        "parsing URL and source alone": lambda: [as_request(line) for line in lines],
        "Adblock match alone, warm": lambda: [adblock.match(request) for request in requests],
    }
    figures: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, work in ways.items():
            figures[way].append(cpu_us(work, len(requests)))
    return figures


if __name__ == "__main__":
    sys.exit(main())
