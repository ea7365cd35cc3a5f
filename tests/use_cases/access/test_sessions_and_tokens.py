import pytest

from gatewayfilter.errors import AccountError
from gatewayfilter.model import Account, Role, Scope
from gatewayfilter.store import Store
from gatewayfilter.use_cases.access.accounts import Accounts
from gatewayfilter.use_cases.access.sessions import IDLE_S, LONGEST_S, Sessions
from gatewayfilter.use_cases.access.tokens import ApiTokens
from tests.use_cases.access.turned_clock import Clock


@pytest.fixture
def ada(accounts: Accounts) -> Account:
    return accounts.add("ada", Role.ADMIN, None)


@pytest.fixture
def sessions(store: Store, clock: Clock) -> Sessions:
    return Sessions(store, clock)


@pytest.fixture
def tokens(store: Store, clock: Clock) -> ApiTokens:
    return ApiTokens(store, clock)


def test_a_session_ends_when_it_is_not_used(sessions: Sessions, ada: Account, clock: Clock) -> None:
    secret, _ = sessions.open(ada, "n", "a")
    clock.now += IDLE_S - 1
    assert sessions.find(secret) is not None
    clock.now += IDLE_S - 1
    assert sessions.find(secret) is not None
    clock.now += IDLE_S
    assert sessions.find(secret) is None


def test_a_session_ends_after_a_month_though_it_is_used(sessions: Sessions, ada: Account, clock: Clock, store: Store) -> None:
    secret, made = sessions.open(ada, "n", "a")
    while clock.now + 86_400.0 < made.created_at + LONGEST_S:
        clock.now += 86_400.0
        assert sessions.find(secret) is not None
    clock.now += 86_400.0
    assert sessions.find(secret) is None
    sessions.open(ada, "n", "a")  # deletes what is over
    assert len(store.sessions.of_account(ada.account_id)) == 1


def test_the_last_use_is_written_once_a_minute(sessions: Sessions, ada: Account, clock: Clock, store: Store) -> None:
    secret, made = sessions.open(ada, "n", "a")
    clock.now += 59
    sessions.find(secret)
    assert store.sessions.of_account(ada.account_id) == [made]
    clock.now += 1
    sessions.find(secret)
    assert store.sessions.of_account(ada.account_id)[0].seen_at == clock.now


def test_secrets_are_not_stored(sessions: Sessions, ada: Account, store: Store) -> None:
    secret, made = sessions.open(ada, "n", "a")
    assert secret.encode() not in made.digest
    assert len(secret) >= 43
    for other in ("", made.digest.hex(), made.csrf, made.public_id, secret[:-1], "\ud800", secret + "\0"):
        assert sessions.find(other) is None
    assert sessions.find(secret) is not None
    assert store.sessions.find(made.digest) is not None


def test_rotation_and_ends(sessions: Sessions, ada: Account) -> None:
    one, first = sessions.open(ada, "n", "a")
    two, _ = sessions.open(ada, "n", "b")
    three, third = sessions.rotate(ada, first)
    assert [sessions.find(secret) is not None for secret in (one, two, three)] == [False, False, True]
    assert third.csrf != first.csrf
    four, fourth = sessions.open(ada, "n", "c")
    assert sessions.close_all(ada, but=fourth) == 1
    assert not sessions.close_one(ada, third.public_id)
    assert sessions.close_one(ada, fourth.public_id)
    assert sessions.find(four) is None
    five, fifth = sessions.open(ada, "n", "c")
    sessions.close(fifth)
    assert sessions.find(five) is None


def test_one_account_does_not_end_the_session_of_another(sessions: Sessions, ada: Account, accounts: Accounts) -> None:
    secret, made = sessions.open(ada, "n", "a")
    kim = accounts.add("kim", Role.VIEWER, None)
    assert not sessions.close_one(kim, made.public_id)
    assert sessions.find(secret) is not None


def test_a_token_is_shown_once_and_expires(tokens: ApiTokens, ada: Account, clock: Clock, store: Store) -> None:
    text, made = tokens.add(ada, "  home   assistant ", Scope.APPROVE, 3_600.0)
    assert text.startswith("gwf_")
    assert made.name == "home assistant"
    found = tokens.find(text)
    assert found is not None
    assert (found[0], found[1].token_id, found[1].used_at) == (ada, made.token_id, clock.now)
    clock.now += 30
    tokens.find(text)
    assert store.tokens.all()[0].used_at == clock.now - 30
    for other in ("", text[4:], "gwf_", text + "x", made.digest.hex(), "\ud800"):
        assert tokens.find(other) is None
    clock.now += 3_600.0
    assert tokens.find(text) is None


def test_a_token_goes_with_its_account(tokens: ApiTokens, ada: Account, accounts: Accounts) -> None:
    kim = accounts.add("kim", Role.APPROVER, None)
    text, _ = tokens.add(kim, "job", Scope.READ, None)
    accounts.set_disabled(kim, disabled=True)
    assert tokens.find(text) is None
    accounts.set_disabled(kim, disabled=False)
    assert tokens.find(text) is not None
    accounts.remove(kim)
    assert tokens.find(text) is None
    assert tokens.of_account(ada) == []


def test_a_token_has_no_more_rights_than_its_account(tokens: ApiTokens, ada: Account, accounts: Accounts) -> None:
    kim = accounts.add("kim", Role.APPROVER, None)
    with pytest.raises(AccountError, match="role"):
        tokens.add(kim, "job", Scope.ADMIN, None)
    text, made = tokens.add(ada, "job", Scope.ADMIN, None)
    accounts.add("bob", Role.ADMIN, None)
    accounts.set_role(ada, Role.VIEWER)
    found = tokens.find(text)
    assert found is not None
    assert made.scope.within(found[0].role) is Role.VIEWER


@pytest.mark.parametrize(("name", "lifetime"), [("", 60.0), ("x" * 81, 60.0), ("a\u202eb", 60.0), ("a", 1.0), ("a", 1e12)])
def test_tokens_that_cannot_be(name: str, lifetime: float, tokens: ApiTokens, ada: Account) -> None:
    with pytest.raises(AccountError):
        tokens.add(ada, name, Scope.READ, lifetime)


def test_removal(tokens: ApiTokens, ada: Account, accounts: Accounts) -> None:
    kim = accounts.add("kim", Role.VIEWER, None)
    text, made = tokens.add(ada, "job", Scope.READ, None)
    with pytest.raises(AccountError, match="no token"):
        tokens.remove(made.token_id, kim)
    assert tokens.remove(made.token_id, ada).name == "job"
    assert tokens.find(text) is None
    with pytest.raises(AccountError, match="no token"):
        tokens.remove(made.token_id)
