"""`gatewayfilter proxy-user`, and that what it writes lets the right people in."""

import stat
from base64 import b64encode
from pathlib import Path

import pytest

from gatewayfilter.proxy.auth.user_file import Users
from tests.cli.conftest import Cli


@pytest.fixture
def users(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the settings name; it is not there yet."""
    del state  # it empties the environment first
    path = tmp_path / "users"
    monkeypatch.setenv("GATEWAYFILTER_PROXY__AUTH_FILE", str(path))
    return path


def lets_in(path: Path, name: str, password: str) -> bool:
    return Users(path).verify("Basic " + b64encode(f"{name}:{password}".encode()).decode()) == name


def test_adding_changing_and_removing(cli: Cli, users: Path) -> None:
    assert "no users yet" in cli("proxy-user", "list").out
    assert cli("proxy-user", "list", "--json").json == []
    added = cli("proxy-user", "add", "kim", stdin="first\n")
    assert (added.code, "Added kim" in added.out) == (0, True)
    assert cli("proxy-user", "add", "lee", stdin="other").code == 0
    assert cli("proxy-user", "list", "--json").json == ["kim", "lee"]
    assert cli("proxy-user", "list").out == "kim\nlee\n"
    assert lets_in(users, "kim", "first")
    assert not lets_in(users, "kim", "other")
    changed = cli("proxy-user", "add", "kim", stdin="second\nnot this line\n")
    assert "Changed kim" in changed.out
    assert lets_in(users, "kim", "second")
    assert not lets_in(users, "kim", "first")
    assert lets_in(users, "lee", "other")
    assert cli("proxy-user", "remove", "kim").code == 0
    assert cli("proxy-user", "list", "--json").json == ["lee"]
    assert not lets_in(users, "kim", "second")


def test_the_file_is_the_owners_alone_and_holds_no_password(cli: Cli, users: Path) -> None:
    cli("proxy-user", "add", "kim", stdin="a secret of some length\n")
    assert stat.S_IMODE(users.stat().st_mode) == 0o600
    assert "secret" not in users.read_text()
    before = users.read_text()
    cli("proxy-user", "add", "kim", stdin="a secret of some length\n")
    assert users.read_text() != before, "each hash has a salt of its own"


@pytest.mark.parametrize("password", ["пароль", "密码", "with spaces: and colons"])
def test_passwords_in_any_script(cli: Cli, users: Path, password: str) -> None:
    cli("proxy-user", "add", "kim", stdin=f"{password}\n")
    assert lets_in(users, "kim", password)


@pytest.mark.parametrize("name", ["a:b", "a b", "#a", "", "a\tb"])
def test_a_name_that_the_file_cannot_hold_is_refused(cli: Cli, users: Path, name: str) -> None:
    assert "name" in cli("proxy-user", "add", name, stdin="x\n").complains()
    assert not users.exists()


def test_an_empty_password_is_refused(cli: Cli, users: Path) -> None:
    assert "empty" in cli("proxy-user", "add", "kim", stdin="\n").complains()
    assert not users.exists()


def test_removing_nobody(cli: Cli, users: Path) -> None:
    answer = cli("proxy-user", "remove", "kim")
    assert (answer.code, answer.out) == (1, "There is no user kim.\n")
    assert not users.exists()


def test_a_file_that_is_no_list_of_users_stays_as_it_is(cli: Cli, users: Path) -> None:
    users.write_text("kim:plain text\n")
    for command in (("list",), ("add", "lee"), ("remove", "kim")):
        assert "line 1 is no user" in cli("proxy-user", *command, stdin="x\n").complains()
    assert users.read_text() == "kim:plain text\n"


@pytest.mark.parametrize("command", [("list",), ("add", "kim"), ("remove", "kim")])
def test_without_the_setting_it_says_which(cli: Cli, command: tuple[str, ...]) -> None:
    assert "proxy.auth_file" in cli("proxy-user", *command, stdin="x\n").complains()
