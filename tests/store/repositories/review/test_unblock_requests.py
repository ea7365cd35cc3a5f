from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayfilter.errors import RuleError
from gatewayfilter.interfaces import BypassLink, RequestState, UnblockRequest
from gatewayfilter.model import EntryKind, ListAction, ManualRule
from gatewayfilter.store import Store
from gatewayfilter.store.backup import Part
from gatewayfilter.store.repositories.review import unblock_requests as module
from gatewayfilter.store.repositories.review.bypass_links import SqlBypassLinks

HOUR = 3600.0


def ask(
    url: str = "http://a.example/", client: str = "10.0.0.1", at: float = 1.0, comment: str = "", name: str = ""
) -> UnblockRequest:
    return UnblockRequest(url, client, "blacklist", "list", "a.example", "gambling", comment, at, client_name=name)


def rule(pattern: str = ".a.example", until: float | None = None) -> ManualRule:
    return ManualRule(0, ListAction.ALLOW, EntryKind.DOMAIN, pattern, "request 1", "requests", until)


def test_one_open_row_a_page_and_client(store: Store) -> None:
    assert store.unblock.ask([ask(), ask(client="10.0.0.2", at=2.0)]) == 2
    assert store.unblock.ask([ask(at=3.0, comment="please")]) == 0
    first, second = store.unblock.open_requests()
    assert (first.client, first.times, first.comment, first.at) == ("10.0.0.1", 2, "please", 3.0)
    assert (second.client, second.times) == ("10.0.0.2", 1)
    assert store.unblock.open_requests(1) == [first]


def test_a_later_click_never_erases_the_note(store: Store) -> None:
    for comment in ("for school", "", "for school", "page 7", "x" * 500):
        store.unblock.ask([ask(comment=comment)])
    (found,) = store.unblock.open_requests()
    assert found.comment.startswith("for school / page 7 / xxx")
    assert (len(found.comment), found.times) == (module.LONGEST_COMMENT, 5)


def test_a_named_client_is_one_client_at_any_address(store: Store) -> None:
    assert store.unblock.ask([ask(name="kim"), ask(client="10.0.0.9", name="kim")]) == 1
    assert (
        store.unblock.ask([ask(url=f"http://{number}.example/", client=f"10.0.1.{number}", name="kim") for number in range(9)])
        == 4
    )


def test_limits_of_a_client(store: Store) -> None:
    assert store.unblock.ask([ask(url=f"http://{number}.example/") for number in range(9)]) == module.MOST_OF_CLIENT
    assert store.unblock.ask([ask(client="10.0.0.2")]) == 1
    taken = module.MOST_OF_CLIENT
    for number in range(100, 140):
        for request in store.unblock.open_requests():
            if request.client == "10.0.0.1":
                store.unblock.deny([request.request_id], word="", now=2.0)
        taken += store.unblock.ask([ask(url=f"http://{number}.example/", at=5.0)])
    assert taken == module.MOST_A_DAY
    assert store.unblock.ask([ask(url="http://day.example/", at=86_400.0 + 6.0)]) == 1


@pytest.mark.parametrize("bound", ["MOST_OF_CLIENT", "MOST_A_DAY", "MOST_OPEN"])
def test_a_limit_of_one_lets_one_through(bound: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, bound, 1)
    assert store.unblock.ask([ask(url=f"http://{number}.example/") for number in range(3)]) == 1
    assert store.unblock.ask([ask(url="http://9.example/", client="10.0.0.2")]) == (0 if bound == "MOST_OPEN" else 1)


@pytest.mark.parametrize(("later", "new"), [(HOUR - 2, 0), (HOUR, 1)])
def test_a_denied_page_can_be_requested_again_after_an_hour(later: float, new: int, store: Store) -> None:
    store.unblock.ask([ask()])
    (request,) = store.unblock.open_requests()
    (denied,) = store.unblock.deny([request.request_id], word="no", now=2.0)
    assert (denied.state, denied.word, denied.decided_at) == (RequestState.DENIED, "no", 2.0)
    assert store.unblock.ask([ask(at=1.0 + later)]) == new
    assert len(store.unblock.requests()) == 1 + new


def test_an_approval_makes_its_rules_and_a_denial_removes_them(store: Store) -> None:
    store.unblock.ask([ask()])
    (request,) = store.unblock.open_requests()
    (found,) = store.unblock.approve([request.request_id], [rule(until=50.0)], scope="", until=50.0, word="ok", now=2.0)
    (made,) = store.lists.rules()
    assert found.rule_ids == (made.rule_id,)
    assert (found.state, found.until, found.word) == (RequestState.APPROVED, 50.0, "ok")
    assert store.unblock.ask([ask(at=10.0)]) == 0
    assert store.unblock.ask([ask(at=60.0)]) == 1  # the approval has ended
    store.unblock.deny([request.request_id], word="", now=70.0)
    assert store.lists.rules() == []


def test_a_longer_approval_of_the_same_is_kept(store: Store) -> None:
    kept = store.lists.put_rule(rule(until=100.0))
    assert store.lists.put_rule(rule(until=50.0)) == kept
    assert store.lists.put_rule(rule()).expires_at is None
    assert store.lists.put_rule(rule(until=50.0)).expires_at is None
    assert store.lists.put_rule(rule(pattern=".b.example", until=5.0)).expires_at == 5.0
    assert store.lists.remove_ended("requests", 6.0) == 1
    assert [found.pattern for found in store.lists.rules()] == [".a.example"]


def approve(store: Store, number: int, until: float | None, now: float = 2.0) -> None:
    store.unblock.approve([number], [rule(until=until)], scope="", until=until, word="", now=now)


WITHDRAWN = [
    # The ends of the first and the second approval, which is withdrawn, when, and the end of the rule afterwards (0: none).
    (100.0, 200.0, 1, 10.0, 200.0),
    (100.0, 200.0, 2, 10.0, 100.0),
    (100.0, 200.0, 2, 150.0, 0.0),
    (None, 50.0, 1, 10.0, 50.0),
    (50.0, None, 2, 10.0, 50.0),
    (None, None, 1, 10.0, None),
]


@pytest.mark.parametrize(("first", "second", "gone", "at", "left"), WITHDRAWN)
def test_an_approval_keeps_its_end_when_another_is_withdrawn(
    first: float | None, second: float | None, gone: int, at: float, left: float | None, store: Store
) -> None:
    store.unblock.ask([ask(), ask(url="http://a.example/two")])
    approve(store, 1, first)
    approve(store, 2, second)
    store.unblock.deny([gone], word="", now=at)
    assert [found.expires_at for found in store.lists.rules()] == ([] if left == 0.0 else [left])
    store.unblock.deny([3 - gone], word="", now=at)
    assert store.lists.rules() == []


def test_an_approval_can_be_made_shorter(store: Store) -> None:
    store.unblock.ask([ask()])
    approve(store, 1, None)
    approve(store, 1, 50.0)
    assert [found.expires_at for found in store.lists.rules()] == [50.0]


def test_nothing_is_decided_where_a_check_refuses(store: Store) -> None:
    store.unblock.ask([ask()])
    seen: list[Sequence[UnblockRequest]] = []

    def refuse(requests: Sequence[UnblockRequest]) -> None:
        seen.append(requests)
        raise RuleError("somebody else decided")

    (before,) = store.unblock.requests()
    with pytest.raises(RuleError):
        store.unblock.approve([1], [rule()], scope="", until=None, word="", now=2.0, check=refuse)
    with pytest.raises(RuleError):
        store.unblock.deny([1], word="", now=2.0, check=refuse)
    assert (store.unblock.requests(), store.lists.rules(), seen) == ([before], [], [[before], [before]])
    (approved,) = store.unblock.approve([1], [rule()], scope="s", until=None, word="w", now=2.0, check=seen.append)
    with pytest.raises(RuleError):
        store.unblock.reopen([1], now=3.0, check=refuse)
    assert (store.unblock.requests(), seen[2:]) == ([approved], [[before], [approved]])
    assert (approved.scope, approved.word, len(store.lists.rules())) == ("s", "w", 1)
    (opened,) = store.unblock.reopen([1], now=4.0, check=seen.append)
    assert (opened, store.lists.rules(), seen[4:]) == (before, [], [[approved]])


def test_links_and_approvals_of_the_same_keep_their_ends(store: Store) -> None:
    store.unblock.ask([ask()])
    approve(store, 1, 100.0)
    link = store.bypass.add(BypassLink("http://a.example/", EntryKind.DOMAIN, ".a.example", "", 400.0, False, 2.0))
    once = store.bypass.add(BypassLink("http://a.example/", EntryKind.DOMAIN, ".a.example", "", 900.0, True, 2.0))
    for one in (link, once):
        assert store.bypass.redeem(one.link_id, 10.0)
    store.unblock.deny([1], word="", now=20.0)
    assert [found.expires_at for found in store.lists.rules()] == [400.0]
    store.bypass.revoke(link.link_id, 30.0)
    assert [found.expires_at for found in store.lists.rules()] == [310.0]
    store.bypass.revoke(once.link_id, 30.0)
    assert store.lists.rules() == []


def test_changes_are_followed(store: Store) -> None:
    nothing = store.unblock.changes(-1)
    assert (nothing.requests, nothing.links) == ([], [])
    store.unblock.ask([ask(), ask(client="10.0.0.2")])
    first = store.unblock.changes(nothing.version)
    assert len(first.requests) == 2
    assert store.unblock.changes(first.version).requests == ()
    store.unblock.deny([1], word="no", now=2.0)
    second = store.unblock.changes(first.version)
    assert [request.word for request in second.requests] == ["no"]
    assert len(store.unblock.changes(-1).requests) == 2


def test_open_requests_are_counted_as_they_change(store: Store) -> None:
    counted = [store.unblock.open_count()]
    store.unblock.ask([ask(), ask(client="10.0.0.2", at=2.0), ask("http://b.example/", at=3.0)])
    counted.append(store.unblock.open_count())
    numbers = [request.request_id for request in store.unblock.open_requests()]
    store.unblock.approve(numbers[:1], [rule()], scope="", until=None, word="", now=4.0)
    counted.append(store.unblock.open_count())
    store.unblock.deny(numbers[1:2], word="", now=5.0)
    counted += [store.unblock.open_count(), store.unblock.open_count()]
    store.unblock.reopen(numbers[:2], now=6.0)
    counted.append(store.unblock.open_count())
    store.unblock.complete(numbers[2])
    assert [*counted, store.unblock.open_count()] == [0, 3, 2, 1, 1, 3, len(store.unblock.open_requests())]


def test_completing_takes_the_page_off_for_everybody(store: Store) -> None:
    store.unblock.ask([ask(), ask(client="10.0.0.2"), ask(url="http://b.example/")])
    other, *_ = [found for found in store.unblock.open_requests() if found.url == "http://a.example/"]
    assert store.unblock.complete(other.request_id) == replace(other, state=RequestState.CLOSED)
    assert store.unblock.complete(other.request_id) is None
    assert [found.url for found in store.unblock.open_requests()] == ["http://b.example/"]


def test_the_history_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_DECIDED", 3)
    for number in range(6):
        store.unblock.ask([ask(url=f"http://a.example/{number}", client=str(number))])
        store.unblock.deny([number + 1], word="", now=2.0)
    store.unblock.ask([ask()])
    assert len(store.unblock.requests()) == 4


def test_a_restored_store_is_read_as_a_whole(store: Store, tmp_path: Path) -> None:
    store.unblock.ask([ask()])
    with store.backup.snapshot(frozenset({Part.STATE})) as rows:
        content = {name: list(rows.lines(name)) for name in ("unblock_requests", "bypass_links")}
    for day in range(1, 4):
        store.unblock.ask([ask(f"http://a.example/{day}", at=day * 86_400.0)])
    known = store.unblock.changes(-1)
    with store.backup.replace(Rows(content), tmp_path):
        pass
    after = store.unblock.changes(known.version)
    assert after.whole
    assert [request.url for request in after.requests] == ["http://a.example/"]
    assert after.version < known.version
    denied = store.unblock.deny([1], word="no", now=2.0)
    last = store.unblock.changes(after.version)
    assert (last.whole, list(last.requests)) == (False, denied)
    assert store.unblock.changes(last.version).requests == ()


def test_versions_begin_at_none_and_are_shared_with_links(store: Store) -> None:
    assert (store.unblock.changes(-1).version, store.unblock.changes(0).version) == (0, 0)
    store.unblock.ask([ask()])
    assert store.unblock.changes(-1).version == 1
    store.bypass.add(BypassLink("http://a.example/", EntryKind.DOMAIN, ".a.example", "", 9.0, once=True, created_at=1.0))
    after = store.unblock.changes(1)
    assert (after.version, len(after.links), len(after.requests)) == (2, 1, 0)
    assert store.unblock.changes(2).links == ()


def test_a_change_between_two_reads_is_read_next_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = SqlBypassLinks.changed

    def slowly(links: SqlBypassLinks, after: int) -> list[BypassLink]:
        monkeypatch.undo()
        store.unblock.ask([ask()])
        store.bypass.add(BypassLink("http://a.example/", EntryKind.DOMAIN, ".a.example", "", 9.0, once=True, created_at=1.0))
        return changed(links, after)

    monkeypatch.setattr(SqlBypassLinks, "changed", slowly)
    first = store.unblock.changes(-1)
    assert list(first.requests) == []
    assert len(store.unblock.changes(first.version).requests) == 1


class Rows:
    """The rows of a backup."""

    def __init__(self, content: Mapping[str, Sequence[bytes]]) -> None:
        self._content = content

    def tables(self) -> Sequence[str]:
        return list(self._content)

    def lines(self, table: str) -> Iterator[bytes]:
        return iter(self._content[table])
