"""What is decided of rows before any statement runs, at the edges of times and bounds; and small statements at theirs."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Column, Integer, LargeBinary, MetaData, String, Table, select

from gatewayfilter.errors import BackupError
from gatewayfilter.interfaces import BypassLink, CrawlRequest, Priority, QueuedUrl, QueueState, RequestState, UnblockRequest
from gatewayfilter.model import Actor, AuditEntry, EntryKind, ListAction, ManualRule, Via
from gatewayfilter.store import Store
from gatewayfilter.store.backup.differences import Difference, differences
from gatewayfilter.store.repositories.access import audit
from gatewayfilter.store.repositories.crawling import frontier
from gatewayfilter.store.repositories.review import unblock_requests
from gatewayfilter.store.repositories.review.bypass_links import VISIT_S, end_of_rules
from gatewayfilter.store.repositories.rule_rows import identity_of, outlasts
from gatewayfilter.store.repositories.traffic.quota_usage import rename_usage
from gatewayfilter.store.sql.database import Area
from gatewayfilter.store.sql.schema import QUOTA_USAGE
from gatewayfilter.urls import digest_of

URL = "http://a.example/x"
DAY = 86_400.0


def row(state: QueueState | str = QueueState.WAITING, **more: Any) -> Any:
    given = {
        "id": 7, "url": URL, "priority": int(Priority.RECHECK), "not_before": 40.0, "due_at": 50.0, "attempts": 0, "error": "e",
        "task": "t", "depth": 3,
    }  # fmt: skip
    return SimpleNamespace(**given | {"state": state.value if isinstance(state, QueueState) else state} | more)


def test_offers_of_one_url_are_merged() -> None:
    first = CrawlRequest(URL, Priority.LINK, 9.0, "", 5)
    second = CrawlRequest(URL, Priority.VISIT, 12.0, "t", 2)
    other = CrawlRequest("http://b.example/", Priority.LINK)
    assert frontier.merged([first, other, second]) == {
        digest_of(URL): CrawlRequest(URL, Priority.VISIT, 9.0, "t", 2), digest_of(other.url): other,
    }  # fmt: skip
    assert frontier.merged([second, first])[digest_of(URL)] == CrawlRequest(URL, Priority.VISIT, 9.0, "t", 2)
    for known, offered, both in (
        (("", 1), ("", 4), ("", 4)), (("t", 4), ("", 1), ("t", 4)), (("t", 4), ("u", 1), ("t", 4)),
        (("t", 4), ("t", 1), ("t", 1)), (("t", 1), ("t", 4), ("t", 1)), (("", 1), ("u", 4), ("u", 4)),
    ):  # fmt: skip
        task, depth = offered
        found = frontier._task_of_both(SimpleNamespace(task=known[0], depth=known[1]), CrawlRequest(URL, task=task, depth=depth))
        assert found == both, (known, offered)


def test_a_new_row_is_due_at_its_time_or_now() -> None:
    offer = CrawlRequest(URL, Priority.LINK, 9.0, "t", 2)
    made = frontier._new_row(b"d", offer, 5.0)
    assert {**made, "slot": 0} == {
        "digest": b"d", "url": URL, "priority": 100, "state": "waiting", "not_before": 9.0, "due_at": 9.0, "attempts": 0,
        "token": "", "error": "", "slot": 0, "task": "t", "depth": 2,
    }  # fmt: skip
    assert frontier._new_row(b"d", offer, 12.0)["due_at"] == 12.0


@pytest.mark.parametrize(
    ("state", "due_at", "task", "over"),
    [
        (QueueState.DEAD, 0.0, "", True), (QueueState.DEAD, 0.1, "", False), (QueueState.DEAD, 0.1, "u", False),
        (QueueState.DONE, DAY, "", True), (QueueState.DONE, DAY + 1, "", False), (QueueState.DONE, DAY + 1, "t", False),
        (QueueState.DONE, DAY + 1, "u", True), (QueueState.WAITING, 0.0, "u", False), (QueueState.LEASED, 0.0, "u", False),
    ],
)  # fmt: skip
def test_when_an_offer_replaces_a_row(state: QueueState, due_at: float, task: str, *, over: bool) -> None:
    assert frontier._is_over(row(state, due_at=due_at), CrawlRequest(URL, task=task), DAY) is over


def test_a_task_waits_for_a_page_for_a_while() -> None:
    for not_before, due_at, expected in ((0.0, 120.0, 120.0), (0.0, 500.0, 160.0), (170.0, 500.0, 170.0), (0.0, 90.0, 90.0)):
        delayed = frontier._after_rest(CrawlRequest(URL, not_before=not_before, task="t"), row(due_at=due_at), 100.0)
        assert delayed == CrawlRequest(URL, not_before=expected, task="t")


@pytest.mark.parametrize(
    ("known", "offer", "changed"),
    [
        ({}, {"priority": Priority.VISIT, "not_before": 60.0}, (10, 40.0, 50.0, "t", 3)),
        ({}, {"priority": Priority.LINK, "not_before": 45.0}, (50, 45.0, 45.0, "t", 3)),
        ({}, {"priority": Priority.LINK, "not_before": 10.0}, (50, 10.0, 30.0, "t", 3)),
        ({"attempts": 1}, {"priority": Priority.LINK, "not_before": 10.0}, None),
        ({"attempts": 1}, {"priority": Priority.VISIT, "not_before": 10.0}, (10, 40.0, 50.0, "t", 3)),
        ({}, {"priority": Priority.RECHECK, "not_before": 50.0}, None),
        ({}, {"priority": Priority.LINK, "not_before": 60.0, "task": "t", "depth": 2}, (50, 40.0, 50.0, "t", 2)),
        ({}, {"priority": Priority.LINK, "not_before": 60.0, "task": "t", "depth": 4}, None),
        ({"task": ""}, {"priority": Priority.LINK, "not_before": 60.0, "task": "u", "depth": 3}, (50, 40.0, 50.0, "u", 3)),
        ({"state": "held"}, {"priority": Priority.VISIT, "not_before": 60.0}, (10, 40.0, 50.0, "t", 3)),
        ({"state": "leased"}, {"priority": Priority.VISIT}, None),
    ],
)
def test_what_an_offer_changes_of_a_row_that_waits(known: dict[str, Any], offer: dict[str, Any], changed: Any) -> None:
    names = ("new_priority", "new_not_before", "new_due_at", "new_task", "new_depth")
    expected = changed and {"row_id": 7} | dict(zip(names, changed, strict=True))
    assert frontier._hurried(row(**known), CrawlRequest(URL, **offer), 30.0) == expected


def test_a_held_row_is_shown_as_waiting() -> None:
    shown = QueuedUrl(URL, 50, QueueState.WAITING, 2, 40.0, "e", "t", 3, held=True)
    assert frontier._shown(row("held", attempts=2)) == shown
    assert frontier._shown(row("dead", attempts=2)) == replace(shown, state=QueueState.DEAD, held=False)


def rule(**more: Any) -> ManualRule:
    return replace(ManualRule(0, ListAction.ALLOW, EntryKind.HOST, "a.example", "c", "g", 10.0), **more)


def test_which_rule_outlasts_another() -> None:
    for before, after, lasts in (
        (rule(), rule(), False), (rule(comment="x"), rule(), False),
        (rule(expires_at=10.1), rule(), True), (rule(expires_at=9.9), rule(), False),
        (rule(expires_at=None), rule(), True), (rule(expires_at=None), rule(expires_at=None), True),
        (rule(), rule(expires_at=None), False), (rule(expires_at=None, enabled=False), rule(), False),
        (rule(expires_at=None, action=ListAction.BLOCK), rule(), False),
    ):  # fmt: skip
        assert outlasts(before, after) is lasts, (before, after)


def test_what_identifies_a_rule() -> None:
    same = [rule(), rule(comment="x", expires_at=None, enabled=False, action=ListAction.BLOCK, rule_id=9)]
    others = [rule(kind=EntryKind.DOMAIN), rule(group=""), rule(pattern="b"), rule(scope="client:a"), rule(scope="client:b")]
    assert len({identity_of(one) for one in same}) == 1
    assert len({identity_of(one) for one in [*same, *others]}) == 6
    assert identity_of(rule()).hex() == "d18132320ccdafaa503f74004463545e"
    assert len(identity_of(rule(pattern="\ud800"))) == 16


def test_when_the_rules_of_a_link_end() -> None:
    link = BypassLink(URL, EntryKind.DOMAIN, ".a", "", 1_000.0, once=True, created_at=1.0, used_at=10.0)
    assert end_of_rules(link) == 10.0 + VISIT_S
    assert end_of_rules(replace(link, used_at=990.0)) == 1_000.0
    assert end_of_rules(replace(link, once=False)) == 1_000.0
    assert end_of_rules(replace(link, used_at=None)) == 1_000.0


def request(**more: Any) -> UnblockRequest:
    return replace(UnblockRequest(URL, "10.0.0.1", "blacklist", "l", "r", "gambling", "", 100.0), **more)


def test_when_a_page_may_be_asked_for_again() -> None:
    approved = request(state=RequestState.APPROVED, until=200.0)
    for before, now, over in (
        (approved, 199.9, False), (approved, 200.0, True), (replace(approved, until=None), 300.0, False),
        (replace(approved, state=RequestState.DENIED), 300.0, False), (request(state=RequestState.CLOSED), 100.0, True),
        (request(state=RequestState.DENIED), 100.0 + 3_599, False), (request(state=RequestState.DENIED), 100.0 + 3_600, True),
        (request(state=RequestState.DENIED), 100.0 - 3_600, True), (request(state=RequestState.DENIED), 100.0 - 3_599, False),
    ):  # fmt: skip
        assert unblock_requests._is_over(before, now) is over, (before, now)


TABLE = Table("rows", MetaData(), Column("key", String, primary_key=True), Column("part", Integer, primary_key=True),
              Column("value", LargeBinary))  # fmt: skip


def rows(*keys: tuple[str, int, bytes]) -> Any:
    return iter([{"key": key, "part": part, "value": value} for key, part, value in keys])


def test_the_differences_of_two_tables() -> None:
    now = [("a", 1, b"1"), ("b", 1, b"1"), ("b", 2, b"1"), ("d", 1, b"1"), ("é", 1, b"1")]
    then = [("b", 1, b"1"), ("b", 2, b"2"), ("c", 1, b"1"), ("d", 1, b"1"), ("z", 1, b"1")]
    found = [
        (change.now and (change.now["key"], change.now["part"]), change.then and (change.then["key"], change.then["part"]))
        for change in differences(TABLE, rows(*now), rows(*then))
    ]
    assert found == [
        (("a", 1), None), (("b", 2), ("b", 2)), (None, ("c", 1)), (None, ("z", 1)), (("é", 1), None),
    ]  # fmt: skip
    assert list(differences(TABLE, rows(), rows())) == []
    one = next(rows(("a", 1, b"")))
    assert list(differences(TABLE, rows(("a", 1, b"")), rows())) == [Difference(one, None)]
    assert list(differences(TABLE, rows(), rows(("a", 1, b"")))) == [Difference(None, one)]
    for disordered in ([("b", 1, b""), ("a", 1, b"")], [("a", 1, b""), ("a", 1, b"")], [("a", 2, b""), ("a", 1, b"")]):
        with pytest.raises(BackupError, match=r"^the backup cannot be used: the rows of rows are not in order$"):
            list(differences(TABLE, rows(), rows(*disordered)))


def test_the_end_of_a_rule_is_the_last_that_has_not_passed(store: Store) -> None:
    made = store.lists.put_rule(rule(expires_at=None))
    for ends, left in (([None, 5.0], None), ([6.0, 9.0, 8.0], 9.0), ([5.0, 5.5], 5.5), ([5.0, 6.0], 6.0)):
        store.lists.shorten_rule(made.rule_id, ends, 5.0)
        assert [one.expires_at for one in store.lists.rules()] == [left]
    store.lists.shorten_rule(99, [9.0], 5.0)
    assert len(store.lists.rules()) == 1
    store.lists.shorten_rule(made.rule_id, [5.0, 4.0], 5.0)
    assert store.lists.rules() == []
    kept = store.lists.put_rule(rule(expires_at=5.1))
    ended = [store.lists.put_rule(rule(pattern=f"{number}.example", expires_at=5.0)) for number in range(2)]
    other = store.lists.put_rule(rule(group="other", expires_at=1.0))
    seq = store.feed.last_seq()
    assert (store.lists.remove_ended("g", 5.0), store.lists.remove_ended("g", 5.0)) == (2, 0)
    assert store.lists.rules() == [kept, other]
    assert [change.manual for change in store.feed.read(seq)] == ended
    assert store.lists.put_rule(rule(expires_at=5.0)) == kept
    assert store.lists.put_rule(rule(expires_at=None)) == replace(kept, expires_at=None)


def test_requests_are_counted_listed_and_erased_by_number(store: Store) -> None:
    asked = [request(url=f"http://{number}.example/", client=str(number), at=float(number)) for number in range(4)]
    assert store.unblock.ask(asked) == 4
    assert store.unblock.open_count() == store.unblock.open_count() == 4
    for number in (1, 2, 3):
        store.unblock.deny([number], word="", now=9.0)
    assert store.unblock.open_count() == 1
    assert [one.request_id for one in store.unblock.decided(9)] == [3, 2, 1]
    assert [one.request_id for one in store.unblock.decided(1, before=3)] == [2]
    assert [one.request_id for one in store.unblock.decided(9, before=2)] == [1]
    assert [one.request_id for one in store.unblock.requests(2)] == [4, 3]
    found = store.unblock.find(3)
    assert found is not None
    assert (found.url, found.state, found.decided_at, found.rule_ids) == ("http://2.example/", RequestState.DENIED, 9.0, ())
    assert store.unblock.find(9) is None
    (opened,) = store.unblock.reopen([3], now=10.0)
    assert (opened.state, opened.decided_at, opened.word) == (RequestState.OPEN, None, "")
    assert store.unblock.open_count() == 2
    links = [
        store.bypass.add(BypassLink(URL, EntryKind.DOMAIN, ".a", f"client:{number}", 50.0, number == 1, 1.0))
        for number in range(3)
    ]
    assert store.unblock.redeem([link.link_id for link in links] + [links[1].link_id, 99], 10.0) == 3
    assert [one.link_id for one in store.bypass.in_force(49.0)] == [3, 2, 1]
    assert store.bypass.in_force(50.0) == []
    assert [one.link_id for one in store.bypass.links(2)] == [3, 2]
    store.bypass.revoke(2, 20.0)
    assert [one.link_id for one in store.bypass.in_force(49.0)] == [3, 1]
    edge = store.bypass.add(BypassLink(URL, EntryKind.DOMAIN, ".a", "", 9e9, once=False, created_at=50.0 + 30 * DAY))
    assert [one.link_id for one in store.bypass.links()] == [edge.link_id, 3, 2, 1]
    store.bypass.add(BypassLink(URL, EntryKind.DOMAIN, ".a", "", 9e9, once=False, created_at=50.1 + 30 * DAY))
    assert [one.link_id for one in store.bypass.links()] == [5, 4]


def test_what_a_renamed_client_has_used_goes_along(store: Store) -> None:
    with store._database.write(Area.LISTS) as connection:
        for client, minutes in (("client:a", b"\1"), ("client:b", b"\2"), ("client:c", b"\3")):
            values = {"client": client, "quota": "q", "day": 1, "minutes": minutes}
            connection.execute(QUOTA_USAGE.insert(), values)
        rename_usage(connection, "client:a", "client:b")
        found = connection.execute(select(QUOTA_USAGE.c.client, QUOTA_USAGE.c.minutes).order_by(QUOTA_USAGE.c.client)).all()
    assert [tuple(each) for each in found] == [("client:b", b"\1"), ("client:c", b"\3")]


def test_devices_are_kept_for_ninety_days_and_asked_for_once_a_day(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.store.repositories.traffic.devices._MOST", 2)
    assert store.devices.seen({"10.0.0.1": "a", "10.0.0.2": "b", "10.0.0.3": "c"}, 100_000.0) == 2
    assert store.devices.seen({"10.0.0.2": "z", "10.0.0.4": "d"}, 100_001.0) == 1
    assert [(one.address, one.mac) for one in store.devices.all()] == [("10.0.0.1", "a"), ("10.0.0.2", "z")]
    assert store.devices.unnamed(100_001.0) == ["10.0.0.2", "10.0.0.1"]
    assert store.devices.unnamed(100_001.0, 1) == ["10.0.0.2"]
    store.devices.named(["10.0.0.1"], {}, 100_000.0)
    assert store.devices.unnamed(100_000.0 + DAY) == ["10.0.0.2"]
    assert store.devices.unnamed(100_000.1 + DAY) == ["10.0.0.2", "10.0.0.1"]
    store.devices.seen({}, 100_000.0 + 90 * DAY)
    assert len(store.devices.all()) == 2
    store.devices.seen({}, 100_000.5 + 90 * DAY)
    assert [one.address for one in store.devices.all()] == ["10.0.0.2"]


def test_entries_of_the_audit_log_are_bounded_and_taken_back_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "LONGEST_UNDO", 13)
    made = AuditEntry(0, 5.0, Actor("ada", Via.SESSION, "x"), "rule.added", "s", undo={"a": "1234"})
    for undo, kept in (({"a": "1234"}, {"a": "1234"}), ({"a": "12345"}, None), (None, None)):
        number = store.audit.add(replace(made, undo=undo))
        found = store.audit.get(number)
        assert found is not None
        assert found == replace(made, entry_id=number, undo=kept)
    assert store.audit.get(99) is None
    assert [one.entry_id for one in store.audit.page(undoable=True)] == [1]
    assert (store.audit.mark_undone(1, 6.0, "bob"), store.audit.mark_undone(1, 7.0, "eve")) == (True, False)
    taken = store.audit.get(1)
    assert taken is not None
    assert (taken.undone_at, taken.undone_by) == (6.0, "bob")
    assert store.audit.page(undoable=True) == []
    store.audit.add(replace(made, action="rule_added"))
    for action, numbers in (
        ("rule.", [3, 2, 1]),
        ("rule", []),
        ("rule.added", [3, 2, 1]),
        ("rule_added", [4]),
        ("", [4, 3, 2, 1]),
    ):
        assert [one.entry_id for one in store.audit.page(action=action)] == numbers, action
    assert [one.entry_id for one in store.audit.page(before=3, limit=1)] == [2]
    wanted, _ = (store.audit.add(replace(made, action=action)) for action in ("a_b.c", "axb.c"))
    assert [one.entry_id for one in store.audit.page(action="a_b.")] == [wanted]
    assert store.audit.page(who="bob") == []
