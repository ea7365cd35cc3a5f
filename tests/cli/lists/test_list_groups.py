"""Entries switched off and on, by number, pattern and group; entries that splice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

type Cli = Callable[..., Any]


def _on(cli: Cli) -> dict[str, bool]:
    return {rule["pattern"]: rule["enabled"] for rule in cli("list", "show", "--json").json}


def test_a_group_is_switched_as_one_and_decides_at_once(cli: Cli) -> None:
    cli("list", "add", "--group", "homework", "games.example", "video.example/watch/*")
    cli("list", "add", "other.example")
    assert cli("check", "http://games.example/").code == 1
    assert cli("list", "disable", "--group", "homework").out == "2 entries off, 2 changed.\n"
    assert cli("list", "disable", "--group", "homework", "--json").json == {"entries": 2, "changed": 0, "missing": []}
    answer = cli("check", "http://games.example/")
    assert answer.code == 0
    assert "switched off: .games.example" in answer.out
    assert cli("check", "http://other.example/").code == 1
    cli("publish")
    assert cli("check", "http://games.example/").code == 0
    assert cli("list", "groups", "--json").json == [{"group": "homework", "entries": 2, "enabled": 0}]
    assert cli("list", "enable", "games.example").code == 0
    assert "1 of 2" in cli("list", "groups").out
    assert cli("check", "http://games.example/").code == 1
    assert _on(cli) == {".games.example": True, "video.example/watch/*": False, ".other.example": True}


def test_who_joins_a_group_that_is_off_is_off(cli: Cli) -> None:
    cli("list", "add", "--group", "kids", "a.example")
    cli("list", "disable", "--group", "kids")
    answer = cli("list", "add", "--group", "kids", "b.example")
    assert "the group 'kids' is switched off" in answer.err
    cli("list", "enable", "2")
    assert cli("list", "add", "--group", "kids", "c.example").err == ""
    assert _on(cli) == {".a.example": False, ".b.example": True, ".c.example": True}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nobody.example"], 1, "there is no entry 'nobody.example'"),
        (["99"], 1, "there is no entry '99'"),
        (["--group", "none"], 1, "group none has no entries"),
        ([], 2, "name entries, or a group with --group"),
    ],
)
def test_what_cannot_be_switched_is_said(arguments: list[str], code: int, said: str, cli: Cli) -> None:
    answer = cli("list", "disable", *arguments)
    assert (answer.code, said in answer.err) == (code, True)


def test_there_are_no_groups_at_first(cli: Cli) -> None:
    assert "There are no groups" in cli("list", "groups").out


def test_hosts_can_pass_unread_and_nothing_else_can(cli: Cli) -> None:
    answer = cli("list", "add", "--splice", "bank.example", "192.0.2.7")
    assert "passes unread the connections to bank.example and its subdomains" in answer.out
    assert [rule["action"] for rule in cli("list", "show", "--action", "splice", "--json").json] == ["splice", "splice"]
    assert cli("check", "http://bank.example/").code == 0
    for pattern in ("https://bank.example/x", "bank.example/*", "*bank*", "/bank/"):
        assert "only the connections of whole hosts" in cli("list", "add", "--splice", pattern).complains()


def test_import_can_splice(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("bank.example\nbank.example/page\n@@good.example\n")
    answer = cli("list", "import", "--splice", tmp_path / "hosts", "--json")
    assert (answer.json["read"], len(answer.json["rejected"])) == (2, 1)
    assert {rule["pattern"]: rule["action"] for rule in cli("list", "show", "--json").json} == {
        ".bank.example": "splice",
        ".good.example": "allow",
    }


def test_what_is_off_is_exported_by_json_and_csv_alone(cli: Cli, tmp_path: Path) -> None:
    cli("list", "add", "a.example", "b.example")
    cli("list", "disable", "a.example")
    assert cli("list", "export", "--format", "domains").out == "b.example\n"
    for file_format in ("json", "csv"):
        file = tmp_path / file_format
        file.write_text(cli("list", "export", "--format", file_format).out)
        cli("list", "remove", "a.example", "b.example")
        cli("list", "import", file)
        assert _on(cli) == {".a.example": False, ".b.example": True}
