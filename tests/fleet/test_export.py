"""When an export writes a snapshot and a delta again, and when it keeps those of the last one; a snapshot of some hosts."""

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.engine.snapshot.builder import SnapshotBuilder
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.format import read_sections
from gatewayfilter.engine.snapshot.image import SnapshotImage
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.engine.tables.bloom import BloomAnswer
from gatewayfilter.errors import FleetError
from gatewayfilter.fleet import export
from gatewayfilter.fleet.bundle import Bundle, write_bundle
from gatewayfilter.fleet.export import Exporter, copy_export
from gatewayfilter.fleet.keys import SigningKeys
from gatewayfilter.model import Group, ListAction, PolicySet, Source
from gatewayfilter.settings import FleetSettings, Shared
from gatewayfilter.urls import digest_of
from tests.fleet.fleet_fakes import learned, publish_hosts

HOSTS = [f"host-{number}.example" for number in range(50)]


class Publisher:
    """A publisher without a database."""

    def __init__(self, home: Path) -> None:
        self.snapshots, self.folder = SnapshotFolder(home / "snapshots"), home / "export"
        self.settings, self.now = FleetSettings(), 1_800_000_000.0
        self.keys = SigningKeys((b"1" * 32,))

    def export(self, bundle: Bundle | None = None) -> bool:
        self.now += 1
        return Exporter(self.folder, self.snapshots, self.settings, lambda: self.now).export(bundle or Bundle(), self.keys)


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    made = Publisher(tmp_path)
    publish_hosts(made.snapshots, HOSTS)
    return made


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The snapshots that were written."""
    found: list[str] = []
    write = Exporter._write_snapshot

    def note(self: Exporter, path: Path) -> Any:
        part = write(self, path)
        found.append(part.name)
        return part

    monkeypatch.setattr(Exporter, "_write_snapshot", note)
    return found


def manifest(publisher: Publisher) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((publisher.folder / "manifest").read_bytes().partition(b"\n\n")[2])
    return found


def test_a_snapshot_is_written_once_and_again_where_it_is_lost(publisher: Publisher, written: list[str]) -> None:
    assert publisher.export() is True
    assert publisher.export() is False
    assert (publisher.folder / "blobs").stat().st_mode & 0o777 == 0o700
    (name,) = written
    first = manifest(publisher)
    assert publisher.export(Bundle(locked=frozenset({"kids"}))), "other rules alone"
    second = manifest(publisher)
    assert (written, second["snapshot"], second["bundle"] != first["bundle"]) == ([name], first["snapshot"], True)
    (publisher.folder / "blobs" / name).unlink()
    assert publisher.export()
    assert (written, (publisher.folder / "blobs" / name).is_file()) == ([name, name], True)
    assert manifest(publisher)["snapshot"] == first["snapshot"]


def test_deltas_lead_from_each_snapshot_to_the_next(
    publisher: Publisher, written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str, str]] = []
    deltas: list[bytes | None] = [b"first", b"second", None, b"third"]

    def make(older: Path, newer: Path) -> bytes | None:
        made.append((older.name, newer.name))
        return deltas.pop(0)

    monkeypatch.setattr(export, "make_delta", make)
    publisher.export()
    assert (manifest(publisher)["deltas"], made) == ([], [])
    for size, links in ((49, 1), (48, 2), (48, 2), (47, 0), (46, 1)):
        publish_hosts(publisher.snapshots, HOSTS[:size])
        assert publisher.export()
        assert len(manifest(publisher)["deltas"]) == links
        assert all((publisher.folder / "blobs" / name).is_file() for _, name, _ in manifest(publisher)["deltas"])
    assert len(written) == 6
    assert made == [(one, other) for one, other in pairwise(written) if one != other]
    older, _, size = manifest(publisher)["deltas"][0]
    assert (older, size) == (written[-2], 5)
    (publisher.folder / "state.json").unlink()
    publish_hosts(publisher.snapshots, HOSTS[:45])
    publisher.export()
    assert (manifest(publisher)["deltas"], len(made)) == ([], 4)


def test_what_is_the_publishers_own_does_not_travel(publisher: Publisher) -> None:
    builder = SnapshotBuilder(feed_seq=70, created_at=1_700_000_000.0, notes={"inputs": "here", "feed_mark": "7", "kept": 1})
    builder.add_keys(builder.add_source(Source("ads", ListAction.BLOCK, "ads")), [".a.example"])
    builder.set_policies(PolicySet.of([Group("pupils")]))
    with publisher.snapshots.publishing() as put:
        put(builder.image(counting=True))
    publisher.export()
    part = manifest(publisher)["snapshot"]
    exported = Snapshot.open(publisher.folder / "blobs" / part["name"])
    assert (exported.info.feed_seq, list(exported.policies), exported.rules) == (0, [], ())
    assert exported.meta["notes"] == {"inputs": "", "feed_mark": "", "reports": [], "kept": 1}
    assert (exported.meta["patches"], exported.info.created_at, part["made_at"]) == (0, 1_700_000_000.0, 1_700_000_000.0)


def test_learned_entries_do_not_travel_not_even_in_the_gate(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Snapshot] = []
    close = Snapshot.close

    def note(snapshot: Snapshot) -> None:
        closed.append(snapshot)
        close(snapshot)

    monkeypatch.setattr(Snapshot, "close", note)
    visited = [f"visited-{number}.example/" for number in range(20)]
    publish_hosts(publisher.snapshots, HOSTS, tuple(map(learned, visited)))
    for share, held in (((Shared.RULES,), 0), ((Shared.LEARNED,), 20)):
        publisher.settings = FleetSettings(share=share)
        closed.clear()
        publisher.export()
        assert len(closed) == 2, "the one in use, and the one that was tried out"
        exported = Snapshot.open(publisher.folder / "blobs" / manifest(publisher)["snapshot"]["name"])
        maybe = sum(exported.bloom.ask(digest_of(key)) is BloomAnswer.MAYBE for key in visited)
        assert (exported.info.learned, maybe == 20) == (held, bool(held))
        assert all(exported.bloom.ask(digest_of(f".{host}")) is BloomAnswer.MAYBE for host in HOSTS)


@pytest.mark.parametrize("entries", [(), (learned("visited.example/"),)])
def test_a_damaged_snapshot_is_not_exported(publisher: Publisher, entries: tuple[Any, ...]) -> None:
    publish_hosts(publisher.snapshots, HOSTS, entries)
    path = publisher.snapshots.current()
    assert path is not None
    damaged = bytearray(path.read_bytes())
    table = read_sections(bytes(damaged))["whitelist"]
    damaged[table.offset + table.length - 1] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(FleetError, match=r"^cannot export the snapshot in use: "):
        publisher.export()
    assert not (publisher.folder / "manifest").exists()


def test_a_file_that_was_not_written_as_it_should_be_is_not_exported(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = SnapshotImage.parts

    def damaged(image: SnapshotImage) -> list[bytes]:
        *pieces, last = map(bytes, whole(image))
        return [*pieces, last[:-1] + bytes([last[-1] ^ 1])]

    monkeypatch.setattr(SnapshotImage, "parts", damaged)
    with pytest.raises(FleetError, match=r"^cannot export the snapshot in use: "):
        publisher.export()
    assert list((publisher.folder / "blobs").iterdir()) == []


def test_a_snapshot_is_on_the_disk_whole_before_it_is_named(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: dict[str, int] = {}
    write = os.fsync

    def sync(descriptor: int) -> None:
        sizes[Path(f"/proc/self/fd/{descriptor}").readlink().name] = os.fstat(descriptor).st_size
        write(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    publisher.export()
    assert sizes[".exporting"] == manifest(publisher)["snapshot"]["size"]


def test_what_makes_another_export(publisher: Publisher, written: list[str]) -> None:
    publisher.export()
    for settings in (FleetSettings(valid_h=1.0), FleetSettings(share=(Shared.LEARNED,)), FleetSettings()):
        publisher.settings = settings
        before = manifest(publisher)["sequence"]
        assert publisher.export()
        assert manifest(publisher)["sequence"] > before
        assert not publisher.export()
    expires = manifest(publisher)["expires_at"]
    publisher.settings = FleetSettings(valid_h=2.0)
    publisher.export()
    assert (expires, manifest(publisher)["expires_at"]) == (None, publisher.now + 7_200)
    publisher.keys = SigningKeys((b"1" * 32, b"2" * 32))
    assert publisher.export()
    assert len(manifest(publisher)["keys"]) == 2
    assert len(set(written)) == 1


def test_a_manifest_is_due_half_of_its_time_after_it_was_made(publisher: Publisher) -> None:
    publisher.settings = FleetSettings(valid_h=1.0)
    publisher.export()
    made_at = publisher.now
    for seconds, due in ((0.0, False), (1_799.5, False), (1_800.0, True), (1_799.0, True)):
        publisher.now = made_at + seconds - 1
        assert publisher.export() is due
    assert manifest(publisher)["created_at"] == made_at + 1_799.0, "the clock went back"


def test_the_largest_bundle_that_is_exported(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = Bundle(locked=frozenset({"kids"}))
    size = len(write_bundle(rules))
    monkeypatch.setattr(export, "LARGEST_BUNDLE", size)
    assert publisher.export(rules)
    assert manifest(publisher)["bundle"]["size"] == size
    with pytest.raises(FleetError, match=f"^rules and policies take {size + 1} bytes, more than the {size} of a bundle$"):
        publisher.export(Bundle(locked=frozenset({"kidss"})))


def test_a_file_that_another_process_removes_is_passed_over(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "iterdir", lambda folder: iter([folder / ("0" * 64)]))
    monkeypatch.setattr(Path, "is_file", lambda _: True)
    assert publisher.export()


def test_a_folder_with_the_name_of_a_file_stays(publisher: Publisher) -> None:
    for name in ("0" * 64, "1" * 63):
        (publisher.folder / "blobs" / name).mkdir(parents=True)
    assert publisher.export()
    assert {path.name for path in (publisher.folder / "blobs").iterdir()} > {"0" * 64, "1" * 63}


def test_the_state_of_an_export_is_read_as_it_was_written(publisher: Publisher, written: list[str]) -> None:
    publisher.export()
    state = publisher.folder / "state.json"
    whole = json.loads(state.read_bytes())
    for damaged in ({"names": 5}, {"deltas": [[1]]}, {"deltas": [["a", "b", "x"]]}, {"sequence": "x"}, {"later": 1}):
        state.write_text(json.dumps(whole | damaged))
        assert publisher.export(), "it is lost"
    assert len(written) == 6
    assert not publisher.export()


def test_a_copy_for_a_web_server_writes_what_is_not_there(publisher: Publisher, tmp_path: Path) -> None:
    publisher.export()
    www, outside = tmp_path / "a" / "www", tmp_path / "outside"
    first = copy_export(publisher.folder, www)
    signed = (publisher.folder / "manifest").stat().st_size
    assert first == signed + sum(path.stat().st_size for path in (publisher.folder / "blobs").iterdir())
    assert copy_export(publisher.folder, www) == signed
    one, other = sorted((www / "blobs").iterdir())
    size = one.stat().st_size
    one.unlink()
    outside.write_bytes((publisher.folder / "blobs" / one.name).read_bytes())
    one.symlink_to(outside)
    (www / ".manifest.part").symlink_to(outside)
    assert copy_export(publisher.folder, www) == signed + size, "a link is replaced, though it leads to the same"
    assert (one.is_symlink(), (www / ".manifest.part").exists()) == (False, False)
    assert outside.read_bytes() == one.read_bytes()
    other.unlink()
    other.mkdir()
    with pytest.raises(FleetError, match=r"^cannot export to .*: Is a directory$"):
        copy_export(publisher.folder, www)


def test_a_snapshot_is_written_again_where_learned_entries_are_shared_or_no_longer(
    publisher: Publisher, written: list[str]
) -> None:
    rules, policies, found = Shared.RULES, Shared.POLICIES, Shared.LEARNED
    for share, count in (((rules,), 1), ((rules, policies), 1), ((rules, found), 2), ((found,), 2), ((), 3)):
        publisher.settings = FleetSettings(share=share)
        publisher.export()
        assert len(written) == count


def test_without_a_snapshot_or_a_folder_nothing_is_exported(tmp_path: Path) -> None:
    empty = Publisher(tmp_path)
    with pytest.raises(FleetError, match="there is no snapshot to export yet"):
        empty.export()
    publish_hosts(empty.snapshots, HOSTS)
    (tmp_path / "file").touch()
    empty.folder = tmp_path / "file" / "export"
    with pytest.raises(FleetError, match=r"^cannot export to .*: Not a directory$"):
        empty.export()
    current = empty.snapshots.current()
    assert current is not None
    empty.folder = tmp_path / "export"
    current.write_bytes(bytes(100))
    with pytest.raises(FleetError, match=r"^cannot export the snapshot in use: "):
        empty.export()
