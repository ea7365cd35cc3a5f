"""Search and counts of lists for a child process: results are plain values; the engine stays in the child."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gatewayfilter.use_cases.lists.list_counts import list_counts
from gatewayfilter.use_cases.lists.list_search import search_lists
from gatewayfilter.wiring import open_store

if TYPE_CHECKING:
    from gatewayfilter.config import Settings
    from gatewayfilter.engine.filter_engine import FilterEngine
    from gatewayfilter.store import Store

MOST_LEARNED = 500
"""Learned entries that a search returns."""


def counts(settings: Settings, store: Store, engine: FilterEngine, now: float) -> dict[str, Any]:
    """Returns `list_counts` as plain values."""
    found = list_counts(settings, store, now, engine)
    kinds = ("blacklist", "whitelist", "splicelist", "adblock_rules")
    return {**asdict(found), "snapshot": {kind: getattr(found.snapshot, kind) for kind in kinds}}


def search_files(settings: Settings, text: str, *, partial: bool) -> dict[str, Any]:
    """Returns what `search` does, with a database and, where it needs one, an engine of its own."""
    with closing(open_store(settings)) as store:
        return search(settings, store, None, text, partial=partial)


def search(settings: Settings, store: Store, engine: FilterEngine | None, text: str, *, partial: bool) -> dict[str, Any]:
    """Returns `search_lists` as plain values, with the first `MOST_LEARNED` learned entries."""
    found = search_lists(settings, store, text, partial=partial, engine=engine, most_learned=MOST_LEARNED)
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
