"""What a gateway itself has of the shared state: its manual rules, policy items and sources, read and changed."""

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from gatewayfilter.errors import GatewayFilterError, PolicyError, StoreError
from gatewayfilter.interfaces import ChangeFeed, ListStore, PolicyStore
from gatewayfilter.model import FLEET_GROUPS, ChangeKind, ManualRule, PolicyItem, PolicySet, kind_of_item
from gatewayfilter.scaleout.sync.shared_values import ITEMS, MOST_BYTES, Shared, SharedSource, field_of, text_of
from gatewayfilter.sources import Subscriptions

_log = logging.getLogger(__name__)

_PAGE: Final = 1_000
_OURS: Final = frozenset({
    ChangeKind.MANUAL_ADDED, ChangeKind.MANUAL_REMOVED, ChangeKind.POLICY_PUT, ChangeKind.POLICY_REMOVED
})  # fmt: skip
_RANK: Final = {kind.__name__.lower(): rank for rank, kind in enumerate(ITEMS)}


class LocalState:
    """The rules, items and sources of this gateway.

    Args:
        lists: manual rules.
        policies: policy items.
        feed: tells that one of the two has changed.
        sources: subscriptions; those that come with the program, and files of this machine, are not shared.
        folder: of the sources; one look at it tells whether they may have changed.
        publish: publishes the lists, after a source was switched or removed.
    """

    def __init__(
        self,
        lists: ListStore,
        policies: PolicyStore,
        feed: ChangeFeed,
        sources: Subscriptions,
        folder: Path,
        publish: Callable[[], object],
    ) -> None:
        self._lists = lists
        self._policies = policies
        self._feed = feed
        self._sources = sources
        self._publish = publish
        self._seq: int | None = None
        self._folder = folder
        self._looks: dict[str, int] = {}

    def has_changed(self) -> bool:
        """Returns whether something may have changed since the last call; the first one returns true.

        Raises:
            StoreError: the database refuses.
        """
        changed = self._seq is None
        seq = self._feed.last_seq() if self._seq is None else self._seq
        while changes := self._feed.read(seq, _PAGE):
            changed |= any(change.kind in _OURS for change in changes)
            seq = changes[-1].seq
        self._seq = seq
        looks = self._look_at_sources()
        changed |= looks != self._looks
        self._looks = looks
        return changed

    def _look_at_sources(self) -> dict[str, int]:
        found = {}
        with suppress(OSError):
            for folder in self._folder.iterdir():
                with suppress(OSError):
                    found[folder.name] = (folder / "source.json").stat().st_mtime_ns
        return found

    def read(self) -> dict[str, str]:
        """Returns the texts of all that is shared, by field.

        Raises:
            StoreError: the database refuses.
        """
        items = [item for item in self._policies.read() if isinstance(item, ITEMS)]
        rules = [rule for rule in self._lists.rules() if rule.group not in FLEET_GROUPS]
        found: list[Shared] = [*items, *rules, *self._shared_sources().values()]
        texts = {field_of(shared): text_of(shared) for shared in found}
        return {field: text for field, text in texts.items() if len(text) < MOST_BYTES // 2}

    def apply(self, changes: Mapping[str, Shared | None]) -> dict[str, str]:
        """Brings what is here to these values, `None` for what is removed. Returns why some could not be, by field.

        Raises:
            StoreError: the database refuses.
        """
        refused = self._apply_items({field: one for field, one in changes.items() if field.startswith("item:")})
        self._apply_rules({field: one for field, one in changes.items() if field.startswith("rule:")})
        sources = {field: one for field, one in changes.items() if field.startswith("source:")}
        return refused | (self._apply_sources(sources) if sources else {})

    def _apply_items(self, changes: Mapping[str, Shared | None]) -> dict[str, str]:
        if not changes:
            return {}
        plan = _Items(changes)
        try:
            self._policies.change(plan.steps, time.time())
        except PolicyError:  # one of them contradicts what is here: each by itself, then
            refused = {}
            for field, one in sorted(changes.items(), key=lambda pair: _rank(pair[1])):
                try:
                    self._policies.change(_Items({field: one}).steps, time.time())
                except PolicyError as error:
                    refused[field] = str(error)
            return refused
        return {}

    def _apply_rules(self, changes: Mapping[str, Shared | None]) -> None:
        if not changes:
            return
        present = {field_of(rule): rule.rule_id for rule in self._lists.rules() if rule.group not in FLEET_GROUPS}
        for field, one in changes.items():
            if one is None and field in present:
                self._lists.remove_rule(present[field])
        if wanted := [one for one in changes.values() if isinstance(one, ManualRule)]:
            self._lists.add_rules(wanted)

    def _apply_sources(self, changes: Mapping[str, Shared | None]) -> dict[str, str]:
        refused = {}
        for field, one in changes.items():
            name = field.removeprefix("source:")
            try:
                self._put_source(name, one if isinstance(one, SharedSource) else None)
            except StoreError:
                raise
            except GatewayFilterError as error:
                refused[field] = str(error)
        try:
            self._publish()
        except GatewayFilterError as error:
            _log.warning("the lists are published later: %s", error)
        return refused

    def _put_source(self, name: str, wanted: SharedSource | None) -> None:
        present = self._shared_sources().get(name)
        if present == wanted:
            return
        if present is not None and (wanted is None or _but_switch(present) != _but_switch(wanted)):
            self._sources.remove(name)
            present = None
        if wanted is None:
            return
        if present is None:
            self._sources.add(
                wanted.address, name=name, category=wanted.category, action=wanted.action, interval_h=wanted.interval_h,
                fetch=False,
            )  # fmt: skip
        (self._sources.enable if wanted.enabled else self._sources.disable)(name)

    def _shared_sources(self) -> dict[str, SharedSource]:
        found = {}
        for item in self._sources.all():
            one = item.definition
            if not one.bundled and one.address.startswith(("http://", "https://")):
                found[one.name] = SharedSource(
                    one.name, one.address, one.category, one.action, float(one.interval_h), one.enabled
                )
        return found


class _Items:
    """The steps that bring policy items to these values."""

    def __init__(self, changes: Mapping[str, Shared | None]) -> None:
        self._changes = changes

    def steps(self, policies: PolicySet) -> list[tuple[PolicyItem, bool]]:
        """Returns pairs of an item and whether it is put (else removed): puts first, then what is removed."""
        present = {field_of(item): item for item in policies if isinstance(item, ITEMS)}
        puts = [one for one in self._changes.values() if isinstance(one, ITEMS)]
        gone = [present[field] for field, one in self._changes.items() if one is None and field in present]
        return [
            *((item, True) for item in sorted(puts, key=_rank)),
            *((item, False) for item in sorted(gone, key=_rank, reverse=True)),
        ]


def _rank(item: Shared | None) -> int:
    return _RANK[kind_of_item(item)] if isinstance(item, ITEMS) else -1


def _but_switch(source: SharedSource) -> tuple[object, ...]:
    return source.address, source.category, source.action, source.interval_h
