"""Gateways of the tests: a database, sources and a synchronizer each, over one shared state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from gatewayfilter.config import bundled_folder
from gatewayfilter.model import EntryKind, ListAction, ManualRule
from gatewayfilter.scaleout.sync.local_state import LocalState
from gatewayfilter.scaleout.sync.shared_values import SyncCodec
from gatewayfilter.scaleout.sync.synchronizer import SharedState, StreamPlace, Synchronizer
from gatewayfilter.settings import SourceSettings
from gatewayfilter.sources import Subscriptions
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters

KEY = b"k" * 32


class MemoryState:
    """A shared state without a server."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.stream: list[tuple[int, str]] = []
        self.number, self.epoch, self.kept = 0, "e", 10_000

    def after(self, place: StreamPlace) -> tuple[StreamPlace, frozenset[str] | None]:
        first = self.stream[0][0] if self.stream else self.number + 1
        if place.epoch != self.epoch or self.number < place.number or first > place.number + 1:
            return StreamPlace(self.epoch, self.number), None
        return StreamPlace(self.epoch, self.number), frozenset(name for number, name in self.stream if number > place.number)

    def values(self, fields: Iterable[str]) -> dict[str, bytes]:
        return {name: self.held[name] for name in fields if name in self.held}

    def all(self) -> dict[str, bytes]:
        return dict(self.held)

    def put(self, values: Mapping[str, bytes]) -> None:
        for name, value in values.items():
            if self.held.get(name) != value:
                self.held[name] = value
                self.number += 1
                self.stream.append((self.number, name))
        del self.stream[: -self.kept]


class Gateway:
    """One gateway."""

    def __init__(self, folder: Path, shared: SharedState, key: bytes = KEY) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.shared = folder, shared
        self.store = Store.open(f"sqlite:///{folder / 'db.sqlite3'}")
        self.sources = Subscriptions(folder / "sources", SourceSettings(), bundled_folder())
        self.counters, self.published, self._key = Counters(), 0, key
        self.sync = self.begun()

    def begun(self) -> Synchronizer:
        local = LocalState(
            self.store.lists, self.store.policies, self.store.feed, self.sources, self.folder / "sources", self._publish
        )
        self.sync = Synchronizer(self.shared, local, SyncCodec(self._key), self.folder / "sync.json", self.counters)
        return self.sync

    def _publish(self) -> None:
        self.published += 1

    def block(self, host: str, comment: str = "", group: str = "") -> None:
        self.store.lists.add_rules([ManualRule(0, ListAction.BLOCK, EntryKind.DOMAIN, f".{host}", comment, group)])

    def rules(self) -> set[tuple[str, str]]:
        return {(rule.pattern, rule.comment) for rule in self.store.lists.rules()}

    def names(self) -> set[str]:
        return {item.definition.name for item in self.sources.all() if not item.definition.bundled}


def settle(*gateways: Gateway) -> int:
    """Lets gateways work until none has anything to do. Returns the rounds that took: a circle would never end."""
    for number in range(12):
        if not sum(gateway.sync.step() for gateway in gateways):
            return number
    raise AssertionError("the gateways never come to rest")
