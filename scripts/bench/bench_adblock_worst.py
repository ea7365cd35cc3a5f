"""Measures the worst that a client can do to the Adblock engine with one URL, and with very many hosts; prints Markdown.

All lists of the test data. A URL is at most 65,536 characters long (`urls.MAX_URL_LENGTH`): a longer one is refused by the proxy.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from adblock_engines import REQUESTS, all_lists, compile_lists, cpu_seconds, read_requests, request_of, rss_mb

from gatewayfilter.engine.adblock.index.bounded_cache import GENERATION
from gatewayfilter.engine.adblock.index.rule_index import RuleIndex
from gatewayfilter.engine.adblock.index.rule_table import NEEDS_TEST
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.errors import UrlError
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import MAX_URL_LENGTH, parse_url

_PAGE = parse_url("https://page.example/")
_KINDS = (ResourceType.SCRIPT, ResourceType.IMAGE, ResourceType.DOCUMENT, ResourceType.XMLHTTPREQUEST)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmark; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--flood", type=int, default=200_000, help="new hosts of the flood")
    options = parser.parse_args(argv)
    if not REQUESTS.is_file():
        print("no data: set GATEWAYFILTER_TEST_DATA to the folder with lists/ and requests/", file=sys.stderr)
        return 2
    # In a process of its own, which leaves no freed memory behind that would hide what the flood takes.
    with ProcessPoolExecutor(1, get_context("forkserver")) as pool:
        blob = pool.submit(compile_lists, all_lists()).result()
    matcher = AdblockMatcher(blob)
    _print_urls(matcher)
    _print_flood(matcher, options.flood)
    return 0


def _hostile_urls(matcher: AdblockMatcher) -> Iterator[tuple[str, str]]:
    assert isinstance(matcher._blocks, RuleIndex)  # noqa: SLF001
    dice = random.Random(4)  # the same URLs in every run
    words = sorted(word for word in _literals(matcher) if not _blocks(matcher, f"https://fine.example/{word}"))
    dice.shuffle(words)
    size = MAX_URL_LENGTH - 100
    host = "https://fine.example/"
    yield "ordinary, 160 characters", f"{host}{'a1b2c3d4/' * 15}x.js"
    yield "one letter over and over", host + "a" * size
    yield "letters and digits at random", host + "".join(dice.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=size))
    yield "any printable characters, upper case too", host + "".join(dice.choices(list(map(chr, range(36, 127))), k=size))
    yield "binary garbage, percent-encoded", host + "".join(f"%{dice.randrange(256):02X}" for _ in range(size // 3))
    yield "`ads` spelled `%61ds`, over and over", host + "/%61ds/" * (size // 7)
    yield "`/ads/`, over and over", host + "/ads/" * (size // 5)
    yield "separators alone", host + "/?&=" * (size // 4)
    yield "literals of rules, as many as fit", host + "".join(words)[:size]
    yield "the same, in another order, between separators", host + "/".join(sorted(words, key=len))[:size]
    yield "one literal of a rule, over and over", host + (words[0] * size)[:size]


def _blocks(matcher: AdblockMatcher, text: str) -> bool:
    url = parse_url(text)
    return any(matcher.match(Request(url, _PAGE, kind)) is not None for kind in _KINDS)


def _literals(matcher: AdblockMatcher) -> set[str]:
    """Returns the literals of all rules that need a test."""
    table = matcher._table  # noqa: SLF001
    from gatewayfilter.engine.adblock.index.pattern import shape_of  # noqa: PLC0415  # beside its only use

    found = matcher._blocks._literals  # noqa: SLF001
    rules = {number for candidates in found for mask, number in candidates if mask & NEEDS_TEST}
    literals = {literal for number in rules for literal in shape_of(table.rule(number)).literals}
    return {literal for literal in literals if literal.isascii() and "#" not in literal}


def _print_urls(matcher: AdblockMatcher) -> None:
    print("\n### One URL\n\n| 65,436 characters: | first time, ms | again, ms |\n|---|---|---|")
    for name, text in _hostile_urls(matcher):
        requests = [Request(parse_url(text), _PAGE, kind) for kind in _KINDS]
        first = max(_wall(lambda request=request: matcher.match(request)) for request in requests)
        again = max(min(_wall(lambda request=request: matcher.match(request)) for _ in range(3)) for request in requests)
        print(f"| {name} | {first * 1e3:.2f} | {again * 1e3:.2f} |")
    megabyte = "https://fine.example/" + "a" * 1_000_000
    print(f"| 1 MB: refused | {_wall(lambda: _refused(megabyte)) * 1e3:.2f} | |")


def _wall(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _refused(text: str) -> bool:
    try:
        parse_url(text)
    except UrlError:
        return True
    raise SystemExit("a URL of 1 MB was not refused")


def _print_flood(matcher: AdblockMatcher, count: int) -> None:
    requests = [request_of(case) for case in read_requests()]
    run = lambda: [matcher.match(request) for request in requests]  # noqa: E731
    run()
    before = statistics.median(cpu_seconds(run) for _ in range(3)) / len(requests) * 1e6
    rss = rss_mb()
    hosts = (f"{number:x}.{'long-label.' * 20}example" for number in range(count))
    flood = (Request(parse_url(f"https://{host}/"), _PAGE, ResourceType.SCRIPT) for host in hosts)
    flooding = cpu_seconds(lambda: [matcher.match(request) for request in flood]) / count * 1e6
    first = cpu_seconds(run) / len(requests) * 1e6
    after = statistics.median(cpu_seconds(run) for _ in range(3)) / len(requests) * 1e6
    mine = requests[0]
    among = [mine] * 2_000
    kept = cpu_seconds(lambda: [matcher.match(mine) for _ in among]) / len(among) * 1e6
    print(f"\n### {count:,} hosts that nobody has seen, 240 characters each (caches keep {GENERATION:,} twice)\n")
    print("| | |\n|---|---|")
    print(f"| a request of the flood, its URL parsed too | {flooding:.1f} µs |")
    print(f"| memory grew by | {rss_mb() - rss:.0f} MB |")
    print(f"| real requests before the flood, warm | {before:.2f} µs |")
    print(f"| the first time after it, all of them forgotten | {first:.2f} µs |")
    print(f"| warm again | {after:.2f} µs |")
    print(f"| one of them, over and over | {kept:.2f} µs |")


if __name__ == "__main__":
    sys.exit(main())
