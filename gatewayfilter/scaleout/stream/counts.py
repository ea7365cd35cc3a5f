"""Counts of decided records: by host, category, rule and client network, in windows of time.

Each batch has counts of its own, which are added up by whoever reads them: nothing is kept between batches.

Source: [ad-traffic §3]: the traffic that was recognised, by its kinds.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

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
    times = (
        batch["time"].fill_null(now).to_numpy(zero_copy_only=False)
        if "time" in batch.schema.names
        else np.full(batch.num_rows, now)
    )
    starts = (times // window_s).astype(np.int64) * window_s
    urls = batch["url"].to_numpy(zero_copy_only=False).tolist()
    clients = batch["client"].to_numpy(zero_copy_only=False).tolist() if "client" in batch.schema.names else [None] * len(urls)
    hosts = [_host(url) for url in urls]
    known = len(decided.verdicts)
    blocked = np.array([verdict.blocked for verdict in decided.verdicts] + [False] * len(decided.faults), np.bool_)
    for start in np.unique(starts).tolist():
        rows = np.flatnonzero((starts == start) & (decided.numbers < known)).tolist()
        numbers = decided.numbers[rows].tolist()
        by_verdict = Counter(numbers)
        table: dict[str, dict[str, list[int]]] = {
            "host": _counted(Counter(zip((hosts[row] for row in rows), blocked[numbers].tolist(), strict=True))),
            "network": _counted(
                Counter(zip((_network(clients[row] or "") for row in rows), blocked[numbers].tolist(), strict=True))
            ),
        }
        for name in ("category", "rule"):
            counter: Counter[tuple[str, bool]] = Counter()
            for number, count in by_verdict.items():
                verdict = decided.verdicts[number]
                value = (
                    verdict.category if name == "category" else f"{verdict.source_list}: {verdict.rule}" if verdict.rule else ""
                )
                counter[value[:LONGEST_VALUE], verdict.blocked] += count
            table[name] = _counted(counter)
        total = {"records": len(rows), "blocked": int(blocked[numbers].sum())}
        yield (
            start,
            json.dumps({"window": start, "seconds": window_s, "rules_version": version, **total, "counts": table}).encode(),
        )


def _counted(counter: Counter[tuple[str, bool]]) -> dict[str, list[int]]:
    table: dict[str, list[int]] = {}
    for (value, blocked), count in counter.items():
        row = table.setdefault(value, [0, 0])
        row[0] += count
        row[1] += count if blocked else 0
    if len(table) <= MOST_VALUES:
        return table
    ordered = sorted(table.items(), key=lambda item: -item[1][0])
    kept = dict(ordered[:MOST_VALUES])
    rest = kept.setdefault("", [0, 0])
    for _, (records, blocked_records) in ordered[MOST_VALUES:]:
        rest[0] += records
        rest[1] += blocked_records
    return kept


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
