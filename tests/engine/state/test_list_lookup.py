"""Entries of a key, in force and not, and what they decide: `gatewayfilter.engine.state.list_lookup`."""

import math
from types import SimpleNamespace
from typing import Any

from gatewayfilter.engine.state.list_lookup import (
    Listing,
    find_learned,
    find_listing,
    in_force,
    is_marked,
    learned_listing,
    list_verdict,
    may_be_listed,
    silent_entries,
)
from gatewayfilter.engine.tables.bloom import BloomAnswer
from gatewayfilter.model import Action, LearnedEntry, ListAction, Reason, Source, Verdict

BLOCK, ALLOW, SPLICE = ListAction.BLOCK, ListAction.ALLOW, ListAction.SPLICE
KEY, DIGEST = "a.example", b"d"
LIST, OFF, LEARNED = Source("list", category="ads"), Source("off", category="games"), Source("learned:ads", learned=True)


def entry(action: ListAction = BLOCK, category: str = "ads", until: float = 9.0, certainty: float | None = None) -> LearnedEntry:
    return LearnedEntry(KEY, action, category, f"http://{KEY}/", "words", 1.0, until, certainty)


def view(*numbers: int, record: LearnedEntry | None = None, action: ListAction = BLOCK, **changes: Any) -> Any:
    """A view of three sources, of which the second is off; the key is listed by those with these numbers."""
    tables = {each: SimpleNamespace(find=lambda _: None) for each in ListAction}
    if numbers:
        tables[action] = SimpleNamespace(find=lambda digest: 0 if digest == DIGEST else None)
    given = {
        "bloom": SimpleNamespace(ask=lambda digest: BloomAnswer.MAYBE if digest == DIGEST else BloomAnswer.NO),
        "tables": tables,
        "sources": (LIST, OFF, LEARNED),
        "source_sets": (numbers,),
        "on_sets": (tuple(number for number in numbers if number != 1),),
        "off_sources": frozenset({1}),
        "off_categories": ("games",),
        "selection": SimpleNamespace(least_certainty=0.5),
        "records": SimpleNamespace(find=lambda _: record),
        "learned": {},
    }
    return SimpleNamespace(**given | changes)


def test_which_entry_decides() -> None:
    listed = Listing(Verdict(Action.BLOCK, Reason.BLACKLIST, "list", KEY, category="ads"))
    assert listed.until == math.inf
    learned = learned_listing(entry())
    fresh, gone = {DIGEST: entry(until=8.0)}, {DIGEST: None}
    for lists, found in (
        (view(), None), (view(0), listed), (view(1), None), (view(1, 0), listed), (view(2, 0), listed),
        (view(2, record=entry()), learned), (view(2), None), (view(2, record=entry(until=5.0)), None),
        (view(2, record=entry(ALLOW)), None), (view(0, 2, record=entry()), listed), (view(2, 0, record=entry()), learned),
        (view(2, record=entry(), learned=gone), None), (view(2, 0, record=entry(), learned=gone), listed),
        (view(learned=fresh), learned_listing(entry(until=8.0))), (view(0, learned=fresh), learned_listing(entry(until=8.0))),
        (view(2, record=entry(), learned={DIGEST: entry(until=5.0)}), None), (view(learned={DIGEST: entry(ALLOW)}), None),
    ):  # fmt: skip
        assert find_listing(lists, KEY, DIGEST, BLOCK, 5.0) == found
    assert find_listing(view(0), KEY, DIGEST, ALLOW, 5.0) is None


def test_what_is_known_of_a_digest() -> None:
    assert (may_be_listed(view(), DIGEST), may_be_listed(view(), b"x"), may_be_listed(view(learned={b"x": None}), b"x")) == (
        True, False, True,
    )  # fmt: skip
    assert [is_marked(view(0, action=action), DIGEST) for action in (BLOCK, ALLOW, SPLICE)] == [True, True, False]
    assert (is_marked(view(0), b"x"), is_marked(view(), DIGEST)) == (False, False)
    record, fresh = entry(until=2.0), entry(ALLOW)
    for lists, found in (
        (view(record=record), record), (view(record=record, learned={DIGEST: fresh}), fresh), (view(), None),
        (view(record=record, learned={DIGEST: None}), None),
    ):  # fmt: skip
        assert find_learned(lists, DIGEST) == found


def test_a_learned_entry_is_in_force_until_it_expires_where_it_is_certain_enough() -> None:
    for given, action, now, holds in (
        (entry(), BLOCK, 8.9, True), (entry(), BLOCK, 9.0, False), (entry(), ALLOW, 8.9, False),
        (entry(category="games"), BLOCK, 1.0, False), (entry(ALLOW, "games", certainty=0.1), ALLOW, 1.0, True),
        (entry(certainty=0.5), BLOCK, 1.0, True), (entry(certainty=0.49), BLOCK, 1.0, False),
        (entry(ALLOW), ALLOW, 9.0, False),
    ):  # fmt: skip
        assert in_force(view(), given, action, now) is holds


def test_what_entries_decide() -> None:
    for source, action, reason in (
        (Source("l", BLOCK, "ads"), Action.BLOCK, Reason.BLACKLIST), (Source("l", ALLOW, "ads"), Action.ALLOW, Reason.WHITELIST),
        (Source("l", SPLICE, "ads"), Action.ALLOW, Reason.SPLICELIST),
    ):  # fmt: skip
        assert list_verdict(source, KEY) == Verdict(action, reason, "l", KEY, category="ads")
    for given, action, reason, name in (
        (entry(), Action.BLOCK, Reason.LEARNED, "learned:ads"),
        (entry(ALLOW, ""), Action.ALLOW, Reason.WHITELIST, "learned:harmless"),
    ):  # fmt: skip
        verdict = Verdict(action, reason, name, KEY, category=given.category, detail="words")
        assert learned_listing(given) == Listing(verdict, 9.0)


def test_why_entries_are_not_in_force() -> None:
    expired, uncertain = entry(until=5.0), entry(certainty=0.4)
    off = entry(category="games", certainty=0.4)
    category_off = "off lists a.example, but its category games is switched off"
    relaxed = "learned:ads lists a.example, but it is not certain enough for this policy (strictness=relaxed)"
    taken_back = "learned:ads lists a.example, but that was taken back or judged anew since"
    for lists, told in (
        (view(0), []),
        (view(1), [category_off]),
        (view(2, record=entry()), []),
        (view(2, record=expired), ["learned:ads lists a.example, but that has expired"]),
        (view(2), []),
        (view(2, record=entry(ALLOW, until=5.0)), []),
        (view(2, record=off), ["learned:ads lists a.example, but the category games is switched off"]),
        (view(2, record=uncertain), [relaxed]),
        (view(2, record=entry(certainty=0.5)), []),
        (view(2, 1, record=expired, learned={DIGEST: None}), [taken_back, category_off]),
        (view(learned={DIGEST: expired}), ["a.example was learned since the snapshot, but that has expired"]),
        (view(learned={DIGEST: entry()}), []),
        (view(learned={DIGEST: entry(ALLOW, until=5.0)}), []),
    ):
        assert list(silent_entries(lists, KEY, DIGEST, BLOCK, 5.0)) == told
    allowed = entry(ALLOW, "games", certainty=0.1)
    assert list(silent_entries(view(2, record=allowed, action=ALLOW), KEY, DIGEST, ALLOW, 5.0)) == []
