"""Who may make the first account, and what an account's owner confirms by the password."""

from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import AccountError, MissingAccountError
from gatewayfilter.model import Actor, Role, Via
from gatewayfilter.store import Store
from gatewayfilter.store.secret_key import load_key
from gatewayfilter.use_cases.access.accounts import Accounts
from gatewayfilter.use_cases.access.dashboard_access import WEB_KEY, DashboardAccess, needs_setup_code, setup_code
from gatewayfilter.use_cases.access.log_in import From, LogIn, LogInStatus
from gatewayfilter.use_cases.access.passwords import Passwords
from gatewayfilter.use_cases.access.throttle import LogInThrottle
from tests.use_cases.access.turned_clock import Clock

GOOD = "correct horse battery"
HOME = From("192.0.2.1", "Firefox")


@pytest.fixture
def access(tmp_path: Path, store: Store, clock: Clock) -> DashboardAccess:
    return DashboardAccess(Settings(data_dir=tmp_path), store, lambda _: None, clock)


@pytest.mark.parametrize(
    ("web", "proxy", "mode", "needed"),
    [
        ("127.0.0.1:8081", "127.0.0.1:8080", "regular", False),
        ("[::1]:8081", "localhost:8080", "regular", False),
        ("127.0.0.2:8081", "127.0.0.1:8080", "regular", False),
        ("0.0.0.0:8081", "127.0.0.1:8080", "regular", True),
        ("127.0.0.1:8081", "[::]:8080", "regular", True),
        ("192.168.1.1:8081", "127.0.0.1:8080", "regular", True),
        ("box.lan:8081", "127.0.0.1:8080", "regular", True),
        ("127.0.0.1:8081", "127.0.0.1:8080", "transparent", True),
        ("", "127.0.0.1:8080", "regular", False),
        ("", "0.0.0.0:8080", "regular", True),
    ],
)
def test_the_code_is_asked_for_where_another_machine_could_come(web: str, proxy: str, mode: str, *, needed: bool) -> None:
    sections: dict[str, Any] = {"web": {"listen": web}, "proxy": {"listen": proxy, "mode": mode}}
    assert needs_setup_code(Settings.model_validate(sections)) is needed


def test_the_code_is_read_as_people_type_it(access: DashboardAccess, tmp_path: Path) -> None:
    code = setup_code(load_key(tmp_path, WEB_KEY))
    assert [len(group) for group in code.split("-")] == [4, 4, 4, 4]
    for typed in (code, code.lower(), code.replace("-", ""), f"  {code.replace('-', ' ')} ", code.rjust(100)):
        assert access.is_setup_code(typed) is True
    for wrong in ("", code.rjust(101), code[:-1], f"{code}A", code[::-1], "é" * 16, "A" * 100_000):
        assert access.is_setup_code(wrong) is False


def test_the_first_account_is_an_admin_and_the_only_first_one(access: DashboardAccess, store: Store) -> None:
    nobody = Actor("browser", Via.SESSION)
    assert access.has_accounts() is False
    made = access.add_first("Ada", GOOD, HOME, nobody)
    assert (made.status, made.account is not None, bool(made.secret)) == (LogInStatus.DONE, True, True)
    assert made.account is not None
    assert (access.has_accounts(), made.account.role) == (True, Role.ADMIN)
    assert access.account(made.account.account_id).name == made.account.name
    (entry,) = store.audit.page()
    assert (entry.action, entry.subject, entry.detail) == ("user.added", made.account.name, "role admin")
    with pytest.raises(AccountError):
        access.add_first("Eve", GOOD, HOME, nobody)
    with pytest.raises(MissingAccountError, match="there is no account 99"):
        access.account(99)


def test_a_password_is_confirmed_with_the_delays_of_a_log_in(
    store: Store, passwords: Passwords, accounts: Accounts, clock: Clock
) -> None:
    log_in = LogIn(store, b"k" * 32, passwords, LogInThrottle(clock), clock)
    ada = accounts.add("Ada", Role.ADMIN, GOOD)
    done = log_in.confirm(ada, GOOD, HOME)
    assert (done.status, done.account, done.secret) == (LogInStatus.DONE, ada, "")
    waits = []
    for _ in range(30):
        result = log_in.confirm(ada, "wrong", HOME)
        waits.append(result.wait_s)
        assert result.status is (LogInStatus.WAIT if result.wait_s else LogInStatus.WRONG)
    assert waits[0] == 0.0
    assert waits[-1] > 0.0
    assert log_in.confirm(ada, GOOD, HOME).status is LogInStatus.WAIT  # the right one waits as well
    clock.now += 100_000
    assert log_in.confirm(ada, GOOD, HOME).status is LogInStatus.DONE
    assert log_in.confirm(ada, "wrong", HOME).status is LogInStatus.WRONG  # the count begins anew


def test_who_may_want_a_second_factor(accounts: Accounts) -> None:
    ada = accounts.add("Ada", Role.ADMIN, GOOD)
    with pytest.raises(AccountError, match="set up by the owner"):
        accounts.without_second_factor(ada, wanted=True)
    assert accounts.without_second_factor(ada, wanted=False).totp_secret == ""
