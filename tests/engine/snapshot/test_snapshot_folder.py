"""Publishing: whatever happens, a reader finds a whole snapshot, the last good one."""

import errno
import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from types import SimpleNamespace

import pytest

from gatewayfilter.engine.adblock.index import sections
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import Source
from gatewayfilter.urls import digest_of


def snapshot(seq: int) -> bytes:
    builder = SnapshotBuilder(feed_seq=seq, created_at=float(seq))
    builder.add_keys(builder.add_source(Source("list")), [f".site{seq}.example"])
    return builder.build()


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("snapshot-*"))


def test_an_empty_folder_has_nothing(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path / "none")
    assert folder.current() is None
    with pytest.raises(SnapshotError, match="there is no snapshot in"):
        folder.open_newest()


def test_a_refusal_is_about_the_snapshot_that_was_current(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path / "snapshots")
    folder.refuse()  # of a folder that is not there
    assert folder.is_refused()
    first = folder.publish(snapshot(1))
    assert not folder.is_refused()
    folder.refuse()
    assert folder.is_refused()
    folder.publish(snapshot(2))
    assert not folder.is_refused()
    (tmp_path / "snapshots" / ".refused").write_text(first.name)  # somebody was slow
    assert not folder.is_refused()


def test_a_folder_in_the_place_of_the_pointer_is_moved_aside(tmp_path: Path) -> None:
    place = tmp_path / "snapshots" / "current"
    place.mkdir(parents=True)
    (place / "kept").touch()
    folder = SnapshotFolder(tmp_path / "snapshots")
    assert folder.current() is None
    published = [folder.publish(snapshot(seq)) for seq in (1, 2)]
    assert folder.current() == published[-1]
    (moved,) = (tmp_path / "snapshots").glob("current-moved-*")
    assert (moved / "kept").exists()


def test_what_is_published_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        (tmp_path / "snapshots").mkdir()
        (tmp_path / "snapshots" / ".lock").touch(mode=0o644)  # as earlier versions made it
        folder = SnapshotFolder(tmp_path / "snapshots")
        builder = SnapshotBuilder(feed_seq=1, created_at=1.0)
        builder.add_keys(builder.add_source(Source("list")), [".site.example"])
        with folder.publishing() as publish:
            publish(builder.image(counting=True))
        folder.refuse()
        modes = {path.name: path.lstat().st_mode & 0o777 for path in (tmp_path / "snapshots").iterdir() if not path.is_symlink()}
    finally:
        os.umask(before)
    assert {".lock", ".refused", "snapshot-00000001.gfs"} <= modes.keys()
    assert set(modes.values()) == {0o600}, modes


def test_publishing_moves_the_pointer_and_keeps_the_last(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path / "snapshots", keep=2)
    paths = [folder.publish(snapshot(seq)) for seq in (1, 2, 3)]
    assert folder.current() == paths[-1]
    assert files(tmp_path / "snapshots") == [path.name for path in paths[1:]]
    newest, refused = folder.open_newest()
    assert (newest.info.feed_seq, refused) == (3, [])
    assert (tmp_path / "snapshots").stat().st_mode & 0o777 == 0o700


def test_the_first_snapshot_has_a_copy_that_takes_its_place(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path)
    first = folder.publish(snapshot(1))
    assert files(tmp_path) == ["snapshot-00000000.gfs", first.name]
    os.truncate(first, 100)
    newest, refused = folder.open_newest()
    assert (newest.info.feed_seq, len(refused)) == (1, 1)
    assert (tmp_path / "snapshot-00000000.gfs").stat().st_mode & 0o777 == 0o600


def test_damaged_snapshots_are_not_kept_in_place_of_good_ones(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path)
    for seq in range(1, 5):
        folder.publish(snapshot(seq))
        for path in tmp_path.glob("*.gfs"):
            os.truncate(path, path.stat().st_size - 100)
    last = folder.publish(snapshot(5))
    assert files(tmp_path) == ["snapshot-00000004.gfs", last.name]
    os.truncate(last, 100)
    assert folder.open_newest()[0].info.feed_seq == 5, "by the copy"


def test_a_snapshot_that_was_refused_is_not_kept(tmp_path: Path) -> None:
    """Its damage may lie where opening does not look."""
    folder = SnapshotFolder(tmp_path)
    for seq in (1, 2):
        folder.publish(snapshot(seq))
    folder.refuse()
    folder.publish(snapshot(3))
    assert files(tmp_path) == ["snapshot-00000000.gfs", "snapshot-00000001.gfs", "snapshot-00000003.gfs"]


def test_what_cannot_be_read_now_or_is_of_another_version_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = SnapshotFolder(tmp_path)
    first = folder.publish(snapshot(1))
    data = bytearray(first.read_bytes())
    data[8] += 1  # the version
    first.write_bytes(data)
    folder.publish(snapshot(2))
    assert files(tmp_path) == ["snapshot-00000000.gfs", first.name, "snapshot-00000002.gfs"]
    open_snapshot = Snapshot.open

    def exhausted(path: Path, *, verify: bool = False) -> Snapshot:
        if path.name.startswith("snapshot-"):
            raise SnapshotError("no") from OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return open_snapshot(path, verify=verify)

    monkeypatch.setattr(Snapshot, "open", exhausted)
    folder.publish(snapshot(3))
    assert files(tmp_path) == [first.name, "snapshot-00000002.gfs", "snapshot-00000003.gfs"]


@pytest.mark.parametrize(("short", "copies"), [(1, 0), (0, 1)])
def test_a_copy_leaves_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: int, copies: int) -> None:
    free = 64_000_000 + len(snapshot(1)) - short
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    first = SnapshotFolder(tmp_path).publish(snapshot(1))
    assert files(tmp_path)[-1] == first.name
    assert len(files(tmp_path)) == 1 + copies


@pytest.mark.parametrize("keep", [0, 1])
def test_one_snapshot_may_be_kept_alone(tmp_path: Path, keep: int) -> None:
    folder = SnapshotFolder(tmp_path, keep=keep)
    for seq in (1, 2):
        published = folder.publish(snapshot(seq))
        assert files(tmp_path) == [published.name]


def test_no_room_for_a_copy_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfile", full)
    folder = SnapshotFolder(tmp_path)
    first = folder.publish(snapshot(1))
    assert files(tmp_path) == [first.name]
    assert not (tmp_path / ".publishing").exists()


def test_each_move_of_the_pointer_is_told_apart(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path)
    found = [folder.pointing()]
    for seq in (1, 2, 3):
        folder.publish(snapshot(seq))
        found.append(folder.pointing())
        assert folder.pointing() == found[-1]
    assert found[0] is None
    assert len(set(found)) == 4


def test_a_mapping_stays_usable_after_its_file_was_pruned(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path, keep=1)
    folder.publish(snapshot(1))
    old, _ = folder.open_newest()
    folder.publish(snapshot(2))
    assert len(files(tmp_path)) == 1
    assert old.blacklist.find(digest_of(".site1.example")) is not None


def test_a_damaged_snapshot_is_passed_over_and_named(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path)
    first, second, third = (folder.publish(snapshot(seq)) for seq in (1, 2, 3))
    third.write_bytes(third.read_bytes()[:-100])
    second.write_bytes(b"")
    newest, refused = folder.open_newest()
    assert newest.info.feed_seq == 1
    assert [name in sentence for name, sentence in zip((third.name, second.name), refused, strict=True)] == [True, True]
    first.unlink()
    with pytest.raises(SnapshotError, match=r"no snapshot in .* can be used"):
        folder.open_newest()


def test_what_was_not_published_whole_is_not_current(tmp_path: Path) -> None:
    """Killed between renaming the file and moving the pointer: the pointer's file counts."""
    folder = SnapshotFolder(tmp_path)
    first = folder.publish(snapshot(1))
    (tmp_path / "snapshot-00000002.gfs").write_bytes(snapshot(2))
    assert folder.current() == first
    assert folder.open_newest()[0].info.feed_seq == 1
    assert folder.publish(snapshot(3)).name == "snapshot-00000002.gfs"
    assert folder.open_newest()[0].info.feed_seq == 3


def test_what_killed_publishers_left_does_not_pile_up(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path)
    first = folder.publish(snapshot(1))
    for number in range(2, 9):
        (tmp_path / f"snapshot-{number:08}.gfs").write_bytes(snapshot(number))
        (tmp_path / f"counters-{number:08}.gfc").write_bytes(b"half")
    for name in (".publishing", ".counting"):
        (tmp_path / name).write_bytes(b"half")
    with folder.publishing():
        assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "current", "snapshot-00000000.gfs", first.name]


def test_a_pointer_to_nothing_falls_back(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path)
    folder.publish(snapshot(1))
    folder.publish(snapshot(2)).unlink()
    assert folder.current() is None
    assert folder.open_newest()[0].info.feed_seq == 1


def test_garbage_is_not_published(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path)
    first = folder.publish(snapshot(1))
    for data in (b"", b"garbage", snapshot(2)[:-1]):
        with pytest.raises(SnapshotError):
            folder.publish(data)
    assert folder.current() == first
    assert files(tmp_path) == ["snapshot-00000000.gfs", first.name]
    assert not (tmp_path / ".publishing").exists()


def test_a_full_disk_leaves_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = SnapshotFolder(tmp_path)
    first = folder.publish(snapshot(1))

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SnapshotError, match="No space left on device"):
        folder.publish(snapshot(2))
    assert folder.current() == first
    assert not (tmp_path / ".publishing").exists()


def test_a_folder_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SnapshotError, match=r"^cannot write a snapshot to [^\n]+$"):
        SnapshotFolder(tmp_path / "file").publish(snapshot(1))
    assert SnapshotFolder(tmp_path / "file").current() is None


def in_another_process(work: Callable[..., None], *arguments: object) -> BaseProcess:
    """Starts the work in a process of its own; not a fork of this one, which may have threads."""
    process = multiprocessing.get_context("forkserver").Process(target=work, args=arguments)
    process.start()
    return process


def exit_code(process: BaseProcess) -> int | None:
    """Waits for the end."""
    process.join(60)
    return process.exitcode


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def publish_until(step: str, folder: Path, data: bytes) -> None:
    """Publishes, and is killed at a step on the way."""
    rename = Path.rename
    path_of = SnapshotFolder._path
    with pytest.MonkeyPatch.context() as patch:
        match step:
            case "write":
                (folder / ".publishing").write_bytes(data[: len(data) // 2])
                die()
            case "fsync":
                patch.setattr(os, "fsync", die)
            case "verify":
                patch.setattr(Snapshot, "open", die)
            case "rename":
                patch.setattr(Path, "rename", die)
            case "symlink":
                patch.setattr(Path, "symlink_to", die)
            case "pointer":
                patch.setattr(Path, "rename", lambda path, to: die() if path.name == ".current-next" else rename(path, to))
            case "prune":
                patch.setattr(SnapshotFolder, "_path", lambda self, number: die() if number == 1 else path_of(self, number))
            case _:
                raise AssertionError(step)
        SnapshotFolder(folder, keep=1).publish(data)


@pytest.mark.parametrize("step", ["write", "fsync", "verify", "rename", "symlink", "pointer", "prune"])
def test_killed_at_any_step_a_whole_snapshot_stays(tmp_path: Path, step: str) -> None:
    folder = SnapshotFolder(tmp_path, keep=1)
    folder.publish(snapshot(1))
    data = snapshot(2)
    assert exit_code(in_another_process(publish_until, step, tmp_path, data)) == -signal.SIGKILL
    found, refused = folder.open_newest()
    assert refused == []
    assert found.info.feed_seq == (2 if step == "prune" else 1)
    assert folder.publish(snapshot(3)) == folder.current()
    assert folder.open_newest()[0].info.feed_seq == 3


def publish_ten(folder: Path, first: int) -> None:
    for seq in range(first, first + 10):
        SnapshotFolder(folder, keep=50).publish(snapshot(seq))


def test_two_publishers_do_not_collide(tmp_path: Path) -> None:
    publishers = [in_another_process(publish_ten, tmp_path, first) for first in (100, 200)]
    assert [exit_code(publisher) for publisher in publishers] == [0, 0]
    paths = sorted(tmp_path.glob("snapshot-*"))
    found = sorted(Snapshot.open(path, verify=True).info.feed_seq for path in paths[1:])
    assert (paths[0].name, found) == ("snapshot-00000000.gfs", [*range(100, 110), *range(200, 210)])
    assert SnapshotFolder(tmp_path).current() == paths[-1]


def count_and_publish(folder: Path, waiting: Event) -> None:
    counter = folder / "seq"
    for _ in range(20):
        with SnapshotFolder(folder, keep=100).publishing(waiting.set) as publish:
            seq = int(counter.read_text()) + 1
            counter.write_text(str(seq))
            publish(snapshot(seq))


def test_who_waits_for_another_publisher_is_told_and_reads_afterwards(tmp_path: Path) -> None:
    """What a publisher reads while it holds the lock is never older than what the one before it read."""
    waiting = [multiprocessing.get_context("forkserver").Event() for _ in range(2)]
    with SnapshotFolder(tmp_path, keep=100).publishing() as publish:
        publishers = [in_another_process(count_and_publish, tmp_path, event) for event in waiting]
        for event in waiting:
            assert event.wait(60)
        (tmp_path / "seq").write_text("1")
        publish(snapshot(1))
    assert [exit_code(publisher) for publisher in publishers] == [0, 0]
    paths = sorted(tmp_path.glob("snapshot-*"))
    assert [Snapshot.open(path).info.feed_seq for path in paths] == [1, *range(1, 42)], "the first with its copy"


def test_the_lock_is_free_after_a_failure(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path)
    with pytest.raises(KeyError), folder.publishing():
        raise KeyError
    waits: list[str] = []
    with folder.publishing(lambda: waits.append("waiting")) as publish:
        publish(snapshot(1))
    assert waits == []


def test_rules_compiled_by_another_version_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = SnapshotFolder(tmp_path)
    monkeypatch.setattr(sections, "MAGIC", b"GFADB\x00\x00\x00")
    folder.publish(snapshot(1))
    monkeypatch.undo()
    with pytest.raises(SnapshotError, match="the compiled Adblock rules are of another version"):
        folder.open_newest(verify=False)
