"""Requests to unblock pages, decided by commands."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.interfaces import UnblockRequest
from gatewayfilter.store import Store
from tests.cli.conftest import prepare

type Cli = Callable[..., Any]


def _ask(state: Path, *urls: str, name: str = "", client: str = "10.0.0.7", **facts: str) -> None:
    state.mkdir(parents=True, exist_ok=True)
    store = Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")
    given = {"reason": "blacklist", "source_list": "list", "rule": ".games.example", "category": "games"} | facts
    requests = [
        UnblockRequest(
            url,
            client,
            given["reason"],
            given["source_list"],
            given["rule"],
            given["category"],
            "for school",
            time.time(),
            client_name=name,
        )
        for url in urls
    ]
    assert store.unblock.ask(requests) == len(urls)
    store.close()


@pytest.fixture
def tablet(cli: Cli, state: Path, made: Path) -> None:
    prepare(cli, state, made, ("group", "add", "kids"), ("client", "add", "tablet", "--address", "10.0.0.7", "--group", "kids"))


@pytest.mark.usefixtures("tablet")
def test_an_approval_is_an_entry_for_the_client_that_asked(cli: Cli, state: Path) -> None:
    assert cli("request", "list").out == "No open requests.\n"
    _ask(state, "http://www.games.example/x?y", name="tablet")
    assert "tablet asked" in cli("request", "list").out
    assert "note: for school" in cli("request", "list").out
    answer = cli("request", "approve", 1, "--for", "1h", "--word", "have\u202e fun")
    assert "allows .games.example for the client tablet until" in answer.out
    (rule,) = cli("list", "show", "--json").json
    assert (rule["action"], rule["kind"], rule["pattern"], rule["scope"]) == (
        "allow",
        "domain",
        ".games.example",
        "client:tablet",
    )
    assert rule["comment"] == "request 1: for school"
    assert 3500 < rule["expires_at"] - time.time() <= 3600
    (request,) = cli("request", "list", "--all", "--json").json
    assert (request["state"], request["word"], request["rule_ids"]) == ("approved", "have fun", [rule["rule_id"]])
    assert cli("request", "list", "--json").json == []
    assert "answer: have fun" in cli("request", "list", "--all").out
    assert cli("request", "deny", 1, "--word", "changed my mind").code == 0  # withdraws the approval
    assert cli("list", "show", "--json").json == []


@pytest.mark.usefixtures("tablet")
@pytest.mark.parametrize(
    ("facts", "options", "pattern", "said"),
    [
        ({"rule": "www.games.example/x"}, [], "www.games.example/x?y", "for the whole site"),
        ({"rule": "www.games.example/x"}, ["--site"], ".games.example", "allows"),
        ({}, ["--page"], "www.games.example/x?y", "for the whole site"),
        (
            {"reason": "learned", "source_list": "learned:games", "rule": "www.games.example/x"},
            ["--site"],
            "www.games.example/x?y",
            "judged",
        ),
        ({"reason": "schedule", "rule": "bedtime"}, [], ".games.example", "allows"),
        ({"reason": "adblock", "rule": "||games.example^"}, [], ".games.example", "allows"),
        ({"reason": "adblock", "rule": "||games.example/ads/"}, [], "www.games.example/x?y", "whole site"),
    ],
)
def test_what_is_approved_depends_on_what_blocked(
    facts: dict[str, str], options: list[str], pattern: str, said: str, cli: Cli, state: Path
) -> None:
    _ask(state, "http://www.games.example/x?y", name="tablet", **facts)
    assert said in cli("request", "approve", 1, *options).out
    (rule,) = cli("list", "show", "--json").json
    assert rule["pattern"] == pattern


@pytest.mark.usefixtures("tablet")
@pytest.mark.parametrize(
    ("options", "scope"), [(["--client", "tablet"], "client:tablet"), (["--group", "kids"], "group:kids"), (["--all"], "")]
)
def test_for_whom(options: list[str], scope: str, cli: Cli, state: Path) -> None:
    _ask(state, "http://games.example/", name="tablet")
    _ask(state, "http://games.example/", client="10.0.0.9")
    cli("request", "approve", 1, "--for", "ever", *options)
    (rule,) = cli("list", "show", "--json").json
    assert (rule["scope"], rule["expires_at"]) == (scope, None)
    assert len(cli("request", "list", "--json").json) == (0 if scope == "" else 1)


def test_a_device_without_a_name_becomes_a_client(cli: Cli, state: Path) -> None:
    _ask(state, "http://games.example/")
    _ask(state, "http://games.example/", client="fd00::7")
    _ask(state, "http://games.example/", client="5f0e9c11d2ab4402")  # log.hash_clients
    assert "is the client 10.0.0.7 from now on" in cli("request", "approve", 1).out
    assert "is the client fd00--7 from now on" in cli("request", "approve", 2).out
    refused = cli("request", "approve", 3)
    assert refused.code == 2
    assert "--client, --group or --all" in refused.err
    assert sorted(one["name"] for one in cli("client", "list", "--json").json) == ["10.0.0.7", "fd00--7"]


def test_own_entries_are_never_replaced(cli: Cli, state: Path) -> None:
    cli("list", "add", "games.example")
    _ask(state, "http://games.example/")
    cli("request", "approve", 1, "--all")
    assert sorted(rule["action"] for rule in cli("list", "show", "--json").json) == ["allow", "block"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("approve", 7),
        ("deny", 7),
        ("link", 7),
        ("approve", 1, "--for", "soon"),
        ("approve", 1, "--for", "99y"),
        ("approve", 1, "--for", "0s"),
        ("approve", 1, "--client", "nobody"),
        ("approve", 1, "--group", "nobody"),
        ("approve", 1, "--client", "a", "--all"),
        ("deny", 1, "--word", "x" * 301),
        ("link", 1, "--for", "ever"),
        ("approve", "one"),
        ("approve", -1),
    ],
)
def test_bad_input_is_one_sentence(arguments: tuple[object, ...], cli: Cli, state: Path) -> None:
    _ask(state, "http://games.example/")
    done = cli("request", *arguments)
    done.complains()
    assert cli("list", "show", "--json").json == []


def test_links(cli: Cli, state: Path) -> None:
    cli("client", "add", "tablet", "--address", "10.0.0.7")
    assert cli("bypass", "add", "http://games.example/").code == 2
    made = cli("bypass", "add", "http://games.example/", "--client", "tablet", "--once", "--json").json
    assert made["address"].startswith("http://games.example/.well-known/gatewayfilter/unblock?link=")
    assert (state / "request.key").stat().st_mode & 0o777 == 0o600
    _ask(state, "http://b.example/x", name="tablet")
    assert "/unblock?link=" in cli("request", "link", 1, "--for", "10min").out
    assert cli("request", "list", "--json").json == []
    assert cli("bypass", "revoke", 1).code == 0
    assert cli("bypass", "revoke", 99).code == 1
    assert [link["revoked_at"] is None for link in cli("bypass", "list", "--json").json] == [True, False]
    assert "revoked" in cli("bypass", "list").out
    assert "one visit" in cli("request", "approve", 1, "--for", "once").out
    assert cli("list", "show", "--json").json == []


@pytest.mark.parametrize("reason", ["file-type", "file-size", "search-term"])
def test_what_a_policy_blocks_of_a_page_is_approved_for_the_page(reason: str, cli: Cli, state: Path) -> None:
    cli("client", "add", "tablet", "--address", "10.0.0.7")
    _ask(state, "http://files.example/setup.exe", "http://files.example/two.exe", reason=reason, rule="kids", source_list="")
    cli("request", "approve", 1)
    cli("request", "approve", 2, "--site")
    rules = {rule["pattern"]: rule["scope"] for rule in cli("list", "show", "--json").json}
    assert set(rules.values()) == {"client:tablet"}
    assert {"/setup.exe" in pattern or "/two.exe" in pattern for pattern in rules} == {True, False}
