import statistics
import time
from dataclasses import replace

import pytest
from argon2 import PasswordHasher

from gatewayfilter.model import Account, Role
from gatewayfilter.store import Store
from gatewayfilter.use_cases.access import log_in as log_in_module
from gatewayfilter.use_cases.access.accounts import Accounts
from gatewayfilter.use_cases.access.log_in import From, LogIn, LogInStatus
from gatewayfilter.use_cases.access.passwords import Passwords
from gatewayfilter.use_cases.access.second_factor import STEP_S, code_at, new_secret
from gatewayfilter.use_cases.access.sessions import Sessions
from gatewayfilter.use_cases.access.throttle import LogInThrottle
from tests.use_cases.access.turned_clock import Clock

GOOD = "correct horse battery"
HOME = From("192.0.2.1", "Firefox")
KEY = b"k" * 32


@pytest.fixture
def ada(accounts: Accounts) -> Account:
    return accounts.add("Ada", Role.ADMIN, GOOD)


def test_name_and_password_open_a_session(log_in: LogIn, ada: Account, store: Store, clock: Clock) -> None:
    result = log_in.with_password(" ADA ", GOOD, HOME)
    assert result.status is LogInStatus.DONE
    found = Sessions(store, clock).find(result.secret)
    assert found is not None
    account, session = found
    assert (account.account_id, account.logged_in_at, account.networks) == (ada.account_id, clock.now, ("192.0.2.1",))
    assert (session.network, session.agent) == ("192.0.2.1", "Firefox")


@pytest.mark.parametrize(
    ("name", "password"),
    [("ada", "wrong"), ("eve", GOOD), ("", ""), ("ada", ""), ("a" * 100_000, "x" * 100_000), ("\ud800", "\0"), ("ada\0", GOOD)],
)
def test_wrong_ones_do_not(name: str, password: str, log_in: LogIn, ada: Account, store: Store) -> None:
    assert log_in.with_password(name, password, HOME).status is LogInStatus.WRONG
    assert store.sessions.of_account(ada.account_id) == []


def test_accounts_that_cannot_log_in(log_in: LogIn, accounts: Accounts, ada: Account) -> None:
    accounts.add("oidc", Role.VIEWER, None, external_id="issuer sub")
    kim = accounts.add("kim", Role.VIEWER, GOOD)
    accounts.set_disabled(kim, disabled=True)
    assert log_in.with_password("oidc", "", HOME).status is LogInStatus.WRONG
    assert log_in.with_password("kim", GOOD, HOME).status is LogInStatus.WRONG
    assert ada.role is Role.ADMIN


def test_each_log_in_has_a_session_of_its_own(log_in: LogIn, ada: Account, store: Store) -> None:
    secrets = {log_in.with_password("ada", GOOD, HOME).secret for _ in range(3)}
    assert len(secrets) == 3
    assert len(store.sessions.of_account(ada.account_id)) == 3


def test_guessing_is_slowed_down_whatever_the_name(log_in: LogIn, ada: Account, clock: Clock) -> None:
    for name in ("ada", "nobody"):
        source = From(f"198.51.100.{len(name)}")
        answers = [log_in.with_password(name, "wrong", source).status for _ in range(6)]
        assert answers == [LogInStatus.WRONG] * 4 + [LogInStatus.WAIT] * 2
        wait = log_in.with_password(name, GOOD, source)
        assert (wait.status, wait.wait_s) == (LogInStatus.WAIT, 1.0)
    clock.now += 1.0
    assert log_in.with_password("ada", GOOD, From("198.51.100.3")).status is LogInStatus.DONE
    assert ada.name == "Ada"


@pytest.mark.parametrize(("alike", "waits"), [(100, True), (99, False)])
def test_names_count_by_their_first_hundred_characters(log_in: LogIn, alike: int, *, waits: bool) -> None:
    found = [log_in.with_password("n" * alike + mark, "wrong", HOME).status for mark in "abcde"]
    assert (found[-1] is LogInStatus.WAIT) is waits


def test_the_owner_gets_in_while_others_guess(log_in: LogIn, ada: Account) -> None:
    first = log_in.with_password("ada", GOOD, HOME)
    for number in range(60):
        log_in.with_password("ada", "wrong", From(f"203.0.113.{number % 30}"))
    for _ in range(10):
        log_in.with_password("ada", "wrong", HOME)
    assert log_in.with_password("ada", GOOD, From("203.0.113.200")).status is LogInStatus.WAIT
    assert log_in.with_password("ada", GOOD, HOME).status is LogInStatus.WAIT
    assert log_in.with_password("ada", GOOD, replace(HOME, device=first.device)).status is LogInStatus.DONE
    forged = replace(HOME, device=first.device[:-1] + ("0" if first.device[-1] != "0" else "1"))
    assert log_in.with_password("ada", GOOD, forged).status is LogInStatus.WAIT
    assert ada.name == "Ada"


def test_a_mark_of_one_account_is_none_of_another(log_in: LogIn, ada: Account, accounts: Accounts) -> None:
    accounts.add("kim", Role.VIEWER, GOOD)
    mark = log_in.with_password("kim", GOOD, HOME).device
    assert log_in.with_password("nobody", GOOD, replace(HOME, device=mark)).status is LogInStatus.WRONG
    for _ in range(5):
        log_in.with_password("ada", "wrong", replace(HOME, device=mark))
    assert log_in.with_password("ada", GOOD, replace(HOME, device=mark)).status is LogInStatus.WAIT
    assert ada.name == "Ada"


def test_a_second_factor_is_asked_for(log_in: LogIn, accounts: Accounts, ada: Account, clock: Clock, store: Store) -> None:
    secret = new_secret()
    codes = accounts.enrol_second_factor(ada, secret, code_at(secret, int(clock.now // STEP_S)))
    clock.now += STEP_S
    asked = log_in.with_password("ada", GOOD, HOME)
    assert (asked.status, asked.secret, asked.session) == (LogInStatus.CODE_NEEDED, "", None)
    assert len(asked.pending) == 32, "192 random bits"
    assert store.sessions.of_account(ada.account_id) == []
    assert log_in.with_code("other", code_at(secret, int(clock.now // STEP_S)), HOME).status is LogInStatus.WRONG
    done = log_in.with_code(asked.pending, code_at(secret, int(clock.now // STEP_S)), HOME)
    assert done.status is LogInStatus.DONE
    assert log_in.with_code(asked.pending, codes[0], HOME).status is LogInStatus.WRONG  # used up
    again = log_in.with_password("ada", GOOD, HOME)
    assert log_in.with_code(again.pending, codes[0], HOME).status is LogInStatus.DONE


def test_codes_cannot_be_guessed(log_in: LogIn, accounts: Accounts, ada: Account, clock: Clock) -> None:
    secret = new_secret()
    accounts.enrol_second_factor(ada, secret, code_at(secret, int(clock.now // STEP_S)))
    clock.now += 10 * STEP_S
    right = code_at(secret, int(clock.now // STEP_S))
    wrong = "000000" if right != "000000" else "000001"
    asked = log_in.with_password("ada", GOOD, HOME)
    answers = [log_in.with_code(asked.pending, wrong, HOME).status for _ in range(6)]
    assert answers[:4] == [LogInStatus.CODE_NEEDED] * 4
    assert LogInStatus.DONE not in answers
    assert log_in.with_code(asked.pending, right, HOME).status is LogInStatus.WRONG
    assert log_in.with_password("ada", GOOD, HOME).status is LogInStatus.WAIT  # failures are counted together


def test_codes_cannot_be_guessed_from_many_networks(log_in: LogIn, accounts: Accounts, ada: Account, clock: Clock) -> None:
    mark = log_in.with_password("ada", GOOD, HOME).device
    secret = new_secret()
    accounts.enrol_second_factor(ada, secret, code_at(secret, int(clock.now // STEP_S)))
    clock.now += 10 * STEP_S
    right = code_at(secret, int(clock.now // STEP_S))
    wrong = "000000" if right != "000000" else "000001"
    tried = 0
    for number in range(40):
        source = From(f"203.0.113.{number}")
        pending = log_in.with_password("ada", GOOD, source).pending
        tried += bool(pending) and log_in.with_code(pending, wrong, source).status is LogInStatus.CODE_NEEDED
    assert tried <= 20
    own = replace(HOME, device=mark)  # the owner's browser waits for nobody
    asked = log_in.with_password("ada", GOOD, own)
    assert log_in.with_code(asked.pending, right, own).status is LogInStatus.DONE


def test_a_pending_log_in_ends(log_in: LogIn, accounts: Accounts, ada: Account, clock: Clock) -> None:
    secret = new_secret()
    accounts.enrol_second_factor(ada, secret, code_at(secret, int(clock.now // STEP_S)))
    clock.now += 10 * STEP_S
    asked = log_in.with_password("ada", GOOD, HOME)
    right = code_at(secret, int(clock.now // STEP_S))
    assert log_in.with_code(asked.pending, right, From("203.0.113.9")).status is LogInStatus.WRONG  # from elsewhere
    asked = log_in.with_password("ada", GOOD, HOME)
    clock.now += 301.0
    right = code_at(secret, int(clock.now // STEP_S))
    assert log_in.with_code(asked.pending, right, HOME).status is LogInStatus.WRONG


@pytest.mark.usefixtures("full_cost")
def test_outdated_hashes_are_renewed(log_in: LogIn, ada: Account, store: Store) -> None:
    old = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1).hash(GOOD)
    store.accounts.change(ada.account_id, lambda now, _: replace(now, password_hash=old))
    assert log_in.with_password("ada", GOOD, HOME).status is LogInStatus.DONE
    after = store.accounts.get(ada.account_id)
    assert after is not None
    assert after.password_hash.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert log_in.with_password("ada", GOOD, HOME).status is LogInStatus.DONE


@pytest.mark.slow
@pytest.mark.usefixtures("full_cost")
def test_an_unknown_name_takes_as_long_as_a_known_one(store: Store, passwords: Passwords, ada: Account) -> None:
    log_in = LogIn(store, KEY, passwords)
    took: dict[str, list[float]] = {"ada": [], "nobody": []}
    for number in range(15):
        for name, times in took.items():
            begun = time.thread_time()
            assert log_in.with_password(name, "wrong", From(f"10.0.{number}.{len(name)}")).status is LogInStatus.WRONG
            times.append(time.thread_time() - begun)
    known, unknown = (statistics.median(times) for times in took.values())
    assert 0.5 < known / unknown < 2.0
    assert ada.name == "Ada"


class Attempts(LogInThrottle):
    """Notes the attempts that are counted."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.begun: list[str] = []

    def begin(self, account: str, network: str, *, known: bool = False, device: str = "") -> float:
        self.begun.append(account)
        return super().begin(account, network, known=known, device=device)


def test_the_first_code_belongs_to_the_attempt_of_the_password(
    store: Store, accounts: Accounts, passwords: Passwords, ada: Account, clock: Clock
) -> None:
    secret = new_secret()
    accounts.enrol_second_factor(ada, secret, code_at(secret, int(clock.now // STEP_S)))
    clock.now += 10 * STEP_S
    right = code_at(secret, int(clock.now // STEP_S))
    wrong = "000000" if right != "000000" else "000001"
    throttle = Attempts(clock)
    log_in = LogIn(store, KEY, passwords, throttle, clock)
    pending = log_in.with_password("ada", GOOD, HOME).pending
    for attempts in (1, 2, 3):
        answer = log_in.with_code(pending, wrong, HOME)
        assert (answer.status, answer.pending) == (LogInStatus.CODE_NEEDED, pending)
        assert throttle.begun == ["ada"] * attempts
    assert log_in.with_code(pending, right, HOME).status is LogInStatus.DONE
    assert log_in.with_code(pending, right, HOME).status is LogInStatus.WRONG, "it is used up"


def test_a_confirmation_is_delayed_as_a_log_in_is(log_in: LogIn, ada: Account) -> None:
    assert log_in.confirm(ada, GOOD, HOME).status is LogInStatus.DONE
    answers = [log_in.confirm(ada, "wrong", HOME) for _ in range(5)]
    assert [answer.status for answer in answers] == [LogInStatus.WRONG] * 4 + [LogInStatus.WAIT]
    assert answers[-1].wait_s == log_in.confirm(ada, GOOD, HOME).wait_s == 1.0


def test_an_account_remembers_its_last_networks(log_in: LogIn, ada: Account, store: Store) -> None:
    addresses = [f"192.0.2.{number}" for number in range(1, 13)]
    for address in [*addresses, addresses[-2]]:
        log_in.open(ada, From(address))
    found = store.accounts.find("ada")
    assert found is not None
    assert found.networks[-1] == addresses[-2]
    assert found.networks[-2] == addresses[-1]
    assert len(found.networks) == len(set(found.networks)) == log_in_module._MOST_NETWORKS


def test_a_network_that_the_account_knows_is_not_delayed_by_others(log_in: LogIn, ada: Account) -> None:
    assert log_in.with_password("ada", GOOD, HOME).status is LogInStatus.DONE
    for number in range(22):  # guesses, without the time that each takes
        log_in._throttle.begin("ada", f"203.0.113.{number}")
    assert log_in.with_password("ada", GOOD, From("203.0.113.200")).status is LogInStatus.WAIT
    assert log_in.with_password("ada", GOOD, HOME).status is LogInStatus.DONE
    assert ada.networks == ()


def test_the_oldest_log_ins_that_wait_for_a_code_are_forgotten(
    log_in: LogIn, ada: Account, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_in_module, "_MOST_PENDING", 2)
    first, second, third = (log_in._wait_for_code(ada, HOME) for _ in range(3))
    assert list(log_in._pending) == [second, third]
    assert log_in.with_code(first, "000000", HOME).status is LogInStatus.WRONG
    clock.now += log_in_module._PENDING_S - 1
    fourth = log_in._wait_for_code(ada, HOME)
    assert list(log_in._pending) == [third, fourth]
    clock.now += 1
    fifth = log_in._wait_for_code(ada, HOME)
    assert list(log_in._pending) == [fourth, fifth]


class NotedThrottle(LogInThrottle):
    """A throttle that notes what succeeded."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.noted: list[tuple[object, ...]] = []

    def succeeded(self, account: str, network: str, *, known: bool = False, device: str = "") -> None:
        self.noted.append((account, network, known, bool(device)))

    def code_succeeded(self, account: str, *, device: str = "") -> None:
        self.noted.append((account, bool(device)))


def test_what_succeeded_is_taken_back_of_the_count(
    store: Store, passwords: Passwords, accounts: Accounts, ada: Account, clock: Clock
) -> None:
    throttle = NotedThrottle(clock)
    log_in = LogIn(store, KEY, passwords, throttle, clock)
    device = log_in.with_password("ada", GOOD, HOME).device
    log_in.with_password("ada", GOOD, replace(HOME, device=device))
    log_in.confirm(accounts.find("ada"), GOOD, HOME)
    assert throttle.noted == [
        ("ada", HOME.network, known, marked) for known, marked in ((False, False), (True, True), (True, False))
    ]
    throttle.noted.clear()
    secret = new_secret()
    accounts.enrol_second_factor(ada, secret, code_at(secret, int(clock.now // STEP_S)))
    clock.now += STEP_S
    for given in (HOME, replace(HOME, device=device)):
        asked = log_in.with_password("ada", GOOD, given)
        assert throttle.noted == []
        assert log_in.with_code(asked.pending, code_at(secret, int(clock.now // STEP_S)), given).status is LogInStatus.DONE
        marked = bool(given.device)
        assert throttle.noted == [("ada", marked), ("ada", HOME.network, True, marked)]
        throttle.noted.clear()
        clock.now += STEP_S


def test_a_code_from_another_network_ends_the_log_in(log_in: LogIn, accounts: Accounts, ada: Account, clock: Clock) -> None:
    secret = new_secret()
    accounts.enrol_second_factor(ada, secret, code_at(secret, int(clock.now // STEP_S)))
    clock.now += STEP_S
    code = code_at(secret, int(clock.now // STEP_S))
    pending = log_in.with_password("ada", GOOD, HOME).pending
    for source in (From("198.51.100.9"), HOME):
        assert log_in.with_code(pending, code, source).status is LogInStatus.WRONG


class SlowThrottle(LogInThrottle):
    """A throttle that has attempts wait for half a second."""

    def __init__(self) -> None:
        super().__init__()
        self.waits, self.code_waits = False, False

    def begin(self, account: str, network: str, *, known: bool = False, device: str = "") -> float:
        return 0.5 if self.waits else 0.0

    def begin_code(self, account: str, *, device: str = "") -> float:
        return 0.5 if self.code_waits else 0.0


def test_half_a_second_is_waited_for(store: Store, passwords: Passwords, accounts: Accounts, ada: Account, clock: Clock) -> None:
    throttle = SlowThrottle()
    log_in = LogIn(store, KEY, passwords, throttle, clock)
    secret = new_secret()
    accounts.enrol_second_factor(ada, secret, code_at(secret, int(clock.now // STEP_S)))
    clock.now += STEP_S
    code = code_at(secret, int(clock.now // STEP_S))
    pending = log_in.with_password("ada", GOOD, HOME).pending
    throttle.code_waits = True
    ends = [log_in.with_code(pending, code, HOME)]
    throttle.waits, throttle.code_waits = True, False
    ends += [log_in.with_code(pending, code, HOME), log_in.with_password("ada", GOOD, HOME), log_in.confirm(ada, GOOD, HOME)]
    assert [(end.status, end.wait_s) for end in ends] == [(LogInStatus.WAIT, 0.5)] * 4
    throttle.waits = False
    assert log_in.with_code(pending, code, HOME).status is LogInStatus.DONE
