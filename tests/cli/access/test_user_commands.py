"""`gatewayfilter user` and `gatewayfilter audit`."""

import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gatewayfilter.store import Store
from gatewayfilter.use_cases.access.accounts import Accounts
from gatewayfilter.use_cases.access.tokens import ApiTokens
from tests.cli.conftest import Cli

GOOD = "correct horse battery"


def opened(state: Path) -> Store:
    return Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")


def add(cli: Cli, name: str, *options: str) -> None:
    assert cli("user", "add", name, "--password-stdin", *options, stdin=f"{GOOD}\nnot this\n").code == 0


def test_the_first_one_is_an_admin(cli: Cli, state: Path) -> None:
    assert "no accounts yet" in cli("user", "list").out
    add(cli, "ada")
    add(cli, "kim")
    add(cli, "小明", "--role", "approver")
    found = cli("user", "list", "--json").json
    assert [(row["name"], row["role"]) for row in found] == [("ada", "admin"), ("kim", "viewer"), ("小明", "approver")]
    assert all("hash" not in key and "secret" not in key for key in found[0])
    assert "kim" in cli("user", "list").out
    store = opened(state)
    accounts = Accounts(store)
    assert accounts.check_password(accounts.find("ada"), GOOD)
    store.close()


def test_changes(cli: Cli, state: Path) -> None:
    add(cli, "ada")
    add(cli, "kim")
    assert "last admin" in cli("user", "role", "ada", "viewer").complains()
    assert "last admin" in cli("user", "remove", "ada").complains()
    assert cli("user", "role", "kim", "admin").code == 0
    assert cli("user", "role", "ada", "viewer").code == 0
    assert cli("user", "rename", "ada", "lovelace").out == "ada is lovelace from now on.\n"
    assert cli("user", "disable", "lovelace").code == 0
    assert cli("user", "list", "--json").json[1]["disabled"]
    assert cli("user", "enable", "lovelace").code == 0
    assert cli("user", "passwd", "kim", "--password-stdin", "--remove-second-factor", stdin="another horse\n").code == 0
    assert cli("user", "remove", "lovelace").code == 0
    store = opened(state)
    accounts = Accounts(store)
    assert accounts.check_password(accounts.find("kim"), "another horse")
    store.close()
    actions = [row["action"] for row in cli("audit", "list", "--json", "--action", "user.").json]
    assert actions == [
        "user.removed", "user.password", "user.enabled", "user.disabled", "user.renamed", "user.role", "user.role",
        "user.added", "user.added",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "stdin", "why"),
    [
        (("add", "kim"), "", "--password-stdin"),
        (("add", "kim", "--password-stdin"), "short\n", "at least 10"),
        (("add", "kim", "--password-stdin"), "kimkimkimkim\n", "first"),
        (("add", "kim", "--password-stdin"), "", "at least 10"),
        (("add", "a/b", "--password-stdin"), f"{GOOD}\n", "letters"),
        (("add", "ADA", "--password-stdin"), f"{GOOD}\n", "already"),
        (("add", "kim", "--role", "owner"), "", "owner"),
        (("passwd", "nobody", "--password-stdin"), f"{GOOD}\n", "no account"),
        (("remove", "adda"), "", "did you mean 'ada'"),
        (("token", "add", "nobody", "x"), "", "no account"),
        (("token", "add", "ada", "x", "--expires", "soon"), "", "no duration"),
        (("token", "add", "ada", "x", "--expires", "1s"), "", "minute"),
        (("token", "remove", "7"), "", "no token 7"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], stdin: str, why: str, cli: Cli) -> None:
    add(cli, "ada")
    assert why in cli("user", *arguments, stdin=stdin).complains()


def test_a_password_is_asked_for_at_a_terminal_and_not_shown(state: Path) -> None:
    ours, its = pty.openpty()
    environment = {**os.environ, "GATEWAYFILTER_DATA_DIR": str(state)}
    command = [sys.executable, "-m", "gatewayfilter.cli", "user", "add", "ada"]
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environment, start_new_session=True) as run:
        os.close(its)
        shown = read_until(ours, b"New password of ada: ")
        os.write(ours, f"{GOOD}\n".encode())
        shown += read_until(ours, b"confirmation: ")
        os.write(ours, f"{GOOD}\n".encode())
        shown += read_until(ours, b"Added ada")
        assert run.wait(30) == 0
    os.close(ours)
    assert GOOD.encode() not in shown


def read_until(terminal: int, end: bytes) -> bytes:
    shown, deadline = b"", time.monotonic() + 30.0
    while end not in shown:
        assert select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0], shown
        shown += os.read(terminal, 1000)
    return shown


def test_tokens(cli: Cli, state: Path) -> None:
    add(cli, "ada")
    made = cli("user", "token", "add", "ada", "home assistant", "--scope", "approve", "--json").json
    assert made["token"].startswith("gwf_")
    assert made["expires_at"] - made["created_at"] == 90 * 86_400
    plain = cli("user", "token", "add", "ada", "for ever", "--expires", "never").out.splitlines()
    assert plain[1].startswith("gwf_")
    listed = cli("user", "token", "list", "--json")
    assert [(row["name"], row["scope"], row["expires_at"] is None) for row in listed.json] == [
        ("home assistant", "approve", False),
        ("for ever", "read", True),
    ]
    assert made["token"] not in listed.out + cli("user", "token", "list").out + cli("audit", "list").out
    store = opened(state)
    assert ApiTokens(store).find(made["token"]) is not None
    assert made["token"].encode() not in (state / "gatewayfilter.sqlite3").read_bytes()
    assert cli("user", "token", "remove", made["id"]).code == 0
    assert ApiTokens(store).find(made["token"]) is None
    store.close()


def test_changes_of_commands_are_recorded_and_taken_back(cli: Cli) -> None:
    assert cli("list", "add", "ads.example.com", "--comment", "why").code == 0
    assert cli("policy", "add", "kids").code == 0
    assert cli("pause", "10min").code == 0
    assert cli("list", "add", "ads.example.com", "--comment", "why").code == 0  # changes nothing
    assert cli("list", "remove", "nothing.example").code == 1
    assert cli("client", "remove", "nobody").code == 1
    found = cli("audit", "list", "--json").json
    assert [(row["action"], row["subject"], row["via"]) for row in found] == [
        ("pause.started", "10min", "command"), ("policy.added", "kids", "command"), ("rule.added", "ads.example.com", "command"),
    ]  # fmt: skip
    assert found[2]["detail"] == "--comment why"
    assert cli("list", "add", "--allow", "good.example").code == 0
    assert cli("audit", "list", "--json", "-n", "1").json[0]["detail"] == "--allow"
    assert cli("list", "remove", "good.example").code == 0
    assert all(row["undoable"] and row["who"] for row in found)
    for row in found:
        assert cli("audit", "undo", row["id"]).code == 0
    assert cli("list", "show", "--json").json == []
    assert "already" in cli("audit", "undo", found[0]["id"]).complains()
    assert "no change" in cli("audit", "undo", 99).err
    again = cli("audit", "list", "--undoable", "--json", "-n", "1").json
    assert cli("audit", "undo", again[0]["id"]).code == 0
    assert [rule["pattern"] for rule in cli("list", "show", "--json").json] == [".ads.example.com"]
    assert "by " in cli("audit", "list").out


def test_words_are_recorded_without_undo_and_sources_with_it(cli: Cli) -> None:
    cli("list", "show")  # makes the database
    assert cli("words", "add", "lottery", "--category", "gambling").code == 0
    assert cli("source", "disable", "starter-ads", "--no-publish").code == 0
    found = cli("audit", "list", "--json").json
    assert [(row["action"], row["undoable"]) for row in found] == [("source.disabled", True), ("words.added", False)]
    assert found[1]["subject"] == "lottery"


def test_hostile_names_reach_no_terminal(cli: Cli) -> None:
    cli("list", "add", "a.example", "--comment", "\x1b[31m\u202eevil")
    assert "\x1b" not in cli("audit", "list").out
    assert "\u202e" not in cli("audit", "list").out


def test_links_to_single_sign_on(cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(cli, "ada")
    assert "there is no single sign-on" in cli("user", "link", "ada", "7").complains()
    monkeypatch.setenv("GATEWAYFILTER_WEB__OIDC__ISSUER", "https://id.example")
    monkeypatch.setenv("GATEWAYFILTER_WEB__OIDC__CLIENT_ID", "filter")
    assert cli("user", "link", "ada", "7").code == 0
    assert cli("user", "add", "kim", "--subject", "8").code == 0
    assert "'ada' is linked to this identity already" in cli("user", "link", "kim", "7").complains()
    assert "an issuer, a space and a subject" in cli("user", "link", "kim", " ").complains()
    found = cli("user", "list", "--json").json
    assert [row["external_id"] for row in found] == ["https://id.example 7", "https://id.example 8"]
    assert "kim has no password" in cli("user", "unlink", "kim").complains()
    assert cli("user", "unlink", "ada").code == 0
    assert cli("user", "list", "--json").json[0]["external_id"] == ""
