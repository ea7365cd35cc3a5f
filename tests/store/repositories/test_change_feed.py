"""Whoever folds the feed has the lists, whatever was done to them."""

from contextlib import closing

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update

from gatewayfilter.model import Change, ChangeKind, EntryKind, LearnedEntry, ListAction, ManualRule
from gatewayfilter.store import Store
from gatewayfilter.store.sql.database import Area
from gatewayfilter.store.sql.schema import LIST_CHANGES


class Overlay:
    """The least that a worker does with the feed."""

    def __init__(self) -> None:
        self.rules: dict[int, ManualRule] = {}
        self.learned: dict[str, LearnedEntry] = {}

    def apply(self, change: Change) -> None:
        match change:
            case Change(kind=ChangeKind.MANUAL_ADDED, manual=ManualRule() as rule, learned=None):
                assert rule.rule_id not in self.rules
                self.rules[rule.rule_id] = rule
            case Change(kind=ChangeKind.MANUAL_REMOVED, manual=ManualRule() as rule, learned=None):
                assert self.rules.pop(rule.rule_id) == rule
            case Change(kind=ChangeKind.LEARNED_ADDED, manual=None, learned=LearnedEntry() as entry):
                assert entry.key not in self.learned
                self.learned[entry.key] = entry
            case Change(kind=ChangeKind.LEARNED_REMOVED, manual=None, learned=LearnedEntry() as entry):
                assert self.learned.pop(entry.key) == entry
            case _:
                raise AssertionError(change)


_NAMES = st.sampled_from(["a.example", "b.example", "c.example"])
_RULES = st.builds(
    ManualRule,
    rule_id=st.just(0),
    action=st.sampled_from(ListAction),
    kind=st.sampled_from([EntryKind.HOST, EntryKind.WILDCARD]),
    pattern=_NAMES,
    comment=st.sampled_from(["", "why"]),
    expires_at=st.sampled_from([None, 5.0]),
)
_ENTRIES = st.builds(
    LearnedEntry,
    key=_NAMES,
    action=st.sampled_from(ListAction),
    category=st.sampled_from(["", "gambling"]),
    url=st.just("http://a.example/"),
    detail=st.just(""),
    created_at=st.just(0.0),
    expires_at=st.sampled_from([1.0, 2.0]),
)
_STEPS = st.one_of(
    st.tuples(st.just("rule"), _RULES),
    st.tuples(st.just("rules"), st.lists(_RULES, max_size=4)),
    st.tuples(st.just("drop rule"), st.integers(0, 5)),
    st.tuples(st.just("put"), st.lists(_ENTRIES, max_size=4)),
    st.tuples(st.just("drop"), st.lists(_NAMES, max_size=3)),
)


def take(store: Store, step: str, value: object) -> None:
    match step, value:
        case "rule", ManualRule() as rule:
            store.lists.add_rule(rule.action, rule.kind, rule.pattern, comment=rule.comment, expires_at=rule.expires_at)
        case "rules", list(rules):
            store.lists.add_rules(rules)
        case "drop rule", int(index):
            rules = store.lists.rules()
            store.lists.remove_rule(rules[index].rule_id if index < len(rules) else 10**9)
        case "put", list(entries):
            store.lists.put_learned(entries)
        case "drop", list(keys):
            store.lists.remove_learned(keys)
        case _:
            raise AssertionError(step)


@given(steps=st.lists(_STEPS, max_size=12))
@settings(max_examples=30, deadline=None)
def test_folding_the_feed_gives_the_lists(scratch_url: str, steps: list[tuple[str, object]]) -> None:
    with closing(Store.open(scratch_url)) as store:
        overlay, seq = Overlay(), store.feed.last_seq()
        for step, value in steps:
            take(store, step, value)
        for change in store.feed.read(seq):
            assert change.seq > seq
            seq = change.seq
            overlay.apply(change)
        assert sorted(overlay.rules.values(), key=lambda rule: rule.rule_id) == store.lists.rules()
        assert overlay.learned == {entry.key: entry for entry in store.lists.learned()}
        for rule in store.lists.rules():
            store.lists.remove_rule(rule.rule_id)
        store.lists.remove_learned(list(overlay.learned))


def test_a_feed_that_takes_anothers_place_begins_anew(sqlite_url: str) -> None:
    with closing(Store.open(sqlite_url)) as store:
        for name in ("a.example", "b.example"):
            store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, name)
        marks = [store.feed.mark(seq) for seq in (0, 1, 2, 3)]
        assert marks[0] == "0"
        assert (len(set(marks)), marks[3]) == (4, "")
        store.feed.begin_after(1)
        (only,) = store.feed.read(0)
        first = store.feed.last_seq()
        assert (only.seq, only.kind) == (first, ChangeKind.MANUAL_REMOVED)
        assert only.manual is not None
        assert (only.manual.pattern, first > 1_000) == ("none.invalid", True)
        assert [store.feed.mark(seq) for seq in (0, 1, 2)] == ["", "", ""]
        store.feed.begin_after(first + 50)
        assert store.feed.last_seq() - first == 50 + first - 2
        assert len(store.lists.rules()) == 2


def test_an_empty_feed_begins_at_the_gap_alone(sqlite_url: str) -> None:
    with closing(Store.open(sqlite_url)) as store:
        assert (store.feed.last_seq(), store.feed.mark(0), store.feed.mark(1)) == (0, "0", "")
        store.feed.begin_after(0)
        (only,) = store.feed.read(0)
        assert (only.seq, store.feed.last_seq()) == (1_000_000, 1_000_000)
        assert only.manual is not None
        assert only.manual.rule_id == 0, "no number of a rule"


def test_the_mark_of_a_step_is_that_of_what_it_says(sqlite_url: str) -> None:
    with closing(Store.open(sqlite_url)) as store:
        store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "a.example")
        mark = store.feed.mark(1)
        with store._database.write(Area.LISTS) as connection:
            payload = connection.execute(select(LIST_CHANGES.c.payload)).scalar_one()
            connection.execute(update(LIST_CHANGES).values(payload=dict(sorted(payload.items(), reverse=True))))
        assert store.feed.mark(1) == mark
        with store._database.write(Area.LISTS) as connection:
            connection.execute(update(LIST_CHANGES).values(payload={**payload, "comment": "x"}))
        assert store.feed.mark(1) != mark


def test_a_process_that_reads_the_feed_once_keeps_no_connection_for_it(sqlite_url: str) -> None:
    with closing(Store.open(sqlite_url)) as store:
        assert store.feed.read(0) == []
        assert store.feed._newer._connection is None


def test_net_changes_of_learned_entries_are_the_last_of_each(sqlite_url: str) -> None:
    with closing(Store.open(sqlite_url)) as store:
        entries = [LearnedEntry(f"{key}.example", ListAction.BLOCK, "gambling", "http://x/", "", 0.0, 9e9) for key in "abc"]
        store.lists.put_learned(entries)
        begun = store.feed.last_seq()
        store.lists.remove_learned(["a.example"])
        store.lists.put_learned([entries[0]])
        store.lists.remove_learned(["b.example"])
        found = store.feed.learned_between(0, store.feed.last_seq())
        assert found == {"a.example": entries[0], "b.example": None, "c.example": entries[2]}
        assert set(store.feed.learned_between(begun, begun + 1)) == {"a.example"}
        assert store.feed.learned_between(begun, begun) == {}
