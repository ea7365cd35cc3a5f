"""`source update` killed at any step, on a full disk, and with lists that no memory could hold."""

import multiprocessing
import re
import shutil
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from gatewayfilter.sources import ListFormat, UpdateStatus
from tests.sources.list_server import ListServer
from tests.sources.update_child import add_and_measure, subscriptions_of, update_until

FORK_SERVER = multiprocessing.get_context("forkserver")
OLD = b"".join(b"old%d.example.com\n" % number for number in range(100))
NEW = b"".join(b"new%d.example.com\n" % number for number in range(120))
MOST_STEPS = 40
"""Above what an update takes; a test sees that it is."""
OFTEN = {1, 5, 13}
"""Kill points of every `make test`; `make check` tries them all."""


def kill_points(steps: range) -> list[object]:
    return [pytest.param(step, marks=() if step in OFTEN else pytest.mark.slow) for step in steps]


@pytest.fixture(autouse=True)
def _quick_children() -> None:
    FORK_SERVER.set_forkserver_preload(["tests.sources.update_child"])


def _run(folder: Path, address: str, kill_at: int) -> int:
    """Returns how many steps the child took; sees that it was killed when it should."""
    steps = FORK_SERVER.Value("i", 0)
    child = FORK_SERVER.Process(target=update_until, args=(str(folder), address, kill_at, steps))
    child.start()
    child.join()
    taken = int(steps.value)
    assert child.exitcode == (-signal.SIGKILL if kill_at and taken >= kill_at else 0)
    return taken


def _names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.name.endswith(".lock"))


def test_the_kill_points_below_cover_a_whole_update(server: ListServer, tmp_path: Path) -> None:
    folder = tmp_path / "sources"
    subscriptions_of(folder).add(server.serve("/a.txt", OLD))
    server.serve("/a.txt", NEW)
    assert 10 <= _run(folder, "", 0) <= MOST_STEPS
    assert 10 <= _run(folder, server.base + "/a.txt", 0) <= MOST_STEPS


@pytest.mark.parametrize("kill_at", kill_points(range(1, MOST_STEPS + 1)))
def test_an_update_killed_anywhere_leaves_old_or_new_and_the_next_one_heals(
    server: ListServer, tmp_path: Path, kill_at: int
) -> None:
    folder = tmp_path / "sources"
    subscriptions = subscriptions_of(folder)
    subscriptions.add(server.serve("/a.txt", OLD, ETag='"old"'))
    whole = _names(folder)
    server.serve("/a.txt", NEW, ETag='"new"')
    if _run(folder, "", kill_at) < kill_at:
        pytest.skip(f"an update has fewer than {kill_at} steps")
    after = subscriptions.get("a")
    assert after.list_path.read_bytes() in {OLD, NEW}
    assert after.definition.list_format is ListFormat.DOMAINS
    assert [item.source.name for item in subscriptions.files() if not item.source.name.startswith("starter-")] == ["a"]

    (result,) = subscriptions.update(["a"])
    assert result.status in {UpdateStatus.UPDATED, UpdateStatus.UNCHANGED}
    healed = subscriptions.get("a")
    assert healed.list_path.read_bytes() == NEW
    assert healed.report is not None
    assert (healed.report.accepted, healed.state.etag, healed.state.error) == (120, '"new"', "")
    assert _names(folder) == whole


@pytest.mark.parametrize("kill_at", kill_points(range(1, MOST_STEPS + 1, 2)))
def test_an_addition_killed_anywhere_is_whole_or_not_there(server: ListServer, tmp_path: Path, kill_at: int) -> None:
    folder = tmp_path / "sources"
    subscriptions = subscriptions_of(folder)
    address = server.serve("/b.txt", NEW)
    if _run(folder, address, kill_at) < kill_at:
        pytest.skip(f"an addition has fewer than {kill_at} steps")
    subscriptions.update()
    assert list(folder.glob(".*.part")) == []
    if "b" not in subscriptions.names():
        subscriptions.add(address, name="b")
    assert subscriptions.get("b").list_path.read_bytes() == NEW
    assert subscriptions.update(["b"])[0].status is UpdateStatus.UNCHANGED
    assert _names(folder) == ["b", "b/list", "b/report.json", "b/source.json", "b/state.json"]


def _namespace() -> list[str]:
    """The command that runs another one with mounts of its own."""
    for command in (["unshare", "-m"], ["unshare", "-r", "-m"]):
        tried = shutil.which("unshare") and subprocess.run(
            [*command, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False
        )
        if tried and tried.returncode == 0:
            return command
    pytest.skip("no privilege to mount a small disk in a namespace of its own")


def test_a_disk_that_is_really_full_is_said_and_costs_nothing(server: ListServer, tmp_path: Path) -> None:
    small = server.serve("/small.txt", OLD)
    big = server.serve("/big.txt", b"".join(b"host%d.example.com\n" % number for number in range(30_000)))
    command = [*_namespace(), sys.executable, "-m", "tests.sources.update_child", str(tmp_path), small, big]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    updated, kept, again, still, added, after, names, own = done.stdout.splitlines()
    assert updated == "failed: cannot read or write the list: No space left on device"
    assert again.startswith("failed: ")
    assert "No space left on device" in again
    assert (kept, still, after) == ("kept", "kept", "after: updated")
    assert "No space left on device" in added
    assert names == ".a.lock .b.lock a"
    assert own == "list report.json source.json state.json"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "tail", "said"),
    [
        (b"a.example\n", b"\nb.example\n", "2 accepted, 1 rejected"),
        (b"! x\n||a.example^\n", b"\n||b.example^\n", "2 accepted, 1 rejected"),
        (b"", b"", "cannot use .* line 1, 'xxx.*longer than any entry can be|no known list format"),
    ],
)
def test_three_hundred_megabytes_of_one_line_take_no_memory(
    server: ListServer, tmp_path: Path, head: bytes, tail: bytes, said: str
) -> None:
    megabytes = 300

    def serve(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(head) + len(tail) + megabytes * 1_000_000))
        handler.end_headers()
        handler.wfile.write(head)
        for _ in range(megabytes):
            handler.wfile.write(b"x" * 1_000_000)
        handler.wfile.write(tail)

    server.answers["/big.txt"] = serve
    answer = FORK_SERVER.SimpleQueue()
    child = FORK_SERVER.Process(target=add_and_measure, args=(str(tmp_path), server.base + "/big.txt", answer))
    child.start()
    found, grown_mb = answer.get()
    child.join()
    assert re.search(said, found), found
    assert grown_mb < 40
