"""The bounds of accounts, sessions, tokens, passwords and log-ins, to the last second and character."""

from dataclasses import replace

import pytest

from gatewayfilter.errors import AccountError
from gatewayfilter.model import Account, Role, Scope
from gatewayfilter.store import Store
from gatewayfilter.use_cases.access import log_in as log_in_module
from gatewayfilter.use_cases.access import throttle as throttle_module
from gatewayfilter.use_cases.access.accounts import Accounts
from gatewayfilter.use_cases.access.log_in import From, LogIn, LogInStatus
from gatewayfilter.use_cases.access.passwords import LONGEST, Passwords, check_new_password
from gatewayfilter.use_cases.access.random_secrets import _mac, read_device, sign_device
from gatewayfilter.use_cases.access.second_factor import STEP_S, code_at, new_recovery_codes, new_secret
from gatewayfilter.use_cases.access.sessions import IDLE_S, LONGEST_S, Sessions
from gatewayfilter.use_cases.access.throttle import LogInThrottle
from gatewayfilter.use_cases.access.tokens import LONGEST_S as LONGEST_TOKEN_S
from gatewayfilter.use_cases.access.tokens import ApiTokens
from tests.use_cases.access.turned_clock import Clock

GOOD = "correct horse battery"
HOME = From("192.0.2.1", "Firefox")
KEY = b"k" * 32


@pytest.fixture
def ada(accounts: Accounts) -> Account:
    return accounts.add("ada", Role.ADMIN, None)


def enrolled(accounts: Accounts, account: Account, clock: Clock) -> str:
    secret = new_secret()
    accounts.enrol_second_factor(account, secret, code_at(secret, int(clock.now // STEP_S)))
    clock.now += 10 * STEP_S
    return secret


def test_a_token_ends_with_its_last_second(store: Store, ada: Account, clock: Clock) -> None:
    tokens = ApiTokens(store, clock)
    text, made = tokens.add(ada, "x" * 80, Scope.READ, 60.0)
    assert made.expires_at == clock.now + 60
    clock.now += 59.5
    assert tokens.find(text) is not None
    clock.now += 0.5
    assert tokens.find(text) is None
    assert tokens.add(ada, "long", Scope.READ, LONGEST_TOKEN_S)[1].expires_at == clock.now + LONGEST_TOKEN_S
    for name, lifetime in (("a", 59.0), ("b", LONGEST_TOKEN_S + 1)):
        with pytest.raises(AccountError, match="from a minute to ten years"):
            tokens.add(ada, name, Scope.READ, lifetime)
    with pytest.raises(AccountError, match="scope"):
        tokens.add(ada, "c", Scope.ADMIN, None, within=Role.VIEWER)
    assert [token.name for token in tokens.of_account(ada)] == ["x" * 80, "long"]


def test_the_use_of_a_token_is_written_again_after_a_minute(store: Store, ada: Account, clock: Clock) -> None:
    tokens = ApiTokens(store, clock)
    text, _ = tokens.add(ada, "job", Scope.READ, None)
    tokens.find(text)
    first = clock.now
    clock.now += 59.0
    found = tokens.find(text)
    assert found is not None
    assert (found[1].used_at, store.tokens.all()[0].used_at) == (first, first)
    clock.now += 1.0
    found = tokens.find(text)
    assert found is not None
    assert (found[1].used_at, store.tokens.all()[0].used_at) == (clock.now, clock.now)


def test_a_session_ends_at_its_last_moment_or_with_its_account(
    store: Store, ada: Account, accounts: Accounts, clock: Clock
) -> None:
    sessions = Sessions(store, clock)
    secret, made = sessions.open(ada, "n", "a")
    assert made.expires_at == clock.now + LONGEST_S
    clock.now = made.expires_at - 1
    store.sessions.touch(made.digest, clock.now)
    assert sessions.find(secret) is not None
    clock.now = made.expires_at
    assert sessions.find(secret) is None
    short = Sessions(store, clock, idle_s=10.0)
    secret, _ = short.open(ada, "n", "a")
    clock.now += 9.0
    assert short.find(secret) is not None
    clock.now += 1.0
    assert short.find(secret) is None
    assert IDLE_S == 7 * 86_400
    kim = accounts.add("kim", Role.VIEWER, None)
    secret, _ = sessions.open(kim, "n", "a")
    store.accounts.change(kim.account_id, lambda now, _: replace(now, disabled=True))
    assert sessions.find(secret) is None


def test_all_sessions_of_an_account_end(store: Store, ada: Account, clock: Clock) -> None:
    sessions = Sessions(store, clock)
    secrets = [sessions.open(ada, "n", "a")[0] for _ in range(3)]
    assert sessions.close_all(ada) == 3
    assert [sessions.find(secret) for secret in secrets] == [None] * 3


@pytest.mark.parametrize("password", ["abcd567890", "abcd" * (LONGEST // 4), "ada-and-more", "1234abcdef"])
def test_passwords_at_the_bounds(password: str) -> None:
    check_new_password(password, "ada")


def test_a_password_of_four_different_marks_is_enough() -> None:
    check_new_password("abcdabcdabcd", "")
    with pytest.raises(AccountError, match="first"):
        check_new_password("abcabcabcabc", "")


def test_recovery_codes_are_four_groups() -> None:
    codes = new_recovery_codes()
    assert len(codes) == 10
    assert {tuple(map(len, code.split("-"))) for code in codes} == {(4, 4, 4, 4)}
    assert all(code == code.lower() for code in codes)


def test_marks_of_browsers_are_bounded() -> None:
    mark = sign_device(KEY, 7)
    assert read_device(KEY, 7, mark) == mark.partition(".")[0] != ""
    for wrong in ("", ".", f"{mark}x", mark[:-1], "é.x", "x" * 10_000):
        assert read_device(KEY, 7, wrong) == ""
    assert read_device(KEY, 8, mark) == ""
    assert read_device(b"o" * 32, 7, mark) == ""


def test_a_code_is_waited_for_until_five_minutes_are_over(
    log_in: LogIn, accounts: Accounts, clock: Clock, passwords: Passwords, store: Store
) -> None:
    ada = accounts.add("Ada", Role.ADMIN, GOOD)
    secret = enrolled(accounts, ada, clock)
    asked = log_in.with_password("ada", GOOD, HOME)
    clock.now += 299.0
    assert log_in.with_code(asked.pending, code_at(secret, int(clock.now // STEP_S)), HOME).status is LogInStatus.DONE
    clock.now += 600.0
    asked = log_in.with_password("ada", GOOD, HOME)
    clock.now += 300.0
    assert log_in.with_code(asked.pending, code_at(secret, int(clock.now // STEP_S)), HOME).status is LogInStatus.WRONG
    asked = log_in.with_password("ada", GOOD, HOME)
    accounts.add("bob", Role.ADMIN, None)
    store.accounts.change(ada.account_id, lambda now, _: replace(now, disabled=True))
    assert log_in.with_code(asked.pending, code_at(secret, int(clock.now // STEP_S)), HOME).status is LogInStatus.WRONG


def test_log_ins_that_wait_for_a_code_are_bounded(
    log_in: LogIn, accounts: Accounts, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_in_module, "_MOST_PENDING", 2)
    ada = accounts.add("Ada", Role.ADMIN, GOOD)
    secret = enrolled(accounts, ada, clock)
    first, second, third = (log_in.with_password("ada", GOOD, HOME).pending for _ in range(3))
    code = code_at(secret, int(clock.now // STEP_S))
    assert log_in.with_code(first, code, HOME).status is LogInStatus.WRONG, "the oldest made room"
    assert second != third
    assert log_in.with_code(third, code, HOME).status is LogInStatus.DONE
    assert len(log_in._pending) == 1
    clock.now += 300.0
    log_in.with_password("ada", GOOD, HOME)
    assert len(log_in._pending) == 1, "what is over is forgotten"


def test_five_codes_are_tried(log_in: LogIn, accounts: Accounts, clock: Clock) -> None:
    ada = accounts.add("Ada", Role.ADMIN, GOOD)
    first = log_in.open(ada, HOME)
    own = replace(HOME, device=first.device)
    secret = enrolled(accounts, ada, clock)
    right = code_at(secret, int(clock.now // STEP_S))
    wrong = "000000" if right != "000000" else "000001"
    asked = log_in.with_password("ada", GOOD, own)
    ends = []
    for _ in range(5):
        ends.append(log_in.with_code(asked.pending, wrong, own))
        clock.now += 50.0
    assert [end.status for end in ends] == [LogInStatus.CODE_NEEDED] * 4 + [LogInStatus.WRONG]
    assert [end.pending == asked.pending for end in ends] == [True] * 4 + [False]
    assert log_in.with_code(asked.pending, right, own).status is LogInStatus.WRONG


def test_the_last_eight_networks_of_an_account_are_remembered(log_in: LogIn, accounts: Accounts) -> None:
    ada = accounts.add("Ada", Role.ADMIN, None)
    for number in (*range(9), 3):
        account = log_in.open(ada, From(f"192.0.2.{number}")).account
    assert account is not None
    assert account.networks == tuple(f"192.0.2.{number}" for number in (1, 2, 4, 5, 6, 7, 8, 3))


def test_only_admins_have_a_password_where_that_is_set(store: Store) -> None:
    longest = "abcd" * (LONGEST // 4)
    accounts, log_in = Accounts(store), LogIn(store, KEY, admins_only=True)
    accounts.add("Ada", Role.ADMIN, longest)
    accounts.add("kim", Role.APPROVER, GOOD)
    assert log_in.with_password("ada", longest, HOME).status is LogInStatus.DONE
    assert log_in.with_password("kim", GOOD, HOME).status is LogInStatus.WRONG


def test_failures_are_forgotten_after_an_hour_and_not_before(clock: Clock) -> None:
    throttle = LogInThrottle(clock)
    for _ in range(4):
        throttle.begin("ada", "n", known=True)
    clock.now += 3_600.0
    assert throttle.begin("ada", "n", known=True) == 0
    assert throttle.begin("ada", "n", known=True) == 2.0, "the count went on"
    clock.now += 3_600.5
    assert [throttle.begin("ada", "n", known=True) for _ in range(5)] == [0, 0, 0, 0, 1.0]


def test_a_right_password_takes_its_own_attempt_back(clock: Clock) -> None:
    throttle = LogInThrottle(clock)
    for number in range(9):
        assert throttle.begin(f"name{number}", "n") == 0
    assert throttle.begin("ada", "n") == 0
    throttle.succeeded("ada", "n")
    throttle.succeeded("ada", "n")
    assert [throttle.begin(f"other{number}", "n") > 0 for number in range(4)] == [False, False, True, True]
    throttle.succeeded("nobody", "elsewhere")
    assert throttle.begin("nobody", "elsewhere") == 0


def test_codes_of_a_device_are_counted_apart_and_forgotten(clock: Clock) -> None:
    throttle = LogInThrottle(clock)
    assert [throttle.begin_code("ada", device="phone") for _ in range(21)] == [0.0] * 20 + [1.0]
    assert throttle.begin_code("ada") == 0
    throttle.code_succeeded("ada")
    assert throttle.begin_code("ada", device="phone") == 1.0
    throttle.code_succeeded("ada", device="phone")
    assert throttle.begin_code("ada", device="phone") == 0
    assert throttle_module._OF_CODES.forget_s == 7 * 86_400


def test_what_an_account_is_linked_to(accounts: Accounts, store: Store, clock: Clock) -> None:
    ada = accounts.add("Ada", Role.ADMIN, GOOD)
    secret, _ = Sessions(store, clock).open(ada, "n", "a")
    with pytest.raises(AccountError, match="an issuer, a space and a subject"):
        accounts.link(ada, "no-subject")
    for wrong in (" x", "issuer ", "issuer  ", "issuer a\nb", "i " + "x" * 2_299):
        with pytest.raises(AccountError, match="an issuer"):
            accounts.link(ada, wrong)
    longest = "i " + "x" * 2_298
    linked = accounts.link(ada, longest)
    assert (linked.external_id, Sessions(store, clock).find(secret)) == (longest, None)
    secret, _ = Sessions(store, clock).open(ada, "n", "a")
    accounts.link(linked, longest)
    assert Sessions(store, clock).find(secret) is not None, "nothing changed"
    assert accounts.link(linked, "").external_id == ""
    kim = accounts.add("kim", Role.VIEWER, None, external_id="issuer sub")
    with pytest.raises(AccountError, match="kim has no password; set one first"):
        accounts.link(kim, "")


def test_a_change_is_dated_where_something_changes(accounts: Accounts, clock: Clock) -> None:
    ada = accounts.add("Ada", Role.ADMIN, None)
    assert (ada.created_at, ada.changed_at) == (clock.now, clock.now)
    clock.now += 5.0
    assert accounts.set_language(ada, "").changed_at == ada.changed_at
    assert accounts.set_language(ada, "en").changed_at == clock.now
    assert accounts.find("ada").created_at == ada.created_at
    with pytest.raises(AccountError, match=r"no account 'nobody'$"):
        accounts.find("nobody")


@pytest.mark.parametrize(("length", "fits"), [(200, True), (201, False)])
def test_the_longest_mark_of_a_browser(length: int, *, fits: bool) -> None:
    nonce = "n" * (length - 33)
    mark = f"{nonce}.{_mac(KEY, 7, nonce)}"
    assert len(mark) == length
    assert read_device(KEY, 7, mark) == (nonce if fits else "")
