"""What `config`, `pinned-apps` and `proxy-user` print, in full: `gatewayfilter.cli.operate.config_commands`,
`gatewayfilter.cli.operate.pinned_app_commands`, `gatewayfilter.cli.operate.proxy_user_commands`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from gatewayfilter.cli.operate.proxy_user_commands import add_user
from gatewayfilter.config import Loaded
from gatewayfilter.proxy.listener.pinned_apps import PinnedApp
from tests.cli.test_command_doubles import MOMENT, SETTINGS, Doubled, called, table, texts


def test_settings_are_shown_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[Any] = []
    rows = [
        SimpleNamespace(key="proxy.listen", value="é", origin="default"),
        SimpleNamespace(key="a.b", value=None, origin="file /c"),
    ]
    monkeypatch.setattr("gatewayfilter.use_cases.setting_values.shown_settings", lambda _loaded, keys: rows[: len(keys) or 2])
    monkeypatch.setattr("gatewayfilter.use_cases.settings_files.check_files", checked.append)
    monkeypatch.setattr("gatewayfilter.use_cases.settings_files.check_categories", checked.append)
    assert table(texts(Doubled(), "config", "show")[1]) == [
        ["setting", "value", "from"],
        ["proxy.listen", '"é"', "default"],
        ["a.b", "null", "file /c"],
    ]
    assert called(Doubled(), "config", "show", "proxy", "--json").json == {"proxy.listen": {"value": "é", "origin": "default"}}

    class Given(Doubled):
        def loaded(self, warn: Any = None, /, **options: object) -> Loaded:
            del warn, options
            return Loaded(SETTINGS, {"a": "default", "b": "file /c"})

    context = Given()
    told = "The settings are good: 1 value given, the others at their defaults.\n"
    assert (texts(context, "config", "check", "/new.toml"), context.config) == ((0, told, ""), Path("/new.toml"))
    assert called(Given(), "config", "check", "--json").json == {"ok": True, "given": {"b": "file /c"}}
    assert checked == [SETTINGS] * 4
    schema = called(Doubled(), "config", "schema").json
    assert (schema["$schema"].rpartition("/")[2], "properties" in schema) == ("schema", True)


def test_pinned_apps_are_listed_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [PinnedApp("10.0.0.7", "a.example", MOMENT, MOMENT + 60, 4), PinnedApp("10.0.0.8", "a.example", MOMENT, MOMENT, 4)]
    removed: list[Any] = []
    counts = [2]

    def remove(host: str, client: str) -> int:
        removed.append((host, client))
        if counts[0] < 0:
            raise PermissionError(13, "Permission denied")
        return counts[0]

    file = SimpleNamespace(read=lambda: entries, remove=remove)
    monkeypatch.setattr(time, "time", lambda: MOMENT)
    monkeypatch.setattr("gatewayfilter.proxy.listener.pinned_apps.PinnedAppsFile.in_folder", lambda _folder: file)
    assert table(texts(Doubled(), "pinned-apps", "list")[1]) == [
        ["device", "name", "failures", "since", "until"],
        ["10.0.0.7", "a.example", "4", "2023-11-14 22:13:20", "2023-11-14 22:14:20"],
    ]
    assert [one["client"] for one in called(Doubled(), "pinned-apps", "list", "--json").json] == ["10.0.0.7"]
    entries.pop(0)
    none = "No app has been found that accepts no certificate of the filter's.\n"
    assert texts(Doubled(), "pinned-apps", "list") == (0, none, "")
    assert texts(Doubled(), "pinned-apps", "remove", "A.example", "--client", "10.0.0.7") == (0, "Removed 2.\n", "")
    assert removed == [("a.example", "10.0.0.7")]
    counts[0] = 0
    assert texts(Doubled(), "pinned-apps", "remove", "a.example") == (1, "a.example does not pass through.\n", "")
    answer = called(Doubled(), "pinned-apps", "remove", "a.example", "--json")
    assert (answer.code, answer.json) == (1, {"removed": 0})
    counts[0] = -1
    refused = called(Doubled(), "pinned-apps", "remove", "a.example").complains()
    assert refused == "cannot change what passes through: Permission denied"


def test_users_of_the_proxy_are_changed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    put: list[Any] = []
    names: list[str] = []

    class Users:
        path = Path("/users")

        def __init__(self, settings: object) -> None:
            assert settings == SETTINGS

        def put(self, name: str, password: str) -> bool:
            put.append((name, password))
            return name == "known"

        def names(self) -> list[str]:
            return names

        def remove(self, name: str) -> bool:
            return name == "known"

    monkeypatch.setattr("gatewayfilter.use_cases.operation.proxy_users.ProxyUsers", Users)
    assert called(Doubled(), "proxy-user", "add", "kim", stdin="secret\nmore").out == "Added kim in /users.\n"
    assert called(Doubled(), "proxy-user", "add", "known", stdin="s").out == "Changed known in /users.\n"
    prompts: list[Any] = []

    def prompt(text: str, **how: object) -> str:
        prompts.append((text, how))
        return "typed"

    monkeypatch.setattr(click, "prompt", prompt)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    add_user.main(["kim"], standalone_mode=False, obj=Doubled())
    assert (prompts, capsys.readouterr().out) == (
        [("Password", {"hide_input": True, "confirmation_prompt": True})],
        "Added kim in /users.\n",
    )
    assert put == [("kim", "secret"), ("known", "s"), ("kim", "typed")]
    assert texts(Doubled(), "proxy-user", "list")[1] == "There are no users yet.\n"
    names += ["a", "b"]
    assert texts(Doubled(), "proxy-user", "list")[1] == "a\nb\n"
    assert called(Doubled(), "proxy-user", "list", "--json").json == ["a", "b"]
    assert texts(Doubled(), "proxy-user", "remove", "known") == (0, "Removed known.\n", "")
    assert texts(Doubled(), "proxy-user", "remove", "kim") == (1, "There is no user kim.\n", "")
