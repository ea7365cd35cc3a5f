"""A download block by block: what is at hand is copied, the rest is fetched in runs, and each block is verified."""

import mmap
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from gatewayfilter.engine.snapshot.builder import SnapshotBuilder
from gatewayfilter.fleet import download, export
from gatewayfilter.fleet.blocks import file_digest, spans
from gatewayfilter.fleet.download import ROOM_BYTES, ContentError, DiskError, Download, runs_of
from gatewayfilter.fleet.export import part_of
from gatewayfilter.fleet.manifest import SnapshotPart, spans_of
from gatewayfilter.fleet.transport import Transport, TransportError
from gatewayfilter.model import ListAction, Source


class Spans(Transport):
    """Sends parts of a file in small pieces; ends after `most` bytes."""

    def __init__(self, data: bytes) -> None:
        super().__init__("http://127.0.0.1:9", "")
        self.data, self.asked = data, list[tuple[int, int]]()
        self.most = len(data)

    def span(self, name: str, begin: int, length: int) -> Iterator[bytes]:
        self.asked.append((begin, length))
        for at in range(begin, begin + length, 700):
            if self.most <= 0:
                raise TransportError("the transfer was cut off")
            self.most -= 700
            yield self.data[at : min(at + 700, begin + length)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    builder = SnapshotBuilder(created_at=1.0)
    builder.add_keys(
        builder.add_source(Source("ads", ListAction.BLOCK, "ads")), [f".host-{number}.example" for number in range(900)]
    )
    path = tmp_path / "source"
    path.write_bytes(builder.build())
    return path


@pytest.fixture
def part(source: Path, monkeypatch: pytest.MonkeyPatch) -> SnapshotPart:
    """With blocks of 4 KB."""
    monkeypatch.setattr(export, "BLOCK_BYTES", 4_096)
    monkeypatch.setattr(export, "spans", lambda segments: spans(segments, 4_096))
    return part_of(source, file_digest(source).hex(), 1.0)


def test_everything_is_fetched_once(source: Path, part: SnapshotPart, tmp_path: Path) -> None:
    transport = Spans(source.read_bytes())
    found = Download(tmp_path / "in", part, ()).fetch(transport)
    assert (found.path.read_bytes(), found.fetched + found.reused) == (transport.data, part.size)
    assert sum(length for _, length in transport.asked) == found.fetched > part.size // 2
    assert (tmp_path / "in").stat().st_mode & 0o777 == 0o700


def test_what_is_at_hand_is_not_fetched(source: Path, part: SnapshotPart, tmp_path: Path) -> None:
    transport = Spans(source.read_bytes())
    found = Download(tmp_path / "in", part, (tmp_path / "none", source)).fetch(transport)
    assert (found.path.read_bytes(), found.fetched, found.reused, transport.asked) == (transport.data, 0, part.size, [])
    spans = spans_of(part)
    (begin, length), (last, rest) = spans[len(spans) // 2], spans[-1]
    damaged = bytearray(transport.data)
    for at in (begin + length - 1, last):
        damaged[at] ^= 1
    (tmp_path / "damaged").write_bytes(damaged)
    once = Download(tmp_path / "other", part, (tmp_path / "damaged",)).fetch(transport)
    assert (once.path.read_bytes(), transport.asked) == (transport.data, [(begin, length), (last, rest)])
    assert (once.fetched, once.reused) == (length + rest, part.size - length - rest)


def test_a_cut_transfer_goes_on_where_it_ended(source: Path, part: SnapshotPart, tmp_path: Path) -> None:
    transport = Spans(source.read_bytes())
    transport.most = 10_000
    with pytest.raises(TransportError):
        Download(tmp_path / "in", part, ()).fetch(transport)
    transport.most = part.size * 2
    again = Download(tmp_path / "in", part, ()).fetch(transport)
    whole = Download(tmp_path / "other", part, ()).fetch(Spans(transport.data))
    assert (again.path.read_bytes(), 0 < again.fetched <= whole.fetched - 4_096) == (transport.data, True)


def test_blocks_that_are_not_as_signed_are_refused(source: Path, part: SnapshotPart, tmp_path: Path) -> None:
    damaged = bytearray(source.read_bytes())
    begin, _ = spans_of(part)[1]
    damaged[begin] ^= 1
    with pytest.raises(ContentError, match=r"^block 1 of the snapshot is not as signed$"):
        Download(tmp_path / "in", part, ()).fetch(Spans(bytes(damaged)))
    whole = Spans(source.read_bytes())
    with pytest.raises(ContentError, match="the whole is not"):
        Download(tmp_path / "in", replace(part, name="0" * 64), (source,)).fetch(whole)
    assert list((tmp_path / "in").iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(DiskError, match=r"^cannot store the publisher's snapshot: (Not a directory|File exists)$"):
        Download(tmp_path / "file", part, ()).fetch(whole)


def test_a_full_disk_leaves_an_empty_file(
    source: Path, part: SnapshotPart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def allocate(descriptor: int, _: int, size: int) -> None:
        os.truncate(descriptor, size // 2)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", allocate)
    with pytest.raises(DiskError, match=r"^cannot store the publisher's snapshot: No space left on device$"):
        Download(tmp_path / "in", part, (source,)).fetch(Spans(source.read_bytes()))
    assert [path.stat().st_size for path in (tmp_path / "in").iterdir()] == [0]


def test_a_download_is_on_the_disk_before_it_is_verified(
    source: Path, part: SnapshotPart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    class Mapped(mmap.mmap):
        def flush(self, *_: int) -> None:
            super().flush()
            done.append("flushed")

    def digest(path: Path) -> bytes:
        done.append("verified")
        return file_digest(path)

    monkeypatch.setattr(mmap, "mmap", Mapped)
    monkeypatch.setattr(download, "file_digest", digest)
    Download(tmp_path / "in", part, ()).fetch(Spans(source.read_bytes()))
    assert done == ["flushed", "verified"]


@pytest.mark.parametrize(("missing_bytes", "is_room"), [(0, True), (1, False)])
def test_what_is_there_already_needs_no_room(
    source: Path, part: SnapshotPart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing_bytes: int, *, is_room: bool
) -> None:
    folder, transport = tmp_path / "in", Spans(source.read_bytes())
    held = Download(folder, part, (source,)).fetch(transport).path
    there = 512 * held.stat().st_blocks
    assert there > 0
    usage = SimpleNamespace(free=2 * part.size - there + ROOM_BYTES - missing_bytes)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    if is_room:
        assert Download(folder, part, ()).fetch(transport).fetched == 0
        return
    needed = f"it needs {2 * part.size + ROOM_BYTES:,} bytes, {usage.free:,} are free$"
    with pytest.raises(DiskError, match=f"^no room for the publisher's snapshot: {needed}"):
        Download(folder, part, ()).fetch(transport)


def test_a_rest_that_another_process_removes_is_passed_over(
    source: Path, part: SnapshotPart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "glob", lambda folder, _: iter([folder / "gone.part"]))
    assert Download(tmp_path / "in", part, (source,)).fetch(Spans(source.read_bytes())).reused == part.size


@pytest.mark.parametrize(
    ("missing", "runs"),
    [
        ([], []),
        ([5], [range(5, 6)]),
        ([1, 2, 3], [range(1, 4)]),
        ([1, 3], [range(1, 2), range(3, 4)]),
        ([0, 1, 5, 6, 9], [range(2), range(5, 7), range(9, 10)]),
    ],
)
def test_neighbours_are_fetched_together(missing: list[int], runs: list[range]) -> None:
    assert runs_of(missing) == runs
