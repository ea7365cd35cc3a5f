"""When an export writes a snapshot and a delta again, and when it keeps those of the last one; a snapshot of some hosts."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.errors import FleetError
from gatewayfilter.fleet import export
from gatewayfilter.fleet.bundle import Bundle
from gatewayfilter.fleet.export import Exporter
from gatewayfilter.fleet.keys import SigningKeys
from gatewayfilter.settings import FleetSettings, Shared
from tests.fleet.fleet_fakes import publish_hosts

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
    assert publisher.export()
    assert not publisher.export()
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
