"""Rules and learned entries that are removed or switched by their pattern, number or group."""

import pytest

from gatewayfilter.errors import RuleError
from gatewayfilter.model import EntryKind, LearnedEntry, ListAction
from gatewayfilter.store import Store
from gatewayfilter.use_cases.lists.rule_editing import (
    RemovedRules,
    RuleGroup,
    RuleValues,
    SwitchedRules,
    add_rules,
    forget_learned,
    read_wanted,
    remove_rules,
    rule_groups,
    switch_rules,
)


@pytest.fixture
def rules(store: Store) -> dict[str, int]:
    """Pattern → number."""
    found = {}
    for text, group in (("a.example", "kids"), ("b.example", ""), ("c.example/page", "kids"), ("d.example", "old")):
        found[text] = add_rules(store, [read_wanted(text)], RuleValues(group=group))[0].rule.rule_id
    return found


def _left(store: Store) -> list[str]:
    return sorted(rule.pattern.strip(".") for rule in store.lists.rules())


def test_rules_are_removed_by_pattern_or_number(store: Store, rules: dict[str, int]) -> None:
    done = remove_rules(store, ["a.example", str(rules["c.example/page"]), "e.example", "999"])
    assert done == RemovedRules(2, ("e.example", "999"))
    assert _left(store) == ["b.example", "d.example"]


def test_rules_of_a_group_alone(store: Store, rules: dict[str, int]) -> None:
    assert remove_rules(store, ["b.example", "a.example"], "kids") == RemovedRules(1, ("b.example",))
    assert remove_rules(store, ["a.example", "d.example"], "") == RemovedRules(0, ("a.example", "d.example"))
    assert _left(store) == ["b.example", "c.example/page", "d.example"]
    assert rules["a.example"] > 0


def test_a_host_is_found_however_it_was_added(store: Store) -> None:
    store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "a.example")
    store.lists.add_rule(ListAction.ALLOW, EntryKind.DOMAIN, ".a.example")
    store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "www.a.example")
    assert remove_rules(store, ["a.example", "a.example"]) == RemovedRules(2, ())
    assert _left(store) == ["www.a.example"]


def test_what_is_no_pattern_ends_it(store: Store, rules: dict[str, int]) -> None:
    with pytest.raises(RuleError):
        remove_rules(store, ["a.example", "/(/"])
    assert "a.example" not in _left(store)
    with pytest.raises(RuleError):
        switch_rules(store, ["b.example", "/(/"], enabled=False)
    assert all(rule.enabled for rule in store.lists.rules())
    assert len(rules) == 4


def test_rules_are_switched(store: Store, rules: dict[str, int]) -> None:
    assert switch_rules(store, ["b.example", "x.example"], enabled=False) == SwitchedRules(1, 1, ("x.example",))
    assert switch_rules(store, ["b.example", str(rules["d.example"])], enabled=False) == SwitchedRules(2, 1, ())
    assert switch_rules(store, [], "kids", enabled=False) == SwitchedRules(2, 2, ())
    assert switch_rules(store, ["a.example", "b.example"], "kids", enabled=True) == SwitchedRules(1, 1, ("b.example",))
    assert switch_rules(store, [], "nobody", enabled=True) == SwitchedRules(0, 0, ("group nobody",))
    assert rule_groups(store) == [RuleGroup("kids", 2, 1), RuleGroup("old", 1, 0)]


def test_what_was_learned_of_a_site_is_forgotten(store: Store) -> None:
    for key in ("a.example/x", "www.a.example/y", "ba.example/z", "b.example/x", "b.example/y"):
        store.lists.put_learned([LearnedEntry(key, ListAction.BLOCK, "ads", f"http://{key}", "", 1.0, 4e9)])
    assert forget_learned(store, ["a.example", "c.example"]) == RemovedRules(2, ("c.example",))
    assert forget_learned(store, ["b.example/x", "b.example/z"]) == RemovedRules(1, ("b.example/z",))
    assert sorted(entry.key for entry in store.lists.learned()) == ["b.example/y", "ba.example/z"]
