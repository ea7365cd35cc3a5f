"""A store, and accounts in it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayfilter.store import Store, upgrade
from gatewayfilter.use_cases.access.accounts import Accounts
from gatewayfilter.use_cases.access.log_in import LogIn
from gatewayfilter.use_cases.access.passwords import Passwords
from gatewayfilter.use_cases.access.throttle import LogInThrottle
from tests.use_cases.access.turned_clock import Clock


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "empty.sqlite3"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def store(empty_file: Path, tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(f"sqlite:///{shutil.copy(empty_file, tmp_path / 'gatewayfilter.sqlite3')}")
    yield opened
    opened.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def passwords() -> Passwords:
    return Passwords()


@pytest.fixture
def accounts(store: Store, passwords: Passwords, clock: Clock) -> Accounts:
    return Accounts(store, passwords, clock)


@pytest.fixture
def log_in(store: Store, passwords: Passwords, clock: Clock) -> LogIn:
    return LogIn(store, b"k" * 32, passwords, LogInThrottle(clock), clock)
