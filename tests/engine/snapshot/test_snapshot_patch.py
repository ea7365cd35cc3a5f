"""A snapshot that follows from another says what one built anew would say."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.snapshot import patch
from gatewayfilter.engine.snapshot.image import SnapshotImage
from gatewayfilter.engine.snapshot.patch import RebuildDueError, learned_changes, patch_snapshot
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.engine.tables.bloom import BloomAnswer
from gatewayfilter.engine.tables.counting_bloom import CountingBloom
from gatewayfilter.engine.tables.host_markers import prefix_marker
from gatewayfilter.engine.tables.table_patch import entries_of
from gatewayfilter.model import EntryKind, LearnedEntry, ListAction, ManualRule, Source
from gatewayfilter.urls import digest_of
from tests.case_tables import all_cases

BLOCK, ALLOW, SPLICE = ListAction.BLOCK, ListAction.ALLOW, ListAction.SPLICE
LISTED = {BLOCK: ["a.example/1", ".b.example", "c.example/p/*"], ALLOW: [".b.example", ".d.example"], SPLICE: [".e.example"]}
NOW = 100.0

keys = st.sampled_from(
    ["a.example/1", "a.example/2", ".b.example", "c.example/p/*", "c.example/q/*", "f.example/r/*", "g.example/"]
)
entries = st.builds(
    LearnedEntry,
    keys,
    st.sampled_from([BLOCK, ALLOW]),
    st.sampled_from(["", "adult", "gambling"]),
    st.just("http://u.example/"),
    st.sampled_from(["score 9", "score 11.5: 賭博"]),
    st.just(1.0),
    st.sampled_from([NOW - 1, NOW, NOW + 1]),
)
changes = st.lists(st.tuples(st.booleans(), entries), max_size=12)
rules = st.lists(
    st.builds(
        ManualRule, st.integers(1, 9), st.sampled_from(ListAction), st.just(EntryKind.DOMAIN), st.sampled_from([".p.example"])
    ),
    max_size=2,
)


def image(learned: list[LearnedEntry], people: list[ManualRule], *, listed: int = 1) -> SnapshotImage:
    builder = SnapshotBuilder(feed_seq=1, created_at=1.0, notes={"of": "the publisher"})
    for action, listing in LISTED.items():
        for number in range(listed):
            builder.add_keys(builder.add_source(Source(f"{action}{number}", action, "c")), listing)
    builder.add_adblock_list(builder.add_source(Source("ads", BLOCK, "ads")), ["||ads.example^"])
    builder.add_learned(learned)
    builder.set_rules(people)
    return builder.image(counting=True)


def said(snapshot: Snapshot) -> object:
    """Everything that a snapshot says, whatever its numbers are. Markers that outlived their prefixes are left out.

    So is when the last of the entries expires that a marker counts: a patch only ever puts it off.
    """
    tables = {}
    prefixed = {digest_of(f"{key.partition('/')[0]}**") for key in ("c.example/", "f.example/")}
    for action, table in snapshot.tables.items():
        digests, numbers = entries_of(table.arrays())
        tables[action] = {
            digest: {snapshot.sources[index].name for index in snapshot.source_sets[number]}
            for digest, number in zip(map(bytes, digests), numbers.tolist(), strict=True)
            if digest not in prefixed
        }
    learned_digests, _ = entries_of(snapshot.learned_table.arrays())
    learned = {
        bytes(digest): replace(entry, expires_at=0.0) if "*" in entry.key.removesuffix("/*") else entry
        for digest in learned_digests
        if (entry := snapshot.learned(bytes(digest))) is not None
    }
    info = snapshot.info
    counts = (info.blacklist, info.whitelist, info.splicelist, info.adblock_rules, info.learned)
    return tables, learned, snapshot.rules, counts, snapshot.adblock.rule_count, snapshot.meta["notes"]


def copied(counters: CountingBloom | None) -> CountingBloom:
    assert counters is not None
    return CountingBloom(counters.bits, counters.positions, count=counters.count, counters=counters.counters.copy())


def patched(old: SnapshotImage, news: dict[bytes, LearnedEntry | None], people: list[ManualRule]) -> SnapshotImage:
    snapshot = Snapshot.from_bytes(old.to_bytes())
    return patch_snapshot(snapshot, copied(old.counters), news, people, feed_seq=9, created_at=50.0)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(st.lists(entries, max_size=5), st.lists(changes, min_size=1, max_size=3), rules, rules)
def test_a_patched_snapshot_says_what_a_new_one_says(
    learned: list[LearnedEntry], batches: list[list[tuple[bool, LearnedEntry]]], before: list[ManualRule], after: list[ManualRule]
) -> None:
    model = {entry.key: entry for entry in learned}
    current = image(list(model.values()), before)
    for batch in batches:
        feed = {entry.key: entry if added else None for added, entry in batch}
        for added, entry in batch:
            model.pop(entry.key, None)
            if added and entry.expires_at > NOW:
                model[entry.key] = entry
        current = patched(current, learned_changes(feed, NOW), after)
    anew = image(list(model.values()), after)
    opened = Snapshot.from_bytes(current.to_bytes())
    assert said(opened) == said(Snapshot.from_bytes(anew.to_bytes()))
    assert current.learned == len(model)
    assert (opened.info.feed_seq, opened.info.created_at, opened.meta["patches"]) == (9, 50.0, len(batches))
    for action, listing in LISTED.items():
        for key in (*listing, *(entry.key for entry in model.values() if entry.action is action)):
            assert opened.bloom.ask(digest_of(key)) is BloomAnswer.MAYBE
            assert opened.tables[action].find(digest_of(key)) is not None
            if marker := prefix_marker(key):
                assert opened.tables[action].find(digest_of(marker)) is not None


def known(key: str, action: ListAction = BLOCK, category: str = "adult") -> LearnedEntry:
    return LearnedEntry(key, action, category, "http://u.example/", "score 9", 1.0, NOW + 1)


@all_cases(
    ("before", "after"),
    [
        ([], [known("a.example/2"), known("f.example/r/*"), known(".b.example"), known("g.example/", ALLOW, "")]),
        ([known("a.example/2"), known("f.example/r/*"), known(".b.example")], []),
        ([known("a.example/2"), known("a.example/3")], [known("a.example/2")]),
        ([known("a.example/2")], [known("a.example/2", category="gambling"), known("a.example/4")]),
        ([known("a.example/2")], [known("a.example/2", ALLOW, "")]),
        ([known("c.example/q/*"), known("a.example/1")], [known("c.example/q/*", ALLOW, "")]),
        ([known("f.example/r/*"), known("f.example/s/*")], [known("f.example/s/*", category="gambling")]),
    ],
)
def test_entries_that_come_leave_and_change(before: list[LearnedEntry], after: list[LearnedEntry]) -> None:
    feed = {item.key: None for item in before} | {item.key: item for item in after}
    made = patched(image(before, []), learned_changes(feed, NOW), [])
    found, anew = Snapshot.from_bytes(made.to_bytes()), Snapshot.from_bytes(image(after, []).to_bytes())
    assert said(found) == said(anew)
    assert (made.learned, found.info.learned) == (len(after), len(after))
    for item in before:
        assert (found.learned(digest_of(item.key)) is not None) == any(other.key == item.key for other in after)
        listed = {name for name, listing in LISTED.items() if item.key in listing}
        for action, table in found.tables.items():
            held = table.find(digest_of(item.key)) is not None
            assert held == (action in listed or any(other.key == item.key and other.action is action for other in after))


@settings(max_examples=30)
@given(st.lists(entries, max_size=5), changes)
def test_what_the_snapshot_has_already_is_no_harm(learned: list[LearnedEntry], batch: list[tuple[bool, LearnedEntry]]) -> None:
    """What changes while a snapshot is built may be in it, and comes again in the feed after it."""
    model = {entry.key: entry for entry in learned}
    for added, entry in batch:
        model.pop(entry.key, None)
        if added and entry.expires_at > NOW:
            model[entry.key] = entry
    feed = {entry.key: entry if added else None for added, entry in batch}
    anew = image(list(model.values()), [])
    again = patched(anew, learned_changes(feed, NOW), [])
    assert said(Snapshot.from_bytes(again.to_bytes())) == said(Snapshot.from_bytes(anew.to_bytes()))


def entry(number: int) -> LearnedEntry:
    return LearnedEntry(f"n{number}.example/", BLOCK, "adult", "", "", 1.0, 1e12)


def test_lists_are_taken_over_byte_by_byte() -> None:
    old = image([], [])
    new = dict(patched(old, {}, [ManualRule(1, BLOCK, EntryKind.DOMAIN, ".p.example")]).sections)
    same = {name for name, content in old.sections if bytes(new[name]) == bytes(content)}
    assert same == {"sources", "sets", "bloom", "blacklist", "whitelist", "splicelist", "learned", "details", "adblock"}


def test_the_gate_follows_from_the_counters() -> None:
    learned = [entry(number) for number in range(50)]
    news: dict[bytes, LearnedEntry | None] = {digest_of(item.key): None for item in learned}
    emptied = patched(image(learned, [], listed=2), news, [])
    opened = Snapshot.from_bytes(emptied.to_bytes())
    gone = [opened.bloom.ask(digest_of(item.key)) for item in learned]
    assert gone.count(BloomAnswer.MAYBE) <= 2


def test_a_gate_that_has_become_too_small_is_told() -> None:
    news: dict[bytes, LearnedEntry | None] = {digest_of(item.key): item for item in map(entry, range(300))}
    with pytest.raises(RebuildDueError, match="more is held than the gate was made for"):
        patched(image([], []), news, [])


def test_stuck_counters_are_told() -> None:
    old = image([], [])
    counters = copied(old.counters)
    counters.counters[:] = np.uint8(0xFF)
    with pytest.raises(RebuildDueError, match="counters are stuck"):
        patch_snapshot(Snapshot.from_bytes(old.to_bytes()), counters, {}, [], feed_seq=2, created_at=2.0)


def test_counters_of_other_digests_are_told() -> None:
    old = image([entry(1)], [])
    empty = CountingBloom(1024, 10)
    with pytest.raises(RebuildDueError, match="the counters do not fit the snapshot"):
        patch_snapshot(
            Snapshot.from_bytes(old.to_bytes()), empty, {digest_of(entry(1).key): None}, [], feed_seq=2, created_at=2.0
        )


def test_patches_in_a_row_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patch, "MOST_PATCHES", 3)
    current = image([], [])
    for _ in range(3):
        current = patched(current, {}, [])
    with pytest.raises(RebuildDueError, match="3 snapshots in a row"):
        patched(current, {}, [])
