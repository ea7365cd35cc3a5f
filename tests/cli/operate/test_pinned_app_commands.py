"""`gatewayfilter pinned-apps`, on a file as workers write it."""

import stat
import time
from pathlib import Path

import pytest

from gatewayfilter.proxy.listener.pinned_apps import FILE_NAME, PinnedApp, PinnedAppsFile
from tests.cli.conftest import Cli

DAY_S = 86_400.0


@pytest.fixture
def learned(state: Path) -> PinnedAppsFile:
    """Two devices with one app, one of them with another."""
    state.mkdir(mode=0o700, parents=True)
    file = PinnedAppsFile(state / FILE_NAME)
    now = time.time()
    for client, host in (("192.168.1.20", "app.example"), ("192.168.1.21", "app.example"), ("192.168.1.20", "bank.example")):
        file.add(PinnedApp(client, host, now, now + DAY_S, 3))
    return file


def left(file: PinnedAppsFile) -> set[tuple[str, str]]:
    return {(entry.client, entry.host) for entry in file.read()}


def test_nothing_was_found_yet(cli: Cli) -> None:
    assert "No app has been found" in cli("pinned-apps", "list").out
    assert cli("pinned-apps", "list", "--json").json == []
    assert cli("pass-through", "list", "--json").json == [], "the name of earlier releases"
    assert "pass-through" not in cli("--help").out


def test_the_list(cli: Cli, learned: PinnedAppsFile) -> None:
    table = cli("pinned-apps", "list")
    assert table.code == 0
    assert table.out.count("app.example") == 2
    assert all(word in table.out for word in ("device", "192.168.1.21", "bank.example"))
    found = cli("pinned-apps", "list", "--json").json
    assert {(entry["client"], entry["host"]) for entry in found} == left(learned)
    assert {entry["failures"] for entry in found} == {3}


def test_what_has_expired_is_not_shown(cli: Cli, learned: PinnedAppsFile) -> None:
    learned.add(PinnedApp("192.168.1.22", "old.example", time.time() - 9 * DAY_S, time.time() - 1, 3))
    assert "old.example" not in cli("pinned-apps", "list").out
    assert "old.example" not in {entry["host"] for entry in cli("pinned-apps", "list", "--json").json}


@pytest.mark.parametrize(
    ("arguments", "removed", "kept"),
    [
        (("app.example",), 2, {("192.168.1.20", "bank.example")}),
        (("APP.example.",), 2, {("192.168.1.20", "bank.example")}),
        (
            ("app.example", "--client", "192.168.1.20"),
            1,
            {("192.168.1.21", "app.example"), ("192.168.1.20", "bank.example")},
        ),
    ],
)
def test_removing(
    cli: Cli, learned: PinnedAppsFile, arguments: tuple[str, ...], removed: int, kept: set[tuple[str, str]]
) -> None:
    answer = cli("pinned-apps", "remove", *arguments, "--json")
    assert (answer.code, answer.json) == (0, {"removed": removed})
    assert left(learned) == kept


@pytest.mark.parametrize("arguments", [("other.example",), ("bank.example", "--client", "192.168.1.21")])
def test_removing_what_is_not_there(cli: Cli, learned: PinnedAppsFile, arguments: tuple[str, ...]) -> None:
    before = left(learned)
    answer = cli("pinned-apps", "remove", *arguments)
    assert (answer.code, "does not pass through" in answer.out) == (1, True)
    assert left(learned) == before


def test_a_damaged_file_passes_nothing_and_is_no_traceback(cli: Cli, state: Path, learned: PinnedAppsFile) -> None:
    del learned
    path = state / FILE_NAME
    path.write_text('[{"client": 1}]')
    assert cli("pinned-apps", "list", "--json").json == []
    assert cli("pinned-apps", "remove", "app.example").code == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
