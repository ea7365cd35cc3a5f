from concurrent.futures import ThreadPoolExecutor

import pytest

from gatewayfilter.errors import AccountError
from gatewayfilter.model import Account, Role
from gatewayfilter.store import Store
from gatewayfilter.use_cases.access.accounts import Accounts
from gatewayfilter.use_cases.access.log_in import From, LogIn, LogInStatus
from gatewayfilter.use_cases.access.passwords import Passwords
from gatewayfilter.use_cases.access.second_factor import STEP_S, code_at, new_secret
from gatewayfilter.use_cases.access.sessions import Sessions
from gatewayfilter.use_cases.access.throttle import LogInThrottle
from tests.use_cases.access.turned_clock import Clock

GOOD = "correct horse battery"


@pytest.fixture
def ada(accounts: Accounts) -> Account:
    return accounts.add("Ada", Role.ADMIN, GOOD)


def test_add_and_find(accounts: Accounts, ada: Account) -> None:
    assert accounts.find("ADA") == ada
    assert accounts.check_password(ada, GOOD)
    assert not accounts.check_password(ada, f"{GOOD}!")
    with pytest.raises(AccountError, match="did you mean 'Ada'"):
        accounts.find("Adda")
    with pytest.raises(AccountError, match="already"):
        accounts.add("ada", Role.VIEWER, GOOD)
    with pytest.raises(AccountError, match="there is an account already"):
        accounts.add("bob", Role.ADMIN, GOOD, only_first=True)


@pytest.mark.parametrize("name", ["", " ", "a b", "-x", "a\u202eb", "a\0", "a/b", "a:b", "<b>", "x" * 65, "\ud800", "a\nb", "."])
def test_names_that_cannot_be(name: str, accounts: Accounts) -> None:
    with pytest.raises(AccountError):
        accounts.add(name, Role.VIEWER, GOOD)


@pytest.mark.parametrize("name", ["ada", "Zoë", "小明", "ada.l@school-1_x+y", " trimmed "])
def test_names_that_can_be(name: str, accounts: Accounts) -> None:
    assert accounts.find(accounts.add(name, Role.VIEWER, GOOD).name).name == name.strip()


def test_the_last_admin_stays(accounts: Accounts, ada: Account) -> None:
    accounts.add("kim", Role.APPROVER, GOOD)
    with pytest.raises(AccountError, match="last admin"):
        accounts.remove(ada)
    with pytest.raises(AccountError, match="last admin"):
        accounts.set_role(ada, Role.VIEWER)
    with pytest.raises(AccountError, match="last admin"):
        accounts.set_disabled(ada, disabled=True)
    bob = accounts.add("bob", Role.ADMIN, GOOD)
    accounts.set_disabled(bob, disabled=True)
    with pytest.raises(AccountError, match="last admin"):
        accounts.remove(ada)
    accounts.set_disabled(bob, disabled=False)
    accounts.remove(ada)
    with pytest.raises(AccountError, match="any more"):
        accounts.rename(ada, "x")


def test_two_admins_cannot_remove_each_other_at_once(accounts: Accounts, store: Store) -> None:
    for _ in range(10):
        pair = [accounts.add(name, Role.ADMIN, None) for name in ("one", "two")]

        def demote(account: Account) -> bool:
            try:
                accounts.set_role(account, Role.VIEWER)
            except AccountError:
                return False
            return True

        with ThreadPoolExecutor(2) as pool:
            assert sum(pool.map(demote, pair)) == 1
        for account in store.accounts.all():
            store.accounts.change(account.account_id, lambda *_: None)


def test_a_new_password_ends_the_sessions(accounts: Accounts, ada: Account, store: Store, clock: Clock) -> None:
    sessions = Sessions(store, clock)
    secret, _ = sessions.open(ada, "192.0.2.1", "Firefox")
    assert sessions.find(secret) is not None
    with pytest.raises(AccountError):
        accounts.set_password(ada, "short")
    assert sessions.find(secret) is not None
    after = accounts.set_password(ada, "another horse battery")
    assert sessions.find(secret) is None
    assert accounts.check_password(after, "another horse battery")
    assert not accounts.check_password(after, GOOD)


def test_a_disabled_account_has_no_sessions(accounts: Accounts, store: Store, clock: Clock, ada: Account) -> None:
    kim = accounts.add("kim", Role.VIEWER, GOOD)
    sessions = Sessions(store, clock)
    secret, _ = sessions.open(kim, "n", "")
    accounts.set_disabled(kim, disabled=True)
    assert sessions.find(secret) is None
    accounts.set_disabled(kim, disabled=False)
    assert sessions.find(secret) is None
    assert ada.changed_at == clock.now


def test_language_and_name(accounts: Accounts, ada: Account) -> None:
    assert accounts.set_language(ada, "zh").language == "zh"
    with pytest.raises(AccountError, match="no language"):
        accounts.set_language(ada, "../x")
    assert accounts.rename(ada, "Ada.L").name == "Ada.L"
    assert accounts.find("ada.l").language == "zh"


def test_a_second_factor(accounts: Accounts, ada: Account, clock: Clock) -> None:
    secret = new_secret()
    step = int(clock.now // STEP_S)
    with pytest.raises(AccountError, match="code"):
        accounts.enrol_second_factor(ada, secret, "000000" if code_at(secret, step) != "000000" else "000001")
    assert not accounts.find("ada").has_second_factor
    codes = accounts.enrol_second_factor(ada, secret, code_at(secret, step))
    assert accounts.find("ada").has_second_factor
    assert not accounts.use_code(ada, code_at(secret, step))  # the one of the enrolment
    clock.now += STEP_S
    assert accounts.use_code(ada, code_at(secret, step + 1))
    assert not accounts.use_code(ada, code_at(secret, step + 1))
    assert accounts.use_code(ada, codes[3].upper())
    assert not accounts.use_code(ada, codes[3])
    assert not accounts.use_code(ada, "")
    accounts.remove_second_factor(ada)
    assert not accounts.use_code(ada, codes[4])


def test_a_code_opens_once_in_however_many_requests(accounts: Accounts, ada: Account, clock: Clock) -> None:
    secret = new_secret()
    codes = accounts.enrol_second_factor(ada, secret, code_at(secret, int(clock.now // STEP_S)))
    clock.now += STEP_S
    for code in (code_at(secret, int(clock.now // STEP_S)), codes[0]):
        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(lambda _, code=code: accounts.use_code(ada, code), range(8))) == 1


def test_passwords_are_hashed_and_checked_by_what_was_given(store: Store, clock: Clock) -> None:
    class Plain(Passwords):
        def hash(self, password: str) -> str:
            return f"plain {password}"

        def fits(self, password_hash: str, password: str) -> bool:
            return password_hash == f"plain {password}"

        def is_outdated(self, password_hash: str) -> bool:
            return False

    ada = Accounts(store, Plain(), clock).add("Ada", Role.ADMIN, GOOD)
    assert ada.password_hash == f"plain {GOOD}"
    log_in = LogIn(store, b"k" * 32, Plain(), LogInThrottle(clock), clock)
    assert log_in.with_password("ada", GOOD, From("192.0.2.1")).status is LogInStatus.DONE


def test_a_link_to_another_identity_ends_the_sessions(accounts: Accounts, ada: Account, store: Store, clock: Clock) -> None:
    sessions = Sessions(store, clock)
    secret, _ = sessions.open(ada, "192.0.2.1", "")
    linked = accounts.link(ada, "https://id.example 7")
    assert (linked.external_id, sessions.find(secret)) == ("https://id.example 7", None)
    secret, _ = sessions.open(linked, "192.0.2.1", "")
    assert accounts.link(linked, "https://id.example 7") == linked
    assert sessions.find(secret) is not None
    assert accounts.link(linked, "").external_id == ""
    assert sessions.find(secret) is None


@pytest.mark.parametrize(
    "external_id", ["https://id.example", "https://id.example ", " 7", "x 7\n", "x " + "7" * 2_299, "https://id.example \u202e"]
)
def test_what_is_no_identity(accounts: Accounts, ada: Account, external_id: str) -> None:
    with pytest.raises(AccountError, match="an issuer, a space and a subject"):
        accounts.link(ada, external_id)
    with pytest.raises(AccountError, match="an issuer, a space and a subject"):
        accounts.add("kim", Role.VIEWER, None, external_id=external_id)


def test_the_longest_identity_and_the_only_way_in(accounts: Accounts) -> None:
    longest = "x " + "7" * 2_298
    kim = accounts.add("kim", Role.VIEWER, None, external_id=longest)
    assert accounts.find("kim").external_id == longest
    with pytest.raises(AccountError, match="kim has no password; set one first"):
        accounts.link(kim, "")
    assert accounts.link(kim, "x 8").external_id == "x 8"


def test_what_changes_nothing_has_no_time(accounts: Accounts, ada: Account, clock: Clock) -> None:
    clock.now += 5.0
    assert accounts.set_language(ada, ada.language).changed_at == ada.changed_at
    assert accounts.set_language(ada, "en").changed_at == clock.now
