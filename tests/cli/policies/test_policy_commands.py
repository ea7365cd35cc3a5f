"""`gatewayfilter client`, `group`, `policy`, `schedule`, `pause` and `resume`, and what `check` and `list add` know of them."""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.model import QuotaUse
from gatewayfilter.program_name import as_callable
from gatewayfilter.use_cases.devices import seen_devices
from gatewayfilter.wiring import open_store
from tests.cli.conftest import Cli, prepare

TABLET = "192.168.7.20"


@pytest.fixture
def family(cli: Cli, state: Path, made: Path) -> Cli:
    """A tablet in the group `kids` with the policy `strict`."""
    prepare(
        cli,
        state,
        made,
        ("group", "add", "kids"),
        ("client", "add", "tablet", "--address", TABLET, "--group", "kids"),
        ("policy", "add", "strict", "--group", "kids"),
    )
    return cli


def test_nothing_is_there_yet(cli: Cli) -> None:
    assert "client seen" in cli("client", "list").out
    assert cli("client", "list", "--json").json == []
    assert [group["name"] for group in cli("group", "list", "--json").json] == ["default"]
    assert cli("policy", "list", "--json").json == [{"name": "default", "values": {}, "used_by": ["group default"]}]
    assert cli("schedule", "list").out == "There are no schedules.\n"


def test_clients(family: Cli) -> None:
    assert family("client", "set", "tablet", "--add", "AA-BB-CC-00-11-22", "--note", "blue").code == 0
    (client,) = family("client", "list", "--json").json
    assert client["matchers"] == [["address", TABLET], ["mac", "aa:bb:cc:00:11:22"]]
    assert (client["group"], client["note"]) == ("kids", "blue")
    assert family("client", "set", "tablet", "--remove", TABLET, "--group", "default").code == 0
    assert "aa:bb:cc:00:11:22" in family("client", "list").out
    assert family("client", "remove", "tablet").code == 0
    assert family("client", "list", "--json").json == []


def test_groups(family: Cli) -> None:
    assert family("group", "set", "kids", "--note", "under 12", "--policy", "").code == 0
    found = {group["name"]: group for group in family("group", "list", "--json").json}
    assert (found["kids"]["policy"], found["kids"]["note"], found["kids"]["clients"]) == ("", "under 12", ["tablet"])
    assert "still has clients: tablet" in family("group", "remove", "kids").complains()
    assert family("client", "remove", "tablet").code == family("group", "remove", "kids").code == 0


def test_policies_and_their_inheritance(family: Cli) -> None:
    family("policy", "set", "strict", "category.social=block", "unknown=hold")
    family("policy", "set", "default", "category.social=allow", "category.gambling=review")
    family("policy", "add", "own", "--client", "tablet")
    family("policy", "set", "own", "unknown=allow")
    found = family("policy", "show", "--client", "tablet", "--json").json
    assert found["policies"] == ["own", "strict", "default"]
    assert {value["key"]: (value["value"], value["origin"]) for value in found["values"]} == {
        "category.gambling": ("review", "default"),
        "category.social": ("block", "group kids"),
        "unknown": ("allow", "client tablet"),
    }
    assert "group kids" in family("policy", "show", "--client", "tablet").out
    family("policy", "set", "strict", "category.social=")
    assert family("policy", "show", "strict", "--json").json["values"] == {"unknown": "hold"}
    assert "used by group kids" in family("policy", "remove", "strict").complains()


def test_schedules(family: Cli) -> None:
    added = family(
        "schedule", "add", "bedtime", "--policy", "strict", "--block", "all", "--daily", "21:00-06:00", "--days", "weekdays,sun",
        "--timezone", "Asia/Shanghai", "--json",
    )  # fmt: skip
    assert added.json["windows"] == [[1260, 360, [0, 1, 2, 3, 4, 6]]]
    assert (added.json["effect"], added.json["timezone"]) == ("block-all", "Asia/Shanghai")
    assert family("schedule", "add", "play", "--policy", "strict", "--allow", "social", "--daily", "8:00-24:00").code == 0
    assert "blocks everything" in family("schedule", "list").out
    assert "schedules: bedtime, play" in family("policy", "show", "--client", "tablet").out
    assert family("schedule", "remove", "bedtime").code == 0
    assert [schedule["name"] for schedule in family("schedule", "list", "--json").json] == ["play"]


def test_pauses(family: Cli) -> None:
    found = family("pause", "30min", "--client", "tablet", "--json").json
    assert found["name"] == "client:tablet"
    assert 1700 < found["until"] - time.time() < 1900
    assert "paused for the client tablet" in family("pause", "1h", "--client", "tablet").out
    assert family("resume", "--client", "tablet", "--json").json == {"ended": True}
    again = family("resume", "--client", "tablet")
    assert (again.code, again.out) == (1, "There is no pause for the client tablet.\n")
    assert "for everybody" in family("pause", "5min").out
    assert family("resume").code == 0


def test_resume_without_a_pause_names_those_that_are_in_force(family: Cli) -> None:
    family("pause", "30min", "--client", "tablet")
    wrong = family("resume")
    assert wrong.code == 1
    said, advice = wrong.out.splitlines()
    assert said == "There is no pause for everybody."
    assert advice == as_callable("Paused is the client tablet: gatewayfilter resume --client tablet")
    assert family("resume", "--json").json == {"ended": False}
    assert family("resume", "--client", "tablet").code == 0


BAD: list[tuple[Sequence[str], str]] = [
    (("client", "add", "tablet", "--address", "10.0.0.1"), "there is a client 'tablet' already"),
    (("client", "add", "other", "--address", TABLET), f"{TABLET} belongs to the client tablet already"),
    (("client", "add", "other", "--address", "10.0.0.1/8"), "did you mean 10.0.0.0/8"),
    (("client", "add", "other", "--address", "here"), "'here' is no address"),
    (("client", "add", "other", "--address", "10.0.0.1", "--group", "x"), "no group 'x'"),
    (("client", "add", "a/b", "--address", "10.0.0.1"), "cannot be a name"),
    (("client", "set", "tablt", "--note", "x"), "did you mean 'tablet'"),
    (("client", "set", "tablet", "--remove", TABLET), "would have no address"),
    (("client", "set", "tablet", "--remove", "10.9.9.9"), "does not have 10.9.9.9"),
    (("client", "remove", "x"), "no client 'x'"),
    (("group", "add", "default"), "there is a group 'default' already"),
    (("group", "set", "kids", "--policy", "x"), "no policy 'x'"),
    (("policy", "set", "strict", "category.socal=block"), "did you mean 'social'"),
    (("policy", "set", "strict", "category.press=block"), "no category 'press'"),
    (("policy", "set", "strict", "source.x=off"), "no source 'x'"),
    (("policy", "set", "strict", "unknown=inspect"), "one of allow, hold, block"),
    (("policy", "set", "strict", "colour=blue"), "no value 'colour'"),
    (("policy", "set", "strict", "unknown"), "no KEY=VALUE"),
    (("policy", "set", "strikt", "unknown=hold"), "did you mean 'strict'"),
    (("policy", "show"), "name a policy"),
    (("policy", "show", "--client", "x"), "no client 'x'"),
    (("policy", "add", "x", "--client", "y"), "no client 'y'"),
    (("schedule", "add", "s", "--policy", "x", "--block", "all", "--daily", "1:00-2:00"), "no policy 'x'"),
    (("schedule", "add", "s", "--policy", "strict", "--block", "sozial", "--daily", "1:00-2:00"), "no category 'sozial'"),
    (("schedule", "add", "s", "--policy", "strict", "--daily", "1:00-2:00"), "one of --block, --allow and --use"),
    (("schedule", "add", "s", "--policy", "strict", "--block", "all", "--daily", "25:00-2:00"), "00:00 to 24:00"),
    (("schedule", "add", "s", "--policy", "strict", "--block", "all", "--daily", "2:00-2:00"), "00:00-24:00"),
    (("schedule", "add", "s", "--policy", "strict", "--block", "all", "--daily", "evening"), "is no window"),
    (("schedule", "add", "s", "--policy", "strict", "--block", "all", "--daily", "1:00-2:00", "--days", "m"), "is no day"),
    (
        ("schedule", "add", "s", "--policy", "strict", "--block", "all", "--daily", "1:00-2:00", "--timezone", "Berlin"),
        "no time zone 'Berlin'",
    ),
    (("schedule", "remove", "x"), "no schedule 'x'"),
    (("pause", "soon"), "is no duration"),
    (("pause", "0s"), "more than nothing"),
    (("pause", "30min", "--client", "x"), "no client 'x' to pause"),
    (("pause", "30min", "--client", "tablet", "--group", "kids"), "not both"),
    (("list", "add", "x.example", "--for", "client:x"), "no client 'x'"),
    (("list", "add", "x.example", "--for", "tablet"), "no client:NAME or group:NAME"),
    (("list", "add", "--splice", "x.example", "--for", "group:kids"), "splicing is for everybody"),
    (("check", "x.example", "--client", "nobody"), "neither an address nor the name of a client"),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_bad_input_is_one_sentence_and_changes_nothing(family: Cli, state: Path, arguments: Sequence[str], sentence: str) -> None:
    before = rows_of(state)
    assert sentence in family(*arguments).complains()
    assert rows_of(state) == before


def rows_of(state: Path) -> list[str]:
    """All that the database has, as SQL: clients, groups, policies, schedules, rules and what was recorded of changes."""
    with closing(sqlite3.connect(state / "gatewayfilter.sqlite3")) as database:
        rows = list(database.iterdump())
    assert any("tablet" in row for row in rows)
    return rows


def test_check_of_a_device_that_is_away(family: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.use_cases.network_facts.neighbours_now", lambda: {"10.0.0.8": "00:00:00:00:00:01"})
    assert family("client", "add", "phone", "--address", "aa:bb:cc:00:11:22", "--group", "kids").code == 0
    assert family("policy", "set", "strict", "services=tiktok").code == 0
    answer = family("check", "https://tiktok.com/", "--client", "phone")
    assert "client phone, group kids" in answer.out
    assert answer.code == family("check", "--service", "tiktok", "--client", "phone").code == 1


def test_check_shows_what_holds_for_a_client_at_a_time(family: Cli) -> None:
    family("schedule", "add", "bedtime", "--policy", "strict", "--block", "all", "--daily", "21:00-06:00", "--timezone", "UTC")
    family("list", "add", "--allow", "school.example", "--for", "group:kids")
    night = ("--at", "2030-01-31T22:00+00:00")
    for client in ("tablet", TABLET):
        answer = family("check", "https://video.example/", "--client", client, *night)
        assert answer.code == 1
        assert "BLOCK (schedule), rule bedtime" in answer.out
        assert "client tablet, group kids, policies strict, default" in answer.out
    assert family("check", "https://video.example/", "--client", "tablet", "--at", "2030-01-31T12:00+00:00").code == 0
    assert family("check", "https://video.example/", "--client", "192.168.7.21", *night).code == 0
    found = family("check", "https://school.example/", "--client", "tablet", *night, "--json").json
    assert (found["verdict"]["reason"], found["verdict"]["source_list"]) == ("manual-allow", "group:kids")
    deciders = [answer["decider"] for answer in found["answers"]]
    assert deciders[:6] == ["client", "pause", "group:kids", "manual", "schedule", "policy"]


def test_a_rule_for_some_clients_shows_whom_it_is_for(family: Cli) -> None:
    assert "for client:tablet" in family("list", "add", "x.example", "--for", "client:tablet").out
    assert "client:tablet" in family("list", "show").out
    assert [rule["scope"] for rule in family("list", "show", "--json").json] == ["client:tablet"]
    family("client", "remove", "tablet")
    assert family("list", "show", "--json").json == []


def test_seen_devices_are_those_that_are_no_client(family: Cli) -> None:
    addresses = {device["address"] for device in family("client", "seen", "--no-names", "--json").json}
    assert TABLET not in addresses
    assert family("client", "seen", "--no-names").code == 0


def test_a_seen_device_has_maker_name_and_times(family: Cli, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {TABLET: "02:00:00:00:00:01", "192.168.7.21": "02:00:00:00:00:02"}
    monkeypatch.setattr("gatewayfilter.use_cases.devices.neighbours_now", lambda: found)
    store = open_store(Settings(data_dir=state))
    devices = seen_devices(store, 1e6, lambda asked: dict.fromkeys(asked, "tv"))
    later = seen_devices(store, 1e6 + 60, None)
    store.close()
    assert [(one.address, one.maker, one.name, one.first_at, one.client) for one in devices] == [
        (TABLET, "private MAC", "tv", 1e6, "tablet"),
        ("192.168.7.21", "private MAC", "tv", 1e6, ""),
    ]
    assert [(one.first_at, one.last_at, one.requests) for one in later] == [(1e6, 1e6 + 60, 0)] * 2
    shown = family("client", "seen", "--no-names").out
    assert "192.168.7.21" in shown
    assert TABLET not in shown
    assert "private MAC" in shown


def test_a_client_gets_another_name_with_all_that_is_its_own(family: Cli, state: Path) -> None:
    family("list", "add", "x.example", "--for", "client:tablet")
    family("pause", "1h", "--client", "tablet")
    family("quota", "add", "q", "--policy", "strict", "--minutes", "1", "--service", "youtube", "--timezone", "UTC")
    store = open_store(Settings(data_dir=state))
    store.usage.add([QuotaUse("client:tablet", "q", int(time.time() // 60))])
    store.close()
    assert family("client", "set", "tablet", "--name", "anna", "--icon", "tablet", "--note", "blue").code == 0
    (client,) = family("client", "list", "--json").json
    assert (client["name"], client["icon"], client["note"], client["group"]) == ("anna", "tablet", "blue", "kids")
    assert [rule["scope"] for rule in family("list", "show", "--json").json] == ["client:anna"]
    assert family("resume", "--client", "anna").code == 0
    assert family("policy", "show", "--client", "anna", "--json").json["quotas"][0]["used"] == 1
    assert "there is no client" in family("client", "set", "tablet", "--name", "x").complains()
    family("client", "add", "bert", "--address", "10.0.0.9")
    assert "there is a client 'bert' already" in family("client", "set", "anna", "--name", "bert").complains()
    assert "cannot be a name" in family("client", "set", "anna", "--name", "a:b").complains()
    assert "is not one of" in family("client", "set", "anna", "--icon", "car").complains()
    assert [rule["scope"] for rule in family("list", "show", "--json").json] == ["client:anna"]
