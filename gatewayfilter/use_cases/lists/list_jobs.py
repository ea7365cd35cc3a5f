"""Search and counts of lists for a child process: arguments and results are plain values; the engine stays in the child."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gatewayfilter.use_cases.lists.list_counts import list_counts
from gatewayfilter.use_cases.lists.list_search import search_lists
from gatewayfilter.wiring import open_store

if TYPE_CHECKING:
    from gatewayfilter.config import Settings


def counts(settings: Settings, now: float) -> dict[str, Any]:
    """Returns `list_counts` as plain values.

    Raises:
        SnapshotError: no lists were published yet.
    """
    with closing(open_store(settings)) as store:
        found = list_counts(settings, store, now)
    kinds = ("blacklist", "whitelist", "splicelist", "adblock_rules")
    return {**asdict(found), "snapshot": {kind: getattr(found.snapshot, kind) for kind in kinds}}


def search(settings: Settings, text: str, *, partial: bool) -> dict[str, Any]:
    """Returns `search_lists` as plain values."""
    with closing(open_store(settings)) as store:
        found = search_lists(settings, store, text, partial=partial)
    return {
        "own": [
            {
                "id": one.rule.rule_id,
                "action": one.rule.action.value,
                "kind": one.rule.kind.value,
                "pattern": one.rule.pattern,
                "covers": one.covers,
            }
            for one in found.own
        ],
        "learned": [{"url": one.url, "action": one.action.value, "category": one.category} for one in found.learned],
        "lists": [asdict(one) for one in found.lists],
        "unreadable": list(found.unreadable),
    }
