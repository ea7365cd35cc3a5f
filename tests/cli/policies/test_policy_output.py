"""What `client`, `group` and `policy` print, in full: `gatewayfilter.cli.policies.client_commands`,
`gatewayfilter.cli.policies.group_commands`, `gatewayfilter.cli.policies.policy_commands`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from gatewayfilter.cli.policies.client_commands import erase_client
from gatewayfilter.model import (
    CategoryAction,
    Client,
    Group,
    Policy,
    PolicySet,
    Quota,
    QuotaKind,
    Schedule,
    ScheduleEffect,
    Window,
    parse_matcher,
)
from gatewayfilter.use_cases.network_facts import QuotaLeft
from tests.cli.test_command_doubles import MOMENT, SETTINGS, Doubled, called, table, texts

FACTS = "gatewayfilter.use_cases.network_facts"
DAY = "2023-11-14 22:13"
TV = Client("tv", (parse_matcher("10.0.0.7"), parse_matcher("10.0.0.8")), "kids", "own", "the big one", "tv")
PAD = Client("pad", (parse_matcher("10.0.0.9"),))
STRICT = Policy("strict", categories={"ads": CategoryAction.BLOCK}, services={"youtube": True, "vimeo": False})
WINDOWS = (Window(1_260, 390), Window(485, 600, frozenset({5, 6})))
EFFECTS = {
    ScheduleEffect.BLOCK_ALL: "blocks everything",
    ScheduleEffect.BLOCK_CATEGORY: "blocks x",
    ScheduleEffect.ALLOW_CATEGORY: "allows x",
    ScheduleEffect.BLOCK_SERVICE: "blocks the service x",
    ScheduleEffect.ALLOW_SERVICE: "allows the service x",
    ScheduleEffect.USE_POLICY: "uses the policy x",
}
SCHEDULES = {f"s{number}": Schedule(f"s{number}", "strict", effect, WINDOWS, "UTC", "x") for number, effect in enumerate(EFFECTS)}
QUOTA = Quota("films", "strict", QuotaKind.CATEGORY, "video", 60, "UTC", {5: 120, 6: 120})
POLICIES = PolicySet(
    clients={"tv": TV, "pad": PAD},
    groups={"kids": Group("kids", "strict", "tablets"), "default": Group("default"), "a": Group("a")},
    policies={"strict": STRICT, "own": Policy("own"), "default": Policy("default", block_all=True)},
    schedules=SCHEDULES,
    quotas={"films": QUOTA, "a": Quota("a", "own", QuotaKind.SERVICE, "youtube", 5, "UTC")},
)


class Editor:
    """An editor that changes nothing, and notes what it was asked."""

    asked: list[Any]
    answer: Any = POLICIES

    def __init__(self, store: object) -> None:
        assert store == "policies"

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def change(*given: object, **named: object) -> Any:
            Editor.asked.append((name, *given, *named.items()))
            return Editor.answer

        return change


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    Editor.asked, Editor.answer = [], POLICIES
    monkeypatch.setattr("gatewayfilter.use_cases.policies.PolicyEditor", Editor)
    monkeypatch.setattr(time, "time", lambda: MOMENT)
    for name in ("known_categories", "known_sources", "counted_categories"):
        monkeypatch.setattr(f"{FACTS}.{name}", lambda _settings, name=name: name)
    monkeypatch.setattr(f"{FACTS}.known_services", lambda _settings, keys: ("services", *keys))
    return Editor.asked


EDITED: Any = SimpleNamespace(policies="policies")
"""A store for changes."""


def read(policies: PolicySet = POLICIES, **more: object) -> Any:
    """Returns a store with these policies."""
    return SimpleNamespace(policies=SimpleNamespace(read=lambda: policies), **more)


def test_clients_are_changed(asked: list[Any]) -> None:
    arguments = ("add", "tv", "--address", "10.0.0.7", "--address", "10.0.0.7", "--group", "kids", "--note", "n", "--icon", "tv")
    shown = "tv: group kids, 2 addresses: 10.0.0.7, 10.0.0.8\n"
    assert texts(Doubled(EDITED), "client", *arguments) == (0, shown, "")
    assert asked.pop() == ("add_client", Client("tv", (parse_matcher("10.0.0.7"),), "kids", note="n", icon="tv"))
    assert (
        called(Doubled(EDITED), "client", "add", "pad", "--address", "10.0.0.9").out
        == "pad: group default, 1 address: 10.0.0.9\n"
    )
    assert asked.pop() == ("add_client", Client("pad", (parse_matcher("10.0.0.9"),)))
    assert called(Doubled(EDITED), "client", "set", "tv", "--note", "x", "--json").json["name"] == "tv"
    usual = {"add": (), "remove": (), "group": None, "note": "x", "icon": None}
    assert asked == [("set_client", "tv", *usual.items())]
    more = ("--add", "a", "--remove", "b", "--group", "g", "--icon", "", "--name", "pad")
    assert texts(Doubled(EDITED), "client", "set", "tv", *more)[1].startswith("pad: ")
    assert asked[1:] == [
        ("set_client", "tv", ("add", ("a",)), ("remove", ("b",)), ("group", "g"), ("note", None), ("icon", "")),
        ("rename_client", "tv", "pad"),
    ]
    texts(Doubled(EDITED), "client", "set", "tv", "--name", "tv")
    assert [name for name, *_ in asked[3:]] == ["set_client"]
    assert texts(Doubled(EDITED), "client", "remove", "tv") == (0, "Removed the client tv.\n", "")
    assert asked[-1] == ("remove_client", "tv")


def test_clients_and_groups_are_listed() -> None:
    assert table(texts(Doubled(read()), "client", "list")[1]) == [
        ["name", "kind", "group", "recognized by", "policy", "note"],
        ["pad", "default", "10.0.0.9"],
        ["tv", "tv", "kids", "10.0.0.7, 10.0.0.8", "own", "the big one"],
    ]
    assert [one["name"] for one in called(Doubled(read()), "client", "list", "--json").json] == ["pad", "tv"]
    none = "There are no clients. See what is on the network: gatewayfilter client seen\n"
    assert texts(Doubled(read(PolicySet())), "client", "list") == (0, none, "")
    assert table(texts(Doubled(read()), "group", "list")[1]) == [
        ["name", "policy", "clients", "note"],
        ["default", "pad"],
        ["a"],
        ["kids", "strict", "tv", "tablets"],
    ]
    groups = called(Doubled(read()), "group", "list", "--json").json
    assert [(one["name"], one["clients"]) for one in groups] == [("default", ["pad"]), ("a", []), ("kids", ["tv"])]


def test_devices_that_are_no_clients_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def device(client: str, mac: str = "") -> SimpleNamespace:
        return SimpleNamespace(
            address="10.0.0.7", mac=mac, maker="M", name="n", first_at=MOMENT, last_at=MOMENT + 60, requests=3, client=client
        )

    found = [device("tv"), device("")]
    lookups: list[Any] = []

    def seen(store: object, **named: object) -> list[SimpleNamespace]:
        lookups.append((store, named))
        return found

    has_table = [False]
    monkeypatch.setattr("gatewayfilter.use_cases.devices.seen_devices", seen)
    monkeypatch.setattr("gatewayfilter.addresses.naming.mac_makers.has_table", lambda: has_table[0])
    rows = table(texts(Doubled("store"), "client", "seen")[1])
    assert rows == [
        ["address", "MAC", "maker", "name", "first seen", "last seen", "requests", "client"],
        ["10.0.0.7", "M", "n", DAY, "2023-11-14 22:14", "3"],
    ]
    assert len(table(texts(Doubled("store"), "client", "seen", "--all", "--no-names")[1])) == 3
    assert lookups == [("store", {}), ("store", {"find_names": None})]
    found[1] = device("", "aa:bb:cc:dd:ee:ff")
    assert "The makers of the devices are shown when a table" in texts(Doubled("store"), "client", "seen")[1]
    has_table[0] = True
    assert "The makers" not in texts(Doubled("store"), "client", "seen")[1]
    found.pop()
    assert texts(Doubled("store"), "client", "seen")[1] == "No device was seen that is no client yet.\n"


def test_what_is_stored_of_a_client_is_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    erased = SimpleNamespace(counts={"log_records": 3, "links": 0}, backups=())
    calls: list[Any] = []

    def erase(*given: object, keep: bool) -> SimpleNamespace:
        calls.append((*given, keep))
        return erased

    monkeypatch.setattr("gatewayfilter.use_cases.traffic.client_erasure.erase_client", erase)
    told = "Erased of tv: 3 log records, 0 links.\n"
    assert texts(Doubled("store"), "client", "erase", "tv") == (0, told, "")
    erased.backups = (Path("/b"), Path("/c"))
    backups = "These backups may still hold it; delete them yourself: /b, /c\n"
    assert texts(Doubled("store"), "client", "erase", "tv", "--keep")[1] == told + backups
    assert calls == [("store", SETTINGS, "tv", False), ("store", SETTINGS, "tv", True)]
    assert called(Doubled("store"), "client", "erase", "tv", "--json").json == {
        "log_records": 3,
        "links": 0,
        "backups": ["/b", "/c"],
    }
    yes = [False, True]
    questions: list[Any] = []

    def confirm(question: str, *, err: bool) -> bool:
        questions.append((question, err))
        return yes.pop(0)

    monkeypatch.setattr(click, "confirm", confirm)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    codes = [erase_client.main(["tv", *more], standalone_mode=False, obj=Doubled("store")) for more in ([], [], ["--yes"])]
    assert (codes, questions) == ([1, 0, 0], [("Erase all that is stored about tv?", True)] * 2)


def test_groups_are_changed(asked: list[Any]) -> None:
    assert texts(Doubled(EDITED), "group", "add", "kids", "--policy", "strict", "--note", "n") == (0, "kids: policy strict\n", "")
    assert texts(Doubled(EDITED), "group", "set", "a", "--policy", "")[1] == "a: policy default\n"
    assert called(Doubled(EDITED), "group", "rename", "b", "kids", "--json").json["note"] == "tablets"
    assert texts(Doubled(EDITED), "group", "remove", "kids")[1] == "Removed the group kids.\n"
    assert asked == [
        ("add_group", Group("kids", "strict", "n")),
        ("set_group", "a", ("policy", ""), ("note", None)),
        ("rename_group", "b", "kids"),
        ("remove_group", "kids"),
    ]


def test_policies_are_changed(asked: list[Any]) -> None:
    added = "Added the policy strict. Set values: gatewayfilter policy set strict KEY=VALUE\n"
    arguments = ("policy", "add", "strict", "--group", "kids", "--client", "tv")
    assert texts(Doubled(EDITED), *arguments) == (0, added, "")
    assert asked.pop() == ("add_policy", "strict", ("groups", ("kids",)), ("clients", ("tv",)))
    rows = [["value", "set to"], ["category.ads", "block"], ["service.vimeo", "allow"], ["service.youtube", "block"]]
    found = table(texts(Doubled(EDITED), "policy", "set", "strict", " a = b=c ", "d=", "--group", "kids")[1])
    assert (found[0], sorted(found[1:])) == (rows[0], rows[1:])
    assert asked.pop() == (
        "set_policy",
        "strict",
        [("a", "b=c"), ("d", "")],
        ("groups", ("kids",)),
        ("clients", ()),
        ("known_categories", "known_categories"),
        ("known_sources", "known_sources"),
        ("known_services", ("services", "a", "d")),
    )
    assert texts(Doubled(EDITED), "policy", "set", "own", "a=")[1] == "The policy own sets nothing.\n"
    assert called(Doubled(EDITED), "policy", "set", "own", "a=", "--json").json == {"name": "own", "values": {}}
    assert "'x' is no KEY=VALUE" in called(Doubled(EDITED), "policy", "set", "own", "x").complains()
    assert texts(Doubled(EDITED), "policy", "remove", "own")[1] == "Removed the policy own.\n"
    assert asked[-1] == ("remove_policy", "own")


def test_policies_are_shown_with_who_has_them() -> None:
    head, default, own, strict = table(texts(Doubled(read()), "policy", "list")[1])
    assert (head, default, own) == (["name", "values", "used by"], ["default", "block-all=on"], ["own", "client tv"])
    assert (strict[0], strict[2], "category.ads=block" in strict[1]) == ("strict", "group kids", True)
    listed = called(Doubled(read()), "policy", "list", "--json").json
    assert [(one["name"], one["used_by"]) for one in listed] == [
        ("default", []),
        ("own", ["client tv"]),
        ("strict", ["group kids"]),
    ]
    assert texts(Doubled(read()), "policy", "show", "own")[1] == "The policy own sets nothing.\n"
    assert called(Doubled(read()), "policy", "show", "nosuch").complains() == "there is no policy 'nosuch'"
    for both in ((), ("own", "--client", "tv")):
        assert called(Doubled(read()), "policy", "show", *both).complains() == "name a policy, or a client by --client"


def test_what_holds_for_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    left = [QuotaLeft("films", "video", 5, 60, None)]
    calls: list[Any] = []

    def quotas(*given: object) -> list[QuotaLeft]:
        calls.append(given)
        return left

    monkeypatch.setattr(f"{FACTS}.quotas_left", quotas)
    store = read()
    lines = texts(Doubled(store), "policy", "show", "--client", "tv")[1].splitlines()
    assert lines[:3] == [
        "tv: group kids, policies own, strict, default",
        "schedules: s0, s1, s2, s3, s4, s5",
        "quota films: 5 of 60 minutes of video used today",
    ]
    assert table("\n".join(lines[3:]))[0] == ["value", "set to", "comes from", "policy"]
    assert [row for row in table("\n".join(lines[3:])) if row[0] == "block-all"] == [["block-all", "on", "default", "default"]]
    assert calls == [(store, POLICIES, TV, "", MOMENT)]
    document = called(Doubled(store), "policy", "show", "--client", "tv", "--json").json
    assert (document["client"], document["group"], document["policies"]) == ("tv", "kids", ["own", "strict", "default"])
    assert (len(document["schedules"]), document["quotas"][0]["used"], len(document["values"])) == (6, 5, 4)
    bare = read(PolicySet(clients={"pad": PAD}))
    left.clear()
    assert (
        texts(Doubled(bare), "policy", "show", "--client", "pad")[1].splitlines()[-1]
        == "No policy sets a value: the settings hold."
    )
    assert called(Doubled(bare), "policy", "show", "--client", "nobody").complains() == "there is no client 'nobody'"
