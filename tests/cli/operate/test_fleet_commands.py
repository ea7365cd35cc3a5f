"""What `gatewayfilter fleet` prints and with which exit code: `gatewayfilter.cli.operate.fleet_commands`."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.errors import FleetError
from gatewayfilter.fleet.follower_state import Fault, FollowerState
from gatewayfilter.fleet.health import Report
from gatewayfilter.fleet.public_keys import write_public_key
from gatewayfilter.use_cases.fleet_status import FleetStatus, FollowerRow
from gatewayfilter.use_cases.metrics.shared_gateways import SharedGateways
from tests.cli.test_command_doubles import MOMENT, SETTINGS, Doubled, called, table, texts

FOLLOWS = SETTINGS.model_copy(update={"fleet": SETTINGS.fleet.model_copy(update={"follow": "https://lists.example/"})})
REPORT = Report("1.4", 7, 60, 1000, 0, 0, 0, Fault.ROLLBACK, 2)
NONE = FleetStatus(False, 0, 0.0, (), "", FollowerState())
SHOWN = ["follower", "last report", "manifest", "version", "workers", "state"]
SCHOOL = ["school", "2023-11-14 22:13:20", "7", "1.4", "2", "rollback"]


def rows() -> tuple[FollowerRow, ...]:
    return FollowerRow("school", MOMENT - 99, MOMENT, REPORT), FollowerRow("shop", MOMENT, 0.0, None)


class Keys:
    """Signing keys on no disk."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def _called(self, name: str, *keys: bytes) -> SimpleNamespace:
        self.calls.append(name)
        return SimpleNamespace(public=keys)

    def create(self) -> SimpleNamespace:
        return self._called("create", b"a" * 32)

    def read(self) -> SimpleNamespace:
        return self._called("read", b"a" * 32)

    def rotate(self) -> SimpleNamespace:
        return self._called("rotate", b"a" * 32, b"b" * 32)

    def finish(self) -> SimpleNamespace:
        return self._called("finish", b"b" * 32)


def test_keys_are_made_shown_and_rotated(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Keys()
    prepared: list[object] = []
    monkeypatch.setattr("gatewayfilter.wiring.fleet.signing_keys", lambda _settings: keys)
    monkeypatch.setattr("gatewayfilter.wiring.prepare_data_dir", prepared.append)
    old, new = write_public_key(b"a" * 32), write_public_key(b"b" * 32)
    assert texts(Doubled(), "fleet", "key") == (0, f"{old}\n", "")
    assert prepared == []
    assert texts(Doubled(), "fleet", "init") == (0, f"{old}\n", "")
    assert prepared == [SETTINGS]
    both = f"{old}\n{new} (the next one, until `fleet rotate --finish`)\n"
    assert texts(Doubled(), "fleet", "rotate") == (0, both, "")
    assert texts(Doubled(), "fleet", "rotate", "--finish") == (0, f"{new}\n", "")
    assert keys.calls == ["read", "create", "rotate", "finish"]
    assert called(Doubled(), "fleet", "rotate", "--json").json == {"keys": [old, new]}


def test_followers_are_admitted_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[str] = []
    members = SimpleNamespace(add=lambda name: f"token-of-{name}", remove=removed.append)
    monkeypatch.setattr("gatewayfilter.wiring.fleet.members", lambda _settings: members)
    assert texts(Doubled(), "fleet", "follower", "add", "shop")[1] == "The token of shop. It is shown only now:\ntoken-of-shop\n"
    assert called(Doubled(), "fleet", "follower", "add", "shop", "--json").json == {"name": "shop", "token": "token-of-shop"}
    assert texts(Doubled(), "fleet", "follower", "remove", "shop") == (0, "Removed the follower shop.\n", "")
    assert called(Doubled(), "fleet", "follower", "remove", "north", "--json").json == {"removed": "north"}
    assert removed == ["shop", "north"]


def test_followers_are_listed_with_their_last_report(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [NONE]
    monkeypatch.setattr("gatewayfilter.use_cases.fleet_status.fleet_status", lambda _settings: found[0])
    none = "There are no followers: gatewayfilter fleet follower add NAME\n"
    assert texts(Doubled(), "fleet", "follower", "list") == (0, none, "")
    assert called(Doubled(), "fleet", "follower", "list", "--json").json == []
    found[0] = replace(NONE, publishes=True, followers=rows())
    code, out, _ = texts(Doubled(), "fleet", "follower", "list")
    assert (code, table(out)) == (0, [SHOWN, SCHOOL, ["shop", "never"]])
    first, second = called(Doubled(), "fleet", "follower", "list", "--json").json
    assert (first["name"], first["report"]["program"], first["reported_at"]) == ("school", "1.4", MOMENT)
    assert second == {"name": "shop", "added_at": MOMENT, "reported_at": 0.0, "report": None}


def test_gateways_in_step_and_the_crawler_of_a_host_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [SharedGateways(("a", "b"), ("c",), 3, "", "", "In step.")]
    asked: list[object] = []

    def shared(settings: object, store: object, host: str) -> SharedGateways:
        asked.append((settings, store, host))
        return found[0]

    monkeypatch.setattr("gatewayfilter.use_cases.metrics.shared_gateways.shared_gateways", shared)
    assert texts(Doubled("store"), "fleet", "gateways") == (0, "In step.\ngateway  a\ngateway  b\ncrawler  c\n", "")
    alone = "shop.example is crawled by the crawler of this machine: none shares its queue.\n"
    assert texts(Doubled(), "fleet", "gateways", "--host", "shop.example")[1].endswith(alone)
    assert asked == [(SETTINGS, "store", ""), (SETTINGS, None, "shop.example")]
    found[0] = replace(found[0], owner="c", fault="lost", gateways=(), crawlers=())
    code, out, _ = texts(Doubled(), "fleet", "gateways", "--host", "shop.example")
    assert (code, out) == (1, "In step.\nshop.example is crawled by c.\n")
    answer = called(Doubled(), "fleet", "gateways", "--json")
    assert (answer.code, answer.json["fault"], answer.json["shared"]) == (1, "lost", 3)
    found[0] = replace(found[0], fault="")
    assert called(Doubled(), "fleet", "gateways", "--json").code == 0


def test_an_export_is_made_and_copied_but_not_by_a_follower(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []

    def copied(source: Path, target: Path) -> int:
        done.append((source, target))
        return 12_345

    monkeypatch.setattr("gatewayfilter.wiring.fleet.export_now", lambda settings, store: done.append((settings, store)))
    monkeypatch.setattr("gatewayfilter.fleet.export.copy_export", copied)
    monkeypatch.setattr("gatewayfilter.wiring.fleet_folder", lambda _settings: SimpleNamespace(export=Path("/from")))
    monkeypatch.setattr("gatewayfilter.use_cases.fleet_status.fleet_status", lambda _settings: replace(NONE, sequence=4))
    assert texts(Doubled("store"), "fleet", "export", "/to") == (0, "Exported manifest 4 to /to: 12,345 bytes written.\n", "")
    assert done == [(SETTINGS, "store"), (Path("/from"), Path("/to"))]
    written = {"folder": "/to", "sequence": 4, "bytes": 12_345}
    assert called(Doubled(), "fleet", "export", "/to", "--json").json == written
    refused = called(Doubled(settings=FOLLOWS), "fleet", "export", "/to").complains()
    assert refused == "this machine follows a publisher (fleet.follow): a follower does not publish again"


def test_a_pull_tells_what_is_in_force_or_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    state = [FollowerState(in_force=8, fetched=1_234)]
    monkeypatch.setattr(
        "gatewayfilter.wiring.fleet.follower", lambda _settings, _store, _counters: SimpleNamespace(poll=lambda: state[0])
    )
    followed = "Manifest 8 is in force; 1,234 bytes were fetched for its snapshot.\n"
    assert texts(Doubled(settings=FOLLOWS), "fleet", "pull") == (0, followed, "")
    state[0] = FollowerState(in_force=8, fetched=1, fault=Fault.EXPIRED, sentence="it has expired")
    assert texts(Doubled(settings=FOLLOWS), "fleet", "pull") == (1, "Not followed: it has expired.\n", "")
    answer = called(Doubled(settings=FOLLOWS), "fleet", "pull", "--json")
    assert answer.json == {"fault": "expired", "sentence": "it has expired", "in_force": 8, "fetched": 1}
    assert answer.code == 1
    assert "this machine follows no publisher" in called(Doubled(), "fleet", "pull").complains()


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The state that `fleet status` finds, and its trouble."""
    found: dict[str, Any] = {"status": NONE, "trouble": ""}
    monkeypatch.setattr("gatewayfilter.use_cases.fleet_status.fleet_status", lambda _settings: found["status"])
    monkeypatch.setattr("gatewayfilter.use_cases.fleet_status.follower_trouble", lambda _settings, _now: found["trouble"])
    monkeypatch.setattr(time, "time", lambda: MOMENT + 60)
    return found


def test_the_status_of_a_publisher_a_follower_and_neither(fleet: dict[str, Any]) -> None:
    neither = "This machine is in no fleet: gatewayfilter fleet init makes it a publisher, fleet.follow a follower.\n"
    assert texts(Doubled(), "fleet", "status") == (0, neither, "")
    fleet["status"] = replace(NONE, publishes=True, sequence=5, exported_at=MOMENT, followers=rows())
    code, out, _ = texts(Doubled(), "fleet", "status")
    head, _, rest = out.partition("\n")
    assert (code, head) == (0, "Publisher: manifest 5, signed 2023-11-14 22:13:20, 2 followers.")
    assert table(rest) == [SHOWN, SCHOOL, ["shop", "never"]]
    fleet["status"] = replace(NONE, publishes=True)
    assert texts(Doubled(), "fleet", "status")[1] == "Publisher: manifest 0, signed never, 0 followers.\n"
    fleet["status"] = replace(NONE, follow="https://p.example/")
    assert texts(Doubled(), "fleet", "status")[1] == "Follows https://p.example/: manifest 0 in force, last contact never.\n"
    state = FollowerState(in_force=3, contact_at=MOMENT, exceptions=("kids", "tv"))
    fleet |= {"status": replace(NONE, follow="https://p.example/", state=state), "trouble": "it is away"}
    assert texts(Doubled(), "fleet", "status") == (
        1,
        (
            "Follows https://p.example/: manifest 3 in force, last contact 2023-11-14 22:13:20.\nLocal exceptions: kids, tv.\n"
            "It is away.\n"
        ),
        "",
    )


def test_the_status_is_bad_with_trouble_or_silent_followers(fleet: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    fleet["status"] = replace(NONE, publishes=True, followers=rows())
    answer = called(Doubled(), "fleet", "status", "--json")
    assert (answer.code, answer.json["trouble"], answer.json["silent"], answer.json["publishes"]) == (0, "", [], True)
    fleet["trouble"] = "away"
    assert called(Doubled(), "fleet", "status", "--json").code == 1
    fleet["trouble"] = ""
    monkeypatch.setattr(time, "time", lambda: MOMENT + 601)
    answer = called(Doubled(), "fleet", "status", "--json")
    assert (answer.code, answer.json["silent"]) == (1, ["school"])
    assert texts(Doubled(), "fleet", "status")[0] == 1


def test_errors_of_the_fleet_are_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_settings: object) -> Keys:
        raise FleetError("there is no signing key")

    monkeypatch.setattr("gatewayfilter.wiring.fleet.signing_keys", broken)
    assert called(Doubled(), "fleet", "key").complains() == "there is no signing key"
