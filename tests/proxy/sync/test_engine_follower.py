import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.format import SECTION_NAMES, read_sections
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.errors import StoreError
from gatewayfilter.model import Change, ChangeKind, EntryKind, ListAction, ManualRule, Reason, Request, ResourceType, Source
from gatewayfilter.proxy.sync.engine_follower import EngineFollower
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url


class Feed:
    """A change feed in memory; fails while `broken`."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.broken = False

    def block(self, host: str) -> None:
        rule = ManualRule(len(self.changes) + 1, ListAction.BLOCK, EntryKind.DOMAIN, f".{host}")
        self.changes.append(Change(len(self.changes) + 1, ChangeKind.MANUAL_ADDED, manual=rule))

    def last_seq(self) -> int:
        return len(self.changes)

    def read(self, after: int, limit: int = 1000) -> list[Change]:
        if self.broken:
            raise StoreError("the database is away")
        return [change for change in self.changes if change.seq > after][:limit]


RULES = tuple(ManualRule(number, ListAction.BLOCK, EntryKind.DOMAIN, f".r{number}.example") for number in range(9))


def build(*hosts: str, feed_seq: int = 0, rules: tuple[ManualRule, ...] = (), adblock: Sequence[str] = ()) -> bytes:
    builder = SnapshotBuilder(feed_seq=feed_seq)
    builder.add_keys(builder.add_source(Source("test")), [f".{host}" for host in hosts])
    builder.add_adblock_list(builder.add_source(Source("ads")), adblock)
    builder.set_rules(rules)
    return builder.build()


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class World:
    def __init__(self, path: Path) -> None:
        self.clock = Clock()
        self.folder = SnapshotFolder(path)
        self.folder.publish(build("one.example"))
        self.engine = FilterEngine(self.folder.open_newest()[0])
        self.feed = Feed()
        self.counters = Counters()
        self.follower = EngineFollower(self.engine, self.folder, self.feed, self.counters, 0.005, self.clock)

    def reason(self, host: str) -> Reason:
        return self.engine.decide(Request(parse_url(f"http://{host}/"))).reason


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "snapshots")


def test_the_first_snapshot_is_not_taken_twice(world: World) -> None:
    world.follower.follow_once()
    assert world.counters.as_dict() == {}


def test_changes_reach_the_engine(world: World) -> None:
    world.feed.block("two.example")
    world.follower.follow_once()
    assert world.reason("two.example") is Reason.MANUAL_BLOCK
    world.follower.follow_once()
    assert world.counters.as_dict() == {"overlay_changes": 1}


def test_a_new_snapshot_is_taken_with_the_changes_after_it(world: World) -> None:
    world.feed.block("two.example")
    world.feed.block("three.example")
    rule = world.feed.changes[0].manual
    assert rule is not None
    world.folder.publish(build("four.example", feed_seq=1, rules=(rule,)))
    world.follower.follow_once()
    assert world.counters["snapshot_swaps"] == 1
    assert world.engine.feed_seq == 2
    found = [world.reason(f"{name}.example") for name in ("one", "two", "three", "four")]
    assert found == [Reason.UNKNOWN, Reason.MANUAL_BLOCK, Reason.MANUAL_BLOCK, Reason.BLACKLIST]


def test_a_damaged_snapshot_is_refused_once_and_the_old_one_goes_on(world: World, caplog: pytest.LogCaptureFixture) -> None:
    path = world.folder.publish(build("four.example"))
    path.write_bytes(path.read_bytes()[:-100])
    for _ in range(3):
        world.follower.follow_once()
    assert world.counters.as_dict() == {"snapshot_refused": 1}
    assert len(caplog.records) == 1
    assert "SnapshotError" not in caplog.text, "the sentence alone"
    assert world.reason("one.example") is Reason.BLACKLIST
    world.folder.publish(build("five.example"))
    world.follower.follow_once()
    assert world.reason("five.example") is Reason.BLACKLIST


def test_a_database_that_is_away_is_logged_once_and_asked_again(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.feed.block("two.example")
    world.feed.broken = True
    for _ in range(3):
        world.follower.follow_once()
    assert len(caplog.records) == 1
    world.feed.broken = False
    world.follower.follow_once()
    assert world.reason("two.example") is Reason.MANUAL_BLOCK


def test_more_changes_than_a_page(world: World) -> None:
    for number in range(2500):
        world.feed.block(f"h{number}.example")
    world.follower.follow_once()
    assert world.engine.feed_seq == 2500


def test_a_pointer_to_nothing_is_looked_at_again(world: World) -> None:
    path = world.folder.publish(build("four.example"))
    aside = path.rename(path.with_name("aside"))
    world.follower.follow_once()
    assert world.counters.as_dict() == {}
    aside.rename(path)
    world.follower.follow_once()
    assert world.reason("four.example") is Reason.BLACKLIST


def test_a_folder_made_anew_under_the_same_number_is_seen(world: World) -> None:
    world.follower.follow_once()
    for path in world.folder._folder.iterdir():
        path.unlink()
    world.folder.publish(build("four.example"))
    world.follower.follow_once()
    assert world.reason("four.example") is Reason.BLACKLIST


def test_without_a_database_snapshots_are_followed(world: World) -> None:
    follower = EngineFollower(world.engine, world.folder, None, world.counters)
    world.folder.publish(build("four.example"))
    follower.follow_once()
    assert world.reason("four.example") is Reason.BLACKLIST


def test_the_thread_follows_until_it_is_stopped(world: World) -> None:
    world.follower.start()
    world.feed.block("two.example")
    for _ in range(1000):
        if world.engine.feed_seq == 1:
            break
        world.follower._stop.wait(0.005)
    world.follower.stop()
    assert world.engine.feed_seq == 1
    assert not world.follower._thread.is_alive()


def test_changes_are_applied_before_the_first_poll(world: World) -> None:
    follower = EngineFollower(world.engine, world.folder, world.feed, world.counters, poll_s=1_000.0)
    world.feed.block("two.example")
    follower.start()
    assert world.reason("two.example") is Reason.MANUAL_BLOCK
    follower.stop()
    assert not follower._thread.is_alive()


@pytest.mark.parametrize(("takes_s", "again_after_s"), [(0.0, 60.0), (0.03125, 60.0), (0.125, 125.0)])
def test_verification_takes_no_more_than_its_share_of_the_time(
    world: World, takes_s: float, again_after_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = 0

    def verify(_: Snapshot) -> None:
        nonlocal times
        times += 1
        world.clock.now += takes_s

    monkeypatch.setattr(Snapshot, "verify", verify)
    world.follower.follow_once()
    due = 60.0
    for number in range(3):
        for now, verified in ((due - 0.5, number), (due, number + 1)):
            world.clock.now = now
            world.follower.follow_once()
            assert times == verified
        due = world.clock.now + again_after_s


def damage(path: Path, section: str) -> None:
    """Zeroes a section, in place: whoever has the file mapped sees it."""
    found = read_sections(path.read_bytes())[section]
    with path.open("r+b") as file:
        file.seek(found.offset + found.length // 4)
        file.write(bytes(found.length // 2))


SECTIONS = [name for name in SECTION_NAMES if name not in {"details", "learned", "whitelist", "splicelist"}]


@pytest.mark.parametrize("section", SECTIONS)
def test_a_snapshot_damaged_on_the_disk_never_comes_into_use(
    world: World, section: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = world.folder.publish(build(*(f"n{number}.example" for number in range(2_000)), feed_seq=1, rules=RULES))
    damage(path, section)
    for _ in range(3):
        world.follower.follow_once()
    assert world.counters.as_dict() == {"snapshot_refused": 1}
    (record,) = caplog.records
    assert path.name in record.getMessage()
    assert world.reason("one.example") is Reason.BLACKLIST
    assert world.folder.is_refused()
    world.folder.publish(build("five.example"))
    assert not world.folder.is_refused()
    world.follower.follow_once()
    assert world.reason("five.example") is Reason.BLACKLIST
    assert world.counters["snapshot_swaps"] == 1


def test_a_restarted_worker_keeps_the_newest_good_one(world: World) -> None:
    """It begins with the good one before; the damaged one to which the pointer leads must not follow."""
    good = world.folder.publish(build("one.example", "two.example"))
    damage(world.folder.publish(build("one.example", "two.example", "three.example")), "bloom")
    snapshot, refused = world.folder.open_newest()
    assert len(refused) == 1
    engine = FilterEngine(snapshot)
    follower = EngineFollower(engine, world.folder, world.feed, world.counters, clock=world.clock)
    for _ in range(3):
        follower.follow_once()
    assert world.counters.as_dict() == {"snapshot_refused": 1}
    assert engine.snapshot.mark == Snapshot.open(good).mark
    assert engine.decide(Request(parse_url("http://two.example/"))).reason is Reason.BLACKLIST


@pytest.mark.parametrize("error", [UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"), IndexError("x"), MemoryError()])
def test_whatever_a_swap_raises_is_a_refusal(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    world.folder.publish(build("four.example"))
    with monkeypatch.context() as patch:
        patch.setattr(FilterEngine, "swap", fails)
        for _ in range(3):
            world.follower.follow_once()
    assert world.counters.as_dict() == {"snapshot_refused": 1}
    assert f"{type(error).__name__}: {error}" in caplog.text
    world.follower.follow_once()
    assert world.reason("four.example") is Reason.UNKNOWN
    world.clock.now += 60  # it was for want of memory
    world.follower.follow_once()
    assert world.reason("four.example") is Reason.BLACKLIST


def test_the_snapshot_in_use_is_verified_again(world: World) -> None:
    world.folder.publish(build("one.example", "two.example"))
    world.follower.follow_once()
    current = world.folder.publish(build("one.example", "two.example", "three.example"))
    world.follower.follow_once()
    damage(current, "bloom")
    world.follower.follow_once()
    assert world.counters["snapshot_refused"] == 0
    world.clock.now += 61
    world.follower.follow_once()
    assert (world.counters["snapshot_refused"], world.counters["snapshot_swaps"]) == (1, 3)
    assert world.reason("two.example") is Reason.BLACKLIST
    assert world.folder.is_refused()
    world.follower.follow_once()
    assert world.counters["snapshot_refused"] == 1


def test_rules_that_were_taken_over_are_verified_where_they_lie(world: World) -> None:
    """A swap leaves equal Adblock rules where they are: in the file before."""
    before = world.folder.publish(build("one.example", adblock=["||ads.example^"]))
    world.follower.follow_once()
    world.folder.publish(build("one.example", "two.example", adblock=["||ads.example^"]))
    world.follower.follow_once()
    damage(before, "adblock")
    world.clock.now += 61
    world.follower.follow_once()
    assert world.counters["snapshot_refused"] == 1
    assert not world.folder.is_refused()  # the current one is good
    assert world.reason("two.example") is Reason.BLACKLIST
    script = Request(parse_url("http://ads.example/x.js"), parse_url("http://a.example/"), ResourceType.SCRIPT)
    assert world.engine.decide(script).reason is Reason.ADBLOCK
    world.clock.now += 61
    world.follower.follow_once()
    assert world.counters["snapshot_refused"] == 1


def test_a_file_that_was_cut_off_is_left_at_the_next_poll(world: World) -> None:
    """What lies behind its end must not be read: the system would end the process."""
    path = world.folder.publish(build("two.example", adblock=["||ads.example^"]))
    world.follower.follow_once()
    os.truncate(path, path.stat().st_size // 2)
    world.follower.follow_once()
    assert world.counters.as_dict() == {"snapshot_swaps": 2, "snapshot_refused": 1}
    assert world.reason("one.example") is Reason.BLACKLIST
    assert world.folder.is_refused()


def test_where_all_files_were_cut_off_it_is_told_once(world: World) -> None:
    world.follower.follow_once()
    for path in world.folder._folder.glob("*.gfs"):
        os.truncate(path, path.stat().st_size - 100)
    for _ in range(3):
        world.follower.follow_once()
    assert world.counters["snapshot_refused"] == 1
    assert world.folder.is_refused()
    world.folder.publish(build("two.example"))
    world.follower.follow_once()
    assert world.reason("two.example") is Reason.BLACKLIST


def test_rules_that_were_taken_over_are_left_when_their_file_is_cut_off(world: World) -> None:
    before = world.folder.publish(build("two.example", adblock=["||ads.example^"]))
    world.follower.follow_once()
    script = Request(parse_url("http://ads.example/x.js"), parse_url("http://a.example/"), ResourceType.SCRIPT)
    assert world.engine.decide(script).reason is Reason.ADBLOCK
    world.folder.publish(build("three.example", adblock=["||ads.example^"]))
    world.follower.follow_once()
    os.truncate(before, before.stat().st_size // 2)
    world.follower.follow_once()
    assert world.counters["snapshot_refused"] == 1
    assert world.engine.decide(script).reason is Reason.ADBLOCK
    assert world.reason("three.example") is Reason.BLACKLIST


def test_with_no_good_one_left_it_goes_on_and_asks_for_another(world: World) -> None:
    world.follower.follow_once()
    for path in world.folder._folder.glob("*.gfs"):
        damage(path, "blacklist")
    for _ in range(2):
        world.clock.now += 61
        world.follower.follow_once()
    assert world.counters.as_dict() == {"snapshot_refused": 2}
    assert world.folder.is_refused()
    world.folder.publish(build("one.example"))
    world.follower.follow_once()
    assert world.reason("one.example") is Reason.BLACKLIST
