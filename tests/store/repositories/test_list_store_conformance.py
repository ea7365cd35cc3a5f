"""What every list store and its change feed must do, over every implementation that `conftest.py` knows."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from gatewayfilter.errors import RuleError
from gatewayfilter.interfaces import ChangeFeed, ListStore, PublisherFeed, RuleQuery
from gatewayfilter.model import Change, ChangeKind, EntryKind, LearnedEntry, ListAction, ManualRule
from gatewayfilter.store import Store

ALLOW, BLOCK = ListAction.ALLOW, ListAction.BLOCK
ADDED, REMOVED = ChangeKind.MANUAL_ADDED, ChangeKind.MANUAL_REMOVED
LEARNED, UNLEARNED = ChangeKind.LEARNED_ADDED, ChangeKind.LEARNED_REMOVED


def entry(key: str, *, action: ListAction = BLOCK, category: str = "gambling", expires_at: float = 1000.0) -> LearnedEntry:
    return LearnedEntry(key, action, category, f"http://{key}", "score 42.0 (limit 20.0): 赌博", 10.5, expires_at)


def steps(feed: ChangeFeed, after: int = 0) -> list[tuple[ChangeKind, ManualRule | LearnedEntry | None]]:
    return [(change.kind, change.manual or change.learned) for change in feed.read(after)]


def test_nothing_yet(lists: ListStore, feed: ChangeFeed) -> None:
    assert lists.rules() == []
    assert list(lists.learned()) == []
    assert lists.expired_learned(1e12) == []
    assert feed.last_seq() == 0
    assert feed.read(0) == []
    assert lists.compact_feed(100) == 0


def test_a_rule_comes_back_as_it_was_given(lists: ListStore, feed: ChangeFeed) -> None:
    rule = lists.add_rule(BLOCK, EntryKind.REGEX, r"^https?://[a-z]+\.例え/", comment="späße", group="kids", expires_at=99.5)
    assert rule == ManualRule(rule.rule_id, BLOCK, EntryKind.REGEX, r"^https?://[a-z]+\.例え/", "späße", "kids", 99.5)
    assert rule.rule_id > 0
    assert lists.rules() == [rule]
    (change,) = feed.read(0)
    assert change == Change(feed.last_seq(), ADDED, manual=rule)


def test_the_same_rule_again_is_no_change(lists: ListStore, feed: ChangeFeed) -> None:
    first = lists.add_rule(BLOCK, EntryKind.HOST, "a.example", comment="x")
    assert lists.add_rule(BLOCK, EntryKind.HOST, "a.example", comment="x") == first
    assert steps(feed) == [(ADDED, first)]


@pytest.mark.parametrize(
    ("action", "comment", "expires_at"), [(ALLOW, "", None), (BLOCK, "why", None), (BLOCK, "", 5.0), (ALLOW, "why", 5.0)]
)
def test_a_rule_is_replaced_and_the_feed_carries_removal_and_addition(
    lists: ListStore, feed: ChangeFeed, action: ListAction, comment: str, expires_at: float | None
) -> None:
    old = lists.add_rule(BLOCK, EntryKind.HOST, "a.example")
    new = lists.add_rule(action, EntryKind.HOST, "a.example", comment=comment, expires_at=expires_at)
    assert new == replace(old, action=action, comment=comment, expires_at=expires_at)
    assert lists.rules() == [new]
    assert steps(feed) == [(ADDED, old), (REMOVED, old), (ADDED, new)]


def test_rules_are_switched_off_and_on(lists: ListStore, feed: ChangeFeed) -> None:
    first, second, third = (lists.add_rule(BLOCK, EntryKind.HOST, f"{name}.example", group="kids") for name in "abc")
    seq = feed.last_seq()
    assert lists.switch_rules([first.rule_id, third.rule_id, third.rule_id, 999], enabled=False) == 2
    off = [replace(first, enabled=False), second, replace(third, enabled=False)]
    assert lists.rules() == off
    kinds = [(change.kind, change.manual) for change in feed.read(seq)]
    assert kinds == [(REMOVED, first), (ADDED, off[0]), (REMOVED, third), (ADDED, off[2])]
    assert lists.switch_rules([first.rule_id, second.rule_id], enabled=False) == 1
    assert lists.switch_rules([rule.rule_id for rule in off], enabled=True) == 3
    assert lists.rules() == [first, second, third]
    assert lists.switch_rules([], enabled=True) == 0
    assert lists.add_rule(BLOCK, EntryKind.HOST, "d.example", enabled=False).enabled is False
    assert lists.add_rule(BLOCK, EntryKind.HOST, "d.example").enabled is True


def test_a_rule_is_edited_and_keeps_its_number(lists: ListStore, feed: ChangeFeed) -> None:
    old = lists.add_rule(BLOCK, EntryKind.HOST, "a.example", comment="x")
    other = lists.add_rule(BLOCK, EntryKind.HOST, "b.example")
    seq = feed.last_seq()
    new = ManualRule(old.rule_id, ALLOW, EntryKind.DOMAIN, ".c.example", "y", "kids", 9.5, enabled=False, scope="client:tab")
    assert lists.edit_rule(old.rule_id, lambda rule: replace(new, rule_id=rule.rule_id + 7)) == new
    assert lists.rule(old.rule_id) == new
    assert [(change.kind, change.manual) for change in feed.read(seq)] == [(REMOVED, old), (ADDED, new)]
    assert lists.add_rule(BLOCK, EntryKind.HOST, "a.example").rule_id > other.rule_id, "its old pattern is free again"
    seq = feed.last_seq()
    assert lists.edit_rule(old.rule_id, lambda rule: rule) == new
    assert feed.read(seq) == []


def test_an_edit_that_cannot_be_leaves_everything_as_it_was(lists: ListStore, feed: ChangeFeed) -> None:
    first, second = (lists.add_rule(BLOCK, EntryKind.HOST, f"{name}.example") for name in "ab")
    seq = feed.last_seq()
    with pytest.raises(RuleError, match=f"rule {second.rule_id} has this pattern"):
        lists.edit_rule(first.rule_id, lambda rule: replace(rule, pattern="b.example"))

    def refuse(rule: ManualRule) -> ManualRule:
        raise RuleError(rule.pattern)

    with pytest.raises(RuleError, match=r"a\.example"):
        lists.edit_rule(first.rule_id, refuse)
    assert lists.edit_rule(999, refuse) is None
    assert lists.rule(999) is None
    assert lists.rules() == [first, second]
    assert feed.read(seq) == []


def test_rules_come_in_pages_newest_first(lists: ListStore) -> None:
    made = [lists.add_rule(BLOCK, EntryKind.HOST, f"h{number}.example", group="kids" * (number % 2)) for number in range(7)]
    newest = made[::-1]
    assert lists.page_of_rules(RuleQuery(), limit=3) == newest[:3]
    assert lists.page_of_rules(RuleQuery(), newest[2].rule_id, 3) == newest[3:6]
    assert lists.page_of_rules(RuleQuery(), newest[5].rule_id, 3) == newest[6:]
    assert lists.count_rules(RuleQuery()) == 7
    assert lists.page_of_rules(RuleQuery(group="kids")) == [rule for rule in newest if rule.group]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (RuleQuery(text="A.EXAMPLE"), ["a.example"]),
        (RuleQuery(text="100%_"), ["b.example"]),
        (RuleQuery(text="%"), ["b.example"]),
        (RuleQuery(text="kid"), [".c.example"]),
        (RuleQuery(text="' or 1=1 --"), []),
        (RuleQuery(action=ALLOW), ["b.example"]),
        (RuleQuery(scope="client:tab"), [".c.example"]),
        (RuleQuery(scope="", enabled=True), ["a.example"]),
        (RuleQuery(group=""), ["b.example", "a.example"]),
    ],
)
def test_rules_are_found(lists: ListStore, query: RuleQuery, found: list[str]) -> None:
    lists.add_rule(BLOCK, EntryKind.HOST, "a.example")
    lists.add_rule(ALLOW, EntryKind.HOST, "b.example", comment="100%_sure", enabled=False)
    lists.add_rule(BLOCK, EntryKind.DOMAIN, ".c.example", group="kids", scope="client:tab")
    assert [rule.pattern for rule in lists.page_of_rules(query)] == found
    assert lists.count_rules(query) == len(found)


def test_kind_pattern_and_group_make_a_rule(lists: ListStore) -> None:
    made = [
        lists.add_rule(BLOCK, EntryKind.HOST, "a.example"),
        lists.add_rule(BLOCK, EntryKind.WILDCARD, "a.example"),
        lists.add_rule(BLOCK, EntryKind.HOST, "a.example", group="kids"),
        lists.add_rule(BLOCK, EntryKind.HOST, "b.example"),
    ]
    assert lists.rules() == made
    assert len({rule.rule_id for rule in made}) == 4


def test_many_rules_at_once(lists: ListStore, feed: ChangeFeed) -> None:
    kept = lists.add_rule(BLOCK, EntryKind.HOST, "h0.example")
    turned = lists.add_rule(BLOCK, EntryKind.HOST, "h1.example")
    seq = feed.last_seq()
    many = [ManualRule(0, BLOCK, EntryKind.HOST, f"h{number}.example") for number in range(1300)]
    many[1] = replace(many[1], action=ALLOW)
    many += [replace(many[7], comment="the last one counts")]
    assert lists.add_rules(many) == 1299
    rules = {rule.pattern: rule for rule in lists.rules()}
    assert len(rules) == 1300
    assert rules["h0.example"] == kept
    assert rules["h1.example"] == replace(turned, action=ALLOW)
    assert rules["h7.example"].comment == "the last one counts"
    changes = feed.read(seq, limit=5000)
    assert len(changes) == 1300
    added = {change.manual.pattern: change.manual for change in changes if change.kind is ADDED and change.manual}
    assert added == {pattern: rule for pattern, rule in rules.items() if pattern != "h0.example"}
    assert lists.add_rules(many) == 0
    assert lists.add_rules([]) == 0


def test_a_removed_rule_is_gone_and_its_number_is_not_used_again(lists: ListStore, feed: ChangeFeed) -> None:
    rule = lists.add_rule(ALLOW, EntryKind.DOMAIN, ".a.example")
    assert lists.remove_rule(rule.rule_id) is True
    assert lists.remove_rule(rule.rule_id) is False
    assert lists.rules() == []
    assert steps(feed) == [(ADDED, rule), (REMOVED, rule)]
    assert lists.add_rule(ALLOW, EntryKind.DOMAIN, ".a.example").rule_id != rule.rule_id


def test_learned_entries_are_put_found_and_removed(lists: ListStore, feed: ChangeFeed) -> None:
    one, two = entry("a.example/1"), entry("a.example/2", action=ALLOW, category="")
    lists.put_learned([one, two])
    assert sorted(lists.learned(), key=lambda found: found.key) == [one, two]
    assert lists.find_learned([two.key, "a.example/3"]) == [two]
    assert lists.find_learned([]) == []
    assert lists.remove_learned([one.key, "a.example/3"]) == 1
    assert lists.remove_learned([]) == 0
    assert list(lists.learned()) == [two]
    assert steps(feed) == [(LEARNED, one), (LEARNED, two), (UNLEARNED, one)]


def test_the_newest_blocked_entries_of_a_time_span(lists: ListStore) -> None:
    made = [replace(entry(f"a.example/{at}"), created_at=float(at)) for at in range(10)]
    allowed = replace(entry("b.example/x", action=ALLOW), created_at=5.0)
    lists.put_learned([*made, allowed])
    assert lists.blocked_between(3.0, 8.0, 2) == ([made[7], made[6]], 5)
    assert lists.blocked_between(90.0, 91.0, 2) == ([], 0)


def test_a_learned_entry_is_replaced_by_removal_and_addition(lists: ListStore, feed: ChangeFeed) -> None:
    old, new = entry("a.example/"), entry("a.example/", action=ALLOW, category="", expires_at=2000.0)
    lists.put_learned([old])
    lists.put_learned([old, new])
    assert list(lists.learned()) == [new]
    assert steps(feed) == [(LEARNED, old), (UNLEARNED, old), (LEARNED, new)]


def test_an_entry_may_stay_in_the_place_of_a_new_one(lists: ListStore, feed: ChangeFeed) -> None:
    stays, goes = entry("a.example/x", category="fraud"), entry("a.example/y")
    lists.put_learned([stays, goes])
    after = feed.last_seq()
    new = [entry("a.example/x", expires_at=5.0), entry("a.example/y", expires_at=5.0), entry("a.example/z")]
    assert lists.put_learned(new, unless=lambda known: known.category == "fraud") == [stays]
    assert {found.key: found for found in lists.learned()} == {"a.example/x": stays, "a.example/y": new[1], "a.example/z": new[2]}
    assert steps(feed, after) == [(UNLEARNED, goes), (LEARNED, new[1]), (LEARNED, new[2])]


def test_where_all_entries_stay_nothing_changes(lists: ListStore, feed: ChangeFeed) -> None:
    lists.put_learned([entry("a.example/x")])
    after = feed.last_seq()
    assert lists.put_learned([entry("a.example/x", expires_at=5.0)], unless=lambda _: True) == [entry("a.example/x")]
    assert feed.last_seq() == after


def test_thousands_of_learned_entries(lists: ListStore, feed: ChangeFeed) -> None:
    entries = {f"a.example/{number}": entry(f"a.example/{number}") for number in range(2300)}
    lists.put_learned(list(entries.values()))
    lists.put_learned([])
    assert {found.key: found for found in lists.learned()} == entries
    assert len(lists.find_learned(list(entries))) == 2300
    assert lists.remove_learned(list(entries)) == 2300
    assert list(lists.learned()) == []
    assert len(feed.read(0, limit=10_000)) == 4600


def test_expired_entries_come_longest_expired_first(lists: ListStore) -> None:
    lists.put_learned([entry(f"a.example/{time}", expires_at=float(time)) for time in (30, 10, 20, 40)])
    assert [found.expires_at for found in lists.expired_learned(30.0)] == [10.0, 20.0, 30.0]
    assert [found.expires_at for found in lists.expired_learned(30.0, limit=2)] == [10.0, 20.0]
    assert len(list(lists.learned())) == 4


def test_the_feed_is_read_in_order_and_in_parts(lists: ListStore, feed: ChangeFeed) -> None:
    for number in range(5):
        lists.add_rule(BLOCK, EntryKind.HOST, f"h{number}.example")
    seqs = [change.seq for change in feed.read(0)]
    assert seqs == sorted(set(seqs))
    assert [change.seq for change in feed.read(seqs[1], limit=2)] == seqs[2:4]
    assert feed.read(seqs[-1]) == []
    assert feed.last_seq() == seqs[-1]


def test_compaction_forgets_old_steps_but_never_the_number(lists: ListStore, feed: ChangeFeed) -> None:
    for number in range(5):
        lists.add_rule(BLOCK, EntryKind.HOST, f"h{number}.example")
    seqs = [change.seq for change in feed.read(0)]
    assert lists.compact_feed(seqs[1]) == 2
    assert [change.seq for change in feed.read(0)] == seqs[2:]
    lists.compact_feed(seqs[-1] + 100)
    assert feed.last_seq() == seqs[-1]
    assert feed.read(seqs[-1]) == []
    lists.add_rule(ALLOW, EntryKind.HOST, "new.example")
    assert feed.last_seq() > seqs[-1]
    assert len(feed.read(seqs[-1])) == 1
    assert len(lists.rules()) == 6


def test_a_publisher_reads_what_became_of_learned_entries(lists: ListStore, feed: PublisherFeed) -> None:
    lists.put_learned([entry("a.example/1"), entry("a.example/2"), entry('ä.example/"3')])
    first = feed.last_seq()
    lists.add_rule(BLOCK, EntryKind.HOST, "h.example")
    assert feed.learned_between(0, first) == {key: entry(key) for key in ("a.example/1", "a.example/2", 'ä.example/"3')}
    lists.remove_learned(["a.example/1", 'ä.example/"3'])
    lists.put_learned([entry("a.example/2", expires_at=7.0)])
    last = feed.last_seq()
    gone = {"a.example/1": None, 'ä.example/"3': None}
    assert feed.learned_between(first, last) == {"a.example/2": entry("a.example/2", expires_at=7.0), **gone}
    assert feed.learned_between(first, first + 1) == {}
    assert feed.learned_between(last, last + 10) == {}


def test_a_step_is_known_again_by_its_mark(lists: ListStore, feed: PublisherFeed) -> None:
    assert feed.mark(0)
    assert feed.mark(1) == ""
    for number in range(3):
        lists.add_rule(BLOCK, EntryKind.HOST, f"h{number}.example")
    seqs = [change.seq for change in feed.read(0)]
    marks = [feed.mark(seq) for seq in (0, *seqs)]
    assert all(marks)
    assert len(set(marks)) == 4
    assert [feed.mark(seq) for seq in (0, *seqs)] == marks
    lists.compact_feed(seqs[1])
    assert [feed.mark(seq) for seq in (0, *seqs)] == ["", "", "", marks[3]]


def test_what_one_user_changes_another_reads(open_store: Callable[[], Store]) -> None:
    mine, theirs = open_store(), open_store()
    rule = mine.lists.add_rule(BLOCK, EntryKind.HOST, "a.example")
    assert theirs.lists.rules() == [rule]
    assert [change.manual for change in theirs.feed.read(0)] == [rule]


def test_an_entry_keeps_its_certainty_in_list_and_feed(lists: ListStore, feed: ChangeFeed) -> None:
    certain = replace(entry("a.example/"), certainty=0.97)
    lists.put_learned([certain, entry("b.example/")])
    assert {found.key: found.certainty for found in lists.learned()} == {"a.example/": 0.97, "b.example/": None}
    assert (LEARNED, certain) in steps(feed)


def test_learned_entries_are_counted_by_kind_and_found_by_their_text(lists: ListStore) -> None:
    assert lists.learned_kinds() == {}
    given = [
        entry("a.example/Free_spins"),
        entry("b.example/", expires_at=0.5),
        entry("c.example/50%", category="adult"),
        entry("d.example/", action=ALLOW, category=""),
    ]
    lists.put_learned(given[::-1])
    assert lists.learned_kinds() == {(BLOCK, "gambling"): 2, (BLOCK, "adult"): 1, (ALLOW, ""): 1}
    for part, keys in (("FREE_", [0]), ("free", [0]), ("%", [2]), ("_", [0]), ("example", [0, 1, 2, 3]), ("nowhere", [])):
        assert sorted(found.key for found in lists.learned_with(part)) == sorted(given[at].key for at in keys), part
    assert [lists.learned_with("example", most) for most in (2, 3, None)] == [given[:2], given[:3], given]
