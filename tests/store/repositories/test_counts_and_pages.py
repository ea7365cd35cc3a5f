"""Counts of an empty database, pages of lists, and what is erased of a client, over every database."""

from dataclasses import replace

import pytest

from gatewayfilter.errors import ConfigError, StoreError
from gatewayfilter.interfaces import BypassLink, HoldKind, RequestState, UnblockRequest
from gatewayfilter.model import (
    Classification,
    EntryKind,
    Quota,
    QuotaKind,
    QuotaUse,
    ReviewKind,
    ReviewState,
    ReviewStep,
    ReviewTask,
)
from gatewayfilter.store import Store
from gatewayfilter.store.repositories import client_traces
from gatewayfilter.store.repositories.client_traces import ClientIdentity
from gatewayfilter.store.repositories.crawling import frontier_holds
from gatewayfilter.store.repositories.review.bypass_links import ERASED_URL
from gatewayfilter.use_cases.policies import PolicyEditor

NOW = 1_000.0
TASK = ReviewTask(0, ReviewKind.PAGE, "http://a.example/", "a.example/", "gambling", Classification("", 1.0, 2.0), False, 100.0)


def test_an_empty_database_counts_nothing(store: Store) -> None:
    assert (store.lists.learned_count(), store.reviews.open_count(), store.reviews.open_count(doubtful=True)) == (0, 0, 0)
    assert (store.accounts.exist(), store.unblock.open_count(), store.reviews.stats()) == (False, 0, [])
    assert (store.unblock.find(1), store.unblock.decided(5), store.reviews.groups(5), store.reviews.decided_since(0.0)) == (
        None, [], [], [],
    )  # fmt: skip


def test_tasks_in_groups_and_those_that_were_decided(store: Store) -> None:
    numbers = [store.reviews.add(replace(TASK, url=f"http://{n}/", key=f"{n}/", group_id=group))
               for n, group in enumerate((7, 7, 8, 9, 9, 9, 5, 5))]  # fmt: skip
    assert store.reviews.groups(10) == [(9, 3), (5, 2), (7, 2)]
    assert store.reviews.groups(1) == [(9, 3)]
    assert store.reviews.open_count() == 8
    decided = replace(TASK, task_id=numbers[0], state=ReviewState.REJECTED, decided_at=200.0, decided_by="ada")
    store.reviews.decide(decided, ReviewStep(0, numbers[0], 200.0, "ada", "decision", detail={}))
    assert store.reviews.open_count() == 7
    assert store.reviews.groups(10) == [(9, 3), (5, 2)]
    assert store.reviews.decided_since(200.0) == [(100.0, 200.0)]
    assert store.reviews.decided_since(200.5) == []


def test_counts_in_memory_are_written_in_turn_whatever_fails(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    written = list[int]()

    def fail() -> None:
        written.append(1)
        raise StoreError("locked")

    store.before_close(fail)
    store.before_close(lambda: written.append(2))
    store.flush()
    assert written == [1, 2]
    assert "locked" in caplog.text


def ask(host: str, client: str, name: str = "") -> UnblockRequest:
    return UnblockRequest(f"http://{host}/", client, "blacklist", "list", "r", "gambling", "please", NOW, client_name=name)


@pytest.mark.parametrize("at_once", [1, 500])
def test_what_is_stored_about_a_client_is_erased_and_nothing_else(
    store: Store, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(client_traces, "_AT_ONCE", at_once)
    store.unblock.ask(
        [ask("by-name", "10.0.0.9", "kim"), ask("logged", "hash"), ask("address", "10.0.0.1"), ask("b", "10.0.0.2", "bo")]
    )
    links = [
        store.bypass.add(BypassLink(f"http://{scope}/", EntryKind.DOMAIN, ".a", scope, 2_000.0, False, NOW))
        for scope in ("client:kim", "client:bo")
    ]
    editor = PolicyEditor(store.policies, lambda: NOW)
    editor.add_policy("kids")
    editor.add_quota(Quota("films", "kids", QuotaKind.SERVICE, "clips", 60, "UTC"), (), {"clips"})
    store.usage.add([QuotaUse(client, "films", 20) for client in ("client:kim", "address:10.0.0.1", "client:bo")])
    store.devices.seen({"10.0.0.1": "aa:bb:cc:dd:ee:01", "10.0.0.2": "aa:bb:cc:dd:ee:02"}, NOW)
    for number, facts in enumerate(({"client": "hash"}, {"client": "10.0.0.1"}, {"client_name": "kim"}, {"client": "x"}, {})):
        store.notifications.add("device", str(number), NOW, facts)
    asked = len(store.notifications.after(0, 99))
    before = store.unblock.changes(0).version
    client = ClientIdentity(frozenset({"hash"}), frozenset({"10.0.0.1"}), "kim")
    erased = store.client_traces.erase(client)
    assert (erased["requests"], erased["links"], erased["quota_days"], erased["devices"]) == (3, 1, 2, 1)
    left = store.notifications.after(0, 99)
    assert erased["messages"] == asked - len(left) >= 3
    assert not any({"hash", "10.0.0.1", "kim"}.intersection(map(str, one.facts.values())) for one in left)
    assert [one.facts for one in left if one.event == "device"] == [{"client": "x"}, {}]
    (open_request,) = store.unblock.open_requests()
    assert open_request.url == "http://b/"
    requests = [request for number in range(1, 5) if (request := store.unblock.find(number)) is not None]
    gone = [request for request in requests if request.url == ERASED_URL]
    assert {(one.client, one.client_name, one.comment, one.state, one.rule) for one in gone} == {
        ("", "", "", RequestState.CLOSED, ""),
    }  # fmt: skip
    assert len(gone) == 3
    found = {link.link_id: link for link in store.bypass.links()}
    assert [found[link.link_id].url for link in links if link.link_id in found][-1] == "http://client:bo/"
    assert (store.unblock.decided(9), [one.url for one in store.unblock.requests()]) == ([], ["http://b/"])
    assert [link.url for link in store.bypass.links()] == ["http://client:bo/"]
    assert store.unblock.changes(before).version > before, "those who follow hear of it"
    assert set(store.client_traces.erase(client).values()) == {0}
    nobody = ClientIdentity(frozenset(), frozenset(), "")
    assert set(store.client_traces.erase(nobody).values()) == {0}, "clients without a name are not meant by an empty one"


def test_holds_are_bounded_and_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontier_holds, "MOST_HOLDS", 2)
    holds = store.frontier.holds
    assert holds.hold(HoldKind.HOST, "a.example", NOW) is True
    assert holds.hold(HoldKind.HOST, "a.example", NOW) is False
    assert holds.hold(HoldKind.TASK, "a.example", NOW) is True
    with pytest.raises(ConfigError, match="at most 2 tasks and hosts"):
        holds.hold(HoldKind.TASK, "b", NOW)
    assert [(one.kind, one.name, one.since) for one in holds.all()] == [
        (HoldKind.HOST, "a.example", NOW), (HoldKind.TASK, "a.example", NOW),
    ]  # fmt: skip
    assert holds.unhold(HoldKind.TASK, "none") is False
    assert holds.unhold(HoldKind.TASK, "a.example") is True
    assert holds.hold(HoldKind.TASK, "b", NOW) is True
