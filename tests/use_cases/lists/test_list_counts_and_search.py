"""Counts and search of lists at size: the database counts and compares, and the snapshot names the lists to be read."""

import pickle
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter import wiring
from gatewayfilter.config import Settings
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.state.manual_rules import ManualRules
from gatewayfilter.model import EntryKind, LearnedEntry, ListAction, ManualRule
from gatewayfilter.sources import search
from gatewayfilter.store import Store
from gatewayfilter.store.repositories.lists import SqlListStore
from gatewayfilter.use_cases.lists import list_jobs, list_search
from gatewayfilter.use_cases.lists.list_counts import LearnedCount, OwnCount, list_counts
from gatewayfilter.use_cases.lists.list_search import bytes_to_read, search_lists
from gatewayfilter.web.access import check_job

LISTS = {
    "first": "a.test\nb.test\n",
    "second": "a.test\n",
    "third": "c.test\n",
    "fourth": "exam%70le.com\n",
    "fifth": "d.test\nexample.com\n",
    "sixth": "e.test\n\uff45xample\u3002com\n",
}


@pytest.fixture
def engine(settings: Settings, store: Store, tmp_path: Path) -> Iterator[FilterEngine]:
    for name, text in LISTS.items():
        (tmp_path / f"{name}.txt").write_text(text)
        wiring.subscriptions(settings).add(str(tmp_path / f"{name}.txt"), name=name, category="games")
    store.lists.put_learned([learned("learned.test/"), learned("a.test/page")])
    wiring.publish_now(settings, store)
    opened = wiring.newest_engine(settings)
    with closing(opened.snapshot):
        yield opened


def learned(key: str) -> LearnedEntry:
    return LearnedEntry(key, ListAction.BLOCK, "gambling", f"http://{key}", "", 0.0, 1e12)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lists whose lines were looked at, in their order."""
    found: list[str] = []
    of_file = search._lines_with

    def noted(file: Any, wanted: Any) -> Any:
        found.append(Path(file.name).parent.name)
        return of_file(file, wanted)

    monkeypatch.setattr(search, "_lines_with", noted)
    return found


def test_lists_that_do_not_have_a_host_are_not_read(
    settings: Settings, store: Store, engine: FilterEngine, opened: list[str]
) -> None:
    found = search_lists(settings, store, "www.a.test", engine=engine)
    assert [(line.source, line.line) for line in found.lists] == [("first", 1), ("second", 1)]
    assert opened == ["first", "second"]
    assert not search_lists(settings, store, "nowhere.test", engine=engine)
    assert opened == ["first", "second"]


def test_a_list_that_is_off_is_read_and_so_is_every_one_where_the_snapshot_is_older(
    settings: Settings, store: Store, engine: FilterEngine, opened: list[str]
) -> None:
    wiring.subscriptions(settings).disable("second")
    assert [(line.source, line.enabled) for line in search_lists(settings, store, "a.test", engine=engine).lists] == [
        ("first", True),
        ("second", False),
    ]
    assert set(opened) >= {"first", "second", "third"}


def test_every_list_is_named_however_it_writes_a_host(settings: Settings, store: Store, engine: FilterEngine) -> None:
    found = search_lists(settings, store, "www.example.com", engine=engine).lists
    assert [(line.source, line.line, line.entry) for line in found] == [
        ("fifth", 2, ".example.com"),
        ("fourth", 0, ".example.com"),
        ("sixth", 0, ".example.com"),
    ]


def test_the_search_says_how_much_it_reads(settings: Settings, store: Store, engine: FilterEngine) -> None:
    always = sum(item.path.stat().st_size for item, enabled in wiring.subscriptions(settings).every_file() if not enabled)
    assert bytes_to_read(settings, engine, "nowhere.test") == always
    assert bytes_to_read(settings, engine, "b.test") == always + len(LISTS["first"])
    assert bytes_to_read(settings, engine, "no host") == 0
    wiring.subscriptions(settings).disable("second")  # the snapshot is older
    every = sum(item.path.stat().st_size for item, _ in wiring.subscriptions(settings).every_file())
    assert bytes_to_read(settings, engine, "nowhere.test") == every > always


def test_a_search_that_reads_much_is_left_to_another_child(
    settings: Settings, engine: FilterEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = pickle.dumps(settings)
    found = check_job.search_entries(given, "b.test", 0.0)
    assert found is not None
    assert [(line["source"], line["line"]) for line in found["lists"]] == [("first", 2)]
    monkeypatch.setattr(check_job, "MOST_READ", 0)
    assert check_job.search_entries(given, "b.test", 0.0) is None
    assert list_jobs.search_files(settings, "b.test", partial=False) == found
    check_job._checker.cache_clear()


def test_the_database_counts_and_compares(
    settings: Settings, store: Store, engine: FilterEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(SqlListStore, "learned")
    store.lists.add_rule(ListAction.SPLICE, EntryKind.DOMAIN, ".a.test", enabled=False)
    counted = list_jobs.counts(settings, store, engine, 0.0)
    assert (counted["learned"], counted["own_off"], counted["snapshot"]["blacklist"]) == (
        ({"action": "block", "category": "gambling", "entries": 2},),
        1,
        engine.snapshot.info.blacklist,
    )
    found = list_jobs.search(settings, store, engine, "a.test", partial=False)
    assert [one["url"] for one in found["learned"]] == ["http://a.test/page"]
    assert [(one["pattern"], one["covers"]) for one in found["own"]] == [(".a.test", True)]
    monkeypatch.setattr(list_jobs, "MOST_LEARNED", 1)
    assert len(list_jobs.search_files(settings, "test", partial=True)["learned"]) == 1


def test_rules_are_compiled_together(
    settings: Settings, store: Store, engine: FilterEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.lists.add_rules([ManualRule(0, ListAction.BLOCK, EntryKind.DOMAIN, f".r{n}.test") for n in range(30)])
    compiled: list[ManualRules] = []

    def noted(rules: Iterable[ManualRule]) -> ManualRules:
        compiled.append(ManualRules(rules))
        return compiled[-1]

    monkeypatch.setattr(list_search, "ManualRules", noted)
    assert [found.rule.pattern for found in search_lists(settings, store, "r7.test", engine=engine).own] == [".r7.test"]
    assert len(compiled) == 1


def test_what_was_learned_is_on_no_list_and_what_a_list_no_longer_has_is_named(
    settings: Settings, store: Store, engine: FilterEngine
) -> None:
    found = search_lists(settings, store, "http://learned.test/", engine=engine)
    assert ([entry.url for entry in found.learned], found.lists) == (["http://learned.test/"], ())
    path = next(item.path for item, _ in wiring.subscriptions(settings).every_file() if item.source.name == "third")
    path.write_text("x.test\n")
    (line,) = search_lists(settings, store, "c.test", engine=engine).lists
    assert (line.source, line.enabled, line.category, line.means, line.line) == ("third", True, "games", "block", 0)


def test_rules_and_what_was_learned_are_counted(settings: Settings, store: Store) -> None:
    for host, until, enabled in (("a.test", None, True), ("b.test", 5.0, True), ("c.test", 5.5, False)):
        store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, host, expires_at=until, enabled=enabled)
    store.lists.add_rule(ListAction.ALLOW, EntryKind.DOMAIN, ".d.test")
    store.lists.put_learned([learned("e.test/"), learned("f.test/")])
    info: Any = "of the snapshot"
    engine: Any = SimpleNamespace(snapshot=SimpleNamespace(info=info))
    found = list_counts(settings, store, 5.0, engine)
    assert found.own == (OwnCount("allow", "domain", 1), OwnCount("block", "host", 3))
    assert (found.own_expired, found.own_off, found.snapshot) == (1, 1, info)
    assert found.learned == (LearnedCount("block", "gambling", 2),)


def test_a_list_that_was_switched_off_is_told_from_those_that_count(settings: Settings, store: Store, tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text("||ads.test^$script\n||ads.test/frame^$third-party\n")
    wiring.subscriptions(settings).add(str(tmp_path / "rules.txt"), name="rules", category="ads")
    wiring.publish_now(settings, store)
    for switched_off in (False, True):
        if switched_off:
            wiring.subscriptions(settings).disable("rules")
        found = [one for one in search_lists(settings, store, "http://ads.test/").lists if "script" in one.text]
        assert found
        assert {(one.source, one.category, one.means, one.enabled) for one in found} == {
            ("rules", "ads", "block", not switched_off)
        }
