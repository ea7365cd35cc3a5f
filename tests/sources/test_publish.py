import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from multiprocessing.synchronize import Event
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.config import SourceSettings
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.errors import ListError, SnapshotError, StoreError
from gatewayfilter.model import EntryKind, LearnedEntry, ListAction, Reason, Request, Source, Verdict
from gatewayfilter.sources import Categories, ListFormat, SourceFile, Subscriptions
from gatewayfilter.sources.list_files import load_lists
from gatewayfilter.sources.publish import _compact, _seq_in_use, build_snapshot, publish
from gatewayfilter.store import Store
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases
from tests.sources.list_server import BUNDLED, Clock


def decide(snapshot: Snapshot, url: str) -> Verdict:
    return FilterEngine(snapshot, clock=Clock()).decide(Request(parse_url(url)))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(f"sqlite:///{tmp_path}/store.sqlite3")
    yield opened
    opened.close()


def learned(url: str, expires_at: float) -> LearnedEntry:
    return LearnedEntry(url, ListAction.BLOCK, "gambling", f"http://{url}", "score 42.0", 0.0, expires_at)


def test_everything_that_is_enabled_is_published(
    subscriptions: Subscriptions, store: Store, tmp_path: Path, clock: Clock
) -> None:
    (tmp_path / "mine.txt").write_text("listed.example.com\n")
    subscriptions.add(str(tmp_path / "mine.txt"), category="games")
    store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, ".person.example.com")
    store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, ".expired.example.com", expires_at=clock.now - 1)
    store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, ".expires-now.example.com", expires_at=clock.now)
    ends = {"new": clock.now + 10, "old": clock.now - 10, "now": clock.now}
    store.lists.put_learned([learned(f"a.example/{name}", end) for name, end in ends.items()])
    seen: list[tuple[str, int, int]] = []
    folder = SnapshotFolder(tmp_path / "snapshots")
    report = publish(folder, subscriptions, store.lists, store.feed, progress=lambda *step: seen.append(step), clock=clock)
    assert report.path == folder.current()
    assert (report.manual_rules, report.learned, report.feed_seq) == (1, 1, store.feed.last_seq())
    assert [item.source.name for item in report.sources] == [
        "starter-ads",
        *(f"starter-splice-{name}" for name in ("bank", "health", "pinned", "updates")),
        "starter-test",
        "starter-trackers",
        "mine",
    ]
    assert seen[-1] == ("published", 9, 9)

    snapshot, _ = folder.open_newest()
    cases: dict[str, tuple[Reason, str]] = {
        "http://sub.listed.example.com/": (Reason.BLACKLIST, "mine"),
        "http://blocked.gatewayfilter.test/": (Reason.ADBLOCK, "starter-test"),
        "http://person.example.com/": (Reason.MANUAL_BLOCK, ""),
        "http://a.example/new": (Reason.LEARNED, "learned:gambling"),
        "http://a.example/old": (Reason.UNKNOWN, ""),
        "http://a.example/now": (Reason.UNKNOWN, ""),
        "http://expired.example.com/": (Reason.UNKNOWN, ""),
        "http://expires-now.example.com/": (Reason.UNKNOWN, ""),
    }
    for url, (reason, source) in cases.items():
        verdict = decide(snapshot, url)
        assert verdict.reason is reason
        if source:
            assert verdict.source_list == source


def test_what_changes_while_we_read_is_not_lost(subscriptions: Subscriptions, store: Store, tmp_path: Path) -> None:
    class Racing:
        """A list store into which somebody writes after the feed was read."""

        def __getattr__(self, name: str) -> Any:
            return getattr(store.lists, name)

        def rules(self) -> Any:
            found = store.lists.rules()
            store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, ".late.example.com")
            return found

    folder = SnapshotFolder(tmp_path / "snapshots")
    report = publish(folder, subscriptions, Racing(), store.feed)
    engine = FilterEngine(folder.open_newest()[0])
    engine.apply(store.feed.read(report.feed_seq))
    assert engine.decide(Request(parse_url("http://late.example.com/"))).reason is Reason.MANUAL_BLOCK


def test_the_feed_keeps_what_the_snapshot_before_lacks(subscriptions: Subscriptions, store: Store, tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path / "snapshots")
    for number in range(3):
        store.lists.add_rule(ListAction.BLOCK, EntryKind.DOMAIN, f".host{number}.example.com")
        publish(folder, subscriptions, store.lists, store.feed)
    assert [change.seq for change in store.feed.read(0)] == [3]


def publish_when_awaited(folder: Path, data: bytes, locked: Event, waiting: Event) -> None:
    with SnapshotFolder(folder).publishing() as put_into_use:
        locked.set()
        assert waiting.wait(60)
        put_into_use(data)


def test_a_list_added_while_another_publishes_is_in_the_end_in_use(
    subscriptions: Subscriptions, store: Store, tmp_path: Path
) -> None:
    """Another process has built without the list, and is slow to write: it must not replace what is published after it."""
    folder = SnapshotFolder(tmp_path / "snapshots")
    older, _ = build_snapshot(subscriptions.files())
    context = multiprocessing.get_context("forkserver")
    locked, waiting = context.Event(), context.Event()
    other = context.Process(target=publish_when_awaited, args=(tmp_path / "snapshots", older, locked, waiting))
    other.start()
    assert locked.wait(60)
    (tmp_path / "mine.txt").write_text("listed.example.com\n")
    subscriptions.add(str(tmp_path / "mine.txt"), category="games")
    seen: list[str] = []

    def progress(step: str, done: int, total: int) -> None:
        seen.append(step)
        waiting.set()

    publish(folder, subscriptions, store.lists, store.feed, progress=progress)
    other.join(60)
    assert other.exitcode == 0
    assert seen[0] == "waiting for another publisher to finish"
    assert decide(folder.open_newest()[0], "http://listed.example.com/").source_list == "mine"


def test_an_unreadable_source_is_left_out_and_reported(tmp_path: Path) -> None:
    (tmp_path / "good").write_text("a.example.com\n")
    files = [
        SourceFile(Source("gone"), tmp_path / "gone", ListFormat.DOMAINS),
        SourceFile(Source("good"), tmp_path / "good", ListFormat.DOMAINS),
    ]
    data, reports = build_snapshot(files)
    assert "No such file" in reports[0].error
    assert reports[0].report is None
    assert decide(Snapshot.from_bytes(data), "http://a.example.com/").source_list == "good"


def test_list_files_alone_need_no_state(tmp_path: Path) -> None:
    (tmp_path / "press").mkdir()
    (tmp_path / "press" / "domains").write_text("press.example.com\n")
    (tmp_path / "ads.txt").write_text("! x\n||ads.example.com^\n")
    (tmp_path / "hosts.txt").write_text("0.0.0.0 tracker.example.com\n")
    snapshot = load_lists([tmp_path / "press" / "domains", tmp_path / "ads.txt", tmp_path / "hosts.txt"])
    assert decide(snapshot, "http://press.example.com/").reason is Reason.WHITELIST
    assert decide(snapshot, "http://ads.example.com/").source_list == "ads.txt"
    assert decide(snapshot, "http://tracker.example.com/").rule == "tracker.example.com"
    assert decide(snapshot, "http://x.tracker.example.com/").reason is Reason.UNKNOWN


@pytest.mark.parametrize(("content", "why"), [(None, "No such file"), (b"<html>", "web page"), (b"", "empty")])
def test_a_file_that_is_no_list_is_refused(tmp_path: Path, content: bytes | None, why: str) -> None:
    if content is not None:
        (tmp_path / "list").write_bytes(content)
    with pytest.raises(ListError, match=why):
        load_lists([tmp_path / "list"])


@all_cases(
    ("address", "category"),
    [
        ("lists/gambling/domains", "gambling"),
        ("https://lists.example/drogue.tar.gz", "drugs"),
        ("easyprivacy.txt", "trackers"),
        ("annoyances-cookies.txt", "annoyances"),
        ("press/urls", "press"),
        ("bank-phishing.txt", "phishing"),
        ("unheard-of.txt", "other"),
    ],
)
def test_categories_are_guessed_from_names(address: str, category: str) -> None:
    assert Categories.load(BUNDLED / "categories.toml").guess(address) == category


def test_the_registry_is_complete_and_a_bad_one_refused(tmp_path: Path) -> None:
    categories = Categories.load(BUNDLED / "categories.toml")
    assert {category.category_id for category in categories} >= {"adult", "gambling", "bank", "press", "encrypted-dns", "other"}
    for category in categories:
        assert category.title
        assert category.description
        assert any("\u4e00" <= letter <= "\u9fff" for letter in category.title_zh)
    for titles in ([category.title for category in categories], [category.title_zh for category in categories]):
        assert len(set(titles)) == len(titles), "two categories that people cannot tell apart"
    assert categories.get("homework").title == "homework"
    assert categories.get("doh").title == "Encrypted DNS", "an alias is the category's other name"
    (tmp_path / "bad.toml").write_text("[a]\ntitle = 1\n")
    for name in ("bad.toml", "missing.toml"):
        with pytest.raises(ListError):
            Categories.load(tmp_path / name)


@pytest.mark.slow
def test_real_lists_are_read_sanely(real_data: Path, tmp_path: Path) -> None:

    subscriptions = Subscriptions(tmp_path / "sources", SourceSettings(), BUNDLED)
    files = [real_data / "lists" / "hosts.txt", real_data / "lists" / "easylist.txt", *(real_data / "categories").iterdir()]
    for file in files:
        report = subscriptions.add(str(file)).report
        assert report is not None
        assert report.accepted > 3_000
        assert report.rejected <= report.accepted / 1_000
        assert subscriptions.get(subscriptions.names()[-1]).definition.category in subscriptions.categories
    said = {item.definition.name: item.definition.action for item in subscriptions.all() if not item.definition.bundled}
    assert {name for name, action in said.items() if action is ListAction.ALLOW} == {"press"}
    assert {name for name, action in said.items() if action is ListAction.SPLICE} == {"bank"}


def test_a_stored_list_loses_only_the_rules_that_would_block_the_web(
    subscriptions: Subscriptions, store: Store, tmp_path: Path, clock: Clock
) -> None:
    (tmp_path / "mine.txt").write_text("[Adblock Plus 2.0]\n||ads.example^\n||more.example^\n")
    subscriptions.add(str(tmp_path / "mine.txt"))
    (stored,) = [item.path for item in subscriptions.files() if item.source.name == "mine"]
    stored.write_text("[Adblock Plus 2.0]\n||ads.example^\n||com^\n://\n")  # as a program without this check kept it
    folder = SnapshotFolder(tmp_path / "snapshots")
    publish(folder, subscriptions, store.lists, store.feed, clock=clock)
    snapshot, _ = folder.open_newest()
    assert not decide(snapshot, "http://www.bbc.com/").blocked
    assert decide(snapshot, "http://ads.example/").blocked
    snapshot.close()


def test_each_step_is_told_with_how_much_is_done(
    subscriptions: Subscriptions, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = SnapshotFolder(tmp_path / "snapshots")
    publishing = folder.publishing

    def busy(waiting: Callable[[], None]) -> AbstractContextManager[Callable[[Any], Path]]:
        waiting()
        return publishing()

    monkeypatch.setattr(folder, "publishing", busy)
    names = [item.source.name for item in subscriptions.files()]
    every = len(names) + 1
    wait = ("waiting for another publisher to finish", 0, 0)
    done = [("building the tables", len(names), every), ("published", every, every)]
    read = [(f"reading {name}", number, every) for number, name in enumerate(names)]
    followed = [("checking the snapshot in use", 0, every), ("changing the tables", len(names), every), done[-1]]
    for expected, full in (([wait, *read, *done], False), ([wait, *followed], False), ([wait, *read, *done], True)):
        told: list[tuple[str, int, int]] = []
        report = publish(
            folder, subscriptions, store.lists, store.feed, progress=lambda *step, told=told: told.append(step), full=full
        )
        assert told == expected
        assert 0 < report.elapsed_s < 600
        assert report.size_bytes == report.path.stat().st_size > 1000
    assert report.rebuilt == "on request"


def test_of_the_snapshot_before_its_facts_alone_are_read() -> None:
    """All of it is verified where the next one follows from it."""
    log = list[str]()

    class Folder:
        def open_newest(self, *, verify: bool) -> tuple[Any, list[str]]:
            assert not verify
            log.append("open")
            return SimpleNamespace(info=SimpleNamespace(feed_seq=7), close=lambda: log.append("close")), []

    class Empty:
        def open_newest(self, *, verify: bool) -> tuple[Any, list[str]]:
            assert not verify
            raise SnapshotError("there is none")

    assert (_seq_in_use(cast("Any", Folder())), log) == (7, ["open", "close"])
    assert _seq_in_use(cast("Any", Empty())) == 0


def test_a_feed_that_cannot_be_compacted_is_told(caplog: pytest.LogCaptureFixture) -> None:
    asked = list[int]()

    def compact_feed(up_to: int) -> None:
        asked.append(up_to)
        raise StoreError("the database is locked")

    _compact(cast("Any", SimpleNamespace(compact_feed=compact_feed)), 7)
    assert (asked, caplog.messages) == ([7], ["the change feed was not compacted: the database is locked"])
