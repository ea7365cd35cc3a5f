"""The guide of docs/fleet.md with real processes: one publisher, two followers, and publishers that are killed or replaced."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.settings import FleetSettings
from tests.e2e.e2e_gateway import free_port, until
from tests.fleet.conftest import HOSTS
from tests.fleet.fleet_fakes import publish_hosts

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


def command(home: Path, *arguments: str, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "gatewayfilter.cli", *arguments, "--data-dir", str(home), "--json"],
        capture_output=True,
        check=False,
    )
    assert done.returncode in codes, done.stderr.decode()
    return json.loads(done.stdout) if done.stdout.strip() else {}


class PublishingProcess:
    """The process of a publisher's fleet, as the supervisor starts it."""

    def __init__(self, home: Path, port: int) -> None:
        self.home, self.port = home, port
        self.process = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        code = (
            "import sys; from pathlib import Path; from gatewayfilter.config import load;"
            "from gatewayfilter.processes.fleet import run_fleet;"
            "run_fleet(load(options={'data_dir': Path(sys.argv[1])}).settings)"
        )
        self.process = subprocess.Popen([sys.executable, "-c", code, str(self.home)], env=os.environ, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if (self.home / "fleet" / "export" / "manifest").exists() and self.answers():
                return self.process
            time.sleep(0.1)
        raise AssertionError("the publisher does not answer")

    def answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def end(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.wait(60)


@pytest.fixture
def publishing(tmp_path: Path) -> Iterator[PublishingProcess]:
    home, port = tmp_path / "publisher", free_port()
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(f'[fleet]\nlisten = "127.0.0.1:{port}"\n')
    publish_hosts(SnapshotFolder(home / "snapshots"), HOSTS)
    command(home, "fleet", "init")
    command(home, "list", "add", "--block", "casino.example")
    made = PublishingProcess(home, port)
    yield made
    if made.process.poll() is None:
        made.end()


def follow(publishing: PublishingProcess, home: Path) -> Path:
    key = command(publishing.home, "fleet", "key")["keys"][0]
    token = command(publishing.home, "fleet", "follower", "add", home.name)["token"]
    home.mkdir(mode=0o700)
    (home / "token").write_text(token)
    (home / "config.toml").write_text(
        f'[fleet]\nfollow = "http://127.0.0.1:{publishing.port}"\nkey = "{key}"\ntoken_file = "{home / "token"}"\n'
    )
    return home


def test_one_publisher_and_two_followers(publishing: PublishingProcess, tmp_path: Path) -> None:
    homes = [follow(publishing, tmp_path / name) for name in ("north", "south")]
    for home in homes:
        assert command(home, "fleet", "pull")["fault"] == "ok"
        found = command(home, "check", "https://casino.example/", codes=(1,))
        assert "from the fleet's publisher" in json.dumps(found)
        command(home, "check", "https://host-7.example/", codes=(1,))
        assert command(home, "fleet", "status")["state"]["fault"] == "ok"
    command(homes[0], "list", "add", "--allow", "casino.example")
    command(homes[0], "check", "https://casino.example/")

    def reported() -> bool:  # the publisher writes them down every second
        followers = command(publishing.home, "fleet", "status")["followers"]
        return [(row["name"], (row["report"] or {}).get("fault")) for row in followers] == [("north", "ok"), ("south", "ok")]

    until("reports of followers", reported, 60.0)
    publishing.end(signal.SIGKILL)
    assert command(homes[1], "fleet", "pull", codes=(1,))["fault"] == "unreachable"
    command(homes[1], "check", "https://host-7.example/", codes=(1,))
    command(publishing.home, "list", "add", "--block", "later.example")
    publishing.start()

    def followed() -> bool:  # what was exported before is served until the export is made anew
        assert command(homes[1], "fleet", "pull")["fault"] == "ok"
        found = command(homes[1], "check", "https://later.example/", codes=(0, 1))
        return bool(found["verdict"]["action"] == "block")

    until("the later rule", followed, 60.0)
    command(publishing.home, "fleet", "follower", "remove", "south")
    assert command(homes[1], "fleet", "pull", codes=(1,))["fault"] == "refused-token"


def test_a_publisher_killed_in_a_transfer_and_a_follower_too(
    publishing: PublishingProcess, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    home = follow(publishing, tmp_path / "north")
    pull = [sys.executable, "-m", "gatewayfilter.cli", "fleet", "pull", "--data-dir", str(home)]
    with subprocess.Popen(pull, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 120
        while not any((home / "fleet" / "incoming").glob("*")) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        publishing.end(signal.SIGKILL)
        process.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    publishing.start()
    assert command(home, "fleet", "pull")["fault"] == "ok"
    words = "publisher and follower in a transfer, started again at once | the follower has what was published"
    record_property("recovery", f"{words} | {time.monotonic() - killed:.1f}")
    command(home, "check", "https://host-7.example/", codes=(1,))
    assert not any((home / "fleet" / "incoming").glob("*"))


def test_an_update_of_lists_moves_its_changes(publishing: PublishingProcess, tmp_path: Path) -> None:
    home = follow(publishing, tmp_path / "north")
    assert command(home, "fleet", "pull")["fault"] == "ok"
    size = (home / "fleet" / "base.gfs").stat().st_size
    assert command(home, "fleet", "status")["state"]["fetched"] > size * 0.9
    publish_hosts(
        SnapshotFolder(publishing.home / "snapshots"), [*HOSTS[50:], *(f"more-{number}.example" for number in range(50))]
    )
    deadline = time.monotonic() + 120
    while not json.loads((publishing.home / "fleet" / "export" / "state.json").read_bytes())["deltas"]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert command(home, "fleet", "pull")["fault"] == "ok"
    command(home, "check", "https://more-7.example/", codes=(1,))
    command(home, "check", "https://host-7.example/")
    assert command(home, "fleet", "status")["state"]["fetched"] < size * 0.02


@pytest.mark.real
def test_a_full_disk_is_a_fault_and_nothing_else(publishing: PublishingProcess, tmp_path: Path) -> None:
    """On a small file system in a mount namespace of its own."""
    home = follow(publishing, tmp_path / "north")
    script = (
        f"mount -t tmpfs -o size=20m tmpfs {home}/fleet && "
        f"{sys.executable} -m gatewayfilter.cli fleet pull --json --data-dir {home}; df {home}/fleet >&2"
    )
    (home / "fleet").mkdir(mode=0o700)
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, check=False)
    if b"unshare" in done.stderr or b"mount" in done.stderr:
        pytest.skip("no mount namespaces here")
    assert json.loads(done.stdout)["fault"] == "disk"
    assert command(home, "fleet", "pull")["fault"] == "ok"


def test_a_follower_does_not_publish_again(tmp_path: Path) -> None:
    key = {"key": "ed25519:" + "A" * 43, "follow": "https://filter.example:8443"}
    with pytest.raises(ValueError, match="exclude each other"):
        FleetSettings.model_validate({**key, "listen": "127.0.0.1:8443"})
    (tmp_path / "config.toml").write_text("".join(f'fleet.{name} = "{value}"\n' for name, value in key.items()))
    done = subprocess.run(
        [sys.executable, "-m", "gatewayfilter.cli", "fleet", "export", str(tmp_path / "www"), "--data-dir", str(tmp_path)],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2
    assert b"does not publish again" in done.stderr
