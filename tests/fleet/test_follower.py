"""The polls of a follower without a snapshot, a database or a publisher: what is kept, counted, logged and reported."""

import hashlib
import logging
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.engine.snapshot.format import VERSION
from gatewayfilter.errors import PolicyError
from gatewayfilter.fleet import follower
from gatewayfilter.fleet.adoption import Adoption
from gatewayfilter.fleet.bundle import Bundle, write_bundle
from gatewayfilter.fleet.deltas.catching_up import CaughtUp
from gatewayfilter.fleet.deltas.chain import DeltaLink
from gatewayfilter.fleet.download import Fetched
from gatewayfilter.fleet.folder import FleetFolder
from gatewayfilter.fleet.follower import CLOCK_SLACK_S, LONGEST_WAIT_S, Follower
from gatewayfilter.fleet.follower_state import Fault, StateFile
from gatewayfilter.fleet.health import REPORT_EVERY_S, Report, read_report
from gatewayfilter.fleet.keys import SigningKeys
from gatewayfilter.fleet.manifest import LARGEST_MANIFEST, Manifest, SnapshotPart, sign_manifest
from gatewayfilter.fleet.public_keys import write_public_key
from gatewayfilter.fleet.transport import Answer, TransportError
from gatewayfilter.settings import FleetSettings
from gatewayfilter.telemetry import Counters

KEYS, LATER = SigningKeys((b"1" * 32,)), SigningKeys((b"1" * 32, b"2" * 32))
RULES = write_bundle(Bundle(locked=frozenset({"a"})))
BASE = b"the snapshot"
NAME = hashlib.sha256(BASE).hexdigest()
PART = SnapshotPart(NAME, 5_000, VERSION, 7.0, 8_192, (5_000,), bytes(16))
MANIFEST = Manifest(50, 900.0, None, "1.0", KEYS.public, PART, hashlib.sha256(RULES).hexdigest(), len(RULES))


class Publisher:
    """What a follower is answered, and its filter: `done` is what was asked of both, in order."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.now = FleetFolder(home / "fleet"), 1_000.0
        self.counters = Counters()
        self.manifest_is: Manifest | None = MANIFEST
        self.keys, self.rules = KEYS, RULES
        self.fault: Exception | None = None
        self.status = 204
        self.changes, self.exceptions = 0, ("group:x",)
        self.published = ""
        self.done: list[object] = []
        self.caught_up = CaughtUp(None, 0)
        monkeypatch.setattr(follower, "catch_up", self._catch_up)
        monkeypatch.setattr(follower, "Download", self._download)
        monkeypatch.setattr(follower, "_try_out", lambda path: self.done.append("tried"))
        self.in_use: list[str] = []
        """Snapshots that are open."""
        monkeypatch.setattr(follower, "Snapshot", SimpleNamespace(open=self._open))

    def follower(self, **settings: object) -> Follower:
        values = {"follow": "http://127.0.0.1:9", "key": write_public_key(KEYS.public[0]), **settings}
        chosen = FleetSettings.model_validate(values)
        return Follower(self.folder, chosen, cast("Any", self), cast("Any", self), self.counters, "1.0", lambda: self.now)

    def asked(self) -> list[object]:
        """Returns what was done since the last time."""
        done, self.done = self.done, []
        return done

    # the transport

    def manifest(self, etag: str, most: int) -> Answer:
        assert most == LARGEST_MANIFEST
        self.done.append(("manifest", etag))
        if self.fault is not None:
            raise self.fault
        if self.manifest_is is None:
            return Answer(304, etag, b"")
        return Answer(200, f"tag {self.manifest_is.sequence}", sign_manifest(self.manifest_is, self.keys))

    def blob(self, name: str, most: int) -> bytes:
        self.done.append(("blob", name == MANIFEST.bundle, most))
        return self.rules

    def report(self, body: bytes) -> int:
        self.done.append(read_report(body))
        if self.status == 0:
            raise TransportError("no answer")
        return self.status

    def close(self) -> None:
        self.done.append("closed")

    # the filter

    def adopter(self) -> Any:
        return self

    def adopt(self, bundle: Bundle, before: object, now: float) -> Adoption:
        self.done.append(("adopt", sorted(bundle.locked), before, now))
        return Adoption({"policy:a": "d"}, self.exceptions, self.changes)

    def is_published(self, name: str) -> bool:
        return name == self.published

    def publish(self) -> None:
        self.done.append("publish")
        self.published = BASE[:2].hex()

    def serving(self) -> tuple[int, int]:
        return 11, 3

    # what is made of its files

    def _catch_up(self, folder: Path, base: Path, links: object, most: int, fetch: Callable[..., bytes]) -> CaughtUp:
        self.done.append(("catch up", folder == self.folder.incoming, base == self.folder.base, links, most, fetch == self.blob))
        return self.caught_up

    def _open(self, path: Path) -> Any:
        self.in_use.append(path.name)
        return SimpleNamespace(mark=path.read_bytes()[:2], close=lambda: self.in_use.remove(path.name))

    def _download(self, folder: Path, part: SnapshotPart, present: tuple[Path, ...]) -> Any:
        self.done.append(("download", folder.name, part, [path.name for path in present]))
        path = self.folder.path / "new"
        path.write_bytes(BASE)
        return SimpleNamespace(fetch=lambda transport: Fetched(path, 70, 30))


@pytest.fixture
def publisher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Publisher:
    return Publisher(tmp_path, monkeypatch)


def report(publisher: Publisher) -> Report | None:
    return next((one for one in publisher.asked() if isinstance(one, Report)), None)


def test_a_first_poll(publisher: Publisher, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gatewayfilter.fleet.follower")
    publisher.changes = 4
    state = publisher.follower().poll()
    assert publisher.asked() == [
        ("manifest", ""),
        ("blob", True, len(RULES)),
        ("adopt", ["a"], {}, 1_000.0),
        ("catch up", True, True, (), 5_000, True),
        ("download", "incoming", PART, ["base.gfs"]),
        "tried",
        "publish",
        "closed",
        Report("1.0", 50, 100, 11, 1, 0, 0, Fault.OK, 3),
        "closed",
    ]
    assert (state.sequence, state.in_force, state.made_at, state.expires_at) == (50, 50, 900.0, None)
    assert (state.etag, state.contact_at, state.fetched, state.adopted) == ("tag 50", 1_000.0, 70, {"policy:a": "d"})
    assert (state.exceptions, state.trusted) == (("group:x",), (write_public_key(KEYS.public[0]),))
    assert publisher.folder.base.read_bytes() == BASE
    assert publisher.folder.bundle.read_bytes() == RULES
    assert publisher.folder.path.stat().st_mode & 0o777 == 0o700
    assert publisher.in_use == []
    assert StateFile(publisher.folder.state).read() == state
    assert publisher.counters.as_dict() == {"fleet_polls": 1, "fleet_bytes": 70, "fleet_swaps": 1}
    assert [record.getMessage() for record in caplog.records] == [
        "took over 4 changes of rules and policies from the fleet's publisher",
        "fetched snapshot 50 of the fleet's publisher: 70 bytes, 30 were at hand",
    ]


def test_what_is_at_hand_is_neither_fetched_nor_published_again(publisher: Publisher) -> None:
    polling = publisher.follower()
    polling.poll()
    publisher.asked()
    publisher.now += 5.0
    publisher.manifest_is = replace(MANIFEST, sequence=51, created_at=950.0, expires_at=2_000.0, keys=LATER.public)
    state = polling.poll()
    assert publisher.asked() == [("manifest", "tag 50"), ("adopt", ["a"], {"policy:a": "d"}, 1_005.0), "closed"]
    assert (state.sequence, state.in_force, state.made_at, state.expires_at, state.etag) == (51, 51, 950.0, 2_000.0, "tag 51")
    assert state.trusted == tuple(map(write_public_key, LATER.public))
    publisher.manifest_is = None
    publisher.now += 5.0
    state = polling.poll()
    assert publisher.asked() == [("manifest", "tag 51"), ("adopt", ["a"], {"policy:a": "d"}, 1_010.0), "closed"]
    assert (state.contact_at, state.fetched, state.in_force) == (1_010.0, 70, 51)
    publisher.published = "other"
    polling.poll()
    assert "publish" in publisher.asked()
    assert publisher.counters["fleet_swaps"] == 2


def test_what_is_trusted_and_adopted_is_kept_before_anything_is_fetched(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that it is so after a crash, too."""
    publisher.changes = 1
    kept = []

    def note(work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            state = StateFile(publisher.folder.state).read()
            kept.append((state.sequence, state.trusted, dict(state.adopted)))
            return work(*values)

        return call

    monkeypatch.setattr(publisher, "blob", note(publisher.blob))
    monkeypatch.setattr(follower, "Download", note(publisher._download))
    publisher.folder.path.mkdir()
    publisher.follower().poll()
    trusted = (write_public_key(KEYS.public[0]),)
    assert kept == [(50, trusted, {}), (50, trusted, {"policy:a": "d"})]


def test_deltas_and_blocks_are_counted_together(publisher: Publisher) -> None:
    publisher.folder.path.mkdir()
    publisher.folder.base.write_bytes(b"older")
    older = hashlib.sha256(b"older").hexdigest()
    links = tuple(DeltaLink(name, "b" * 64, 5) for name in ("c" * 64, older))
    publisher.manifest_is = replace(MANIFEST, deltas=links)
    publisher.caught_up = CaughtUp(publisher.folder.path / "made", 9)
    (publisher.folder.incoming).mkdir()
    (publisher.folder.incoming / "0.made").touch()
    assert publisher.follower().poll().fetched == 79
    assert ("catch up", True, True, links[1:], 5_000, True) in publisher.done
    assert ("download", "incoming", PART, ["made", "base.gfs"]) in publisher.done
    assert publisher.counters["fleet_bytes"] == 79
    assert list(publisher.folder.incoming.iterdir()) == []


@pytest.mark.parametrize(
    ("manifest", "fault"),
    [
        (replace(MANIFEST, sequence=39), Fault.ROLLBACK),
        (replace(MANIFEST, sequence=40), Fault.OK),
        (replace(MANIFEST, expires_at=1_000.0 - CLOCK_SLACK_S), Fault.OK),
        (replace(MANIFEST, expires_at=999.0 - CLOCK_SLACK_S), Fault.EXPIRED),
        (replace(MANIFEST, snapshot=replace(PART, format_version=VERSION + 1)), Fault.FORMAT),
        (replace(MANIFEST, snapshot=replace(PART, size=1_000_000, block_bytes=2**20, segments=(1_000_000,))), Fault.OK),
        (replace(MANIFEST, snapshot=replace(PART, size=1_000_001, block_bytes=2**20, segments=(1_000_001,))), Fault.DISK),
        (replace(MANIFEST, bundle="0" * 64), Fault.CONTENT),
        (replace(MANIFEST, program="\n"), Fault.SIGNATURE),
    ],
)
def test_what_is_refused_before_anything_is_changed(publisher: Publisher, manifest: Manifest, fault: Fault) -> None:
    polling = publisher.follower(max_mb=1)
    polling.state = replace(polling.state, sequence=40, etag="old", in_force=40)
    publisher.manifest_is = manifest
    state = polling.poll()
    assert state.fault is fault
    refused = fault not in {Fault.OK, Fault.DISK}
    assert (state.refused, publisher.counters["fleet_rejected"]) == (int(refused), int(refused))
    assert (publisher.counters["fleet_failures"], state.failures) == (int(fault is Fault.DISK), int(fault is not Fault.OK))
    again = {Fault.CONTENT, Fault.DISK, Fault.EXPIRED}
    assert state.etag == ("tag " + str(manifest.sequence) if fault is Fault.OK else "" if fault in again else "old")
    assert state.in_force == (manifest.sequence if fault is Fault.OK else 40)
    assert state.sequence == (50 if fault is Fault.CONTENT else manifest.sequence if fault is Fault.OK else 40)
    assert ("publish" in publisher.done) == (fault is Fault.OK)


def test_faults_are_told_once_and_reported(publisher: Publisher, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gatewayfilter.fleet.follower")
    polling = publisher.follower()
    for fault in (TransportError("away\n" + "x" * 600), TransportError("away"), PolicyError("they clash"), None):
        publisher.fault = fault
        publisher.now += REPORT_EVERY_S
        state = polling.poll()
        sent = report(publisher)
        assert sent is not None
        assert (sent.fault, sent.failures, sent.refused) == (state.fault, state.failures, state.refused)
        assert sent.age_s == (int(publisher.now - 900.0) if fault is None else 0)
    assert (state.fault, state.sentence, state.failures, state.refused) == (Fault.OK, "", 0, 1)
    assert [record.getMessage()[:40] for record in caplog.records if "fetched" not in record.getMessage()] == [
        "away " + "x" * 35,
        "they clash; filtering goes on with the l",
        "the fleet's publisher can be followed ag",
    ]
    assert publisher.counters.as_dict() | {"fleet_bytes": 0, "fleet_swaps": 0} == {
        "fleet_polls": 4, "fleet_failures": 2, "fleet_rejected": 1, "fleet_bytes": 0, "fleet_swaps": 0
    }  # fmt: skip


def test_when_reports_are_sent(publisher: Publisher) -> None:
    polling = publisher.follower()
    waits = []
    for seconds, status in (
        (0.0, 204),
        (0.0, 204),
        (59.0, 204),
        (1.0, 0),
        (59.0, 204),
        (1.0, 404),
        (3_659.0, 204),
        (1.0, 405),
        (3_660.0, 501),
    ):
        publisher.now += seconds
        publisher.status = status
        publisher.asked()
        polling.poll()
        waits.append(report(publisher) is not None)
    assert waits == [True, False, False, True, False, True, False, True, True]
    publisher.now += 3_659.0
    polling.poll()
    assert report(publisher) is None
    publisher.now -= 10_000.0
    polling.poll()
    assert report(publisher) is not None, "the clock went back"
    for status in (400, 429, 500, 502):
        publisher.status = status
        for _ in range(2):
            publisher.now += 60.0
            polling.poll()
            assert report(publisher) is not None


def test_how_long_a_follower_waits(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    polling = publisher.follower(poll_s=60.0)
    bounds: list[tuple[float, float]] = []

    def uniform(least: float, most: float) -> float:
        bounds.append((least, most))
        return 1.0

    monkeypatch.setattr(random, "uniform", uniform)
    for failures, fault, seconds in (
        (0, Fault.OK, 60.0),
        (1, Fault.UNREACHABLE, 120.0),
        (3, Fault.DISK, 480.0),
        (4, Fault.UNREACHABLE, LONGEST_WAIT_S),
        (10_000, Fault.UNREACHABLE, LONGEST_WAIT_S),
        (3, Fault.CONTENT, 60.0),
    ):
        polling.state = replace(polling.state, failures=failures, fault=fault)
        assert polling.wait_s() == seconds
    rare = publisher.follower(poll_s=3_600.0)
    rare.state = replace(rare.state, failures=2, fault=Fault.UNREACHABLE)
    assert rare.wait_s() == 3_600.0
    quick = publisher.follower(poll_s=1.0)
    quick.state = replace(quick.state, failures=11, fault=Fault.UNREACHABLE)
    assert quick.wait_s() == LONGEST_WAIT_S
    quick.state = replace(quick.state, failures=9)
    assert quick.wait_s() == 512.0
    assert set(bounds) == {(0.75, 1.25)}


def test_lost_and_damaged_files_are_fetched_again(publisher: Publisher) -> None:
    polling = publisher.follower()
    polling.poll()
    publisher.manifest_is = None
    publisher.folder.bundle.write_bytes(b"{")
    state = polling.poll()
    assert (state.fault, state.etag, state.refused) == (Fault.CONTENT, "", 1)
    publisher.manifest_is = MANIFEST
    assert polling.poll().fault is Fault.OK
    assert publisher.folder.bundle.read_bytes() == RULES
    publisher.manifest_is = None
    publisher.folder.bundle.unlink()
    publisher.asked()
    assert (polling.poll().etag, publisher.asked()) == ("", [("manifest", "tag 50"), "closed"])
    publisher.manifest_is = MANIFEST
    polling.poll()
    publisher.folder.base.unlink()
    publisher.manifest_is = None
    assert polling.poll().etag == ""
    publisher.manifest_is = MANIFEST
    publisher.rules = b"other"
    publisher.folder.bundle.unlink()
    state = polling.poll()
    assert (state.fault, state.sentence) == (Fault.CONTENT, "the publisher's rules are not as signed")


def test_a_disk_that_cannot_be_written(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(follower, "replace_file", fail)
    state = publisher.follower().poll()
    assert (state.fault, state.sentence) == (
        Fault.DISK,
        f"cannot write {publisher.folder.bundle}: No space left on device",
    )
    monkeypatch.undo()


def test_a_snapshot_that_cannot_be_put_in_its_place(publisher: Publisher) -> None:
    (publisher.folder.base / "x").mkdir(parents=True)
    state = publisher.follower().poll()
    assert (state.fault, state.sentence) == (Fault.DISK, "cannot store the publisher's snapshot: Is a directory")


def test_a_manifest_that_is_expired_is_refused_though_nothing_changed(publisher: Publisher) -> None:
    publisher.manifest_is = replace(MANIFEST, expires_at=1_000.0)
    polling = publisher.follower()
    assert polling.poll().fault is Fault.OK
    publisher.manifest_is = None
    publisher.now += CLOCK_SLACK_S
    assert polling.poll().fault is Fault.OK
    publisher.now += 0.5
    state = polling.poll()
    assert (state.fault, state.sentence) == (
        Fault.EXPIRED,
        "the manifest 50 has expired, or this machine's clock is wrong",
    )
    assert (state.contact_at, state.etag) == (publisher.now - 0.5, "")


def test_another_fault_ends_the_poll_and_the_connection(publisher: Publisher) -> None:
    publisher.fault = RuntimeError("a fault of the program")
    with pytest.raises(RuntimeError):
        publisher.follower().poll()
    assert publisher.asked() == [("manifest", ""), "closed"]
