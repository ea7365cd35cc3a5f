"""Publishing where only entries changed: no list is read again; whatever is wrong with what it follows from costs only time."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import EntryKind, LearnedEntry, ListAction, Policy, Reason, Request, Source
from gatewayfilter.sources import ListFormat, SourceFile, Subscriptions
from gatewayfilter.sources.publish import PublishReport, mark_of_inputs, publish, publish_base
from gatewayfilter.sources.publish import publish as publish_function
from gatewayfilter.store import Store
from gatewayfilter.urls import parse_url
from tests.sources.list_server import Clock


class Place:
    """A state folder with a list of its own, and its publisher."""

    def __init__(self, root: Path, subscriptions: Subscriptions, clock: Clock) -> None:
        self.root = root
        self.subscriptions = subscriptions
        self.clock = clock
        self.store = Store.open(f"sqlite:///{root}/store.sqlite3")
        self.folder = SnapshotFolder(root / "snapshots")
        (root / "mine.txt").write_text("listed.example.com\n")
        subscriptions.add(str(root / "mine.txt"), name="mine", category="games")

    def publish(self, *, full: bool = False) -> PublishReport:
        store = self.store
        return publish(
            self.folder, self.subscriptions, store.lists, store.feed, policies=store.policies, clock=self.clock, full=full
        )

    def learn(self, *urls: str, expires_in: float = 100.0) -> None:
        expires_at = self.clock.now + expires_in
        self.store.lists.put_learned(
            [LearnedEntry(url, ListAction.BLOCK, "gambling", f"http://{url}", "score 42.0", 0.0, expires_at) for url in urls]
        )

    def reason(self, url: str) -> Reason:
        snapshot, refused = self.folder.open_newest()
        assert refused == []
        return FilterEngine(snapshot, clock=self.clock).decide(Request(parse_url(url))).reason

    @property
    def counters(self) -> Path:
        (path,) = (self.root / "snapshots").glob("counters-*")
        return path


@pytest.fixture
def place(tmp_path: Path, subscriptions: Subscriptions, clock: Clock) -> Iterator[Place]:
    made = Place(tmp_path, subscriptions, clock)
    assert made.publish().rebuilt == "there is no snapshot yet"
    yield made
    made.store.close()


def test_entries_come_and_go_without_a_list_being_read(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def unread(*_: object) -> None:
        raise AssertionError("a list was read")

    full = place.publish(full=True)
    assert full.rebuilt == "on request"
    monkeypatch.setitem(publish_function.__globals__, "parse_list", unread)
    place.learn("a.example/1", "b.example/2")
    rule = place.store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, ".person.example.com")
    report = place.publish()
    assert report.rebuilt == ""
    assert (report.learned, report.manual_rules, report.feed_seq) == (2, 1, 3)
    assert [(item.source, item.report.accepted) for item in report.sources if item.report] == [
        (item.source, item.report.accepted) for item in full.sources if item.report
    ]
    assert place.reason("http://a.example/1") is Reason.LEARNED
    assert place.reason("http://person.example.com/") is Reason.MANUAL_BLOCK
    assert place.reason("http://listed.example.com/") is Reason.BLACKLIST
    place.store.lists.remove_learned(["a.example/1"])
    place.store.lists.remove_rule(rule.rule_id)
    assert place.publish().rebuilt == ""
    assert place.reason("http://a.example/1") is Reason.UNKNOWN
    assert place.reason("http://b.example/2") is Reason.LEARNED
    assert place.reason("http://person.example.com/") is Reason.UNKNOWN
    assert Snapshot.open(place.folder.current() or place.root).meta["patches"] == 2


def test_the_feed_is_compacted_and_overlays_are_dropped(place: Place) -> None:
    """However long it goes on, neither the feed nor an engine keeps what snapshots hold."""
    engine = FilterEngine(place.folder.open_newest()[0], clock=place.clock)
    for number in range(6):
        place.learn(f"n{number}.example/")
        engine.apply(place.store.feed.read(engine.feed_seq))
        assert len(engine._state.overlay.learned) == 1
        assert place.publish().rebuilt == ""
        engine.swap(place.folder.open_newest()[0])
        assert (len(engine._state.overlay.learned), len(engine._state.overlay.changes)) == (0, 0)
        assert [change.seq for change in place.store.feed.read(0)] == [number + 1]
        assert engine.decide(Request(parse_url("http://n0.example/"))).reason is Reason.LEARNED
    assert len(list((place.root / "snapshots").glob("snapshot-*"))) == 3
    assert len(list((place.root / "snapshots").glob("counters-*"))) == 1


def test_what_expires_leaves(place: Place) -> None:
    place.learn("a.example/1", expires_in=5)
    assert place.publish().learned == 1
    place.clock.now += 10
    place.learn("b.example/")
    place.store.lists.remove_learned([entry.key for entry in place.store.lists.expired_learned(place.clock.now)])
    report = place.publish()
    assert (report.rebuilt, report.learned) == ("", 1)
    assert place.reason("http://a.example/1") is Reason.UNKNOWN


def _change_list(place: Place) -> None:
    (place.root / "mine.txt").write_text("other.example.com\n")
    place.subscriptions.update(["mine"], force=True)


def _damage_snapshot(place: Place) -> None:
    path = place.folder.current()
    assert path is not None
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)


def _another_snapshot(place: Place) -> None:
    place.learn("x.example/")
    kept = place.counters.read_bytes()
    place.publish()
    place.counters.write_bytes(kept)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda place: place.subscriptions.disable("mine"), "the set of lists has changed"),
        (_change_list, "the set of lists has changed"),
        (lambda place: place.counters.unlink(), "the counters counters-00000001.gfc cannot be used: No such file"),
        (lambda place: place.counters.write_bytes(place.counters.read_bytes()[:-7]), "they are damaged"),
        (lambda place: place.counters.write_bytes(b""), "cut short"),
        (_another_snapshot, "they belong to another snapshot"),
        (_damage_snapshot, "is damaged"),
        (lambda place: (place.folder.current() or place.root).unlink(), "there is no snapshot yet"),
    ],
)
def test_when_everything_is_built_anew(place: Place, spoil: Callable[[Place], object], why: str) -> None:
    place.learn("a.example/1")
    spoil(place)
    assert why in place.publish().rebuilt
    assert place.reason("http://a.example/1") is Reason.LEARNED
    place.learn("a.example/2")
    assert place.publish().rebuilt == ""


def test_a_database_that_lags_behind_is_no_basis(place: Place) -> None:
    place.learn("a.example/1", "a.example/2")
    place.publish()
    with closing(Store.open(f"sqlite:///{place.root}/other.sqlite3")) as other:
        report = publish(place.folder, place.subscriptions, other.lists, other.feed, clock=place.clock)
    assert report.rebuilt == "the database is older than the snapshot"
    assert place.reason("http://a.example/1") is Reason.UNKNOWN


@pytest.mark.parametrize("later", [0, 1, 2, 5])
def test_a_database_that_was_put_back_is_no_basis(place: Place, tmp_path: Path, later: int) -> None:
    """Its steps have numbers that the snapshot knows already, for other entries."""
    place.learn("a.example/1")
    with closing(sqlite3.connect(tmp_path / "store.sqlite3")) as now, closing(sqlite3.connect(tmp_path / "old.sqlite3")) as kept:
        now.backup(kept)
    place.learn("a.example/2", "a.example/3")
    assert place.publish().learned == 3
    place.store.close()
    for name in ("store.sqlite3-wal", "store.sqlite3-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / "old.sqlite3").replace(tmp_path / "store.sqlite3")
    place.store = Store.open(f"sqlite:///{tmp_path}/store.sqlite3")
    place.learn(*(f"b.example/{number}" for number in range(later)))
    report = place.publish()
    assert report.rebuilt.startswith("the database is ")
    assert report.learned == 1 + later
    assert place.reason("http://a.example/2") is Reason.UNKNOWN
    place.learn("c.example/")
    assert place.publish().rebuilt == ""


def test_a_snapshot_older_than_the_feed_remembers_is_no_basis(place: Place) -> None:
    """As after a snapshot folder was put back: what the feed has forgotten would be missing."""
    place.learn("a.example/1", "a.example/2")
    place.store.lists.compact_feed(1)
    assert place.publish().rebuilt.startswith("the database is not the one")
    assert place.reason("http://a.example/1") is Reason.LEARNED


def test_a_list_that_could_not_be_read_is_tried_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Path.open

    def refuse(path: Path, *arguments: object, **named: object) -> object:
        if path.parent.name == "mine" and path.suffix != ".json":
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **named)  # type: ignore[call-overload]

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refuse)
        assert len(place.publish(full=True).skipped) == 1
    assert place.publish().rebuilt == "the set of lists has changed"
    assert place.reason("http://listed.example.com/") is Reason.BLACKLIST


def test_any_other_list_has_another_mark(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "b").write_text("x")
    one = SourceFile(Source("one"), tmp_path / "a", ListFormat.DOMAINS)
    others = [
        [],
        [SourceFile(Source("two"), tmp_path / "a", ListFormat.DOMAINS)],
        [SourceFile(Source("one", ListAction.ALLOW), tmp_path / "a", ListFormat.DOMAINS)],
        [SourceFile(Source("one", category="c"), tmp_path / "a", ListFormat.DOMAINS)],
        [SourceFile(Source("one"), tmp_path / "a", ListFormat.HOSTS)],
        [SourceFile(Source("one"), tmp_path / "b", ListFormat.DOMAINS)],
        [SourceFile(Source("one"), tmp_path / "none", ListFormat.DOMAINS)],
        [one, one],
    ]
    marks = {mark_of_inputs([one]), *map(mark_of_inputs, others)}
    assert len(marks) == len(others) + 1
    assert mark_of_inputs([one]) in marks
    (tmp_path / "a").write_text("xy")
    assert mark_of_inputs([one]) not in marks


def test_policies_are_in_the_next_snapshot(place: Place) -> None:
    closed = (Policy("default", block_all=True), True)
    place.store.policies.change(lambda _: [closed], place.clock.now)
    place.store.lists.add_rule(ListAction.ALLOW, EntryKind.DOMAIN, ".kids.example", scope="group:default")
    for full in (False, True):
        assert (place.publish(full=full).rebuilt == "") is not full
        assert place.reason("http://x.example/") is Reason.POLICY
        assert place.reason("http://kids.example/") is Reason.MANUAL_ALLOW
    place.store.policies.change(lambda _: [(closed[0], False)], place.clock.now)
    assert place.publish().rebuilt == ""
    assert place.reason("http://x.example/") is Reason.UNKNOWN


def test_what_is_local_is_laid_over_the_snapshot_of_a_publisher(place: Place, tmp_path: Path) -> None:
    base = place.publish().path
    place.store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, ".person.example.com")
    place.store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, ".past.example.com", expires_at=1.0)
    place.clock.now = time.time()
    place.learn("a.example/new")
    place.learn("a.example/old", expires_in=-10.0)
    folder, store = SnapshotFolder(tmp_path / "own"), place.store
    report = publish_base(folder, base, store.lists, store.feed, store.policies)
    assert (report.path, report.size_bytes) == (folder.current(), report.path.stat().st_size)
    assert (report.manual_rules, report.learned, report.sources, report.rebuilt) == (1, 1, (), "")
    assert report.feed_seq == store.feed.last_seq()
    place.folder = folder
    urls = ("listed.example.com/", "person.example.com/", "past.example.com/", "a.example/new", "a.example/old")
    expected = [Reason.BLACKLIST, Reason.MANUAL_BLOCK, Reason.UNKNOWN, Reason.LEARNED, Reason.UNKNOWN]
    assert [place.reason(f"http://{url}") for url in urls] == expected
    (tmp_path / "damaged").write_bytes(base.read_bytes()[:-10])
    with pytest.raises(SnapshotError):
        publish_base(folder, tmp_path / "damaged", store.lists, store.feed, store.policies)
    assert folder.current() == report.path
