"""Measures the Adblock engine beside adblock-rust (`adblock` 0.6.0) in one process, and the paper's scheme; prints Markdown.

Times are CPU times. Runs of the two engines alternate, so that a busy machine burdens both; ratios are of medians.
"""

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import adblock

from gatewayfilter.engine.adblock import AdblockBuilder, AdblockMatcher
from gatewayfilter.engine.adblock.paper_scheme import PaperScheme
from gatewayfilter.errors import UrlError
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import Url, parse_url

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or ROOT.parent / "shared" / "data")
PAIR = ("easylist.txt", "easyprivacy.txt")
PAPER_KS = (4, 5, 6, 7, 8, 9, 10, 12)

type Raw = tuple[str, str, str]
"""URL, source, type, as the other engine takes them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmark; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=7, help="alternating runs of each engine")
    parser.add_argument("--skip-paper", action="store_true", help="leave out the table of the paper's scheme")
    parser.add_argument("--memory-of", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.memory_of:
        return _report_memory(Path(options.memory_of))
    if not (DATA / "requests" / "requests.jsonl").is_file():
        print("no data: set GATEWAYFILTER_TEST_DATA to the folder with lists/ and requests/", file=sys.stderr)
        return 2
    raw = _read_requests()
    blob = _print_loading(PAIR, "EasyList + EasyPrivacy")
    _print_matching(PAIR, "EasyList + EasyPrivacy", blob, raw, options.rounds)
    everything = tuple(str(path.relative_to(DATA / "lists")) for path in sorted((DATA / "lists").rglob("*.txt")))
    all_blob = _print_loading(everything, "All lists")
    _print_matching(everything, "All lists", all_blob, raw, options.rounds)
    if not options.skip_paper:
        _print_paper(blob, raw)
    return 0


def _read_requests() -> list[Raw]:
    with (DATA / "requests" / "requests.jsonl").open(encoding="utf-8") as lines:
        return [(case["url"], case["source"], case["type"]) for case in map(json.loads, lines)]


def _page_of(text: str) -> Url | None:
    try:
        return parse_url(text)
    except UrlError:
        return None


def _request_of(case: Raw) -> Request:
    return Request(parse_url(case[0]), _page_of(case[1]), ResourceType(case[2]))


def _seconds(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def _rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _other_engine(names: Sequence[str]) -> adblock.Engine:
    filters = adblock.FilterSet()
    for name in names:
        filters.add_filter_list((DATA / "lists" / name).read_text(encoding="utf-8", errors="replace"))
    return adblock.Engine(filter_set=filters)


def _compile(names: Sequence[str]) -> bytes:
    builder = AdblockBuilder()
    for source, name in enumerate(names):
        with (DATA / "lists" / name).open(encoding="utf-8", errors="replace") as lines:
            builder.add_list(source, lines)
    return builder.build()


def _print_loading(names: Sequence[str], title: str) -> bytes:
    """Prints load times and memory; returns the compiled form."""
    found: list[bytes] = []
    text_s = _seconds(lambda: found.append(_compile(names)))
    blob = found[0]
    other_s = _seconds(lambda: _other_engine(names))
    open_s = statistics.median(_seconds(lambda: AdblockMatcher(blob)) for _ in range(5))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rules"
        file.write_bytes(blob)
        command = [sys.executable, __file__, "--memory-of", str(file)]
        memory = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    print(f"\n### {title}: loading\n")
    print("| | CPU s |\n|---|---|")
    size = f"{AdblockMatcher(blob).rule_count:,} network rules, {len(blob) / 1e6:.1f} MB"
    print(f"| from text to the compiled form ({size}) | {text_s:.2f} |")
    print(f"| opening the compiled form | {open_s:.3f} |")
    print(f"| adblock 0.6.0, from text | {other_s:.2f} |")
    print(f"\nMemory of a process of its own: {memory}.")
    return blob


def _report_memory(file: Path) -> int:
    before = _rss_mb()
    matcher = AdblockMatcher(file.read_bytes())
    opened = _rss_mb()
    for case in _read_requests():
        matcher.match(_request_of(case))
    print(f"{before:.0f} MB before, {opened:.0f} MB opened, {_rss_mb():.0f} MB after {len(_read_requests()):,} requests")
    return 0


def _print_matching(names: Sequence[str], title: str, blob: bytes, raw: list[Raw], rounds: int) -> None:
    engine = _other_engine(names)
    check = engine.check_network_urls
    matcher = AdblockMatcher(blob)
    build = [_seconds(lambda: [_request_of(case) for case in raw]) for _ in range(3)]
    requests = [_request_of(case) for case in raw]
    cold_other = _seconds(lambda: [check(*case) for case in raw])
    cold_ours = _seconds(lambda: [matcher.match(request) for request in requests])
    ours: list[float] = []
    other: list[float] = []
    for _ in range(rounds):
        other.append(_seconds(lambda: [check(*case) for case in raw]))
        ours.append(_seconds(lambda: [matcher.match(request) for request in requests]))
    per = 1e6 / len(raw)
    ratios = [theirs / mine for theirs, mine in zip(other, ours, strict=True)]
    mine, theirs = statistics.median(ours), statistics.median(other)
    print(f"\n### {title}: matching {len(raw):,} real requests\n")
    print("| CPU µs/request | adblock 0.6.0 | ours | ratio |\n|---|---|---|---|")
    spread = f"{theirs / mine:.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
    print(f"| warm (median of {rounds}) | {theirs * per:.2f} | {mine * per:.2f} | {spread} |")
    print(f"| first pass after opening | {cold_other * per:.2f} | {cold_ours * per:.2f} | {cold_other / cold_ours:.2f} |")
    print(f"\nMaking a `Request` (URL and source parsed, once for all deciders) takes {statistics.median(build) * per:.2f} µs")
    print("beside; adblock parses its URLs within its figure.")
    if tuple(names) == PAIR:
        _print_agreement(matcher)


def _print_agreement(matcher: AdblockMatcher) -> None:
    total = equal = 0
    with (DATA / "requests" / "consensus.jsonl").open(encoding="utf-8") as lines:
        for case in map(json.loads, lines):
            match = matcher.match(_request_of((case["url"], case["source"], case["type"])))
            total += 1
            equal += (match is not None and not match.exception) is (case["expected"] == "block")
    print(f"\nEqual to the consensus of three engines: {equal:,} of {total:,} ({equal / total:.3%}).")


def _print_paper(blob: bytes, raw: list[Raw]) -> None:
    """Prints the counterpart of Table 4 of the paper, with k swept."""
    requests = [_request_of(case) for case in raw[:: max(1, len(raw) // 1_500)]]
    per = 1e6 / len(requests)
    print(f"\n### The paper's scheme, EasyList + EasyPrivacy, {len(requests):,} requests\n")
    print("| k | hash table alone, µs | hash table + automaton, µs | gain | opening s (alone / both) |\n|---|---|---|---|---|")
    schemes: dict[str, AdblockMatcher] = {"default": AdblockMatcher(blob)}
    opening: dict[str, float] = {"default": _seconds(lambda: AdblockMatcher(blob))}
    for k in PAPER_KS:
        costs = []
        opens = []
        for use_automaton in (False, True):
            made: list[PaperScheme] = []
            opens.append(_seconds(lambda made=made, k=k, use=use_automaton: made.append(PaperScheme(blob, k, use_automaton=use))))
            scheme = made[0]
            for request in requests:
                scheme.match(request)
            costs.append(min(_seconds(lambda scheme=scheme: [scheme.match(request) for request in requests]) for _ in range(2)))
            if k == 8:
                name = "hash table + automaton" if use_automaton else "hash table alone"
                schemes[name], opening[name] = scheme, opens[-1]
        gain = 1 - costs[1] / costs[0]
        print(f"| {k} | {costs[0] * per:.1f} | {costs[1] * per:.1f} | {gain:.0%} | {opens[0]:.1f} / {opens[1]:.1f} |")
    print("\nGrowth with the input at k = 8, CPU s, opening included:\n")
    sizes = (250, 1_000, 4_000, 16_000)
    print("| requests | " + " | ".join(f"{size:,}" for size in sizes) + " |\n|---|" + "---|" * len(sizes))
    for name, scheme in schemes.items():
        for request in requests:
            scheme.match(request)
        each = _seconds(lambda scheme=scheme: [scheme.match(request) for request in requests]) / len(requests)
        print(f"| {name} | " + " | ".join(f"{opening[name] + size * each:.2f}" for size in sizes) + " |")


if __name__ == "__main__":
    sys.exit(main())
