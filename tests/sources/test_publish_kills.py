"""Publishing is killed at any moment, or the disk is full: the last good state serves, and no litter grows."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.config import SourceSettings
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot import folder as snapshot_folder
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.model import LearnedEntry, ListAction, Reason, Request
from gatewayfilter.sources import Subscriptions
from gatewayfilter.sources.publish import publish
from gatewayfilter.store import Store
from gatewayfilter.urls import parse_url
from tests.forking_process import ForkingProcess
from tests.sources.list_server import BUNDLED

_SYSTEM_CALLS = ("write", "fsync", "rename", "symlink", "unlink", "replace")


def state_of(root: Path) -> tuple[SnapshotFolder, Subscriptions, Store]:
    return (
        SnapshotFolder(root / "snapshots"),
        Subscriptions(root / "sources", SourceSettings(), BUNDLED),
        Store.open(f"sqlite:///{root}/store.sqlite3"),
    )


def learn(root: Path, number: int) -> None:
    store = Store.open(f"sqlite:///{root}/store.sqlite3")
    url = f"n{number}.example/"
    store.lists.put_learned([LearnedEntry(url, ListAction.BLOCK, "gambling", f"http://{url}", "", 0.0, 1e12)])
    store.close()


def publish_now(root: Path) -> str:
    """Publishes, and returns why everything was built anew."""
    folder, subscriptions, store = state_of(root)
    try:
        return publish(folder, subscriptions, store.lists, store.feed).rebuilt
    finally:
        store.close()


def blocked(root: Path, number: int) -> bool:
    """Whether the snapshot in use has learned this page, and still has the lists; it must be whole."""
    snapshot, refused = SnapshotFolder(root / "snapshots").open_newest(verify=True)
    assert refused == []
    engine = FilterEngine(snapshot)
    assert engine.decide(Request(parse_url("http://blocked.gatewayfilter.test/"))).reason is Reason.ADBLOCK
    return engine.decide(Request(parse_url(f"http://n{number}.example/"))).reason is Reason.LEARNED


def die_at(step: int, folder_name: str, full: bool) -> None:  # noqa: FBT001  of a process
    """Publishes, and kills itself before the `step`th call that changes something on disk. Exits with 7 when there are fewer."""
    root = Path(folder_name)
    calls = 0

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: object, **named: object) -> Any:
            nonlocal calls
            if any(str(root / "snapshots") in str(argument) or isinstance(argument, int) for argument in arguments):
                calls += 1
                if calls == step:
                    os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **named)

        return called

    folder, subscriptions, store = state_of(root)
    if full:
        (path,) = (root / "snapshots").glob("counters-*")
        path.unlink()
    for name in _SYSTEM_CALLS:
        setattr(os, name, dying(getattr(os, name)))
    publish(folder, subscriptions, store.lists, store.feed)
    os._exit(7)


def publish_in(folder_name: str) -> None:
    publish_now(Path(folder_name))


@pytest.fixture(scope="module")
def dying_process() -> Iterator[ForkingProcess]:
    with ForkingProcess(die_at) as process:
        yield process


@pytest.fixture(scope="module")
def publishing_process() -> Iterator[ForkingProcess]:
    with ForkingProcess(publish_in) as process:
        yield process


@pytest.fixture
def root(tmp_path: Path) -> Path:
    learn(tmp_path, 1)
    (tmp_path / "mine.txt").write_text("".join(f"host{number}.example.com\n" for number in range(10_000)))
    Subscriptions(tmp_path / "sources", SourceSettings(), BUNDLED).add(str(tmp_path / "mine.txt"), name="mine")
    assert publish_now(tmp_path) == "there is no snapshot yet"
    return tmp_path


def litter(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "snapshots").iterdir() if path.name != ".lock")


@pytest.mark.slow
@pytest.mark.parametrize("full", [False, True])
def test_killed_before_any_change_on_disk(root: Path, dying_process: ForkingProcess, *, full: bool) -> None:
    """Walks through all calls that change the folder: a publisher that dies before it, for each of them."""
    learn(root, 2)
    seen: list[bool] = []
    for step in range(1, 40):
        code = dying_process.call(step, str(root), full)
        assert blocked(root, 1)
        seen.append(blocked(root, 2))
        if code == 7:
            break
        assert code == -signal.SIGKILL
        assert len(litter(root)) <= 8
        if full and not list((root / "snapshots").glob("counters-*")):
            publish_now(root)
    assert code == 7
    assert len(seen) >= 7
    assert seen == sorted(seen)
    assert seen[-1]
    learn(root, 3)
    publish_now(root)
    assert blocked(root, 3)
    learn(root, 4)
    assert publish_now(root) == ""
    names = litter(root)
    assert [name for name in names if name.startswith(".")] == []
    assert sum(name.startswith("counters-") for name in names) == 1
    assert sum(name.startswith("snapshot-") for name in names) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("moment_ms", [1, 5, 10, 20, 30, 40, 60, 80, 120])
def test_killed_at_a_moment(root: Path, publishing_process: ForkingProcess, moment_ms: int) -> None:
    """A publisher that is killed from outside, so many milliseconds after it began, wherever it then is."""
    learn(root, 2)
    publisher = publishing_process.begin(str(root))
    time.sleep(moment_ms / 1000)
    with suppress(ProcessLookupError):
        os.kill(publisher, signal.SIGKILL)
    assert publishing_process.end() in {0, -signal.SIGKILL}
    assert blocked(root, 1)
    learn(root, 3)
    publish_now(root)
    assert blocked(root, 2)
    assert blocked(root, 3)
    assert [name for name in litter(root) if name.startswith(".")] == []


_SMALL_DISK = """
mount -t tmpfs -o size={size}k none "$1/snapshots" && cp -a "$1/kept/." "$1/snapshots/" && exec "$2" -c '
import sys
from pathlib import Path
from gatewayfilter.errors import SnapshotError
from tests.sources.test_publish_kills import blocked, learn, litter, publish_now
root = Path(sys.argv[1])
before = litter(root)
learn(root, 2)
for _ in range(3):
    try:
        print("published:", publish_now(root))
    except SnapshotError as error:
        print("refused:", error)
assert blocked(root, 1)
print("blocks the new one:", blocked(root, 2))
print("litter:", [name for name in litter(root) if name not in before])
' "$1"
"""


def on_a_small_disk(root: Path, size_kb: int) -> str:
    """Publishes three times where the snapshots' folder is a file system of this size. Returns what was printed."""
    (root / "snapshots").rename(root / "kept")
    (root / "snapshots").mkdir(mode=0o700)
    unshare = shutil.which("unshare")
    assert unshare
    command = [unshare, "-m", "sh", "-c", _SMALL_DISK.format(size=size_kb), "sh", str(root), sys.executable]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120, check=False)
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def size_of(root: Path) -> int:
    return sum(path.stat().st_size for path in (root / "snapshots").iterdir() if not path.is_symlink()) // 1024


@pytest.mark.slow
def test_on_a_full_disk_the_last_snapshot_serves(root: Path) -> None:
    said = on_a_small_disk(root, size_of(root) + 100)
    assert said.count("refused: cannot write a snapshot to") == 3
    assert said.count("No space left on device") == 3
    assert "blocks the new one: False" in said
    assert "litter: []" in said


def test_where_only_the_counters_find_no_room_the_snapshot_is_published(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next publication then builds everything anew; nothing else is lost."""

    def full(path: Path, *_: object) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    learn(root, 2)
    with monkeypatch.context() as patch:
        patch.setattr(snapshot_folder, "write_counters", full)
        assert publish_now(root) == ""
    assert blocked(root, 2)
    assert [name for name in litter(root) if name.startswith((".", "counters"))] == []
    assert "counters" in publish_now(root)
    assert publish_now(root) == ""
