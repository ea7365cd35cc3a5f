"""Manual rules named by pattern or number, switched in groups, shown in pages; what was learned is forgotten by host."""

import pytest

from gatewayfilter.errors import ConflictError, MissingItemError, PolicyError, RuleError
from gatewayfilter.interfaces import RuleQuery
from gatewayfilter.model import Client, EntryKind, Group, LearnedEntry, ListAction, ManualRule, PolicySet, parse_matcher
from gatewayfilter.store import Store
from gatewayfilter.use_cases.lists.rule_editing import (
    RuleGroup,
    RuleValues,
    add_rules,
    check_scope,
    edit_rule,
    forget_learned,
    matching,
    read_wanted,
    remove_rule,
    remove_rules,
    rule_groups,
    rule_page,
    switch_rules,
    version_of,
)

BLOCK, SPLICE = ListAction.BLOCK, ListAction.SPLICE


def rule(number: int, kind: EntryKind, pattern: str, **values: object) -> ManualRule:
    return ManualRule(number, BLOCK, kind, pattern, **values)  # type: ignore[arg-type]


RULES = [
    rule(1, EntryKind.DOMAIN, ".a.example"),
    rule(2, EntryKind.HOST, "a.example"),
    rule(3, EntryKind.URL, "a.example/x"),
    rule(12, EntryKind.DOMAIN, ".b.example"),
    rule(13, EntryKind.DOMAIN, ".com"),
]


@pytest.mark.parametrize(
    ("named", "numbers"),
    [
        ("a.example", [1, 2]),
        ("|a.example", [2]),
        ("1", [1]),
        ("12", [12]),
        ("2", [2]),
        ("a.example/x", [3]),
        ("99", []),
        ("com", [13]),
        ("c.example", []),
    ],
)
def test_rules_are_named_by_pattern_or_number(named: str, numbers: list[int]) -> None:
    assert [found.rule_id for found in matching(RULES, named)] == numbers


def test_a_host_alone_is_read_exactly() -> None:
    assert read_wanted("a.example", exact=True).kind is EntryKind.HOST
    assert read_wanted("a.example").kind is EntryKind.DOMAIN
    with pytest.raises(RuleError, match="not a url"):
        read_wanted("a.example/x", SPLICE)
    assert read_wanted("a.example", SPLICE).kind is EntryKind.DOMAIN


def test_whom_a_rule_is_for() -> None:
    policies = PolicySet.of([Client("kim", (parse_matcher("10.0.0.1"),)), Group("kids")])
    for scope in ("", "client:kim", "group:kids", "group:default"):
        check_scope(scope, BLOCK, policies)
    check_scope("", SPLICE, policies)
    for scope, sentence in (("client:kids", "no client 'kids'"), ("group:kim", "no group 'kim'")):
        with pytest.raises(MissingItemError, match=sentence):
            check_scope(scope, BLOCK, policies)
    for scope in ("kim", "user:kim"):
        with pytest.raises(PolicyError, match="no client:NAME or group:NAME") as caught:
            check_scope(scope, BLOCK, policies)
        assert not isinstance(caught.value, MissingItemError)
    with pytest.raises(PolicyError, match="for everybody"):
        check_scope("client:kim", SPLICE, policies)


def test_rules_are_removed_and_switched_by_group(store: Store) -> None:
    for host, group in (("a.example", "kids"), ("b.example", "kids"), ("a.example", "home"), ("c.example", "")):
        add_rules(store, [read_wanted(host)], RuleValues(group=group))
    switched = switch_rules(store, [], "kids", enabled=False)
    assert (switched.entries, switched.changed, switched.missing) == (2, 2, ())
    assert switch_rules(store, [], "kids", enabled=False).changed == 0
    assert switch_rules(store, [], "none", enabled=False).missing == ("group none",)
    assert rule_groups(store) == [RuleGroup("home", 1, 1), RuleGroup("kids", 2, 0)]
    named = switch_rules(store, ["a.example", "x.example"], enabled=True)
    assert (named.entries, named.changed, named.missing) == (2, 1, ("x.example",))
    assert rule_groups(store) == [RuleGroup("home", 1, 1), RuleGroup("kids", 2, 1)]
    removed = remove_rules(store, ["a.example", "c.example"], "kids")
    assert (removed.removed, removed.missing) == (1, ("c.example",))
    removed = remove_rules(store, ["a.example", "a.example", "b.example"])
    assert (removed.removed, removed.missing) == (2, ())
    assert [one.pattern for one in store.lists.rules()] == [".c.example"]


def test_a_rule_that_is_added_again_is_changed(store: Store) -> None:
    (first,) = add_rules(store, [read_wanted("a.example")], RuleValues(comment="one"))
    (again,) = add_rules(store, [read_wanted("a.example")], RuleValues(ListAction.ALLOW, "two", expires_at=4e9))
    assert (again.rule.rule_id, again.rule.action, again.rule.comment, again.rule.expires_at) == (
        *(first.rule.rule_id, ListAction.ALLOW, "two", 4e9),
    )
    assert len(store.lists.rules()) == 1


def test_a_rule_is_changed_or_removed_as_it_was_read(store: Store) -> None:
    (added,) = add_rules(store, [read_wanted("a.example")], RuleValues())
    number, version = added.rule.rule_id, version_of(added.rule)
    with pytest.raises(RuleError, match="not a url"):
        edit_rule(store, number, read_wanted("a.example/x"), RuleValues(SPLICE), enabled=True)
    with pytest.raises(PolicyError):
        edit_rule(store, number, read_wanted("a.example"), RuleValues(scope="client:x"), enabled=True)
    with pytest.raises(ConflictError):
        edit_rule(store, number, read_wanted("a.example"), RuleValues(), enabled=True, version="older")
    edited = edit_rule(store, number, read_wanted("a.example"), RuleValues(comment="x"), enabled=True)
    assert (edited.comment, version_of(edited) != version, len(version)) == ("x", True, 24)
    assert remove_rule(store, number) == edited


def test_pages_of_rules_are_full(store: Store) -> None:
    added = [one.rule for one in add_rules(store, [read_wanted(f"h{number}.example") for number in range(4)], RuleValues())]
    first = rule_page(store, RuleQuery(), limit=2)
    assert (first.rules, first.after) == ((added[3], added[2]), added[2].rule_id)
    assert rule_page(store, RuleQuery(), first.after, 2).after == 0
    assert len(rule_page(store, RuleQuery()).rules) == 4


def test_what_was_learned_of_a_site_is_forgotten(store: Store) -> None:
    keys = ("a.example/x", "www.a.example/y", "nota.example/z", ".b.example", "c.test/")
    store.lists.put_learned([LearnedEntry(key, BLOCK, "ads", f"http://{key}", "", 0.0, 4e9) for key in keys])
    found = forget_learned(store, ["a.example", "c.example"])
    assert (found.removed, found.missing) == (2, ("c.example",))
    assert forget_learned(store, ["http://nota.example/z"]).removed == 1
    assert forget_learned(store, ["|b.example"]).removed == 1
    assert forget_learned(store, ["test"]).removed == 1, "however broad"
    assert list(store.lists.learned()) == []
