"""What `user` and `audit` print, in full: `gatewayfilter.cli.access.user_commands`, `gatewayfilter.cli.access.token_commands`,
`gatewayfilter.cli.access.audit_commands`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.model import Account, Actor, ApiToken, AuditEntry, Role, Scope, Via
from tests.cli.test_command_doubles import MOMENT, SETTINGS, Doubled, called, table, texts

AT = "2023-11-14 22:13:20"
KIM = Account(1, "kim", Role.ADMIN, totp_secret="SECRET", logged_in_at=MOMENT, created_at=1.0, changed_at=2.0, language="en")
LEE = Account(2, "lee", Role.VIEWER, disabled=True, external_id="https://id.example/ 7")
TOKEN = ApiToken(4, b"d", "backup", 1, Scope.ADMIN, 3.0, MOMENT, None)
ENTRY = AuditEntry(9, MOMENT, Actor("kim", Via.SESSION, "10.0.0.0/24"), "rule.added", "a.example", "block")


class Accounts:
    """Accounts of which each change is noted."""

    asked: list[Any]

    def __init__(self, store: object) -> None:
        assert store is not None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def change(*given: object, **named: object) -> Any:
            Accounts.asked.append((name, *given, *named.items()))
            if name == "add":
                return Account(3, str(given[0]), given[1])  # type: ignore[arg-type]
            return replace(KIM, name="after", role=Role.APPROVER) if name != "find" else KIM

        return change


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was recorded in the audit log, without the store."""
    found: list[Any] = []
    Accounts.asked = []
    monkeypatch.setattr("gatewayfilter.use_cases.access.accounts.Accounts", Accounts)
    for name in ("user_commands", "token_commands"):
        monkeypatch.setattr(f"gatewayfilter.cli.access.{name}.record", lambda _store, *given: found.append(given))
    return found


def store_of(*accounts: Account, tokens: tuple[ApiToken, ...] = (), entries: tuple[AuditEntry, ...] = ()) -> Any:
    asked: list[Any] = []

    def page(**named: object) -> tuple[AuditEntry, ...]:
        asked.append(named)
        return entries

    return SimpleNamespace(
        accounts=SimpleNamespace(
            all=lambda: accounts,
            exist=lambda: bool(accounts),
            find=lambda name: next((one for one in accounts if one.name == name), None),
        ),
        sessions=SimpleNamespace(of_account=lambda number: ["session"] * number),
        tokens=SimpleNamespace(all=lambda number=0: [one for one in tokens if number in {0, one.account_id}]),
        audit=SimpleNamespace(page=page),
        asked=asked,
    )


def test_accounts_are_added(recorded: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "gatewayfilter.cli.access.user_commands.read_new_password", lambda name, *, from_stdin: f"{name} {from_stdin}"
    )
    assert texts(Doubled(store_of()), "user", "add", "lee") == (0, "Added lee, admin.\n", "")
    assert Accounts.asked.pop() == ("add", "lee", Role.ADMIN, "lee False", ("external_id", ""))
    assert texts(Doubled(store_of(KIM)), "user", "add", "lee", "--password-stdin") == (0, "Added lee, viewer.\n", "")
    assert Accounts.asked.pop() == ("add", "lee", Role.VIEWER, "lee True", ("external_id", ""))
    assert texts(Doubled(store_of(KIM)), "user", "add", "lee", "--role", "approver")[1] == "Added lee, approver.\n"
    assert recorded[-1] == ("user.added", "lee", "role approver")
    there = called(Doubled(store_of(KIM)), "user", "add", "kim").complains()
    assert there == "there is an account 'kim' already; `gatewayfilter user passwd` changes its password"
    assert "there is no single sign-on" in called(Doubled(store_of(KIM)), "user", "add", "lee", "--subject", "7").complains()
    monkeypatch.setattr("gatewayfilter.use_cases.sign_on.people.external_id", lambda issuer, subject: f"{issuer} {subject}")
    oidc = SETTINGS.web.oidc.model_copy(update={"issuer": "https://id.example/"})
    settings = SETTINGS.model_copy(update={"web": SETTINGS.web.model_copy(update={"oidc": oidc})})
    Accounts.asked.clear()
    assert texts(Doubled(store_of(KIM), settings), "user", "add", "lee", "--subject", "7")[0] == 0
    assert Accounts.asked == [("add", "lee", Role.VIEWER, None, ("external_id", "https://id.example/ 7"))]
    assert texts(Doubled("store", settings), "user", "link", "kim", "7")[1] == "after logs in by single sign-on from now on.\n"
    assert (Accounts.asked.pop(), recorded.pop()) == (
        ("link", KIM, "https://id.example/ 7"),
        ("user.linked", "kim", "https://id.example/ 7"),
    )


CHANGES: tuple[tuple[tuple[str, ...], str, tuple[object, ...], tuple[str, ...]], ...] = (
    (("remove", "kim"), "Removed kim.", ("remove", KIM), ("user.removed", "kim", "")),
    (
        ("role", "kim", "approver"),
        "after is approver from now on.",
        ("set_role", KIM, Role.APPROVER),
        ("user.role", "kim", "role approver"),
    ),
    (("rename", "kim", "b"), "kim is after from now on.", ("rename", KIM, "b"), ("user.renamed", "kim", "name b")),
    (("unlink", "kim"), "after logs in with the password alone from now on.", ("link", KIM, ""), ("user.unlinked", "kim", "")),
    (("disable", "kim"), "Disabled after.", ("set_disabled", KIM, ("disabled", True)), ("user.disabled", "kim", "")),
    (("enable", "kim"), "Enabled after.", ("set_disabled", KIM, ("disabled", False)), ("user.enabled", "kim", "")),
)


def test_accounts_are_changed_and_recorded(recorded: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, told, asked, change in CHANGES:
        assert texts(Doubled("store"), "user", *arguments) == (0, f"{told}\n", "")
        assert (Accounts.asked[-1], recorded.pop()) == (asked, change)
        assert Accounts.asked[-2] == ("find", "kim")
    monkeypatch.setattr(
        "gatewayfilter.cli.access.user_commands.read_new_password", lambda name, *, from_stdin: f"{name} {from_stdin}"
    )
    changed = "Changed the password of kim; all its sessions have ended.\n"
    Accounts.asked.clear()
    assert texts(Doubled("store"), "user", "passwd", "kim", "--password-stdin") == (0, changed, "")
    assert (Accounts.asked[1:], recorded.pop()) == ([("set_password", KIM, "kim True")], ("user.password", "kim", ""))
    assert texts(Doubled("store"), "user", "passwd", "kim", "--remove-second-factor") == (0, changed, "")
    assert Accounts.asked[-1] == ("remove_second_factor", KIM)
    assert recorded.pop() == ("user.password", "kim", "second factor removed")


def test_accounts_are_shown() -> None:
    none = "There are no accounts yet. Add one: gatewayfilter user add NAME\n"
    assert texts(Doubled(store_of()), "user", "list") == (0, none, "")
    store = store_of(KIM, LEE, tokens=(TOKEN,))
    assert table(texts(Doubled(store), "user", "list")[1]) == [
        ["name", "role", "second factor", "disabled", "sessions", "tokens", "last log-in"],
        ["kim", "admin", "yes", "no", "1", "1", AT],
        ["lee", "viewer", "no", "yes", "2", "0", "never"],
    ]
    first, second = called(Doubled(store), "user", "list", "--json").json
    assert first == {
        "name": "kim",
        "role": "admin",
        "second_factor": True,
        "disabled": False,
        "external_id": "",
        "language": "en",
        "created_at": 1.0,
        "changed_at": 2.0,
        "logged_in_at": MOMENT,
        "sessions": 1,
        "tokens": 1,
    }
    assert (second["external_id"], second["sessions"], second["tokens"]) == ("https://id.example/ 7", 2, 0)


class Tokens:
    """Tokens of which each change is noted."""

    asked: list[Any]

    def __init__(self, store: object) -> None:
        assert store is not None

    def add(self, owner: Account, name: str, scope: Scope, lifetime_s: float | None) -> tuple[str, ApiToken]:
        Tokens.asked.append((owner.name, name, scope, lifetime_s))
        return "secret", replace(TOKEN, scope=scope)

    def remove(self, number: int) -> ApiToken:
        Tokens.asked.append(number)
        return TOKEN


def test_tokens_are_made_shown_and_removed(recorded: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    Tokens.asked = []
    monkeypatch.setattr("gatewayfilter.use_cases.access.tokens.ApiTokens", Tokens)
    made = f"Token 4 of kim, scope {{}}, expires {AT}. It is shown only now:\nsecret\n"
    assert texts(Doubled("store"), "user", "token", "add", "kim", "backup") == (0, made.format("read"), "")
    assert texts(Doubled("store"), "user", "token", "add", "kim", "b", "--scope", "approve", "--expires", " Never ")[
        1
    ] == made.format("approve")
    document = called(Doubled("store"), "user", "token", "add", "kim", "b", "--scope", "admin", "--expires", "30d", "--json").json
    shown = {
        "id": 4,
        "account": "kim",
        "name": "backup",
        "scope": "admin",
        "created_at": 3.0,
        "expires_at": MOMENT,
        "used_at": None,
    }
    assert document == {**shown, "token": "secret"}
    assert Tokens.asked == [
        ("kim", "backup", Scope.READ, 90 * 86_400.0),
        ("kim", "b", Scope.APPROVE, None),
        ("kim", "b", Scope.ADMIN, 30 * 86_400.0),
    ]
    assert recorded[0] == ("token.added", "backup", "account kim, scope read")
    assert (
        "is no duration: write 90d, 1y or never"
        in called(Doubled("store"), "user", "token", "add", "kim", "b", "--expires", "x").complains()
    )
    assert texts(Doubled("store"), "user", "token", "remove", "4") == (0, "Removed the token backup.\n", "")
    assert (Tokens.asked[-1], recorded[-1]) == (4, ("token.removed", "backup"))
    assert texts(Doubled(store_of(KIM)), "user", "token", "list") == (0, "There are no tokens.\n", "")
    store = store_of(
        KIM, tokens=(TOKEN, replace(TOKEN, token_id=5, used_at=MOMENT, expires_at=None), replace(TOKEN, account_id=9))
    )
    assert table(texts(Doubled(store), "user", "token", "list")[1]) == [
        ["id", "account", "name", "scope", "expires", "last used"],
        ["4", "kim", "backup", "admin", AT, "never"],
        ["5", "kim", "backup", "admin", "never", AT],
    ]
    assert called(Doubled(store), "user", "token", "list", "--json").json[0] == shown


def test_changes_are_listed_with_their_undo() -> None:
    assert texts(Doubled(store_of()), "audit", "list") == (0, "Nothing is recorded.\n", "")
    entries = (
        ENTRY,
        replace(ENTRY, entry_id=8, actor=Actor("lee", Via.TOKEN), undo={"kind": "x"}),
        replace(ENTRY, entry_id=7, actor=Actor("lee", Via.COMMAND), undo={"kind": "x"}, undone_at=MOMENT, undone_by="kim"),
        replace(ENTRY, entry_id=6, actor=Actor("filter", Via.SYSTEM), detail=""),
    )
    store = store_of(entries=entries)
    assert table(texts(Doubled(store), "audit", "list")[1]) == [
        ["id", "at", "who", "by", "action", "what", "detail", "undo"],
        ["9", AT, "kim", "dashboard 10.0.0.0/24", "rule.added", "a.example", "block"],
        ["8", AT, "lee", "API", "rule.added", "a.example", "block", "possible"],
        ["7", AT, "lee", "command", "rule.added", "a.example", "block", "by kim"],
        ["6", AT, "filter", "program", "rule.added", "a.example"],
    ]
    options = ("--who", "kim", "--action", "rule.", "--undoable", "-n", "3")
    first, second, third, _ = called(Doubled(store), "audit", "list", *options, "--json").json
    assert store.asked == [
        {"limit": 50, "who": "", "action": "", "undoable": False},
        {"limit": 3, "who": "kim", "action": "rule.", "undoable": True},
    ]
    assert first == {
        "id": 9,
        "at": MOMENT,
        "who": "kim",
        "via": "session",
        "via_detail": "10.0.0.0/24",
        "action": "rule.added",
        "subject": "a.example",
        "detail": "block",
        "undoable": False,
        "undone_at": None,
        "undone_by": "",
    }
    assert (second["undoable"], third["undoable"], third["undone_by"]) == (True, False, "kim")
