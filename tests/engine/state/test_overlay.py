"""The overlay: what the change feed says, over the snapshot."""

from gatewayfilter.engine.state.overlay import Overlay, touches_hosts
from gatewayfilter.model import Change, ChangeKind, EntryKind, LearnedEntry, ListAction, ManualRule
from gatewayfilter.urls import digest_of, parse_url


def learned(key: str) -> LearnedEntry:
    return LearnedEntry(key, ListAction.BLOCK, "gambling", f"http://{key}", "score 9.0", 0.0, 100.0)


def change(seq: int, kind: ChangeKind, key: str) -> Change:
    if kind in {ChangeKind.LEARNED_ADDED, ChangeKind.LEARNED_REMOVED}:
        return Change(seq, kind, learned=learned(key))
    return Change(seq, kind, manual=ManualRule(seq, ListAction.BLOCK, EntryKind.DOMAIN, key))


ADD, REMOVE = ChangeKind.LEARNED_ADDED, ChangeKind.LEARNED_REMOVED


def test_steps_are_taken_in_the_order_of_the_feed_and_once() -> None:
    empty = Overlay.over([], 10)
    overlay = empty.changed([change(12, REMOVE, "a/"), change(11, ADD, "a/"), change(13, ADD, "b/"), change(9, ADD, "c/")])
    assert overlay.seq == 13
    assert overlay.learned == {digest_of("a/"): None, digest_of("b/"): learned("b/")}
    assert empty.learned == {}
    assert overlay.changed([change(13, REMOVE, "b/")]) is overlay
    assert overlay.changed([]) is overlay


def test_it_keeps_the_newest_change_of_each_entry_alone() -> None:
    overlay = Overlay.over([], 0).changed(
        [change(seq, ADD if seq % 2 else REMOVE, "a/") for seq in range(1, 100)]
        + [change(100, ChangeKind.MANUAL_ADDED, ".p.example"), change(101, ChangeKind.MANUAL_REMOVED, ".p.example")]
    )
    assert sorted(kept.seq for kept in overlay.changes.values()) == [99, 101]


def test_peoples_rules_follow() -> None:
    url = parse_url("http://p.example/")
    overlay = Overlay.over([ManualRule(1, ListAction.BLOCK, EntryKind.DOMAIN, ".p.example")], 0)
    removed = overlay.changed([change(1, ChangeKind.MANUAL_REMOVED, ".p.example")])
    again = removed.changed([change(2, ChangeKind.MANUAL_ADDED, ".p.example")])
    found = [one.rules.find(url, one.rules.for_host(url), 0.0) is not None for one in (overlay, removed, again)]
    assert found == [True, False, True]


def test_prefix_entries_are_noted_by_host() -> None:
    overlay = Overlay.over([], 0).changed([change(1, ADD, "h.example:81/a/*"), change(2, ADD, "other.example/x")])
    assert overlay.prefix_netlocs == {"h.example:81"}


def test_only_single_urls_leave_what_is_known_of_hosts() -> None:
    assert not touches_hosts([change(1, ADD, "h.example/x"), change(2, REMOVE, "h.example/")])
    assert touches_hosts([change(1, ADD, "h.example/x/*")])
    assert touches_hosts([change(1, ADD, ".h.example")])
    assert touches_hosts([change(1, ADD, "h.example")])
    assert touches_hosts([change(1, ChangeKind.MANUAL_ADDED, ".h.example")])
