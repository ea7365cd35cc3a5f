"""Accounts, tokens, kept answers, holds and counts at their bounds, and a reconnecting store that passes on what it is asked."""

from dataclasses import replace
from typing import Any

import pytest

from gatewayfilter.errors import AccountError
from gatewayfilter.interfaces import CrawlRequest, HoldKind, PageDecision, Priority, QueueState
from gatewayfilter.model import (
    Account,
    ApiToken,
    Classification,
    KeptAnswer,
    ReviewKind,
    ReviewState,
    ReviewStep,
    ReviewTask,
    Role,
    Scope,
)
from gatewayfilter.store import Store
from gatewayfilter.store.backup.differences import Difference
from gatewayfilter.store.backup.sql_backup import TableChanges
from gatewayfilter.store.reconnecting_store import ReconnectingStore
from gatewayfilter.store.repositories.access import accounts, api_tokens, kept_answers
from gatewayfilter.store.repositories.crawling import frontier_holds
from gatewayfilter.store.repositories.crawling.frontier_holds import host_of_queued, site_slot

ADA = Account(0, "Ada", Role.ADMIN, "hash", "SECRET", 7, ("00",), "en", "issuer sub", ("192.0.2.1",), 1.0, 2.0, 3.0)


def test_accounts_up_to_their_bound_and_each_identity_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "MOST", 2)
    assert store.accounts.exist() is False
    ada = store.accounts.add(ADA, only_first=True)
    assert store.accounts.exist() is True
    with pytest.raises(AccountError, match=r"^there is an account already$"):
        store.accounts.add(replace(ADA, name="bob"), only_first=True)
    with pytest.raises(AccountError, match=r"^the account 'Ada' is linked to this identity already$"):
        store.accounts.add(replace(ADA, name="bob"))
    bob = store.accounts.add(replace(ADA, name="bob", external_id="", disabled=True))
    assert store.accounts.get(bob.account_id) == replace(
        ADA, account_id=bob.account_id, name="bob", external_id="", disabled=True
    )
    with pytest.raises(AccountError, match=r"^there are 2 accounts already$"):
        store.accounts.add(replace(ADA, name="eve", external_id=""))
    with pytest.raises(AccountError, match="linked to this identity"):
        store.accounts.change(bob.account_id, lambda one, _: replace(one, external_id="issuer sub"))
    assert store.accounts.change(99, lambda one, _: one) is None
    assert store.accounts.change(ada.account_id, lambda one, _: one) == ada
    changed = store.accounts.change(ada.account_id, lambda one, _: replace(one, name="ADA", totp_step=8))
    assert changed == store.accounts.find("ada") == replace(ada, name="ADA", totp_step=8)
    assert [one.name for one in store.accounts.all()] == ["ADA", "bob"]


def test_tokens_up_to_their_bound_for_each_account(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_tokens, "MOST_OF_ACCOUNT", 2)
    ada, bob = store.accounts.add(ADA), store.accounts.add(replace(ADA, name="bob", external_id=""))

    def token(account: Account, name: str) -> ApiToken:
        return ApiToken(0, f"{account.account_id}{name}".encode().ljust(32), name, account.account_id, Scope.READ, 1.0, 50.0)

    made = [store.tokens.add(token(ada, name)) for name in "ab"]
    with pytest.raises(AccountError, match=r"^an account has at most 2 tokens$"):
        store.tokens.add(token(ada, "c"))
    with pytest.raises(AccountError, match=r"^the account has a token 'a' already$"):
        store.tokens.add(token(ada, "a"))
    other = store.tokens.add(token(bob, "a"))
    assert (store.tokens.all(ada.account_id), store.tokens.all()) == (made, [*made, other])
    assert store.tokens.find(other.digest) == (bob, other)
    assert store.tokens.find(b"x" * 32) is None


def test_an_answer_is_kept_for_a_day_and_one_that_is_missing_for_ten_minutes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_answers, "LARGEST_BODY", 3)
    for key, body, kept in ((b"a" * 32, b"123", b"123"), (b"b" * 32, b"1234", None), (b"c" * 32, None, None)):
        assert store.kept_answers.begin(key, b"r" * 32, 1_000.0) is None
        store.kept_answers.finish(key, KeptAnswer(b"r" * 32, 201, (("x", "y"),), body))
        assert store.kept_answers.begin(key, b"r" * 32, 1_000.0) == KeptAnswer(b"r" * 32, 201, (("x", "y"),), kept)
    assert store.kept_answers.begin(b"d" * 32, b"r" * 32, 1_000.0) is None
    assert store.kept_answers.begin(b"d" * 32, b"s" * 32, 1_599.9) == KeptAnswer(b"r" * 32)
    assert store.kept_answers.begin(b"d" * 32, b"s" * 32, 1_600.0) is None
    assert store.kept_answers.begin(b"a" * 32, b"r" * 32, 87_399.9) is not None
    assert store.kept_answers.begin(b"a" * 32, b"r" * 32, 87_400.0) is None


def test_the_slot_of_a_site_stays_the_same() -> None:
    urls = (
        "http://a.example/",
        "http://www.a.example:8080/x",
        "http://10.0.0.1/",
        "http://[2001:db8::1]/",
        "http://com/",
        "none",
    )
    assert [site_slot(url) for url in urls] == [762, 762, 939, 422, 410, -1]
    assert [host_of_queued(url) for url in (*urls, "http://[broken")] == [
        "a.example", "www.a.example", "10.0.0.1", "2001:db8::1", "com", "none", "http://[broken",
    ]  # fmt: skip


def test_a_lease_moves_so_many_held_rows_and_goes_on_with_the_next(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontier_holds, "_MOST_BATCHES", 1)
    monkeypatch.setattr(frontier_holds, "_CHUNK", 2)
    queue = store.frontier
    assert queue.holds.hold(HoldKind.TASK, "news", 1.0)
    queue.add([CrawlRequest(f"http://{number}.example/", Priority.VISIT, task="news") for number in range(4)], 1.0)
    queue.add([CrawlRequest("http://free.example/", Priority.LINK)], 1.0)
    held = [2.0, 3.0, 4.0]
    assert [[lease.url for lease in queue.lease(1, 60.0, now)] for now in held] == [[], [], ["http://free.example/"]]
    assert len(queue.show(9, QueueState.WAITING)) == 4
    assert queue.holds.unhold(HoldKind.TASK, "news")
    assert [len(queue.lease(3, 60.0, 5.0)), len(queue.lease(9, 60.0, 5.0))] == [3, 1]


def test_changes_of_a_table_are_counted_by_their_kind() -> None:
    changes = TableChanges("rows", "rows")
    for now, then in ((None, {}), ({}, None), ({}, None), ({}, {}), ({}, {}), ({}, {})):
        changes.count(Difference(now, then))
    assert (changes.added, changes.removed, changes.changed) == (1, 2, 3)


def test_a_decision_is_of_what_was_judged_or_doubted_or_decided(store: Store) -> None:
    found = []
    for judged, doubted, decided in (("a", "b", "c"), ("", "b", "c"), ("", "", "c")):
        said = Classification(judged, 1.0, 2.0, doubt=doubted)
        task = ReviewTask(0, ReviewKind.PAGE, "http://x/", "x/", decided, said, blocked=True, created_at=1.0)
        number = store.reviews.add(task)
        rejected = replace(task, task_id=number, state=ReviewState.REJECTED, decided_at=float(number), decided_by="ada")
        store.reviews.decide(rejected, ReviewStep(0, number, float(number), "ada", "decision"))
        found.append(PageDecision(judged or doubted or decided, rejected=True, blocked=False, decided_at=float(number)))
    assert store.decisions.decisions_since(0.0) == found
    assert [page.category for page in store.decisions.decided_pages(9)] == ["c"] * 3


class Asked:
    """A store whose every part notes what it is asked, and answers with its name."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def __getattr__(self, part: str) -> Any:
        class Part:
            def __getattr__(_, name: str) -> Any:  # noqa: N805  the part, whose store is `self`
                def answer(*values: Any) -> str:
                    self.asked.append((part, name, *values))
                    return f"{part}.{name}"

                return answer

        return Part()


def test_a_reconnecting_store_passes_on_what_it_is_asked() -> None:
    opened = Asked()
    store: Any = ReconnectingStore(lambda: opened, 5_000.0)  # type: ignore[arg-type, return-value]
    answers = [
        store.feed.last_seq(), store.feed.read(3), store.feed.read(3, 9), store.frontier.add(["offer"], 1.0),
        store.unblock.ask(["request"]), store.unblock.redeem([7], 2.0), store.unblock.changes(4), store.usage.add(["use"]),
        store.log.write(["record"]),
    ]  # fmt: skip
    assert answers == [
        "feed.last_seq", "feed.read", "feed.read", "frontier.add", "unblock.ask", "unblock.redeem", "unblock.changes",
        "usage.add", None,
    ]  # fmt: skip
    assert opened.asked == [
        ("feed", "last_seq"), ("feed", "read", 3, 1_000), ("feed", "read", 3, 9), ("frontier", "add", ["offer"], 1.0),
        ("unblock", "ask", ["request"]), ("unblock", "redeem", [7], 2.0), ("unblock", "changes", 4), ("usage", "add", ["use"]),
        ("log", "shrink", 5_000.0), ("log", "write", ["record"]),
    ]  # fmt: skip
