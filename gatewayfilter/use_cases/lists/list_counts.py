"""Counts of manual rules, learned entries and what the snapshot in use holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gatewayfilter.wiring import open_engine

if TYPE_CHECKING:
    from gatewayfilter.config import Settings
    from gatewayfilter.engine.filter_engine import FilterEngine
    from gatewayfilter.engine.snapshot.reader import SnapshotInfo
    from gatewayfilter.store import Store


@dataclass(frozen=True, slots=True)
class OwnCount:
    """The number of manual rules of an action and kind."""

    action: str
    kind: str
    entries: int


@dataclass(frozen=True, slots=True)
class LearnedCount:
    """The number of learned entries of an action and category."""

    action: str
    category: str
    entries: int


@dataclass(frozen=True, slots=True)
class ListCounts:
    """What there is.

    Attributes:
        own_expired, own_off: manual rules that have ended, or are switched off; they are counted in `own`, too.
        snapshot: of all lists, in use.
    """

    own: tuple[OwnCount, ...]
    own_expired: int
    own_off: int
    learned: tuple[LearnedCount, ...]
    snapshot: SnapshotInfo


def list_counts(settings: Settings, store: Store, now: float, engine: FilterEngine | None = None) -> ListCounts:
    """Counts everything.

    Args:
        settings: the settings.
        store: with manual rules and learned entries.
        now: Unix seconds.
        engine: in use; `None` opens one.
    """
    rules = store.lists.rules()
    own = Counter((rule.action.value, rule.kind.value) for rule in rules)
    return ListCounts(
        own=tuple(OwnCount(action, kind, count) for (action, kind), count in sorted(own.items())),
        own_expired=sum(rule.expires_at is not None and rule.expires_at <= now for rule in rules),
        own_off=sum(not rule.enabled for rule in rules),
        learned=tuple(
            LearnedCount(action, category, count) for (action, category), count in sorted(store.lists.learned_kinds().items())
        ),
        snapshot=(engine or open_engine(settings, store)).snapshot.info,
    )
