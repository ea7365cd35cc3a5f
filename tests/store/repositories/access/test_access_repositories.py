"""Accounts, sessions, tokens, the audit log and kept answers, over every database."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from gatewayfilter.errors import AccountError
from gatewayfilter.model import Account, Actor, ApiToken, AuditEntry, KeptAnswer, Role, Scope, Via, WebSession
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.access import audit as audit_module
from gatewayfilter.store.repositories.access import kept_answers as kept_answers_module
from gatewayfilter.store.repositories.access.web_sessions import MOST_OF_ACCOUNT

ADA = Account(0, "Ada", Role.ADMIN, "hash", "SECRET", 7, ("00",), "en", "issuer sub", ("192.0.2.1",), 1.0, 2.0, 3.0)


def session(number: int, account_id: int, *, seen_at: float = 1.0) -> WebSession:
    return WebSession(number.to_bytes(32), account_id, "csrf", 1.0, seen_at, 100.0, "192.0.2.1", "Firefox")


def token(account_id: int, name: str = "backup job", digest: bytes = b"t" * 32) -> ApiToken:
    return ApiToken(0, digest, name, account_id, Scope.READ, 1.0, 50.0)


def entry(subject: str = "a.example", **values: object) -> AuditEntry:
    return replace(AuditEntry(0, 5.0, Actor("ada", Via.SESSION, "192.0.2.1"), "rule.added", subject), **values)  # type: ignore[arg-type]


def test_an_account_comes_back_as_it_was(store: Store) -> None:
    added = store.accounts.add(ADA)
    assert added == replace(ADA, account_id=added.account_id)
    assert store.accounts.find("aDA") == store.accounts.get(added.account_id) == added == store.accounts.all()[0]
    assert store.accounts.find_external("issuer sub") == added
    assert store.accounts.find_external("") is None
    assert store.accounts.find("bob") is None


def test_names_are_unique_without_regard_to_case(store: Store) -> None:
    store.accounts.add(ADA)
    bob = store.accounts.add(replace(ADA, name="bob", external_id=""))
    for name in ("ada", "ADA", "\uff21da"):
        with pytest.raises(AccountError, match="already"):
            store.accounts.add(replace(ADA, name=name))
        with pytest.raises(AccountError, match="already"):
            store.accounts.change(bob.account_id, lambda account, _, name=name: replace(account, name=name))  # type: ignore[misc]
    assert len(store.accounts.all()) == 2


def test_one_first_account_is_made_by_any_number_of_browsers(open_store: Callable[[], Store]) -> None:
    stores = [open_store(), open_store()]

    def add(number: int) -> bool:
        try:
            stores[number % 2].accounts.add(replace(ADA, name=f"admin{number}"), only_first=True)
        except AccountError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(add, range(8))) == 1


def test_a_removed_account_takes_sessions_and_tokens_along(store: Store) -> None:
    ada, bob = store.accounts.add(ADA), store.accounts.add(replace(ADA, name="bob", external_id=""))
    for number, account in enumerate((ada, bob)):
        store.sessions.add(session(number, account.account_id))
        store.tokens.add(token(account.account_id, digest=bytes([number]) * 32))

    def remove(account: Account, every: Sequence[Account]) -> None:
        assert (account, len(every)) == (ada, 2)

    assert store.accounts.change(ada.account_id, remove) is None
    assert store.sessions.find((0).to_bytes(32)) is None
    assert store.tokens.find(b"\0" * 32) is None
    found = store.sessions.find((1).to_bytes(32))
    assert found == (bob, session(1, bob.account_id))
    assert len(store.tokens.all()) == 1


def test_the_number_of_a_removed_account_is_not_used_again(store: Store) -> None:
    ada = store.accounts.add(ADA)
    store.accounts.change(ada.account_id, lambda *_: None)
    assert store.accounts.add(ADA).account_id > ada.account_id


def test_sessions_are_bounded_and_end(store: Store) -> None:
    for number in range(MOST_OF_ACCOUNT + 3):
        store.sessions.add(session(number, 1, seen_at=float(number)))
    store.sessions.add(session(999, 2))
    assert [found.seen_at for found in store.sessions.of_account(1)] == [float(n) for n in range(MOST_OF_ACCOUNT + 2, 2, -1)]
    store.sessions.touch((5).to_bytes(32), 77.0)
    assert store.sessions.of_account(1)[0].seen_at == 77.0
    assert store.sessions.remove((5).to_bytes(32))
    assert not store.sessions.remove((5).to_bytes(32))
    assert store.sessions.sweep(50.0, 3.0) == 2  # number 3, and the one of the other account
    assert store.sessions.remove_of(1, but=(10).to_bytes(32)) == MOST_OF_ACCOUNT - 3
    assert [found.digest for found in store.sessions.of_account(1)] == [(10).to_bytes(32)]
    assert store.sessions.sweep(100.0, 0.0) == 1


def test_hostile_agents_are_stored(store: Store) -> None:
    ada = store.accounts.add(ADA)
    store.sessions.add(replace(session(1, ada.account_id), agent="\ud800\0\u202e" + "x" * 5000))
    (found,) = store.sessions.of_account(ada.account_id)
    assert (found.agent[:3], len(found.agent)) == ("?\ufffd\u202e", 300)


def test_tokens(store: Store) -> None:
    ada = store.accounts.add(ADA)
    made = store.tokens.add(token(ada.account_id))
    assert store.tokens.find(b"t" * 32) == (ada, made)
    with pytest.raises(AccountError, match="already"):
        store.tokens.add(token(ada.account_id, digest=b"u" * 32))
    store.tokens.touch(made.token_id, 9.0)
    assert store.tokens.all(ada.account_id) == [replace(made, used_at=9.0)]
    assert store.tokens.all(99) == []
    assert store.tokens.remove(made.token_id)
    assert not store.tokens.remove(made.token_id)
    for number in range(50):
        store.tokens.add(token(ada.account_id, str(number), bytes([number]) * 32))
    with pytest.raises(AccountError, match="at most"):
        store.tokens.add(token(ada.account_id, "one more", b"z" * 32))


def test_the_audit_log_is_read_by_page_and_filter(store: Store) -> None:
    first = store.audit.add(entry(undo={"kind": "rules"}))
    store.audit.add(entry("b.example", action="rule.removed"))
    third = store.audit.add(entry("kids", action="policy.changed", actor=Actor("bob", Via.COMMAND)))
    assert [found.subject for found in store.audit.page()] == ["kids", "b.example", "a.example"]
    assert [found.entry_id for found in store.audit.page(before=third, limit=1)] == [third - 1]
    assert [found.subject for found in store.audit.page(who="bob")] == ["kids"]
    assert [found.subject for found in store.audit.page(action="rule.")] == ["b.example", "a.example"]
    assert [found.subject for found in store.audit.page(action="rule.added")] == ["a.example"]
    assert [found.entry_id for found in store.audit.page(undoable=True)] == [first]
    assert store.audit.get(first) == replace(entry(undo={"kind": "rules"}), entry_id=first)
    assert store.audit.mark_undone(first, 9.0, "bob")
    assert not store.audit.mark_undone(first, 10.0, "eve")
    found = store.audit.get(first)
    assert found is not None
    assert (found.undone_at, found.undone_by) == (9.0, "bob")
    assert store.audit.page(undoable=True) == []
    assert store.audit.get(99) is None


def test_the_audit_log_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_module, "MOST_KEPT", 3)
    for number in range(5):
        store.audit.add(entry(str(number)))
    assert [found.subject for found in store.audit.page()] == ["4", "3", "2"]
    store.audit.add(entry("\ud800\0" + "x" * 9_000, detail="y" * 9_000, undo={"big": "z" * 200_000}))
    (newest, *_) = store.audit.page()
    assert (len(newest.subject), len(newest.detail), newest.undo) == (500, 2_000, None)


def test_an_answer_is_kept_once(store: Store) -> None:
    assert store.kept_answers.begin(b"k" * 32, b"r" * 32, 1.0) is None
    assert store.kept_answers.begin(b"k" * 32, b"r" * 32, 2.0) == KeptAnswer(b"r" * 32)
    answer = KeptAnswer(b"r" * 32, 201, (("location", "/x"),), b"{}")
    store.kept_answers.finish(b"k" * 32, answer)
    store.kept_answers.abandon(b"k" * 32)
    assert store.kept_answers.begin(b"k" * 32, b"r" * 32, 3.0) == answer
    assert store.kept_answers.begin(b"k" * 32, b"r" * 32, 90_000.0) is None  # a day later
    store.kept_answers.abandon(b"k" * 32)
    assert store.kept_answers.begin(b"k" * 32, b"r" * 32, 90_001.0) is None
    assert store.kept_answers.begin(b"k" * 32, b"r" * 32, 90_700.0) is None  # nobody answered
    store.kept_answers.finish(b"k" * 32, KeptAnswer(b"r" * 32, 200, (), b"x" * 100_000))
    assert store.kept_answers.begin(b"k" * 32, b"r" * 32, 90_701.0) == KeptAnswer(b"r" * 32, 200, (), None)


def test_kept_answers_are_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_answers_module, "MOST_KEPT", 2)
    for number in range(4):
        assert store.kept_answers.begin(bytes([number]) * 32, b"r" * 32, float(number)) is None
    assert store.kept_answers.begin(b"\0" * 32, b"r" * 32, 5.0) is None
    assert store.kept_answers.begin(b"\3" * 32, b"r" * 32, 6.0) is not None
