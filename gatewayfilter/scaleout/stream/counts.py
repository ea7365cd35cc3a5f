"""Counts of decided records: by host, category, rule and client network, in windows of time.

Each batch has counts of its own, which are added up by whoever reads them: nothing is kept between batches.

Source: [ad-traffic §3]: the traffic that was recognised, by its kinds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from gatewayfilter.scaleout.stream.batch import Decided

MOST_VALUES: Final = 1_000
"""Values of a dimension in one message, the most frequent; the others are counted together under `""`."""
LONGEST_VALUE: Final = 200


def count_messages(
    batch: pa.RecordBatch, decided: Decided, window_s: int, now: float, version: str
) -> Iterator[tuple[int, bytes]]:
    """Yields the begin of each window in a batch, and its counts as JSON: dimension → value → [records, blocked].

    Args:
        batch: the records.
        decided: the verdicts on them.
        window_s: length of a window.
        now: Unix seconds, for records without a time.
        version: of the rules.
    """
    starts = windows_of(batch, window_s, now)
    dimensions = dimensions_of(batch, decided)
    blocked = decided.blocked
    counted = decided.numbers < len(decided.verdicts)
    for start in np.unique(starts).tolist():
        rows = np.flatnonzero((starts == start) & counted)
        if not len(rows):
            continue
        table = {name: _most(of.counts(rows, blocked)) for name, of in dimensions.items()}
        total = {"records": len(rows), "blocked": int(blocked[rows].sum())}
        yield (
            start,
            json.dumps({"window": start, "seconds": window_s, "rules_version": version, **total, "counts": table}).encode(),
        )


def windows_of(batch: pa.RecordBatch, window_s: int, now: float) -> NDArray[np.int64]:
    """Returns the begin of the window of each record: int64[rows]; arguments as in `count_messages`."""
    if "time" not in batch.schema.names:
        return np.full(batch.num_rows, int(now // window_s) * window_s, np.int64)
    times: NDArray[np.float64] = batch["time"].fill_null(now).to_numpy(zero_copy_only=False)
    return (times // window_s).astype(np.int64) * window_s


@dataclass(frozen=True, slots=True)
class Dimension:
    """What records are counted by.

    Attributes:
        numbers: int64[rows], into `values`.
        values: each once.
    """

    numbers: NDArray[np.int64]
    values: list[str]

    def counts(self, rows: NDArray[np.int64], blocked: NDArray[np.bool_]) -> dict[str, list[int]]:
        """Returns value → records, and blocked ones among them.

        Args:
            rows: that are counted.
            blocked: whether each of all rows is blocked.
        """
        records = np.bincount(self.numbers[rows], minlength=len(self.values))
        refused = np.bincount(self.numbers[rows[blocked[rows]]], minlength=len(self.values))
        return {self.values[at]: [int(records[at]), int(refused[at])] for at in np.flatnonzero(records).tolist()}


def dimensions_of(batch: pa.RecordBatch, decided: Decided) -> dict[str, Dimension]:
    """Returns the dimensions of a batch: `host`, `category`, `rule` and `network`.

    Args:
        batch: the records.
        decided: the verdicts on them.
    """
    unknown = [""] * len(decided.faults)
    categories = [verdict.category for verdict in decided.verdicts] + unknown
    rules = [f"{verdict.source_list}: {verdict.rule}" if verdict.rule else "" for verdict in decided.verdicts] + unknown
    return {
        "host": _hosts(batch, decided),
        "category": _dimension(decided.numbers, categories),
        "rule": _dimension(decided.numbers, rules),
        "network": _networks(batch),
    }


def _dimension(numbers: NDArray[np.int32], texts: Sequence[str]) -> Dimension:
    """Returns a dimension of numbered texts, of which several may be equal."""
    if max(map(len, texts), default=0) > LONGEST_VALUE:
        texts = [text[:LONGEST_VALUE] for text in texts]
    values = list(dict.fromkeys(texts))
    places = dict(zip(values, range(len(values)), strict=True))
    return Dimension(np.fromiter(map(places.__getitem__, texts), np.int64, len(texts))[numbers], values)


def _hosts(batch: pa.RecordBatch, decided: Decided) -> Dimension:
    urls = decided.urls
    rest = np.flatnonzero(urls.heads < 0)
    names = [*map(_host_of_head, urls.names)]
    names += [_host(url) for url in batch["url"].take(pa.array(rest)).to_pylist()]
    numbers = urls.heads.copy()
    numbers[rest] = len(urls.names) + np.arange(len(rest))
    return _dimension(numbers, names)


def _networks(batch: pa.RecordBatch) -> Dimension:
    if "client" not in batch.schema.names:
        return Dimension(np.zeros(batch.num_rows, np.int64), [""])
    clients = batch["client"]
    if not pa.types.is_dictionary(clients.type):
        clients = clients.dictionary_encode(null_encoding="encode")
    networks = [_network(client or "") for client in clients.dictionary.to_pylist()]
    return _dimension(clients.indices.fill_null(len(networks)).to_numpy(), [*networks, ""])


def _most(table: dict[str, list[int]]) -> dict[str, list[int]]:
    """Returns the most frequent values, and the sum of the others under `""`."""
    if len(table) <= MOST_VALUES:
        return table
    ordered = sorted(table.items(), key=lambda item: -item[1][0])
    kept = dict(ordered[:MOST_VALUES])
    rest = kept.setdefault("", [0, 0])
    for _, (records, blocked_records) in ordered[MOST_VALUES:]:
        rest[0] += records
        rest[1] += blocked_records
    return kept


@lru_cache(maxsize=16_384)
def _host_of_head(head: bytes) -> str:
    """Returns the host of `scheme://host`."""
    return head.decode().partition("://")[2]


def _host(url: str | None) -> str:
    """Returns the host of a URL as it was written, lower case; it is only counted by."""
    parts = (url or "").split("/", 3)
    return parts[2].rpartition("@")[2].lower()[:LONGEST_VALUE] if len(parts) > 2 else ""  # scheme, nothing, host


@lru_cache(maxsize=16_384)
def _network(client: str) -> str:
    """Returns the network of a client, /24 or /48, `""` for what is no address."""
    try:
        address = ip_address(client[:64])
    except ValueError:
        return ""
    return str(ip_network(f"{address}/{24 if address.version == 4 else 48}", strict=False))  # IPv4
