"""What the Adblock benchmarks share: real lists and requests, and our engine and adblock 0.6.0 behind one face."""

import gc
import json
import os
import resource
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import adblock

from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.index.bounded_cache import BoundedCache
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.errors import UrlError
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import Url, parse_url

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("GATEWAYFILTER_TEST_DATA") or ROOT.parent / "shared" / "data")
REQUESTS = DATA / "requests" / "requests.jsonl"
PAIR = ("easylist.txt", "easyprivacy.txt")

_TYPES = {kind.value: kind for kind in ResourceType}

type Raw = tuple[str, str, str]
"""URL, source, type, as the other engines take them."""


def all_lists() -> tuple[str, ...]:
    """Returns the names of all lists of the test data."""
    return tuple(str(path.relative_to(DATA / "lists")) for path in sorted((DATA / "lists").rglob("*.txt")))


def each_request() -> Iterator[Raw]:
    """Yields the real requests."""
    with REQUESTS.open(encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            yield case["url"], case["source"], case["type"]


def read_requests() -> list[Raw]:
    """Returns the real requests."""
    return list(each_request())


@cache
def _page_of(text: str) -> Url | None:
    try:
        return parse_url(text)
    except UrlError:
        return None


def request_of(case: Raw) -> Request:
    """Returns a request as our engine takes it. Its page is parsed once for all requests of the page, as in the proxy."""
    return Request(parse_url(case[0]), _page_of(case[1]), _TYPES[case[2]])


def request_of_strings(case: Raw) -> Request:
    """Returns the same request with nothing kept between requests: the page is parsed again for each."""
    try:
        page = parse_url(case[1])
    except UrlError:
        page = None
    return Request(parse_url(case[0]), page, _TYPES[case[2]])


def with_new_hosts(raw: Sequence[Raw], label: str) -> list[Request]:
    """Returns the requests with one more label, never seen before, on the host of each and on that of its page."""
    found = []
    for number, (url, page, kind) in enumerate(raw):
        host = urlsplit(url).netloc
        if not host[-1:].isdigit() and not host.endswith("]"):
            new_url = url.replace("://", f"://{label}{number}.", 1)
            found.append(request_of_strings((new_url, page.replace("://", f"://{label}{number}p.", 1), kind)))
    return found


def cpu_seconds(work: Callable[[], object]) -> float:
    """Returns the CPU time of some work, garbage collected before."""
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def rss_mb() -> float:
    """Returns the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def compile_lists(names: Sequence[str]) -> bytes:
    """Returns the compiled form of lists of the test data."""
    builder = AdblockBuilder()
    for source, name in enumerate(names):
        with (DATA / "lists" / name).open(encoding="utf-8", errors="replace") as lines:
            builder.add_list(source, lines)
    return builder.build()


class Ours:
    """Our engine over a compiled form.

    Args:
        blob: the compiled form.
        raw: the requests.
        make: makes a request of strings within the measured time; without it a round takes requests made before.
    """

    def __init__(self, blob: bytes, raw: Sequence[Raw], *, make: Callable[[Raw], Request] | None = None) -> None:
        self.matcher = AdblockMatcher(blob)
        self._raw = raw
        self._make = make
        self._requests = [] if make else [request_of(case) for case in raw]

    def round(self) -> float:
        """Returns the CPU seconds of one pass over all requests."""
        match = self.matcher.match
        make = self._make
        if make is None:
            return cpu_seconds(lambda: [match(request) for request in self._requests])
        return cpu_seconds(lambda: [match(make(case)) for case in self._raw])

    def caches(self) -> list[BoundedCache[Any, Any]]:
        """Returns the caches of facts, for measuring without them."""
        indexes = (self.matcher._blocks, self.matcher._exceptions)  # noqa: SLF001  # nobody else needs them
        return [cache for index in indexes for cache in vars(index).values() if isinstance(cache, BoundedCache)]

    def verdicts(self) -> list[int]:
        """Returns for each request whether it is blocked."""
        found = [self.matcher.match(request_of(case)) for case in self._raw]
        return [int(match is not None and not match.exception) for match in found]


class AdblockRust:
    """adblock-rust through PyPI `adblock` 0.6.0; a round takes plain strings."""

    def __init__(self, names: Sequence[str], raw: Sequence[Raw]) -> None:
        filters = adblock.FilterSet()
        for name in names:
            filters.add_filter_list((DATA / "lists" / name).read_text(encoding="utf-8", errors="replace"))
        self._check = adblock.Engine(filter_set=filters).check_network_urls
        self._raw = raw

    def round(self) -> float:
        """Returns the CPU seconds of one pass over all requests."""
        check = self._check
        return cpu_seconds(lambda: [check(*case) for case in self._raw])

    def verdicts(self) -> list[int]:
        """Returns for each request whether it is blocked."""
        return [int(self._check(*case).matched) for case in self._raw]


def median_us(seconds: Sequence[float], count: int) -> float:
    """Returns the median of rounds, in µs a request."""
    return statistics.median(seconds) / count * 1e6
