from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.model import LearnedEntry, ListAction
from gatewayfilter.store import Store

type Cli = Callable[..., Any]


def _learn(state: Path, *entries: LearnedEntry) -> None:
    store = Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")
    store.lists.put_learned(entries)
    store.close()


def _learned(key: str, action: ListAction = ListAction.BLOCK) -> LearnedEntry:
    category = "gambling" if action is ListAction.BLOCK else ""
    return LearnedEntry(key, action, category, f"http://{key}", "score 42.0 (limit 20.0): casino", 1.7e9, 4e9)


def test_entries_are_added_shown_changed_and_removed(cli: Cli) -> None:
    added = cli("list", "add", "ads.example", "https://a.example/x", "--comment", "by Kim", "--expires", "7d", "--json")
    assert added.code == 0
    assert [(rule["kind"], rule["pattern"], rule["action"]) for rule in added.json] == [
        ("domain", ".ads.example", "block"),
        ("url", "a.example/x", "block"),
    ]
    assert cli("list", "show", "--json").json == added.json
    cli("list", "add", "--allow", "ads.example")
    (changed, _) = cli("list", "show", "--json").json
    assert (changed["rule_id"], changed["action"], changed["comment"]) == (added.json[0]["rule_id"], "allow", "")
    assert cli("list", "show", "--action", "block", "--json").json == [added.json[1]]
    table = cli("list", "show").out
    assert "by Kim" in table
    assert "ads.example" in table
    assert cli("list", "remove", "ads.example", added.json[1]["rule_id"]).out == "2 entries removed.\n"
    assert cli("list", "show", "--json").json == []
    assert "gatewayfilter list add" in cli("list", "show").out


def test_add_says_what_it_did(cli: Cli) -> None:
    out = cli("list", "add", "ads.example", "--exact").out
    assert out == "1: blocks the host ads.example\n"
    assert "for the whole site: a.example" in cli("list", "add", "https://a.example/").out


def test_nothing_is_added_when_one_pattern_is_bad(cli: Cli) -> None:
    cli("list", "add", "good.example", "not a pattern").complains()
    assert cli("list", "show", "--json").json == []


def test_force_adds_what_is_broad(cli: Cli) -> None:
    assert cli("list", "add", "--force", "com", "*").code == 0


def test_a_missing_entry_is_a_negative_answer_and_the_others_go(cli: Cli) -> None:
    cli("list", "add", "a.example")
    answer = cli("list", "remove", "a.example", "b.example", "99", "--json")
    assert (answer.code, answer.json) == (1, {"removed": 1, "missing": ["b.example", "99"]})
    assert "there is no entry 'b.example'" in cli("list", "remove", "b.example").err


def test_groups_keep_entries_apart(cli: Cli) -> None:
    cli("list", "add", "a.example", "--group", "kids")
    cli("list", "add", "a.example")
    assert len(cli("list", "show", "--json").json) == 2
    assert [rule["group"] for rule in cli("list", "show", "--group", "kids", "--json").json] == ["kids"]
    assert cli("list", "remove", "a.example", "--group", "kids", "--json").json["removed"] == 1
    assert [rule["group"] for rule in cli("list", "show", "--json").json] == [""]


def test_what_was_learned_is_shown_and_forgotten(cli: Cli, state: Path) -> None:
    cli("db", "upgrade")
    assert cli("list", "show", "--learned").out == "Nothing was learned yet.\n"
    _learn(state, _learned("bad.example/x"), _learned("fine.example/", ListAction.ALLOW))
    assert "casino" in cli("list", "show", "--learned").out
    assert [entry["key"] for entry in cli("list", "show", "--learned", "--action", "block", "--json").json] == ["bad.example/x"]
    assert cli("list", "remove", "--learned", "http://bad.example/x", "--json").json["removed"] == 1
    assert cli("list", "remove", "--learned", "http://bad.example/x").code == 1
    assert len(cli("list", "show", "--learned", "--json").json) == 1


@pytest.mark.parametrize("file_format", ["json", "csv", "adblock", "domains", "hosts", "dnsmasq", "rpz"])
def test_export_and_import_agree(file_format: str, cli: Cli, tmp_path: Path) -> None:
    cli("list", "add", "ads.example", "track.example", "--comment", "x")
    file = tmp_path / "list"
    file.write_text(cli("list", "export", "--format", file_format).out)
    cli("list", "remove", "ads.example", "track.example")
    answer = cli("list", "import", file, "--json")
    assert (answer.code, answer.json) == (0, {"read": 2 if file_format != "dnsmasq" else 4, "changed": 2, "rejected": []})
    kind = "host" if file_format == "hosts" else "domain"
    assert {rule["kind"] for rule in cli("list", "show", "--json").json} == {kind}


def test_export_counts_what_a_format_cannot_say(cli: Cli) -> None:
    cli("list", "add", "ads.example", "http://a.example/x", "*banner*")
    cli("list", "add", "--allow", "good.example")
    answer = cli("list", "export", "--format", "hosts")
    assert (answer.out, answer.err) == ("0.0.0.0 ads.example\n", "gatewayfilter: 2 entries left out that hosts cannot express\n")
    assert cli("list", "export", "--format", "domains", "--action", "allow").out == "good.example\n"


@pytest.mark.parametrize(
    ("file_format", "pattern", "options", "why"),
    [
        ("rpz", "http://a.example/x", (), "rpz has no pages"),
        ("rpz", "a.example/x/*", (), "rpz has no paths and ports"),
        ("rpz", "*banner*", (), "rpz has no patterns"),
        ("rpz", "192.0.2.7", (), "rpz has no addresses"),
        ("rpz", f"{'a.' * 123}example", (), "the name is too long for rpz"),
        ("rpz", "a.example", ("--splice",), "rpz has no rules that leave connections unread"),
        ("rpz", "a.example", ("--for", "client:tablet"), "it holds for client:tablet alone: no other program has such rules"),
        ("dnsmasq", "a.example", ("--splice",), "dnsmasq has no rules that leave connections unread"),
        ("dnsmasq", "|a.example", (), "dnsmasq has no hosts without the names below them"),
        ("dnsmasq", "a.example", (), ""),
        ("json", "/x+y/", (), ""),
    ],
)
def test_export_names_what_a_format_cannot_say(
    cli: Cli, file_format: str, pattern: str, options: tuple[str, ...], why: str
) -> None:
    if "--for" in options:
        cli("client", "add", "tablet", "--address", "192.0.2.9")
    assert cli("list", "add", pattern, *options).code == 0
    answer = cli("list", "export", "--format", file_format, "--left-out")
    action = options[0].removeprefix("--") if options and options[0] != "--for" else "block"
    (rule,) = cli("list", "show", "--json").json
    assert (answer.code, answer.out) == (0, f"{action} {rule['kind']} {rule['pattern']}: {why}\n" if why else "")


def test_export_of_what_was_learned(cli: Cli, state: Path) -> None:
    cli("db", "upgrade")
    _learn(state, _learned("bad.example/x"), _learned("fine.example/", ListAction.ALLOW))
    assert cli("list", "export", "--learned", "--format", "adblock", "--action", "block").out == (
        "|http://bad.example/x|\n|https://bad.example/x|\n"
    )


def test_import_names_bad_lines_and_takes_the_others(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("# mine\na.example\nnot a host\n" + "also bad\n" * 6)
    answer = cli("list", "import", "--allow", "--comment", "from mine", file)
    assert answer.code == 0
    assert answer.out == "1 entry read, 1 new or changed.\n"
    assert f"{file}:3: 'not a host'" in answer.err
    assert "and 2 more bad lines" in answer.err
    (rule,) = cli("list", "show", "--json").json
    assert (rule["action"], rule["comment"]) == ("allow", "from mine")


def test_import_reads_standard_input(cli: Cli) -> None:
    assert cli("list", "import", "-", "--json", stdin="a.example\n").json["changed"] == 1


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"not a host\n", "holds no usable entry; line 1, 'not a host'"),
        (b"\xff\xfe\x00", "is not UTF-8 text: byte 0"),
        (b'[{"x"', "begins like JSON and is not"),
    ],
)
def test_a_file_that_is_no_list_is_refused(content: bytes, sentence: str, cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "bad.txt"
    file.write_bytes(content)
    assert sentence in cli("list", "import", file).complains()


def test_search_finds_rules_for_third_parties_and_single_types(cli: Cli, tmp_path: Path) -> None:
    rules = tmp_path / "rules.txt"
    rules.write_text("[Adblock Plus 2.0]\n||ads.example^$third-party\n||ads.example^$script\n||ads.example^$popup\n")
    assert cli("source", "add", rules).code == 0
    found = cli("list", "search", "ads.example")
    assert found.code == 0
    assert "||ads.example^$third-party" in found.out
    assert cli("list", "search", "good.example").code == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--allow", "--block", "foo.test"), "--allow and --block contradict each other"),
        (("--splice", "--allow", "foo.test"), "contradict each other"),
        (("10.0.0.0/8",), "'10.0.0.0/8' is a network, and a rule names hosts"),
        (("a.test, b.test",), "part several by spaces, not commas"),
        (("192.168.1.300",), "'192.168.1.300' is no valid IP address"),
        (("||foo.test^$third-party",), "is an Adblock rule with options"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: tuple[str, ...], sentence: str, cli: Cli) -> None:
    assert sentence in cli("list", "add", *arguments).complains()
    assert cli("list", "show", "--json").json == []


def test_a_host_in_two_alphabets_is_pointed_out(cli: Cli) -> None:
    mixed = cli("list", "add", "exаmple.test")  # noqa: RUF001  the third letter is Cyrillic
    assert mixed.code == 0
    assert "mixes letters of several alphabets" in mixed.err
    assert "alphabets" not in cli("list", "add", "пример.test", "例え.test", "example.test").err
