"""The preview of a list: how many of its entries other lists have already, and which visited addresses it would block."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import batched
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import Decide
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.sources.formats.list_format import ListFormat
from gatewayfilter.sources.formats.parse import CountingSink, parse_list
from gatewayfilter.sources.publish import build_snapshot
from gatewayfilter.sources.subscription import SourceFile
from gatewayfilter.urls import digest_of, parse_loose_url

_BATCH = 50_000


class FindsMany(Protocol):
    """A table of a snapshot."""

    def find_many(self, digests: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Returns the number of each digest's source set, -1 for those not in the table."""
        ...


@dataclass(frozen=True, slots=True)
class Visited:
    """A host that was visited, and that a list would block at least partly.

    Attributes:
        requests: how many of its logged requests were let pass and would not be.
        rule: the entry or rule of the first of them.
    """

    host: str
    requests: int
    rule: str


@dataclass(frozen=True, slots=True)
class Preview:
    """What a list would change.

    Attributes:
        known: its entries that a list with the same meaning has already; `None` for Adblock rules, which are not compared.
        visited: hosts that it would block, the most visited first.
        looked_at: how many logged requests were tried.
    """

    known: int | None
    visited: tuple[Visited, ...]
    looked_at: int


class _KnownSink(CountingSink):
    def __init__(self, table: FindsMany) -> None:
        self._table = table
        self.known = 0

    def add_keys(self, source: int, keys: Iterable[str]) -> int:
        for batch in batched(dict.fromkeys(keys), _BATCH):
            digests = b"".join(map(digest_of, batch))
            self.add_digests(source, np.frombuffer(digests, np.uint8).reshape(-1, 16))
        return 0

    def add_digests(self, source: int, digests: NDArray[np.uint8]) -> int:
        del source
        if len(digests):
            self.known += int(np.count_nonzero(self._table.find_many(digests) >= 0))
        return 0


def preview_list(item: SourceFile, in_use: Snapshot, now: Decide, visits: Sequence[tuple[str, str]], most: int = 10) -> Preview:
    """Returns what a list would change. It is built into a snapshot in memory: about 2 µs and 150 bytes an entry.

    Args:
        item: the list.
        in_use: the snapshot that is used now.
        now: the decision as it is made now.
        visits: URL and resource type of requests that were made lately.
        most: how many hosts are named at most.

    Raises:
        OSError: the list cannot be read.
    """
    known: int | None = None
    if item.list_format is not ListFormat.ADBLOCK:
        sink = _KnownSink(in_use.tables[item.source.action])
        with item.path.open("rb") as file:
            parse_list(file, item.list_format, sink, action=item.source.action)
        known = sink.known
    if not visits:
        return Preview(known, (), 0)
    data, _ = build_snapshot([item])
    alone = FilterEngine(Snapshot.from_bytes(data))
    counts: Counter[str] = Counter()
    rules: dict[str, str] = {}
    for (address, resource_type), times in Counter(visits).items():
        request = _request(address, resource_type)
        if request is None:
            continue
        verdict = alone.decide(request)
        if verdict.blocked and not now.decide(request).blocked:
            counts[request.url.host] += times
            rules.setdefault(request.url.host, verdict.rule)
    visited = tuple(Visited(host, count, rules[host]) for host, count in counts.most_common(most))
    return Preview(known, visited, len(visits))


def _request(address: str, resource_type: str) -> Request | None:
    try:
        kind = ResourceType(resource_type) if resource_type in ResourceType else ResourceType.OTHER
        return Request(parse_loose_url(address), resource_type=kind)
    except UrlError:
        return None
