"""How the zone follows rules and lists, and its file: what is read when, how long things last, bounds of its history."""

import os
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest

from gatewayfilter.errors import StoreError
from gatewayfilter.integration.rpz import keeper as keeper_module
from gatewayfilter.integration.rpz import own_rules, zone
from gatewayfilter.integration.rpz.keeper import ZoneFile, ZoneKeeper
from gatewayfilter.integration.rpz.own_rules import OwnRules
from gatewayfilter.integration.rpz.zone import BaseNames, OwnNames, Target, Zone, ZoneHistory, reversed_labels
from gatewayfilter.model import Change, ChangeKind, EntryKind, LearnedEntry, ListAction, ManualRule
from gatewayfilter.telemetry import Counters

BLOCK, ALLOW = Target.BLOCK, Target.ALLOW
ADDED, REMOVED = ChangeKind.MANUAL_ADDED, ChangeKind.MANUAL_REMOVED


def rule(pattern: str, action: ListAction = ListAction.BLOCK, kind: EntryKind | None = None, **further: object) -> ManualRule:
    kind = kind or (EntryKind.DOMAIN if pattern.startswith(".") else EntryKind.HOST)
    return ManualRule(1, action, kind, pattern, **further)  # type: ignore[arg-type]


def entry(key: str, action: ListAction = ListAction.BLOCK, expires_at: float = 1e12) -> LearnedEntry:
    return LearnedEntry(key, action, "gambling", f"http://{key}/", "", 0.0, expires_at)


class Database:
    """Rules and a change feed in memory."""

    def __init__(self) -> None:
        self.manual: list[ManualRule] = []
        self.entries: list[LearnedEntry] = []
        self.changes: list[Change] = []
        self.reads: list[int] = []
        self.fails = False

    def rules(self) -> list[ManualRule]:
        if self.fails:
            raise StoreError("no database")
        return self.manual

    def learned(self) -> Iterable[LearnedEntry]:
        return self.entries

    def last_seq(self) -> int:
        return len(self.changes)

    def read(self, since: int, limit: int) -> list[Change]:
        self.reads.append(limit)
        return self.changes[since : since + limit]

    def put(self, kind: ChangeKind, **of: object) -> None:
        self.changes.append(Change(len(self.changes) + 1, kind, **of))  # type: ignore[arg-type]


def own_of(database: Database) -> OwnRules:
    return OwnRules(database, database)  # type: ignore[arg-type]


def named(names: dict[str, Target]) -> dict[str, Target]:
    return {reversed_labels(name): target for name, target in names.items()}


@pytest.mark.parametrize(
    ("rules", "hosts", "domains", "left_out"),
    [
        ([rule("a.test"), rule(".b.test")], {"a.test": BLOCK}, {"b.test": BLOCK}, 0),
        ([rule("a.test", ListAction.ALLOW)], {"a.test": ALLOW}, {}, 0),
        ([rule("a.test"), rule("a.test", ListAction.ALLOW, group="x")], {"a.test": ALLOW}, {}, 0),
        ([rule("a.test", ListAction.ALLOW, group="x"), rule("a.test")], {"a.test": ALLOW}, {}, 0),
        ([rule(".a.test", ListAction.ALLOW), rule("a.test")], {"a.test": BLOCK}, {"a.test": ALLOW}, 0),
        ([rule("a.test", ListAction.SPLICE)], {}, {}, 1),
        ([rule("a.test/x", kind=EntryKind.URL), rule("a.test", scope="client:kim")], {}, {}, 2),
        ([rule("192.0.2.1")], {}, {}, 1),
        ([rule("a.test", enabled=False)], {}, {}, 0),
        ([rule("a.test", expires_at=1_000.0)], {}, {}, 0),
        ([rule("b.test", enabled=False), rule("c.test", expires_at=1.0), rule("a.test")], {"a.test": BLOCK}, {}, 0),
        ([rule("a.test", expires_at=1_000.1)], {"a.test": BLOCK}, {}, 0),
    ],
)
def test_what_rules_are_names(
    rules: list[ManualRule], hosts: dict[str, Target], domains: dict[str, Target], left_out: int
) -> None:
    database = Database()
    database.manual = rules
    own = own_of(database)
    own.read()
    for _ in range(2):
        assert own.names(1_000.0) == OwnNames(named(hosts), named(domains))
        assert own.left_out == left_out


def test_learned_hosts_are_names_below_manual_ones() -> None:
    database = Database()
    database.manual = [rule("a.test", ListAction.ALLOW)]
    database.entries = [
        *(entry("a.test"), entry(".b.test"), entry("c.test/page"), entry("d.test", ListAction.ALLOW), entry("10.0.0.1")),
        *(entry("old.test", expires_at=1_000.0), entry("e.test", expires_at=1_001.0)),
    ]
    own = own_of(database)
    own.read()
    assert own.names(1_000.0) == OwnNames(named({"a.test": ALLOW, "e.test": BLOCK}), named({"b.test": BLOCK}))
    assert [own.is_due(now) for now in (1_000.0, 1_000.9, 1_001.0, 1_002.0)] == [False, False, True, True]
    assert own.names(1_001.0).hosts == named({"a.test": ALLOW})
    assert not own.is_due(2_000.0)


def test_the_feed_is_followed_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_rules, "_PAGE", 2)
    database = Database()
    own = own_of(database)
    database.put(ADDED, manual=rule("a.test"))
    assert own.follow()
    assert own.names(0.0).hosts == named({"a.test": BLOCK})
    assert not own.follow()
    for number in range(5):
        database.put(ADDED, manual=rule(f"{number}.test"))
    database.put(REMOVED, manual=rule("a.test"))
    database.put(REMOVED, manual=rule("never.test"))
    assert own.follow()
    assert own.names(0.0).hosts == named({f"{number}.test": BLOCK for number in range(5)})
    assert set(database.reads) == {2}
    database.put(ChangeKind.LEARNED_ADDED, learned=entry("l.test"))
    database.put(ChangeKind.LEARNED_ADDED, learned=entry("m.test"))
    database.put(ChangeKind.LEARNED_REMOVED, learned=entry("l.test"))
    database.put(ChangeKind.LEARNED_ADDED, learned=entry("m.test", ListAction.ALLOW))
    database.put(ChangeKind.LEARNED_ADDED, learned=entry("n.test/page"))
    assert own.follow()
    assert own.names(0.0).hosts == named({f"{number}.test": BLOCK for number in range(5)})
    read = own_of(database)
    read.read()
    assert not read.follow(), "what is read holds all changes before"


class Clock:
    """Monotonic seconds; commands take some."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        self.ran: list[tuple[list[str], float]] = []
        self.took = 0.0
        self.fails: type[Exception] | None = None
        monkeypatch.setattr(keeper_module, "time", SimpleNamespace(monotonic=lambda: self.now, time=time.time))
        monkeypatch.setattr("subprocess.run", self.run)

    def run(self, command: list[str], *, check: bool, timeout: float, stdin: int, capture_output: bool) -> None:
        assert (check, stdin, capture_output) == (True, subprocess.DEVNULL, True)
        self.ran.append((command, timeout))
        self.now += self.took
        if self.fails is not None:
            raise self.fails("a fault")


def zone_of(serial: int) -> Zone:
    return Zone(serial, BaseNames(b"com.example*\n"), OwnNames())


def test_a_zone_file_is_written_when_it_is_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, counters, path = Clock(monkeypatch), Counters(), tmp_path / "zone"
    file = ZoneFile(path, ("reload", "it"), 10.0, counters)
    file.keep(zone_of(1))
    assert path.read_text() == (
        "$TTL 60\n@ SOA localhost. hostmaster.localhost. 1 60 30 604800 5\n@ NS localhost.\n"
        "example.com CNAME .\n*.example.com CNAME .\n"
    )
    assert clock.ran == [(["reload", "it"], 30.0)]
    for later_s, serial in ((0.0, 1), (9.9, 1), (10.0, 2), (19.9, 2), (20.0, 3)):
        clock.now = 1_000.0 + later_s
        file.keep(zone_of(2 if later_s < 11 else 3))
        assert f" {serial} 60 30 " in path.read_text(), later_s
    clock.now = 2_000.0
    file.keep(zone_of(3))
    assert (counters["rpz_files"], counters["rpz_file_failures"], len(clock.ran)) == (3, 0, 3)
    assert [one.name for one in tmp_path.iterdir()] == ["zone"]
    assert path.stat().st_mode & 0o733 == 0o600, "others may read it at most"


def test_a_slow_reload_makes_writes_rarer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, path = Clock(monkeypatch), tmp_path / "zone"
    clock.took = 4.0
    file = ZoneFile(path, ("reload",), 10.0, Counters())
    file.keep(zone_of(1))
    for now, serial in ((1_019.9, 1), (1_020.0, 2)):
        clock.now = now
        file.keep(zone_of(2))
        assert f" {serial} 60 30 " in path.read_text()


@pytest.mark.parametrize("every_s", [1.0, 60.0])
@pytest.mark.parametrize("fault", [OSError, subprocess.SubprocessError])
def test_a_reload_that_fails_is_tried_again(
    fault: type[Exception], every_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, counters = Clock(monkeypatch), Counters()
    clock.fails = fault
    file = ZoneFile(tmp_path / "zone", ("reload",), every_s, counters)
    again = max(5.0, every_s)
    for later_s, runs in ((0.0, 1), (again - 0.1, 1), (again, 2)):
        clock.now = 1_000.0 + later_s
        file.keep(zone_of(1))
        assert len(clock.ran) == runs
    assert counters["rpz_file_failures"] == 2
    clock.fails = None
    clock.now += again
    file.keep(zone_of(1))
    file.keep(zone_of(1))
    assert len(clock.ran) == 3


def test_a_zone_file_follows_no_link_and_runs_nothing_without_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, counters, path = Clock(monkeypatch), Counters(), tmp_path / "zone"
    (tmp_path / ".zone.new").symlink_to(tmp_path / "other")
    file = ZoneFile(path, (), 1.0, counters)
    file.keep(zone_of(1))
    assert (path.exists(), (tmp_path / "other").exists(), counters["rpz_file_failures"]) == (False, False, 1)
    (tmp_path / ".zone.new").unlink()
    (tmp_path / ".zone.new").write_text("much that a process left behind, longer than the zone" * 10)
    clock.now += 5
    file.keep(zone_of(1))
    assert path.read_text().endswith("*.example.com CNAME .\n")
    assert clock.ran == []


class Kept:
    """A keeper over rules in memory, whose lists a test writes."""

    def __init__(self, base: Path, history: ZoneHistory | None = None) -> None:
        self.database, self.base, self.counters = Database(), base, Counters()
        self.history = history or ZoneHistory(Zone(1, BaseNames(), OwnNames()))
        self.mark, self.lists, self.builds = 1, b"", 0
        self.file: list[Zone] = []
        kept = SimpleNamespace(keep=self.file.append)
        rules = own_of(self.database)
        self.keeper = ZoneKeeper(rules, base, self.build, lambda: self.mark, self.history, self.counters, kept)  # type: ignore[arg-type]

    def build(self) -> None:
        self.builds += 1
        if not self.base.exists() or self.base.read_bytes() != self.lists:
            aside = self.base.with_suffix(".n")
            aside.write_bytes(self.lists)
            os.utime(aside, ns=(self.builds, self.builds))
            aside.replace(self.base)

    def names(self) -> list[str]:
        return [reversed_labels(record.name) for record in self.history.zone.records()]


def test_the_lists_are_read_when_they_may_have_changed(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "names")
    kept.lists = b"test.a=\n"
    assert kept.keeper.follow_once()
    assert (kept.names(), kept.builds, kept.counters["rpz_changes"]) == (["a.test"], 1, 1)
    assert not kept.keeper.follow_once()
    kept.lists = b"test.a=\ntest.b=\n"
    assert not kept.keeper.follow_once(), "nothing tells that they have"
    kept.mark = 2
    assert kept.keeper.follow_once()
    assert (kept.names(), kept.builds) == (["a.test", "b.test"], 2)
    kept.mark = 3
    assert not kept.keeper.follow_once(), "they are the same"
    assert (kept.builds, kept.counters["rpz_changes"]) == (3, 2)
    assert len(kept.file) == 5
    assert kept.file[-1] is kept.history.zone


def test_rules_are_read_anew_with_the_lists_and_end_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr(keeper_module, "time", SimpleNamespace(time=lambda: now[0]))
    kept = Kept(tmp_path / "names")
    kept.base.write_bytes(b"test.a=\n")
    kept.lists = b"test.a=\n"
    kept.database.manual = [rule("mine.test", expires_at=1_050.0)]
    assert kept.keeper.follow_once()
    assert (kept.names(), kept.history.zone.serial) == (["a.test", "mine.test"], 1_000)
    assert not kept.keeper.follow_once()
    now[0] = 1_050.0
    assert kept.keeper.follow_once()
    assert kept.names() == ["a.test"]
    assert kept.history.since(1_000)[1], "a step, no whole transfer"
    kept.database.manual = [rule("forgotten.test")]
    kept.mark, kept.lists = 2, b"test.b=\n"
    assert kept.keeper.follow_once()
    assert kept.names() == ["b.test", "forgotten.test"]
    assert kept.history.since(1_050)[1] is None


def _until(state: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not state():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_a_keeper_goes_on_after_faults_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper_module, "_AGAIN_S", 0.01)
    monkeypatch.setattr(keeper_module, "POLL_S", 0.01)
    kept, told = Kept(tmp_path / "names"), []
    kept.lists = b"test.a=\n"
    kept.database.fails = True
    kept.keeper.on_change = lambda: told.append(kept.names())
    kept.keeper.start()
    time.sleep(0.03)
    kept.database.fails = False
    _until(lambda: bool(told))
    looks = len(kept.database.reads)
    _until(lambda: len(kept.database.reads) > looks + 3)
    assert told == [["a.test"]], "told of the change alone"
    thread = kept.keeper._thread
    kept.keeper.stop()
    assert not thread.is_alive()
    Kept(tmp_path / "other").keeper.stop()


def own(count: int, first: int = 0) -> OwnNames:
    return OwnNames(named({f"{number}.test": BLOCK for number in range(first, first + count)}))


def test_large_changes_are_whole_transfers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone, "MOST_CHANGES", 3)
    history = ZoneHistory(Zone(1, BaseNames(), OwnNames()))
    assert history.change(own(3), 0.0)
    assert len(history.since(1)[1] or ()) == 1
    assert history.change(own(4, 10), 0.0)
    assert (history.zone.serial, history.since(2)[1], history.since(1)[1]) == (3, None, None)
    assert len(list(history.zone.records())) == 4
    domain = OwnNames({}, named({"b.test": BLOCK}))
    under = ZoneHistory(Zone(1, BaseNames(b"test.b.1=\ntest.b.2=\ntest.b.3=\n"), OwnNames()))
    assert under.change(domain, 0.0)
    assert under.since(1)[1] is None, "the domain and three names below it"
    host = ZoneHistory(Zone(1, BaseNames(b"test.b.1=\ntest.b.2=\ntest.b.3=\n"), OwnNames()))
    assert host.change(OwnNames(named({"b.test": BLOCK})), 0.0)
    assert len(host.since(1)[1] or ()) == 1, "a host has none below it"


def test_versions_and_records_of_steps_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone, "MOST_VERSIONS", 3)
    history = ZoneHistory(Zone(1, BaseNames(), OwnNames()))
    for number in range(4):
        assert history.change(own(1, number), 0.0)
    assert [len(history.since(serial)[1] or ()) for serial in (1, 2, 3, 4, 5)] == [0, 3, 2, 1, 0]
    monkeypatch.setattr(zone, "MOST_KEPT", 4)
    assert history.change(own(1, 9), 0.0)  # two records each: one goes, one comes
    assert [len(history.since(serial)[1] or ()) for serial in (3, 4, 5)] == [0, 2, 1]
    monkeypatch.setattr(zone, "MOST_KEPT", 1)
    assert history.change(own(1, 1), 0.0)
    assert [len(history.since(serial)[1] or ()) for serial in (5, 6)] == [0, 1], "the last one in any case"


def test_serials_follow_the_clock_and_go_on_where_it_is_behind() -> None:
    history = ZoneHistory(Zone(100, BaseNames(), OwnNames()))
    for now, serial in ((1_000.9, 1_000), (50.0, 1_001), (1_001.0, 1_002)):
        history.change(own(1, serial), now)
        assert history.zone.serial == serial
    history.replace_base(BaseNames(b"test.z=\n"), OwnNames(), 2.0**32 + 5)
    assert history.zone.serial == 5


def test_a_change_that_changes_no_record_is_none() -> None:
    history = ZoneHistory(Zone(1, BaseNames(b"test.a=\n"), OwnNames()))
    blocked = OwnNames(named({"a.test": BLOCK}))
    assert history.change(OwnNames(), 0.0) is False
    assert history.change(blocked, 0.0) is False
    assert (history.zone.serial, history.zone.own) == (1, blocked)


def test_records_are_sorted_by_name_and_names_below() -> None:
    history = ZoneHistory(Zone(1, BaseNames(), OwnNames()))
    history.change(OwnNames(named({"b.test": ALLOW}), named({"c.test": BLOCK, "a.test": ALLOW})), 0.0)
    (step,) = history.since(1)[1] or ()
    assert [(reversed_labels(one.name), one.below, one.target) for one in step.added] == [
        *(("a.test", False, ALLOW), ("a.test", True, ALLOW), ("b.test", False, ALLOW)),
        *(("c.test", False, BLOCK), ("c.test", True, BLOCK)),
    ]
    assert step.removed == ()


def test_names_below_are_few_and_empty_files_hold_none(tmp_path: Path) -> None:
    base = BaseNames(b"test.b.1=\ntest.b.2*\ntest.b.3=\ntest.c=\n")
    assert base.below("test.b", 2) == ["test.b.1", "test.b.2"]
    assert base.below("test.b", 3) == base.below("test.b", 9) == ["test.b.1", "test.b.2", "test.b.3"]
    assert [base.mark(name) for name in ("test.b.2", "test.c", "test.b", "test.d")] == ["*", "=", "", ""]
    (tmp_path / "names").write_bytes(b"")
    assert list(BaseNames.open(tmp_path / "names").lines()) == []
    assert OwnNames({}, named({"b.test": ALLOW})).covers("test.b") is False
    assert OwnNames({}, {"test": ALLOW}).covers("test.b") is True
    assert OwnNames({}, {"t": ALLOW}).covers("t.b") is True
    assert OwnNames().covers("test.b") is False
