"""Counts of extraction rules: kept in memory, written together, added to those of other crawlers."""

from collections.abc import Mapping

import pytest

from gatewayfilter.errors import StoreError
from gatewayfilter.extraction.match_counts import MatchCounts
from gatewayfilter.interfaces import RuleMatches
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.crawling import rule_matches


def test_counts_are_added(store: Store) -> None:
    store.rule_matches.add({"news": RuleMatches(2, 1, 50.0), "shop": RuleMatches(1, 0, 9.0)})
    store.rule_matches.add({"news": RuleMatches(3, 0, 40.0)})  # by a crawler whose clock is behind
    assert store.rule_matches.all() == {"news": RuleMatches(5, 1, 50.0), "shop": RuleMatches(1, 0, 9.0)}


def test_names_are_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_matches, "MOST_RULES", 2)
    store.rule_matches.add({f"rule{n}": RuleMatches(1, 0, float(n)) for n in (3, 1, 2)})
    assert set(store.rule_matches.all()) == {"rule2", "rule3"}


def test_nothing_is_lost_while_the_database_is_away(store: Store) -> None:
    refusals = [StoreError("away")]

    def write(counts: Mapping[str, RuleMatches]) -> None:
        if refusals:
            raise refusals.pop()
        store.rule_matches.add(counts)

    counts = MatchCounts(write, lambda: 7.0)
    counts.count("news", empty=True)
    with pytest.raises(StoreError):
        counts.flush()
    counts.count("news", empty=False)
    counts.flush()
    counts.flush()
    assert store.rule_matches.all() == {"news": RuleMatches(2, 1, 7.0)}
