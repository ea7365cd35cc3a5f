"""Counts of decided records: by host, category, rule and client network, in windows of time.

Each batch has counts of its own, which are added up by whoever reads them: nothing is kept between batches.

Source: [ad-traffic §3]: the traffic that was recognised, by its kinds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from gatewayfilter.scaleout.stream.batch import Decided

MOST_VALUES: Final = 1_000
"""Values of a dimension in one message, the most frequent; the others are counted together under `""`."""
LONGEST_VALUE: Final = 200
_LATEST: Final = 1e12
"""Unix seconds, the year 30,000: what is later, or as much earlier, is counted as a record without a time."""
_REMEMBERED: Final = 32_768
"""Hosts and clients whose texts are remembered: some 6 MB each."""


type Key = bytes | str | None
"""What is counted, as it is found: `values_of` has what it is counted by."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How often keys occur in a window.

    Attributes:
        keys: of a dimension; several may have one value.
        records: int64[keys], each at least 1.
        blocked: int64[keys], of those.
    """

    keys: list[Key]
    records: NDArray[np.int64]
    blocked: NDArray[np.int64]


def values_of(dimension: str, keys: Iterable[Key]) -> list[str]:
    """Returns what each key is counted by: for the head of a URL its host, for a client its network."""
    if dimension == "network":
        return list(map(_networks_by_client.__getitem__, keys))
    return [_hosts_by_head[key] if isinstance(key, bytes) else key or "" for key in keys]


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
    for start, tallies in tallies_of(batch, decided, window_s, now):
        table = {name: _most(_table(name, tally)) for name, tally in tallies.items()}
        one = tallies["category"]  # each record is in each dimension once
        total = {"records": int(one.records.sum()), "blocked": int(one.blocked.sum())}
        message = {"window": start, "seconds": window_s, "rules_version": version, **total, "counts": table}
        yield start, json.dumps(message).encode()


def _table(dimension: str, tally: Tally) -> dict[str, list[int]]:
    """Returns value → records, and blocked ones among them."""
    found: dict[str, list[int]] = {}
    values = values_of(dimension, tally.keys)
    for value, records, blocked in zip(values, tally.records.tolist(), tally.blocked.tolist(), strict=True):
        known = found.setdefault(value, [0, 0])
        known[0] += records
        known[1] += blocked
    return found


def tallies_of(batch: pa.RecordBatch, decided: Decided, window_s: int, now: float) -> Iterator[tuple[int, dict[str, Tally]]]:
    """Yields the begin of each window that has decided records, and its tallies: of `host`, `category`, `rule` and `network`.

    The cost grows with the records, whatever their times are.

    Args:
        batch: the records.
        decided: the verdicts on them.
        window_s: length of a window.
        now: Unix seconds, for records without a time.
    """
    rows = np.flatnonzero(decided.numbers < len(decided.verdicts)) if decided.faults else None
    starts, windows = _windows_of(batch, rows, window_s, now)
    if not starts:
        return
    blocked = np.flatnonzero(decided.blocked if rows is None else decided.blocked[rows])
    found: list[dict[str, Tally]] = [{} for _ in starts]
    for numbers, dimensions in _dimensions_of(batch, decided):
        some = numbers if rows is None else numbers[rows]
        size = len(next(iter(dimensions.values())))
        for tallies, (present, records, refused) in zip(found, _tallied(some, size, blocked, windows, len(starts)), strict=True):
            for name, keys in dimensions.items():
                tallies[name] = Tally(keys if len(present) == size else [keys[at] for at in present], records, refused)
    yield from zip(starts, found, strict=True)


def _windows_of(
    batch: pa.RecordBatch, rows: NDArray[np.int64] | None, window_s: int, now: float
) -> tuple[list[int], NDArray[np.int64] | None]:
    """Returns the begins of windows, each once, and the number of each row's window; `None` where all are in one."""
    count = batch.num_rows if rows is None else len(rows)
    if not count:
        return [], None
    if "time" not in batch.schema.names:
        return [int(now // window_s) * window_s], None
    column = batch["time"]
    if column.null_count:
        column = column.fill_null(now)
    times: NDArray[np.float64] = column.to_numpy(zero_copy_only=False)
    if rows is not None:
        times = times[rows]
    first, last = times.min(), times.max()
    if not -_LATEST < first <= last < _LATEST:
        times = np.where(np.abs(times) < _LATEST, times, now)  # what is no number neither
        first, last = times.min(), times.max()
    if first // window_s == last // window_s:  # a fiftieth of the cost of dividing each
        return [int(first // window_s) * window_s], None
    found, numbers = np.unique((times // window_s).astype(np.int64) * window_s, return_inverse=True)
    return found.tolist(), numbers


def _tallied(
    numbers: NDArray[np.integer], size: int, blocked: NDArray[np.int64], windows: NDArray[np.int64] | None, count: int
) -> Iterator[tuple[list[int], NDArray[np.int64], NDArray[np.int64]]]:
    """Yields for each window which numbers are in it, how often, and how often blocked.

    Args:
        numbers: of keys, less than `size`.
        size: how many keys there are.
        blocked: rows.
        windows: the number of each row's window; `None` where all are in one.
        count: of windows.
    """
    if windows is None:
        records = np.bincount(numbers, minlength=size)
        some = np.flatnonzero(records)
        yield some.tolist(), records[some], np.bincount(numbers.take(blocked), minlength=size)[some]
        return
    keys, members, records = np.unique(windows * size + numbers, return_inverse=True, return_counts=True)
    refused = np.bincount(members.take(blocked), minlength=len(keys))
    present = (keys % size).tolist()
    for begin, end in pairwise(np.searchsorted(keys, np.arange(count + 1) * size).tolist()):
        yield present[begin:end], records[begin:end], refused[begin:end]


def _dimensions_of(batch: pa.RecordBatch, decided: Decided) -> list[tuple[NDArray[np.integer], dict[str, list[Key]]]]:
    """Returns the number of each row's key, and for each dimension the keys."""
    texts = decided.texts
    unknown = [""] * len(decided.faults)
    categories: list[Key] = [*(category[:LONGEST_VALUE] for category in texts.categories), *unknown]
    named = zip(texts.source_lists, texts.rules, strict=True)
    rules: list[Key] = [*(f"{name}: {rule}"[:LONGEST_VALUE] if rule else "" for name, rule in named), *unknown]
    return [_hosts(batch, decided), (decided.numbers, {"category": categories, "rule": rules}), _clients(batch)]


def _hosts(batch: pa.RecordBatch, decided: Decided) -> tuple[NDArray[np.integer], dict[str, list[Key]]]:
    urls = decided.urls
    keys: list[Key] = [*urls.names]
    rest = np.flatnonzero(urls.heads < 0)
    if not len(rest):
        return urls.heads, {"host": keys}
    numbers = urls.heads.copy()
    numbers[rest] = len(keys) + np.arange(len(rest))
    keys += [_host(url) for url in batch["url"].take(pa.array(rest)).to_pylist()]
    return numbers, {"host": keys}


def _clients(batch: pa.RecordBatch) -> tuple[NDArray[np.integer], dict[str, list[Key]]]:
    if "client" not in batch.schema.names:
        return np.zeros(batch.num_rows, np.int64), {"network": [None]}
    clients = batch["client"]
    if not pa.types.is_dictionary(clients.type):
        clients = clients.dictionary_encode()
    keys: list[Key] = [*clients.dictionary.to_numpy(zero_copy_only=False).tolist(), None]
    indices = clients.indices
    if indices.null_count:
        indices = indices.fill_null(len(keys) - 1)
    return indices.to_numpy(), {"network": keys}


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


def _host(url: str | None) -> str:
    """Returns the host of a URL as it was written, lower case; it is only counted by."""
    parts = (url or "").split("/", 3)
    return parts[2].rpartition("@")[2].lower()[:LONGEST_VALUE] if len(parts) > 2 else ""  # scheme, nothing, host


def _network_of(client: str | None) -> str:
    """Returns the network of a client, /24 or /48, `""` for what is no address."""
    try:
        address = ip_address((client or "")[:64])
    except ValueError:
        return ""
    if address.version == 4:  # IPv4
        return f"{str(address).rpartition('.')[0]}.0/24"
    return str(ip_network((int(address), 48), strict=False))


class _Memory(dict[Key, str]):
    """The values of keys; empty again when it is full. A third of the time of `lru_cache`, which keeps an order.

    Args:
        compute: the value of a key that is not known.
    """

    def __init__(self, compute: Callable[[Any], str]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, key: Key) -> str:
        """Returns the value of a key that is not known, and keeps it."""
        if len(self) >= _REMEMBERED:
            self.clear()
        found = self[key] = self._compute(key)
        return found


_hosts_by_head: Final = _Memory(lambda head: head.decode().partition("://")[2][:LONGEST_VALUE])
_networks_by_client: Final = _Memory(_network_of)
