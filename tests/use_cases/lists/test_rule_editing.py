import pytest

from gatewayfilter.errors import BroadRuleError, ConflictError, MissingError, PolicyError, RuleError
from gatewayfilter.interfaces import RuleQuery
from gatewayfilter.model import EntryKind, ListAction, ManualRule
from gatewayfilter.store import Store
from gatewayfilter.use_cases.lists.rule_editing import (
    RuleValues,
    add_rules,
    edit_rule,
    find_rule,
    is_on,
    read_wanted,
    remove_rule,
    rule_page,
    version_of,
)


def added(store: Store, text: str, values: RuleValues | None = None) -> ManualRule:
    return add_rules(store, [read_wanted(text)], values or RuleValues())[0].rule


@pytest.mark.parametrize("text", ["com", "*", "/.*/"])
def test_a_pattern_that_is_too_broad_is_an_error_of_its_own(text: str) -> None:
    with pytest.raises(BroadRuleError) as caught:
        read_wanted(text)
    assert "--force" not in str(caught.value), "a page has no options"
    assert read_wanted(text, force=True).text


@pytest.mark.parametrize("text", ["", "/(/", "10.0.0.0/8", "a,b", "x" * 5000, "\x00"])
def test_what_is_no_pattern_is_none_on_purpose_either(text: str) -> None:
    with pytest.raises(RuleError) as caught:
        read_wanted(text)
    assert not isinstance(caught.value, BroadRuleError)


def test_an_author_hears_what_is_rarely_meant(store: Store) -> None:
    page, mixed = add_rules(store, [read_wanted("https://a.example/"), read_wanted("p\u0430ypal.example")], RuleValues())
    assert (page.whole_site, page.mixed_scripts) == ("a.example", "")
    assert mixed.mixed_scripts == "p\u0430ypal.example"


def test_a_rule_is_edited_by_its_number(store: Store) -> None:
    rule = added(store, "a.example")
    values = RuleValues(ListAction.ALLOW, "why", "kids", 4e9)
    edited = edit_rule(store, rule.rule_id, read_wanted("b.example/x"), values, enabled=False, version=version_of(rule))
    wanted = ManualRule(rule.rule_id, ListAction.ALLOW, EntryKind.URL, "b.example/x", "why", "kids", 4e9, enabled=False)
    assert edited == wanted == find_rule(store, rule.rule_id)


def test_of_two_who_edit_one_rule_the_second_is_refused(store: Store) -> None:
    rule = added(store, "a.example")
    version = version_of(rule)
    edit_rule(store, rule.rule_id, read_wanted("a.example"), RuleValues(comment="first"), enabled=True, version=version)
    with pytest.raises(ConflictError, match=f"rule {rule.rule_id} was changed"):
        edit_rule(store, rule.rule_id, read_wanted("a.example"), RuleValues(comment="second"), enabled=True, version=version)
    with pytest.raises(ConflictError):
        remove_rule(store, rule.rule_id, version=version)
    assert find_rule(store, rule.rule_id).comment == "first"


def test_a_rule_that_is_gone_is_missing(store: Store) -> None:
    rule = added(store, "a.example")
    assert remove_rule(store, rule.rule_id, version=version_of(rule)) == rule
    gone = f"there is no rule {rule.rule_id}"
    with pytest.raises(MissingError, match=gone):
        find_rule(store, rule.rule_id)
    with pytest.raises(MissingError, match=gone):
        remove_rule(store, rule.rule_id)
    with pytest.raises(MissingError, match=gone):
        edit_rule(store, rule.rule_id, read_wanted("a.example"), RuleValues(), enabled=True)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (RuleValues(scope="client:nobody"), "there is no client 'nobody'"),
        (RuleValues(scope="everybody"), "is no client:NAME"),
        (RuleValues(ListAction.SPLICE, scope="group:default"), "for everybody"),
    ],
)
def test_a_rule_is_for_whom_there_is(store: Store, values: RuleValues, why: str) -> None:
    with pytest.raises(PolicyError, match=why):
        added(store, "a.example", values)
    assert store.lists.rules() == []


def test_rules_come_in_pages(store: Store) -> None:
    made = [added(store, f"h{number}.example", RuleValues(group="kids")) for number in range(5)][::-1]
    first = rule_page(store, RuleQuery(), limit=3)
    assert (list(first.rules), first.after) == (made[:3], made[2].rule_id)
    second = rule_page(store, RuleQuery(), first.after, 3)
    assert (list(second.rules), second.after) == (made[3:], 0)
    assert rule_page(store, RuleQuery(), limit=5).after == 0
    assert is_on(store, "kids")
    store.lists.switch_rules([rule.rule_id for rule in made], enabled=False)
    assert not is_on(store, "kids")
    assert is_on(store, "")
    assert not added(store, "new.example", RuleValues(group="kids")).enabled
