from pathlib import Path

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot import SnapshotBuilder
from gatewayfilter.engine.snapshot_folder import SnapshotFolder
from gatewayfilter.errors import StoreError
from gatewayfilter.model import Change, ChangeKind, EntryKind, ListAction, PersonRule, Reason, Request, Source
from gatewayfilter.proxy.updates import EngineFollower
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url


class Feed:
    """A change feed in memory; fails while `broken`."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.broken = False

    def block(self, host: str) -> None:
        rule = PersonRule(len(self.changes) + 1, ListAction.BLOCK, EntryKind.DOMAIN, f".{host}")
        self.changes.append(Change(len(self.changes) + 1, ChangeKind.PERSON_ADDED, person=rule))

    def last_seq(self) -> int:
        return len(self.changes)

    def read(self, after: int, limit: int = 1000) -> list[Change]:
        if self.broken:
            raise StoreError("the database is away")
        return [change for change in self.changes if change.seq > after][:limit]


def build(*hosts: str, feed_seq: int = 0, rules: tuple[PersonRule, ...] = ()) -> bytes:
    builder = SnapshotBuilder(feed_seq=feed_seq)
    builder.add_keys(builder.add_source(Source("test")), [f".{host}" for host in hosts])
    builder.set_rules(rules)
    return builder.build()


class World:
    def __init__(self, path: Path) -> None:
        self.folder = SnapshotFolder(path)
        self.folder.publish(build("one.example"))
        self.engine = FilterEngine(self.folder.open_newest()[0])
        self.feed = Feed()
        self.counters = Counters()
        self.follower = EngineFollower(self.engine, self.folder, self.feed, self.counters, poll_s=0.005)

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
    assert world.reason("two.example") is Reason.PERSON_BLOCK
    world.follower.follow_once()
    assert world.counters.as_dict() == {"overlay_changes": 1}


def test_a_new_snapshot_is_taken_with_the_changes_after_it(world: World) -> None:
    world.feed.block("two.example")
    world.feed.block("three.example")
    rule = world.feed.changes[0].person
    assert rule is not None
    world.folder.publish(build("four.example", feed_seq=1, rules=(rule,)))
    world.follower.follow_once()
    assert world.counters["snapshot_swaps"] == 1
    assert world.engine.feed_seq == 2
    found = [world.reason(f"{name}.example") for name in ("one", "two", "three", "four")]
    assert found == [Reason.UNKNOWN, Reason.PERSON_BLOCK, Reason.PERSON_BLOCK, Reason.BLACKLIST]


def test_a_damaged_snapshot_is_refused_once_and_the_old_one_goes_on(world: World, caplog: pytest.LogCaptureFixture) -> None:
    path = world.folder.publish(build("four.example"))
    path.write_bytes(path.read_bytes()[:-100])
    for _ in range(3):
        world.follower.follow_once()
    assert world.counters.as_dict() == {"snapshot_refused": 1}
    assert len(caplog.records) == 1
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
    assert world.reason("two.example") is Reason.PERSON_BLOCK


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
