"""Measures the Adblock engine beside adblock-rust (native, and `adblock` 0.6.0), ubo-core and ghostery; prints Markdown.

Times are CPU times. The engines take turns, round by round, so that a busy machine burdens all of them; ratios are of the
rounds that were neighbours. Those for Node run in processes of their own and measure their own CPU time (adblock_peers.py).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from adblock_compiled import compiled_peer
from adblock_engines import (
    DATA,
    PAIR,
    REQUESTS,
    AdblockRust,
    Ours,
    Raw,
    all_lists,
    compile_lists,
    cpu_seconds,
    each_request,
    median_us,
    read_requests,
    request_of,
    request_of_strings,
    rss_mb,
    with_new_hosts,
)
from adblock_peers import CRATE_VERSION, Peer, native_peer, node_peers

from gatewayfilter.engine.adblock.index.covering_names import host_names
from gatewayfilter.engine.adblock.index.literal_scan import VARIABLE, available_scanners
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.model import Request
from gatewayfilter.urls import registrable_domain

OURS = "**ours**"
OURS_PREPARED = "**ours**, requests prepared"
PREPARED = "requests prepared"
RUST = "adblock 0.6.0"
NATIVE = f"adblock {CRATE_VERSION}, native"


class Engine(Protocol):
    """What takes part."""

    def round(self) -> float:
        """Returns the CPU seconds of one pass over all requests."""
        ...

    def verdicts(self) -> list[int]:
        """Returns for each request whether it is blocked."""
        ...


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmark; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each engine")
    parser.add_argument("--skip-all-lists", action="store_true", help="EasyList and EasyPrivacy alone")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        return _child(options.child[0], options.child[1:])
    if not REQUESTS.is_file():
        print("no data: set GATEWAYFILTER_TEST_DATA to the folder with lists/ and requests/", file=sys.stderr)
        return 2
    _measure("EasyList + EasyPrivacy", PAIR, options.rounds)
    if not options.skip_all_lists:
        names = all_lists()
        _measure(f"All {len(names)} lists", names, options.rounds)
    return 0


def _measure(title: str, names: Sequence[str], rounds: int) -> None:
    with ExitStack() as stack:
        blob = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "rules"
        text = _in_child("text", str(blob), *names)
        peers = stack.enter_context(node_peers(names))
        native = stack.enter_context(native_peer(names))
        if isinstance(native, str):
            print(f"\nWithout the native crate: {native}.")
        else:
            peers[NATIVE] = native
        command = stack.enter_context(compiled_peer(blob))
        if isinstance(command, str):
            print(f"\nWithout the matcher compiled by mypyc: {command}.")
        rust = _in_child("rust", *names)
        opened = _in_child("open", str(blob)) | _in_child("memory", str(blob))
        _print_loading(title, blob, text, opened, rust, peers)
        compiled = None if isinstance(command, str) else stack.enter_context(_closing(Peer(command, Path(__file__).parent)))
        _print_matching(title, names, blob, {**opened, "rust": rust["first_s"]}, peers, compiled, rounds)


@contextmanager
def _closing(peer: Peer) -> Iterator[Peer]:
    try:
        yield peer
    finally:
        peer.close()


def _in_child(what: str, *arguments: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", what, *arguments]
    found: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def _child(what: str, arguments: list[str]) -> int:
    """Measures one thing in a process of its own."""
    before = rss_mb()
    if what == "text":
        found: list[bytes] = []
        answer = {"load_s": cpu_seconds(lambda: found.append(compile_lists(arguments[1:])))}
        Path(arguments[0]).write_bytes(found[0])
    elif what == "rust":
        raw = read_requests()
        made: list[AdblockRust] = []
        seconds = cpu_seconds(lambda: made.append(AdblockRust(arguments, raw)))
        answer = {"load_s": seconds, "first_s": made[0].round(), "after_mb": rss_mb(), "before_mb": before}
    elif what == "memory":
        matcher = AdblockMatcher(Path(arguments[0]).read_bytes())
        answer = {"before_mb": before, "opened_mb": rss_mb()}
        for case in each_request():
            matcher.match(request_of(case))
        answer["after_mb"] = rss_mb()
    else:
        requests = [request_of(case) for case in read_requests()]
        registrable_domain.cache_clear()
        host_names.cache_clear()
        blob = Path(arguments[0]).read_bytes()
        opened = [AdblockMatcher(blob)]
        answer = {"first_s": cpu_seconds(lambda: [opened[0].match(request) for request in requests])}
        answer["load_s"] = statistics.median(cpu_seconds(lambda: AdblockMatcher(blob)) for _ in range(5))
    print(json.dumps(answer))
    return 0


def _print_loading(
    title: str,
    blob: Path,
    text: Mapping[str, float],
    opened: Mapping[str, float],
    rust: Mapping[str, float],
    peers: Mapping[str, Peer],
) -> None:
    rules = AdblockMatcher(blob.read_bytes()).rule_count
    print(f"\n### {title}: loading ({rules:,} network rules)\n\n| | CPU s | RSS of the process, MB |\n|---|---|---|")
    size = blob.stat().st_size / 1e6
    print(f"| {OURS}, opening the compiled form ({size:.1f} MB) | {opened['load_s']:.3f} | {_memory(opened)} |")
    print(f"| {OURS}, from text to the compiled form | {text['load_s']:.2f} | |")
    print(f"| {RUST}, from text | {rust['load_s']:.2f} | {rust['after_mb']:.0f} ({rust['before_mb']:.0f} before) |")
    for name, peer in peers.items():
        print(f"| {_title(name)}, from text | {peer.load_s:.2f} | {peer.rss_mb():.0f} |")


def _memory(opened: Mapping[str, float]) -> str:
    return f"{opened['opened_mb']:.0f} opened, {opened['after_mb']:.0f} after all requests ({opened['before_mb']:.0f} before)"


def _title(package: str) -> str:
    from adblock_peers import VERSIONS  # noqa: PLC0415  # beside its only use

    return f"{package} {VERSIONS[package]}" if package in VERSIONS else package


class _Prepared:
    """The native crate with requests that were made before."""

    def __init__(self, peer: Peer) -> None:
        self.round = peer.prepared
        self.verdicts = peer.verdicts


def _ours_with(scanner: str, blob: bytes, raw: Sequence[Raw]) -> Ours:
    os.environ[VARIABLE] = scanner
    try:
        return Ours(blob, raw)
    finally:
        del os.environ[VARIABLE]


def _print_matching(
    title: str,
    names: Sequence[str],
    blob: Path,
    first: Mapping[str, float],
    peers: Mapping[str, Peer],
    compiled: Peer | None,
    rounds: int,
) -> None:
    raw = read_requests()
    data = blob.read_bytes()
    default, *others = available_scanners()
    engines: dict[str, Engine] = {OURS: Ours(data, raw, make=request_of_strings)}
    engines["ours, pages parsed once"] = Ours(data, raw, make=request_of)
    engines[RUST] = AdblockRust(names, raw)
    engines |= {_title(name): peer for name, peer in peers.items()}
    engines[OURS_PREPARED] = Ours(data, raw)
    engines |= {f"ours, {name} in place of {default}, {PREPARED}": _ours_with(name, data, raw) for name in others}
    if compiled is not None:
        engines[f"ours, compiled with mypyc, {PREPARED}"] = compiled
    if NATIVE in peers:
        engines[f"{NATIVE}, {PREPARED}"] = _Prepared(peers[NATIVE])
    first_s = {OURS_PREPARED: first["first_s"], RUST: first["rust"]}
    for name, peer in peers.items():
        first_s[_title(name)] = peer.round()
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    for engine in engines.values():
        engine.round()
    for _ in range(rounds):
        for name, engine in engines.items():
            seconds[name].append(engine.round())
    print(f"\n### {title}: matching {len(raw):,} real requests\n")
    print(
        "In: strings, parsed within the time (ours: URL and page by the WHATWG rules, nothing kept between requests), and the\n"
        f"match. Rows with {PREPARED!r} leave the parsing out and are compared with ours of that kind.\n"
    )
    print(f"| CPU µs/request | warm, median of {rounds} | to ours | first pass |\n|---|---|---|---|")
    for name, spent in seconds.items():
        mine = OURS_PREPARED if name.endswith(PREPARED) else OURS
        ratios = sorted(theirs / own for theirs, own in zip(spent, seconds[mine], strict=True))
        ratio = "" if name == mine else f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f})"
        early = f"{first_s[name] / len(raw) * 1e6:.1f}" if name in first_s else ""
        print(f"| {name} | {median_us(spent, len(raw)):.2f} | {ratio} | {early} |")
    _print_cold(data, raw)
    _print_agreement({name: engine.verdicts() for name, engine in engines.items() if _decides_by_itself(name)}, names, raw)


def _decides_by_itself(name: str) -> bool:
    return not name.startswith("ours, pages") and (not name.endswith(PREPARED) or name.startswith("ours"))


def _pass(matcher: AdblockMatcher, requests: Sequence[Request]) -> float:
    return cpu_seconds(lambda: [matcher.match(request) for request in requests])


def _print_cold(blob: bytes, raw: Sequence[Raw]) -> None:
    """Prints what a request costs when no host, no page and no pair of them is known; every rule it needs has been read."""
    ours = Ours(blob, raw)
    ours.round()
    requests = [request_of(case) for case in raw]
    caches = ours.caches()

    def forget() -> None:
        registrable_domain.cache_clear()
        host_names.cache_clear()
        for cache in caches:
            cache.forget()

    def run() -> None:
        for request in requests:
            forget()
            ours.matcher.match(request)

    emptying = statistics.median(cpu_seconds(lambda: [forget() for _ in requests]) for _ in range(3))
    seconds = [cpu_seconds(run) - emptying for _ in range(3)]
    pages = [with_new_hosts(raw, f"new{number}x") for number in range(3)]
    new = [_pass(ours.matcher, fresh) for fresh in pages]
    print(f"\nWith host and page never seen before in each request ours takes {median_us(new, len(pages[0])):.1f} µs, prepared.")
    print(f"\nWith every cache emptied before each request ours takes {median_us(seconds, len(raw)):.1f} µs.")


def _print_agreement(verdicts: Mapping[str, list[int]], names: Sequence[str], raw: Sequence[Raw]) -> None:
    print(f"\n### The same verdict, of {len(raw):,} requests\n")
    print("| | " + " | ".join(verdicts) + " |\n|---|" + "---|" * len(verdicts))
    for name, mine in verdicts.items():
        equal = [sum(one == other for one, other in zip(mine, theirs, strict=True)) for theirs in verdicts.values()]
        print(f"| {name} | " + " | ".join(f"{count:,}" for count in equal) + " |")
    if tuple(names) != PAIR:
        return
    with (DATA / "requests" / "consensus.jsonl").open(encoding="utf-8") as lines:
        expected = [((case["url"], case["source"], case["type"]), case["expected"] == "block") for case in map(json.loads, lines)]
    ours = {case: bool(verdict) for case, verdict in zip(raw, verdicts[OURS], strict=True)}
    equal_count = sum(ours[case] is verdict for case, verdict in expected)
    print(f"\nEqual to the consensus of three engines: {equal_count:,} of {len(expected):,}.")


if __name__ == "__main__":
    sys.exit(main())
