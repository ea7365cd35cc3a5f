"""The state of a fleet as its publisher and its followers see it."""

import json
from pathlib import Path

import pytest

from gatewayfilter.config import Settings, load
from gatewayfilter.fleet.follower_state import Fault, FollowerState, StateFile
from gatewayfilter.fleet.health import HealthBoard, Report
from gatewayfilter.use_cases.fleet_status import SILENT_S, FleetStatus, fleet_status, follower_trouble, followers
from gatewayfilter.wiring.storage import fleet_folder

NOW = 1_800_000_000.0
REPORT = Report("1.0", 3, 60, 100, 0, 0, 0, Fault.OK, 2)


@pytest.fixture
def publisher(settings: Settings) -> Settings:
    folder = fleet_folder(settings)
    folder.export.mkdir(parents=True)
    folder.signing_key.touch()
    (folder.export / "state.json").write_text(json.dumps({"sequence": 7, "created_at": NOW}))
    for name in ("branch-a", "branch-b"):
        followers(settings).add(name)
    board = HealthBoard(folder.health, lambda: NOW)
    board.take("branch-a", REPORT)
    board.write({"branch-a"})
    return settings


@pytest.fixture
def follower(tmp_path: Path) -> Settings:
    options = {"data_dir": tmp_path / "state", "fleet.follow": "https://hub.example/", "fleet.key": f"ed25519:{'A' * 43}="}
    settings = load(environ={}, options=options).settings
    fleet_folder(settings).path.mkdir(parents=True)
    return settings


def keep(settings: Settings, state: FollowerState) -> None:
    StateFile(fleet_folder(settings).state).write(state)


def test_a_machine_without_a_fleet(settings: Settings) -> None:
    assert fleet_status(settings) == FleetStatus(False, 0, 0.0, (), "", FollowerState())
    assert follower_trouble(settings) == ""


def test_a_publisher_names_its_followers_and_who_is_silent(publisher: Settings) -> None:
    found = fleet_status(publisher)
    assert (found.publishes, found.sequence, found.exported_at, found.follow) == (True, 7, NOW, "")
    first, second = found.followers
    assert (first.name, first.reported_at, first.report) == ("branch-a", NOW, REPORT)
    assert (second.name, second.reported_at, second.report) == ("branch-b", 0.0, None)
    assert first.added_at > 0
    assert found.silent(NOW + SILENT_S) == ()
    assert found.silent(NOW + SILENT_S + 1) == ("branch-a",)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"sequence": "x", "created_at": 1}', '{"sequence": 1}'])
def test_a_damaged_export_is_as_none(text: str, publisher: Settings) -> None:
    (fleet_folder(publisher).export / "state.json").write_text(text)
    found = fleet_status(publisher)
    assert (found.sequence, found.exported_at, len(found.followers)) == (0, 0.0, 2)


def test_a_damaged_file_of_followers_is_as_none(publisher: Settings) -> None:
    fleet_folder(publisher).followers.write_text("{")
    assert fleet_status(publisher).followers == ()


def test_without_its_key_a_machine_publishes_nothing(publisher: Settings) -> None:
    fleet_folder(publisher).signing_key.unlink()
    assert fleet_status(publisher) == FleetStatus(False, 0, 0.0, (), "", FollowerState())


def test_a_follower_in_step_has_no_trouble(follower: Settings) -> None:
    state = FollowerState(sequence=3, in_force=3, made_at=NOW)
    keep(follower, state)
    assert follower_trouble(follower, NOW) == ""
    assert (fleet_status(follower).follow, fleet_status(follower).state) == ("https://hub.example", state)


def test_a_follower_that_never_reached_its_publisher(follower: Settings) -> None:
    assert "was not reached yet: the bundled lists are in force" in follower_trouble(follower, NOW)


def test_a_follower_that_cannot_go_on_tells_how_old_its_lists_are(follower: Settings) -> None:
    keep(follower, FollowerState(in_force=3, made_at=NOW - 7_200, fault=Fault.UNREACHABLE, sentence="no answer"))
    assert follower_trouble(follower, NOW) == (
        "the fleet's publisher cannot be followed: no answer; the lists are those of 2 hours ago"
    )
    keep(follower, FollowerState(fault=Fault.SIGNATURE, sentence="wrong key"))
    assert follower_trouble(follower, NOW) == "the fleet's publisher cannot be followed: wrong key"
    assert follower_trouble(follower), "by the clock of this machine"
