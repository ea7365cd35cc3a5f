"""A fleet at its bounds: when followers report and wait, what publishers keep and export again, how much is taken."""

import json
import logging
import os
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayfilter.errors import FleetError
from gatewayfilter.fleet import download, export, members
from gatewayfilter.fleet.bundle import shared_bundle
from gatewayfilter.fleet.download import MOST_REQUESTS, ContentError, DiskError, Download, runs_of
from gatewayfilter.fleet.export import copy_export, part_of
from gatewayfilter.fleet.follower import CLOCK_SLACK_S
from gatewayfilter.fleet.follower_state import Fault
from gatewayfilter.fleet.health import HealthBoard, Report, read_board, read_report
from gatewayfilter.fleet.members import Members
from gatewayfilter.fleet.transport import Transport, TransportError
from gatewayfilter.model import APPROVED, FLEET, Client, EntryKind, Group, ListAction, ManualRule, PolicySet
from gatewayfilter.settings import FleetSettings, Shared
from tests.fleet.fleet_fakes import Gateway, Publisher, publish_hosts
from tests.fleet.test_fleet_endpoint import answering, plain

HOSTS = [f"host-{number}.example" for number in range(50)]
REPORT = Report("1.0", 7, 60, 1_000, 0, 0, 0, Fault.OK, 2)


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    (tmp_path / "publisher").mkdir()
    made = Publisher(tmp_path / "publisher")
    publish_hosts(made.snapshots, HOSTS)
    return made


@pytest.fixture
def gateway(tmp_path: Path, publisher: Publisher) -> Gateway:
    (tmp_path / "follower").mkdir()
    return Gateway(tmp_path / "follower", publisher)


def test_reports_are_sent_once_a_minute(publisher: Publisher, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher.export()
    gateway.now = publisher.now + 90.5
    gateway.follower.poll()
    first = read_report(gateway.transport.reports[0])
    assert (first.age_s, first.sequence, first.entries, first.workers, first.fault) == (
        *(90, gateway.follower.state.in_force, 1, 2, Fault.OK),
    )
    for seconds, sent in ((59.0, 1), (1.0, 2), (-500.0, 3)):
        gateway.now += seconds
        gateway.follower.poll()
        assert len(gateway.transport.reports) == sent

    def no_reports(body: bytes) -> int:
        gateway.transport.reports.append(body)
        return 404

    monkeypatch.setattr(gateway.transport, "report", no_reports)
    gateway.now += 60.0
    gateway.follower.poll()
    for seconds, sent in ((3_600.0, 4), (59.0, 4), (1.0, 5)):
        gateway.now += seconds
        gateway.follower.poll()
        assert len(gateway.transport.reports) == sent, "a web server takes none: an hour's pause"


def test_a_fault_is_logged_when_it_comes_and_when_it_goes(
    publisher: Publisher, gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gatewayfilter.fleet.follower")
    publisher.export()
    gateway.follower.poll()
    caplog.clear()
    gateway.transport.away = True
    states = [gateway.follower.poll() for _ in range(3)]
    gateway.transport.away = False
    again = gateway.follower.poll()
    gateway.follower.poll()
    told = [record.getMessage() for record in caplog.records]
    assert told == [
        "cannot reach the publisher: refused; filtering goes on with the last good lists",
        "the fleet's publisher can be followed again",
    ]
    assert [state.failures for state in states] == [1, 2, 3]
    assert (again.failures, again.sentence, again.refused) == (0, "", 0)
    assert (gateway.counters["fleet_polls"], gateway.counters["fleet_failures"], gateway.counters["fleet_rejected"]) == (6, 3, 0)


def test_what_is_refused_is_counted_and_polled_for_as_often(publisher: Publisher, gateway: Gateway) -> None:
    publisher.export()
    (publisher.folder / "manifest").write_bytes(b"no manifest")
    states = [gateway.follower.poll() for _ in range(3)]
    assert ([state.refused for state in states], gateway.counters["fleet_rejected"]) == ([1, 2, 3], 3)
    waits = [gateway.follower.wait_s() for _ in range(50)]
    assert (min(waits) >= 45.0, max(waits) <= 75.0, max(waits) - min(waits) > 5.0) == (True, True, True)
    gateway.transport.away = True
    gateway.follower.poll()
    assert gateway.follower.wait_s() >= 0.75 * 900.0


def test_an_answer_that_nothing_has_changed_expires_too(publisher: Publisher, gateway: Gateway) -> None:
    publisher.settings = FleetSettings(valid_h=1.0)
    publisher.export()
    gateway.now = publisher.now
    assert gateway.follower.poll().expires_at == publisher.now + 3_600
    gateway.now = publisher.now + 3_600 + CLOCK_SLACK_S
    assert (gateway.follower.poll().fault, gateway.follower.state.contact_at) == (Fault.OK, gateway.now)
    gateway.now += 1
    state = gateway.follower.poll()
    assert (state.fault, state.etag) == (Fault.EXPIRED, "")
    assert gateway.blocks(".host-7.example")


@pytest.mark.parametrize(("size", "fault"), [(1, Fault.OK), (0, Fault.SIGNATURE)])
def test_a_delta_has_a_byte_at_least(publisher: Publisher, gateway: Gateway, size: int, fault: Fault) -> None:
    publisher.export()
    publisher.forge({"deltas": [["0" * 64, "1" * 64, size]]})
    assert gateway.follower.poll().fault is fault


def test_lost_files_of_a_follower_come_back(publisher: Publisher, gateway: Gateway) -> None:
    publisher.export()
    gateway.follower.poll()
    folder = gateway.home / "fleet"
    for name in ("base.gfs", "bundle.json"):
        path = next(one for one in folder.iterdir() if one.name.startswith(name.partition(".")[0]))
        path.unlink()
        assert gateway.follower.poll().fault is Fault.OK
        assert gateway.follower.poll().fault is Fault.OK
        assert path.exists()


def test_the_largest_snapshot_of_a_follower(publisher: Publisher, gateway: Gateway) -> None:
    publisher.export()
    size = gateway.follower._checked((publisher.folder / "manifest").read_bytes()).snapshot.size
    gateway.settings = gateway.settings.model_copy(update={"max_mb": size / 1_000_000})
    assert gateway.restarted().poll().fault is Fault.OK
    gateway.settings = gateway.settings.model_copy(update={"max_mb": (size - 1) / 1_000_000})
    publish_hosts(publisher.snapshots, HOSTS)
    publisher.now += 1
    publisher.export()
    state = gateway.restarted().poll()
    assert (state.fault, "more than fleet.max_mb allows" in state.sentence) == (Fault.DISK, True)


def test_a_manifest_is_made_anew_at_half_of_its_time(publisher: Publisher) -> None:
    publisher.settings = FleetSettings(valid_h=2.0)
    assert publisher.export()
    made_at = publisher.now
    publisher.now = made_at + 3_598
    assert not publisher.export()
    publisher.now = made_at + 3_599
    assert publisher.export()
    publisher.now -= 10_000
    assert publisher.export(), "the clock went back"
    publisher.settings = FleetSettings()
    assert publisher.export()
    publisher.now += 10**9
    assert not publisher.export()


def test_the_sequence_rises_though_the_state_is_lost(publisher: Publisher) -> None:
    def sequence() -> int:
        return int(json.loads((publisher.folder / "manifest").read_bytes().partition(b"\n\n")[2])["sequence"])

    publisher.export()
    first = sequence()
    assert first == int(publisher.now)
    (publisher.folder / "state.json").write_text("{")
    assert publisher.export()
    assert sequence() > first
    (publisher.folder / "manifest").unlink()
    assert publisher.export()
    publisher.now -= 1_000
    publish_hosts(publisher.snapshots, HOSTS[:5])
    before = sequence()
    assert publisher.export()
    assert sequence() == before + 1


def test_files_of_the_export_before_stay_and_older_ones_go(publisher: Publisher) -> None:
    blobs = publisher.folder / "blobs"

    def snapshot() -> str:
        return str(json.loads((publisher.folder / "manifest").read_bytes().partition(b"\n\n")[2])["snapshot"]["name"])

    names = []
    for size in (10, 20, 30):
        publish_hosts(publisher.snapshots, HOSTS[:size])
        publisher.export()
        names.append(snapshot())
        (blobs / "mine.txt").touch()
    assert [(blobs / name).exists() for name in names] == [False, True, True]
    assert (blobs / "mine.txt").exists()
    assert not (publisher.folder / ".exporting").exists()


def test_rules_that_are_too_long_are_not_exported(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "LARGEST_BUNDLE", 5)
    with pytest.raises(FleetError, match="more than the 5 of a bundle"):
        publisher.export()
    assert not publisher.folder.exists()


def test_an_export_for_a_web_server_can_be_read_by_all(publisher: Publisher, tmp_path: Path) -> None:
    publisher.export()
    target = tmp_path / "www"
    written = copy_export(publisher.folder, target)
    files = [path for path in target.rglob("*") if path.is_file()]
    assert written == sum(path.stat().st_size for path in files)
    assert {path.stat().st_mode & 0o777 for path in files} == {0o644}
    damaged = next(path for path in files if path.parent.name == "blobs")
    damaged.write_bytes(b"x")
    (target / "blobs" / ("0" * 64)).touch()
    (target / "blobs" / "index.html").touch()
    copy_export(publisher.folder, target)
    assert damaged.read_bytes() == (publisher.folder / "blobs" / damaged.name).read_bytes()
    assert not (target / "blobs" / ("0" * 64)).exists()
    assert (target / "blobs" / "index.html").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "blobs").symlink_to(target)
    with pytest.raises(FleetError, match="is a symbolic link"):
        copy_export(publisher.folder, tmp_path / "other")


class _Spans(Transport):
    """Sends parts of a file."""

    def __init__(self, data: bytes) -> None:
        super().__init__("http://127.0.0.1:9", "")
        self.data = data
        self.asked: list[tuple[int, int]] = []

    def span(self, name: str, begin: int, length: int) -> list[bytes]:  # type: ignore[override]
        self.asked.append((begin, length))
        return [self.data[begin : begin + length]]


def test_a_download_needs_its_room_and_takes_its_own_rest(
    publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher.export()
    source = publisher.snapshots.current()
    assert source is not None
    name = next(path.name for path in (publisher.folder / "blobs").iterdir() if path.stat().st_size > 1_000)
    path = publisher.folder / "blobs" / name
    part, transport = part_of(path, name, 0.0), _Spans(path.read_bytes())
    folder = tmp_path / "incoming"
    folder.mkdir()
    (folder / "other.part").touch()
    (folder / f"{name}.part").write_bytes(b"y" * (part.size + 5))
    found = Download(folder, part, (tmp_path / "none",)).fetch(transport)
    assert (found.path.read_bytes(), found.fetched + found.reused) == (transport.data, part.size)
    assert found.reused <= part.block_bytes, "a block of zeros is there from the beginning"
    assert [one.name for one in folder.iterdir()] == [f"{name}.part"]
    assert found.path.stat().st_mode & 0o777 == 0o600
    transport.asked.clear()
    again = Download(folder, part, ()).fetch(transport)
    assert (again.fetched, again.reused, transport.asked) == (0, part.size, [])
    damaged = bytearray(transport.data)
    damaged[-1] ^= 1
    found.path.write_bytes(damaged)
    once_more = Download(folder, part, ()).fetch(transport)
    assert (0 < once_more.fetched <= part.block_bytes, len(transport.asked)) == (True, 1)
    with pytest.raises(ContentError, match="the whole is not"):
        Download(folder, replace(part, name="0" * 64), (path,)).fetch(transport)
    assert list(folder.iterdir()) == []
    usage = os.statvfs(tmp_path)
    free = usage.f_bavail * usage.f_frsize
    monkeypatch.setattr("gatewayfilter.fleet.download.shutil.disk_usage", lambda _: type("U", (), {"free": free}))
    monkeypatch.setattr(download, "ROOM_BYTES", free - 2 * part.size)
    Download(folder, part, (path,)).fetch(transport)
    for left in folder.iterdir():
        left.unlink()
    monkeypatch.setattr(download, "ROOM_BYTES", free - 2 * part.size + 1)
    with pytest.raises(DiskError, match="no room for the publisher's snapshot: it needs"):
        Download(folder, part, (path,)).fetch(transport)


@pytest.mark.parametrize(("count", "runs"), [(MOST_REQUESTS, MOST_REQUESTS), (MOST_REQUESTS + 1, MOST_REQUESTS), (1, 1)])
def test_the_number_of_requests_is_bounded(count: int, runs: int) -> None:
    missing = [number * 10 - (number == count - 1) for number in range(count)]
    found = runs_of(missing)
    assert len(found) == runs
    assert set(missing) <= {number for run in found for number in run}
    assert (found[0][0], found[-1][-1]) == (missing[0], missing[-1])


def test_the_number_of_followers_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "MOST_MEMBERS", 2)
    known = Members(tmp_path / "followers.json", lambda: 7.0)
    known.add("x" * 64)
    known.add("a.b-c")
    with pytest.raises(FleetError, match="there are 2 followers already"):
        known.add("third")
    assert [(member.name, member.added_at) for member in known.all()] == [("a.b-c", 7.0), ("x" * 64, 7.0)]
    (tmp_path / "followers.json").unlink()
    assert known.all() == []


def test_the_board_keeps_the_newest_report_of_each(tmp_path: Path) -> None:
    now = [1_000.0]
    board = HealthBoard(tmp_path / "health.json", lambda: now[0])
    board.write(set())
    assert not (tmp_path / "health.json").exists(), "nothing changed"
    taken = []
    for seconds in (0.0, 49.9, 0.1, -20.0):
        now[0] += seconds
        taken.append(board.take("north", replace(REPORT, sequence=int(now[0]))))
    assert taken == [True, False, True, True]
    board.take("south", REPORT)
    board.write({"north"})
    assert {name: (at, report.sequence) for name, (at, report) in read_board(tmp_path / "health.json").items()} == {
        "north": (1_030.0, 1_030)
    }


@pytest.mark.parametrize(
    ("answer", "ask", "found"),
    [
        (b"HTTP/1.1 200 OK\r\nETag: %s\r\nContent-Length: 3\r\n\r\nabc" % (b"e" * 200), "manifest", ("e" * 200, b"abc")),
        (b"HTTP/1.1 200 OK\r\nETag: %s\r\nContent-Length: 3\r\n\r\nabc" % (b"e" * 201), "manifest", ("", b"abc")),
        (b'HTTP/1.1 200 OK\r\nETag: "\xe9"\r\nContent-Length: 3\r\n\r\nabc', "manifest", ("", b"abc")),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: Identity\r\nContent-Length: 3\r\n\r\nabc", "manifest", ("", b"abc")),
        (b"HTTP/1.1 304 Not Modified\r\n\r\n", "manifest", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd", "manifest", None),
    ],
)
def test_answers_at_the_bounds(answer: bytes, ask: str, found: tuple[str, bytes] | None) -> None:
    others = set(threading.enumerate())  # other tests of this process may have left theirs
    with answering(plain(answer)) as address, closing(Transport(address, "")) as transport:
        if found is None:
            with pytest.raises(TransportError):
                transport.manifest("", 3)
        else:
            got = transport.manifest("", 3)
            assert (ask, got.etag, got.body) == ("manifest", *found)
    watchdogs = [thread for thread in set(threading.enumerate()) - others if isinstance(thread, threading.Timer)]
    assert all(watchdog.finished.is_set() for watchdog in watchdogs), "none ends a later answer"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 5-7/100\r\nContent-Length: 3\r\n\r\nabc", "another part"),
        (b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-1/100\r\nContent-Length: 2\r\n\r\nab", "another part"),
        (b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-2/100\r\nContent-Length: 2\r\n\r\nab", "cut off after 2 of 3 bytes"),
        (b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-2/100\r\nContent-Length: 3\r\n\r\nabc", ""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde", ""),
    ],
)
def test_parts_of_files(answer: bytes, words: str) -> None:
    with answering(plain(answer)) as address, closing(Transport(address, "")) as transport:
        if words:
            with pytest.raises(TransportError, match=words):
                b"".join(transport.span("a" * 64, 0, 3))
        else:
            assert b"".join(transport.span("a" * 64, 0, 3)) == b"abc"
        if answer.startswith(b"HTTP/1.1 200"):
            assert transport._connection is None, "the rest of the file is not waited for"


@pytest.mark.parametrize(
    ("share", "rules", "items"),
    [
        ((), set(), set()),
        ((Shared.RULES,), {".all.example"}, set()),
        ((Shared.RULES, Shared.POLICIES), {".all.example", ".kids.example"}, {"kids"}),
        ((Shared.RULES, Shared.CLIENTS), {".all.example", ".kim.example"}, {"kim"}),
        ((Shared.CLIENTS,), set(), {"kim"}),
    ],
)
def test_what_travels(share: tuple[Shared, ...], rules: set[str], items: set[str]) -> None:
    def rule(name: str, **values: object) -> ManualRule:
        return ManualRule(1, ListAction.BLOCK, EntryKind.DOMAIN, f".{name}.example", **values)  # type: ignore[arg-type]

    known = [
        rule("all"),
        rule("kids", scope="group:kids"),
        rule("kim", scope="client:kim"),
        rule("off", enabled=False),
        rule("approved", group=APPROVED),
        rule("mine", group=FLEET),
    ]
    household = PolicySet.of([Group("kids"), Client("kim", group="kids")])
    found = shared_bundle(known, household, FleetSettings(share=share))
    assert {one.pattern for one in found.rules} == rules
    assert {item.name for item in found.items} == items
