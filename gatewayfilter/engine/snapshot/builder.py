"""The snapshot builder: makes a snapshot from lists, learned entries and manual rules."""

import time
from collections.abc import Iterable, Mapping
from hashlib import md5
from itertools import batched
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.syntax.rule import AdblockReport
from gatewayfilter.engine.snapshot.format import TABLE_NAMES
from gatewayfilter.engine.snapshot.image import SnapshotImage, as_json, policy_rows, rule_rows, source_rows
from gatewayfilter.engine.snapshot.learned_records import build_records, learned_source
from gatewayfilter.engine.tables.bitmap_table import build_table
from gatewayfilter.engine.tables.bloom import build_bloom
from gatewayfilter.engine.tables.counting_bloom import CountingBloom
from gatewayfilter.engine.tables.host_markers import ANY_HOST, count_parts, host_of_key, part_marker, prefix_marker, site_marker
from gatewayfilter.engine.tables.source_sets import SourceSets
from gatewayfilter.model import LearnedEntry, ListAction, ManualRule, PolicySet, Source
from gatewayfilter.urls import digest_of

type _Chunks = dict[ListAction, list[tuple[int, NDArray[np.uint8]]]]
type _Markers = dict[ListAction, list[NDArray[np.uint8]]]

_BATCH = 65_536
"""Keys hashed before they are packed into an array: bounds the memory of intermediate objects."""


class SnapshotBuilder:
    """Collects lists and builds the file. About 2.3 s of CPU and 140 MB of memory per million keys.

    Args:
        feed_seq: the newest step of the change feed that the learned entries and rules below include.
        created_at: Unix seconds, now by default.
        error_rate: wanted share of URLs on no list that pass the Bloom gate and cost a table look-up each.
        notes: data of the publisher for building the next snapshot; any JSON value.

    Raises:
        ValueError: the rate is not between 0 and 1.
    """

    def __init__(
        self,
        *,
        feed_seq: int = 0,
        created_at: float | None = None,
        error_rate: float = 0.001,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        if not 0 < error_rate < 1:
            raise ValueError(f"the error rate must lie between 0 and 1, not {error_rate}")
        self._feed_seq = feed_seq
        self._created_at = time.time() if created_at is None else created_at
        self._error_rate = error_rate
        self.notes = dict(notes or {})
        self._sources: list[Source] = []
        self._chunks: _Chunks = {action: [] for action in ListAction}
        self._markers: _Markers = {action: [] for action in ListAction}
        self._learned: dict[str, LearnedEntry] = {}
        self._rules: tuple[ManualRule, ...] = ()
        self._policies = PolicySet()
        self._adblock = AdblockBuilder()
        self._adblock_rules = 0

    def add_source(self, source: Source) -> int:
        """Returns the source's index. Of several sources that list a key, verdicts name the one added first."""
        self._sources.append(source)
        return len(self._sources) - 1

    def add_keys(self, source: int, keys: Iterable[str]) -> int:
        """Adds list keys (urls.py) to a source. Returns their number, repeated ones included."""
        count = 0
        action = self._sources[source].action
        for batch in batched(keys, _BATCH):
            count += len(batch)
            joined = b"".join([md5(key.encode(), usedforsecurity=False).digest() for key in batch])
            self._chunks[action].append((source, np.frombuffer(joined, dtype=np.uint8).reshape(-1, 16)))
            self._mark(source, _markers_of([key for key in batch if "/" in key], action))
        return count

    def _mark(self, source: int, markers: Iterable[str]) -> None:
        if digests := [digest_of(marker) for marker in markers]:
            action = self._sources[source].action
            rows = _as_rows(digests)
            self._chunks[action].append((source, rows))
            self._markers[action].append(rows)

    def add_digests(self, source: int, digests: NDArray[np.uint8]) -> int:
        """Adds digests of list keys, shape (n, 16), to a source. Returns their number.

        The hosts behind digests are not known: with a blocking list, any host may have a blocked page. Prefixes are not found.

        Raises:
            ValueError: the array is of another shape.
        """
        if digests.ndim != 2 or digests.shape[1] != 16:
            raise ValueError(f"digests must have the shape (n, 16), not {digests.shape}")
        action = self._sources[source].action
        self._chunks[action].append((source, digests))
        if action is ListAction.BLOCK and len(digests):
            self._mark(source, [ANY_HOST])
        return len(digests)

    def add_adblock_list(self, source: int, lines: Iterable[str]) -> AdblockReport:
        """Adds the rules of a list in Adblock syntax to a source. Returns the report on its lines."""
        report = self._adblock.add_list(source, lines)
        self._adblock_rules += report.accepted
        return report

    def add_learned(self, entries: Iterable[LearnedEntry]) -> int:
        """Adds learned entries, the last one per key, and creates their sources. Returns their number."""
        count = 0
        for entry in entries:
            self._learned[entry.key] = entry
            count += 1
        return count

    def set_rules(self, rules: Iterable[ManualRule]) -> None:
        """Sets the manual rules, replacing those set before."""
        self._rules = tuple(rules)

    def set_policies(self, policies: PolicySet) -> None:
        """Sets the clients, groups, policies, schedules and pauses, replacing those set before."""
        self._policies = policies

    def build(self) -> bytes:
        """Returns the snapshot file. The builder can be used again.

        Raises:
            SnapshotError: more entries than the format can hold.
        """
        return self.image(counting=False).to_bytes()

    def image(self, *, counting: bool) -> SnapshotImage:
        """Returns the snapshot's sections.

        Args:
            counting: also build the counters from which the gate is derived; they temporarily take 7 bytes per entry.

        Raises:
            SnapshotError: more entries than the format can hold.
        """
        counted = count_parts(self._learned.values())
        learned = [*self._learned.values(), *counted.values()]
        learned_digests = [digest_of(entry.key) for entry in learned]
        sources = list(self._sources)
        chunks = {action: list(parts) for action, parts in self._chunks.items()}
        markers = {action: list(found) for action, found in self._markers.items()}
        self._add_sites(chunks, markers)
        _add_learned(learned, learned_digests, sources, chunks, markers)
        markers[ListAction.BLOCK].append(_as_rows([digest_of(marker) for marker in counted]))
        marked = {TABLE_NAMES[action]: _count_distinct(found) for action, found in markers.items()}

        sets = SourceSets()
        merged = {action: sets.merge(chunks.pop(action)) for action in ListAction}
        meta = {
            "created_at": self._created_at,
            "feed_seq": self._feed_seq,
            **{TABLE_NAMES[action]: len(keys.digests) - marked[TABLE_NAMES[action]] for action, keys in merged.items()},
            "markers": {**marked, "learned": len(counted)},
            "adblock_rules": self._adblock_rules,
            "error_rate": self._error_rate,
            "patches": 0,
            "notes": self.notes,
            "policies": policy_rows(self._policies),
        }
        counters, gate = _gate([keys.digests for keys in merged.values()], self._error_rate, counting=counting)
        sections: tuple[tuple[str, bytes | memoryview], ...] = (
            ("meta", as_json(meta)),
            ("sources", as_json(source_rows(sources))),
            ("sets", as_json(sets.as_lists())),
            ("rules", as_json(rule_rows(self._rules))),
            ("bloom", gate),
            *((TABLE_NAMES[action], build_table(keys.digests, keys.sets)) for action, keys in merged.items()),
            ("learned", build_table(_as_rows(learned_digests), np.arange(len(learned), dtype=np.uint32))),
            ("details", build_records(learned)),
            ("adblock", self._adblock.build()),
        )
        return SnapshotImage(sections, counters, len(self._learned))

    def _add_sites(self, chunks: _Chunks, markers: _Markers) -> None:
        """Adds a marker for each site that an Adblock rule names."""
        for source, sites in self._adblock.named_sites().items():
            rows = _as_rows([digest_of(site_marker(site)) for site in sites])
            chunks[ListAction.BLOCK].append((source, rows))
            markers[ListAction.BLOCK].append(rows)


def _markers_of(keys: list[str], action: ListAction) -> set[str]:
    """Returns the markers for url and prefix keys."""
    found = {marker for marker in map(prefix_marker, keys) if marker}
    if action is ListAction.BLOCK:
        found.update(part_marker(host_of_key(key)) for key in keys)
    return found


def _add_learned(
    learned: list[LearnedEntry], digests: list[bytes], sources: list[Source], chunks: _Chunks, markers: _Markers
) -> None:
    """Adds learned entries to the tables of lists, and creates a source for each kind of them."""
    groups: dict[tuple[ListAction, str], list[bytes]] = {}
    for entry, digest in zip(learned, digests, strict=True):
        group = groups.setdefault((entry.action, entry.category), [])
        group.append(digest)
        if marker := prefix_marker(entry.key):
            group.append(digest_of(marker))
            markers[entry.action].append(_as_rows(group[-1:]))
    for (action, category), found in groups.items():
        sources.append(learned_source(action, category))
        chunks[action].append((len(sources) - 1, _as_rows(found)))


def _count_distinct(parts: list[NDArray[np.uint8]]) -> int:
    return len(np.unique(np.concatenate(parts).view("V16"))) if parts else 0


def _gate(digests: list[NDArray[np.uint8]], error_rate: float, *, counting: bool) -> tuple[CountingBloom | None, bytes]:
    if not counting:
        return None, build_bloom(np.concatenate(digests), error_rate)
    counters = CountingBloom.for_digests(sum(map(len, digests)), error_rate)
    for part in digests:
        counters.add(part)
    return counters, counters.gate()


def _as_rows(digests: list[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, 16)
