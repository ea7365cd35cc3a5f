"""Measures what Adblock modifiers and cosmetic rules cost: per request, per page, to read, to open and to hold. Prints Markdown.

All times are CPU times. The lists are those of the test data, the requests real ones with pages among them: each request's
source is asked about as a page too.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from adblock_engines import DATA, PAIR, all_lists, read_requests, request_of

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.builder import SnapshotBuilder
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.model import Request, Source
from gatewayfilter.urls import Url

HTML = {"content-type": "text/html; charset=utf-8"}
ROUNDS = 5
PAGES = 300


def main() -> int:
    """Runs the benchmark; returns the exit code."""
    if len(sys.argv) == 3 and sys.argv[1] == "--hold":
        _hold(Path(sys.argv[2]))
        return 0
    for title, lists in (("EasyList + EasyPrivacy", PAIR), ("All lists of the test data", all_lists())):
        _measure(title, [DATA / "lists" / path for path in lists])
    return 0


def _measure(title: str, lists: list[Path]) -> None:
    begin = time.process_time()
    builder = SnapshotBuilder()
    cosmetic = accepted = 0
    for path in lists:
        source = builder.add_source(Source(path.name))
        with path.open(encoding="utf-8", errors="replace") as lines:
            report = builder.add_adblock_list(source, lines)
        cosmetic += report.cosmetic
        accepted += report.accepted
    blob = builder.build()
    loaded = time.process_time() - begin
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot"
        path.write_bytes(blob)
        held = subprocess.run(
            [sys.executable, __file__, "--hold", str(path)], check=True, capture_output=True, text=True, env=os.environ
        ).stdout.split()
        opened = Snapshot.open(path)
        engine = FilterEngine(opened)
        requests = [request_of(raw) for raw in read_requests()]
        _print(title, accepted, cosmetic, loaded, held, engine, requests)


def _print(
    title: str,
    accepted: int,
    cosmetic: int,
    loaded: float,
    held: list[str],
    engine: FilterEngine,
    requests: list[Request],
) -> None:
    pages = list({request.source.text: request.source for request in requests if request.source is not None}.values())[:PAGES]
    others = [request for request in requests if request.resource_type not in {"document", "subdocument"}]
    print(f"| {title}: {accepted:,} network and {cosmetic:,} cosmetic rules | |\n|---|---|")
    print(f"| reading and compiling all of it, s | {loaded:.1f} |")
    print(f"| opening the compiled form, s | {held[0]} |")
    print(f"| memory of a process before, open, and after all requests and pages, MB | {', '.join(held[1:])} |")
    print(f"| `change_request`, µs/request | {_each(requests, engine.change_request):.2f} |")
    print(f"| `change_response` of anything but pages, µs | {_each(others, lambda one: _answer(engine, one)):.2f} |")
    cold = _each(pages, lambda page: _answer(engine, Request(page)), rounds=1)
    print(f"| `change_response` of a page of a new host, µs | {cold:.0f} |")
    print(f"| the same again | {_each(pages, lambda page: _answer(engine, Request(page))):.0f} |")
    changes = [engine.change_response(Request(page), 200, HTML) for page in pages]
    styles = [len(change.style) if change else 0 for change in changes]
    generic = max(len(change.generic_style) if change else 0 for change in changes)
    print(f"| style of a page, kB, median and largest | {statistics.median(styles) / 1e3:.1f}, {max(styles) / 1e3:.1f} |")
    print(f'| what `filter.cosmetic = "all"` adds to it, kB | {generic / 1e3:.0f} |\n')


def _answer(engine: FilterEngine, request: Request) -> object:
    return engine.change_response(request, 200, HTML, "192.0.2.1")


def _each[T: Request | Url](items: list[T], ask: Callable[[T], object], rounds: int = ROUNDS) -> float:
    """Returns the median CPU time of one question, in µs."""
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        for item in items:
            ask(item)
        times.append((time.process_time() - begin) / len(items) * 1e6)
    return statistics.median(times)


def _hold(path: Path) -> None:
    """Opens a snapshot as a worker does and prints what that takes: seconds, then MB three times."""
    before = _memory()
    begin = time.process_time()
    engine = FilterEngine(Snapshot.open(path))
    opened = time.process_time() - begin
    after_open = _memory()
    for raw in read_requests():
        request = request_of(raw)
        engine.decide(request)
        engine.change_request(request)
        _answer(engine, request)
        if request.source is not None:
            _answer(engine, Request(request.source))
    print(f"{opened:.3f} {before:.0f} {after_open:.0f} {_memory():.0f}")


def _memory() -> float:
    with Path("/proc/self/statm").open(encoding="ascii") as numbers:
        return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    sys.exit(main())
