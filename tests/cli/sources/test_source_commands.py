from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.held_ports import hold_port, port_of

type Cli = Callable[..., Any]


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    file = tmp_path / "gambling-hosts.txt"
    file.write_text("# a list\n0.0.0.0 casino.example\n0.0.0.0 poker.example\n0.0.0.0 nodot\n")
    return file


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    file = tmp_path / "ads.txt"
    file.write_text("[Adblock Plus 2.0]\n||ads.example^$third-party\n@@||ads.example/fine^\n##.banner\n||pop.example^$popup\n")
    return file


def test_a_new_user_subscribes_checks_allows_and_takes_it_back(cli: Cli, hosts: Path) -> None:
    added = cli("source", "add", hosts)
    assert added.code == 0, added.err
    assert "gambling-hosts: 2 entries (hosts), 1 bad line" in added.out
    assert "Published" in added.out
    assert "gambling-hosts:4: '0.0.0.0 nodot'" in added.err

    blocked = cli("check", "http://casino.example/", "--json")
    assert (blocked.code, blocked.json["verdict"]["source_list"], blocked.json["verdict"]["category"]) == (
        1,
        "gambling-hosts",
        "gambling",
    )
    cli("list", "add", "--allow", "http://casino.example/")
    assert cli("check", "http://casino.example/").code == 0
    assert cli("check", "http://casino.example/other").code == 1
    cli("list", "remove", "http://casino.example/")
    assert cli("check", "http://casino.example/").code == 1

    assert cli("source", "disable", "gambling-hosts").code == 0
    assert cli("check", "http://casino.example/").code == 0
    cli("source", "enable", "gambling-hosts", "--no-publish")
    assert cli("check", "http://casino.example/").code == 0
    assert cli("publish").code == 0
    assert cli("check", "http://casino.example/").code == 1
    cli("source", "remove", "gambling-hosts")
    assert cli("check", "http://casino.example/").code == 0


def test_several_sources_at_once_and_their_status(cli: Cli, hosts: Path, rules: Path) -> None:
    answer = cli("source", "add", hosts, rules, "--json")
    assert [result["name"] for result in answer.json["results"]] == ["gambling-hosts", "ads"]
    assert answer.json["published"]["size_bytes"] > 0
    status = {item["definition"]["name"]: item for item in cli("source", "status", "--json").json}
    assert status["ads"]["definition"]["list_format"] == "adblock"
    assert status["ads"]["report"]["unsupported"] == {"popup": 1}
    assert status["gambling-hosts"]["report"]["accepted"] == 2
    table = cli("source", "status").out
    assert "gambling-hosts" in table
    assert "bundled" in table
    details = cli("source", "status", "gambling-hosts").out
    assert str(hosts) in details
    assert "block, category gambling" in details


def test_options_of_add(cli: Cli, hosts: Path) -> None:
    cli(
        "source", "add", hosts, "--name", "mine", "--category", "ads", "--action", "allow", "--interval", "6", "--format", "hosts"
    )
    definition = cli("source", "status", "mine", "--json").json[0]["definition"]
    assert (definition["category"], definition["action"], definition["interval_h"]) == ("ads", "allow", 6)
    assert cli("check", "casino.example", "--json").json["verdict"]["reason"] == "whitelist"


def test_a_preview_keeps_nothing(cli: Cli, state: Path, hosts: Path) -> None:
    answer = cli("source", "add", hosts, "--preview")
    assert "2 entries (hosts)" in answer.out
    assert "2 of them new" in answer.out
    assert "Published" not in answer.out
    assert [path.name for path in state.rglob("*") if path.is_file()] == [".gambling-hosts.lock"]
    cli("source", "status", "gambling-hosts").complains()


WORLD = "[Adblock Plus 2.0]\n||ads.example^\n||com^\n://\n||pop.example^\n||more.example^\n"


@pytest.mark.parametrize("options", [("--preview",), ()])
def test_rules_that_would_block_the_web_are_named(cli: Cli, tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "world.txt").write_text(WORLD)
    answer = cli("source", "add", tmp_path / "world.txt", *options)
    assert "world: 3 entries (adblock), 2 bad lines, 2 of them refused as too broad or too costly" in answer.out
    assert "world:3: '||com^': it would block most of the web" in answer.err
    assert "world:4: '://': it would block most of the web" in answer.err
    assert cli("check", "http://www.bbc.com/news").code == 0


def test_an_update_names_rules_that_would_block_the_web(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "world.txt"
    file.write_text("[Adblock Plus 2.0]\n||ads.example^\n||pop.example^\n")
    cli("source", "add", file)
    file.write_text(WORLD)
    answer = cli("source", "update", "world")
    assert "world:3: '||com^': it would block most of the web" in answer.err
    assert cli("check", "http://www.bbc.com/news").code == 0
    assert cli("check", "http://pop.example/").code == 1


def test_one_of_several_may_fail(cli: Cli, hosts: Path, tmp_path: Path) -> None:
    answer = cli("source", "add", tmp_path / "not-there.txt", hosts, "--json")
    assert (answer.code, len(answer.json["results"])) == (1, 1)
    assert "is no file and no list of the catalogue" in answer.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["add", "easylst"], "did you mean 'easylist'?"),
        (["add", "easylist", "--category", "gamez"], "there is no category 'gamez'; did you mean 'games'?"),
        (["add", "ftp://lists.example/x"], "is no http(s) address"),
        (["add", "a", "b", "--name", "x"], "--name can only be given with one address"),
        (["add", "{hosts}", "--name", "Not A Name"], "is no name for a source"),
        (["add", "{hosts}", "--interval", "0"], "invalid value for '--interval'"),
        (["add", "{hosts}", "--format", "odd"], "invalid value for '--format'"),
        (["remove", "nobody"], "there is no source 'nobody'"),
        (["remove", "starter-ads"], "comes with the program: disable it instead"),
        (["enable", "starter-adds"], "did you mean 'starter-ads'?"),
        (["update", "nobody"], "there is no source 'nobody'"),
        (["status", "nobody"], "there is no source 'nobody'"),
    ],
)
def test_bad_input_gets_one_sentence(arguments: list[str], sentence: str, cli: Cli, hosts: Path) -> None:
    answer = cli("source", *(argument.format(hosts=hosts) for argument in arguments))
    assert answer.code == (1 if "there is no source" in answer.err else 2)
    assert sentence in answer.err.splitlines()[-1]
    assert answer.err.splitlines()[-1].startswith("gatewayfilter: ")


@pytest.mark.parametrize("content", [b"", b"<html><body>Not found</body></html>", b"\x00\x01\x02\x03" * 100])
def test_what_is_no_list_is_refused(content: bytes, cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_bytes(content)
    answer = cli("source", "add", file)
    assert answer.code == 2
    assert "cannot use" in answer.err


def test_updates(cli: Cli, hosts: Path, state: Path) -> None:
    cli("source", "add", hosts)
    assert cli("source", "update").out == "No source is due for an update.\n"
    assert "unchanged" in cli("source", "update", "--all").out
    hosts.write_text("0.0.0.0 casino.example\n0.0.0.0 bingo.example\n")
    answer = cli("source", "update", "gambling-hosts", "--json")
    assert (answer.code, answer.json["results"][0]["status"], answer.json["published"] is not None) == (0, "updated", True)
    assert cli("check", "bingo.example").code == 1
    hosts.unlink()
    failed = cli("source", "update", "--all")
    assert failed.code == 1
    assert "gambling-hosts: " in failed.err
    assert cli("check", "bingo.example").code == 1
    assert "Published" not in failed.out
    assert state.exists()


def test_the_catalogue(cli: Cli) -> None:
    assert "easylist" in cli("source", "catalog").out
    entry = cli("source", "catalog", "--json").json[0]
    assert {"name", "title", "address", "licence", "category"} <= set(entry)


def test_a_damaged_snapshot_is_replaced(cli: Cli, hosts: Path, state: Path) -> None:
    cli("source", "add", hosts)
    for file in (state / "snapshots").glob("*.gfs"):
        file.write_bytes(file.read_bytes()[:-100])
    assert cli("check", "casino.example").code == 1


def test_publish_reports(cli: Cli, hosts: Path) -> None:
    cli("source", "add", hosts, "--no-publish")
    cli("list", "add", "a.example")
    report = cli("publish", "--json").json
    assert report["manual_rules"] == 1
    assert {item["source"]["name"] for item in report["sources"]} >= {"gambling-hosts"}
    assert "1 of your own" in cli("publish").out
    assert cli("publish", "--json").json["rebuilt"] == ""
    assert "rebuilt (on request)" in cli("publish", "--full").out


def test_the_catalogue_is_shown_by_category(cli: Cli) -> None:
    found = cli("source", "catalog", "--category", "bank", "--json").json
    assert [entry["name"] for entry in found] == ["ut1-bank"]
    assert all(entry["description"] and entry["description_zh"] for entry in cli("source", "catalog", "--json").json)
    assert "no list of the catalogue" in cli("source", "catalog", "--category", "nonsense").complains()
    table = cli("source", "catalog").out
    assert "default" in table
    assert "ut1-update" in table


def test_something_to_add_must_be_named(cli: Cli) -> None:
    answer = cli("source", "add")
    assert (answer.code, "give --defaults" in answer.err) == (2, True)


def test_a_list_of_hosts_that_pass_unread_is_added(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "our-bank.txt").write_text("bank.example\n")
    assert cli("source", "add", tmp_path / "our-bank.txt", "--action", "splice").code == 0
    (found,) = cli("list", "search", "www.bank.example", "--json").json["lists"]
    assert (found["source"], found["means"], found["line"]) == ("our-bank", "splice", 1)
    assert cli("check", "http://bank.example/").code == 0


@pytest.mark.slow
def test_a_list_out_of_reach_is_pending_and_said_once(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.sources.download.http_download.time.sleep", lambda _: None)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with hold_port() as nobody:
        address = f"http://127.0.0.1:{port_of(nobody)}/x.txt"
        answer = cli("source", "add", address, "--category", "ads", "--json")
        assert answer.json["results"][0]["status"] == "pending"
        cli("source", "remove", "x")
        answer = cli("source", "add", address, "--category", "ads")
        assert answer.code == 1
        assert answer.out == ""
        assert "x: pending, the running filter fetches it later: cannot reach http://127.0.0.1" in answer.err
        assert answer.err.splitlines()[-1].count(address) == 1
        assert "pending: cannot reach" in cli("source", "status").out
        assert "pending: cannot reach" in cli("source", "status", "x").out
        assert "x was never fetched (cannot reach" in cli("doctor").out


def test_several_are_added_at_once(cli: Cli, hosts: Path, rules: Path, tmp_path: Path) -> None:
    answer = cli("source", "add", hosts, tmp_path / "none.txt", rules)
    assert answer.code == 1
    assert answer.out.index("gambling-hosts: 2 entries") < answer.out.index("ads: ")
    assert "none.txt' is no file" in answer.err
    assert "fetching 3 lists" in answer.err


def test_changes_are_undone_as_those_of_the_page(cli: Cli, hosts: Path) -> None:
    def undo(action: str) -> None:
        newest = cli("audit", "list", "--undoable", "--json", "-n", "1").json[0]
        assert newest["action"] == action
        done = cli("audit", "undo", newest["id"])
        assert done.code == 0, done.err

    def state() -> list[bool]:
        return [
            row["definition"]["enabled"]
            for row in cli("source", "status", "--json").json
            if row["definition"]["name"] == "gambling-hosts"
        ]

    cli("source", "add", hosts, "--preview")
    assert cli("audit", "list", "--json").json == []
    cli("source", "add", hosts, "--no-publish")
    cli("source", "disable", "gambling-hosts", "--no-publish")
    undo("source.disabled")
    assert state() == [True]
    assert cli("source", "remove", "gambling-hosts", "nowhere", "--no-publish").code == 1
    undo("source.removed")  # of the one that could be removed
    assert state() == [True]
    cli("source", "enable", "gambling-hosts", "--no-publish")  # changes nothing
    assert cli("audit", "undo", cli("audit", "list", "--json", "--action", "source.added").json[0]["id"]).code == 0
    assert state() == []
