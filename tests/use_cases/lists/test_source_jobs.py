"""Subscriptions changed by a child process: added, updated, switched, removed, put back, previewed; and their undo."""

import time
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import ListError, MissingSourceError, SourceError, UndoError
from gatewayfilter.model import LogRecord
from gatewayfilter.sources import UpdateStatus
from gatewayfilter.store import Store
from gatewayfilter.use_cases.lists import source_jobs
from gatewayfilter.use_cases.lists.source_changes import (
    changeable_sources,
    find_source,
    list_bundles,
    list_catalogue,
    problem_of,
    update_sources,
)
from gatewayfilter.use_cases.lists.source_undo import (
    SourceUndo,
    changed_source,
    inverse_of_adding,
    inverse_of_removal,
    inverse_of_several,
    inverse_of_switch,
    state_of,
)
from gatewayfilter.wiring import snapshot_folder, subscriptions
from tests.use_cases.small_program import small_program


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Has nothing published but noted, for tests of what is published: another."""
    noted: list[bool] = []
    monkeypatch.setattr(source_jobs, "publish", lambda _: noted.append(True))
    return noted


@pytest.fixture
def settings(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    small_program(tmp_path / "bundled", monkeypatch)
    return settings


@pytest.fixture
def list_file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.txt"
    path.write_text("a.example\nb.example\n")
    return path


def subscribe(settings: Settings, *addresses: object, **options: Any) -> list[dict[str, Any]]:
    return source_jobs.subscribe(settings, list(map(str, addresses)), {"category": "ads", **options})


def enabled(settings: Settings) -> dict[str, bool]:
    return {item.definition.name: item.definition.enabled for item in subscriptions(settings).all()}


def test_lists_are_added_and_one_that_cannot_be_is_named(settings: Settings, list_file: Path, published: list[bool]) -> None:
    mine, none = subscribe(settings, list_file, list_file.with_name("none.txt"))
    assert mine | {"samples": [], "taken": []} == {
        "name": "mine",
        "status": "updated",
        "entries": 2,
        "error": "",
        "format": "domains",
        "rejected": 0,
        "unsupported": 0,
        "taken": [],
        "samples": [],
    }
    assert (none["name"], none["status"], none["entries"]) == (str(list_file.with_name("none.txt")), "failed", 0)
    assert "none.txt" in none["error"]
    assert published == [True]
    subscribe(settings, list_file)
    assert published == [True], "there already: nothing is published"


def test_options_are_kept(settings: Settings, list_file: Path, published: list[bool]) -> None:
    chosen = {"name": "other", "list_format": "hosts", "category": "bank", "action": "allow", "interval_h": "7"}
    list_file.write_text("0.0.0.0 a.example\n")
    (result,) = source_jobs.subscribe(settings, [str(list_file)], chosen)
    assert (result["name"], result["status"], published) == ("other", "updated", [True])
    assert state_of(find_source(settings, "other")) == {
        "name": "other",
        "address": str(list_file),
        "list_format": "hosts",
        "category": "bank",
        "action": "allow",
        "interval_h": 7.0,
        "enabled": True,
    }


def test_a_category_that_does_not_exist_adds_nothing(settings: Settings, list_file: Path, published: list[bool]) -> None:
    for call in (source_jobs.subscribe, lambda *values: source_jobs.preview(values[0], values[1][0], values[2])):
        with pytest.raises(ListError, match="'adz'"):
            call(settings, [str(list_file)], {"category": "adz"})
    assert ("mine" in enabled(settings), published) == (False, [])


def test_what_changed_is_published(settings: Settings, list_file: Path, published: list[bool]) -> None:
    subscribe(settings, list_file)
    assert [result["status"] for result in source_jobs.update(settings, ["mine"])] == ["unchanged"]
    assert published == [True]
    list_file.write_text("a.example\nb.example\nc.example\n")
    assert [(result["status"], result["entries"]) for result in source_jobs.update(settings, [])] == [("updated", 3)]
    assert published == [True, True]
    with pytest.raises(MissingSourceError):
        source_jobs.update(settings, ["none"])


def test_every_update_leaves_out_what_is_off_and_what_comes_with_the_program(
    settings: Settings, list_file: Path, published: list[bool]
) -> None:
    subscribe(settings, list_file)
    source_jobs.switch(settings, "mine", enabled=False)
    assert source_jobs.update(settings, []) == []
    assert [result.name for result in update_sources(changeable_sources(settings), ["mine"])] == ["mine"]
    assert update_sources(changeable_sources(settings)) == [], "none is due"
    assert len(published) == 2


def test_a_list_is_switched_and_removed(settings: Settings, list_file: Path, published: list[bool]) -> None:
    subscribe(settings, list_file)
    assert source_jobs.switch(settings, "mine", enabled=False) == [
        {"name": "mine", "status": "disabled", "entries": 0, "error": ""}
    ]
    assert enabled(settings)["mine"] is False
    assert source_jobs.switch(settings, "mine", enabled=True)[0]["status"] == "enabled"
    assert enabled(settings)["mine"] is True
    assert source_jobs.remove(settings, "mine") == [{"name": "mine", "status": "removed", "entries": 0, "error": ""}]
    assert "mine" not in enabled(settings)
    assert len(published) == 4
    for change in (source_jobs.remove, lambda *values: source_jobs.switch(*values, enabled=True)):
        with pytest.raises(MissingSourceError):
            change(settings, "mine")
    assert len(published) == 4


def test_changes_are_put_back_and_made_again(settings: Settings, list_file: Path, published: list[bool]) -> None:
    subscribe(settings, list_file, name="one")
    subscribe(settings, list_file, name="two", interval_h=9.0)
    known = subscriptions(settings)
    before = {name: state_of(known.get(name)) for name in ("one", "two")}
    pairs = [changed_source(known, "one", enabled=False), changed_source(known, "two", enabled=None)]
    assert pairs == [(before["one"], {**before["one"], "enabled": False}), (before["two"], None)]
    work: list[Any] = []
    undo = SourceUndo(settings, work.append)
    assert undo.take_back(pairs) == {"kind": "sources", "items": [[pairs[0][1], before["one"]], [None, before["two"]]]}
    assert work == [pairs]
    done = source_jobs.put_back(settings, pairs)
    assert [(result["name"], result["status"]) for result in done] == [("one", "undone"), ("two", "undone")]
    assert {name: state_of(subscriptions(settings).get(name)) for name in before} == before
    assert len(published) == 3
    for of in pairs:
        with pytest.raises(UndoError, match=f"{before[str((of[0] or {})['name'])]['name']} was changed since"):
            undo.take_back([of])
    assert len(work) == 1


def test_a_list_that_was_off_comes_back_as_it_was(settings: Settings, list_file: Path, published: list[bool]) -> None:
    subscribe(settings, list_file)
    known = subscriptions(settings)
    known.disable("mine")
    source_jobs.put_back(settings, [changed_source(known, "mine", enabled=None)])
    assert enabled(settings)["mine"] is False
    source_jobs.put_back(settings, [(None, {"name": "mine"})])
    assert "mine" not in enabled(settings)
    assert published


@pytest.mark.parametrize("list_format", ["adblock", "domains"])
def test_a_list_comes_back_in_its_format(settings: Settings, list_file: Path, published: list[bool], list_format: str) -> None:
    subscribe(settings, list_file, list_format=list_format)
    before = state_of(find_source(settings, "mine"))
    source_jobs.put_back(settings, [changed_source(subscriptions(settings), "mine", enabled=None)])
    assert (state_of(find_source(settings, "mine")), before["list_format"]) == (before, list_format)
    assert published


def test_a_list_whose_definition_is_damaged_can_be_removed(settings: Settings, list_file: Path, published: list[bool]) -> None:
    subscribe(settings, list_file)
    (settings.data_dir / "sources" / "mine" / "source.json").write_text("{")
    assert changed_source(subscriptions(settings), "mine", enabled=None) == (None, None)
    assert "mine" not in subscriptions(settings).names()
    with pytest.raises(MissingSourceError):
        changed_source(subscriptions(settings), "mine", enabled=False)
    assert published


def test_inverses_of_changes_of_lists(settings: Settings, list_file: Path, published: list[bool]) -> None:
    subscribe(settings, list_file)
    known = subscriptions(settings)
    mine = known.get("mine")
    state = state_of(mine)
    assert inverse_of_switch(mine) == {"kind": "sources", "items": [[state, {**state, "enabled": False}]]}
    assert inverse_of_removal(mine) == {"kind": "sources", "items": [[state, None]]}
    assert inverse_of_adding(known, ["http://x.example/"], "new") == {"kind": "sources", "items": [[None, {"name": "new"}]]}
    by_name = [[None, {"name": "small-ads"}], [None, {"name": "small-malware"}]]
    assert inverse_of_adding(known, ["small-ads", "small-malware"], "") == {"kind": "sources", "items": by_name}
    assert inverse_of_adding(known, ["small-ads", "http://x.example/"], "") is None, "the name is found out later"
    assert inverse_of_adding(known, ["http://x.example/"], "mine") is None, "there is one already"
    assert inverse_of_several([(state, state)]) is None
    assert inverse_of_several([(state, state), (state, None)]) == {"kind": "sources", "items": [[state, None]]}
    assert published


def test_a_list_that_cannot_be_fetched_is_pending(settings: Settings, tmp_path: Path, published: list[bool]) -> None:
    catalogue = tmp_path / "bundled" / "catalog.toml"
    catalogue.write_text(catalogue.read_text().replace("http://127.0.0.1:9/", f"{tmp_path}/none-"))
    (result,) = subscribe(settings, "small-ads", category="")
    assert (result["status"], result["entries"], published) == (UpdateStatus.PENDING, 0, [])
    item = find_source(settings, "small-ads")
    assert problem_of(item) == f"pending: {item.state.error}"
    assert "none-small-ads" in item.state.error


def test_the_catalogue_tells_what_is_there(settings: Settings, list_file: Path, published: list[bool]) -> None:
    changeable_sources(settings).add("small-ads", fetch=False)
    assert problem_of(find_source(settings, "small-ads")) == "pending: not fetched yet"
    assert [(row.entry.name, row.added) for row in list_catalogue(settings)] == [("small-ads", True), ("small-malware", False)]
    assert [row.entry.name for row in list_catalogue(settings, "malware")] == ["small-malware"]
    assert [(row.bundle.name, row.missing) for row in list_bundles(settings)] == [("home", ("small-malware",)), ("school", ())]
    subscribe(settings, list_file)
    assert problem_of(find_source(settings, "mine")) == ""
    assert published


def test_a_preview_tells_what_a_list_would_change_and_keeps_nothing(settings: Settings, list_file: Path, store: Store) -> None:
    list_file.write_text("a.example\nb.example\nnot a host\n")
    (first,) = source_jobs.preview(settings, str(list_file), {"category": "ads"})
    assert (first["status"], first["entries"], first["rejected"]) == ("updated", 2, 1)
    assert (first["taken"], len(first["samples"])) == ([".a.example", ".b.example"], 1)
    assert first["changes"] == {"known": 0, "visited": [], "looked_at": 0}
    assert snapshot_folder(settings).current() is None
    other = list_file.with_name("other.txt")
    other.write_text("a.example\n")
    subscribe(settings, other)
    now = time.time()
    visits = [
        ("http://b.example/x", "allow"),
        ("http://b.example/y", "allow"),
        ("http://c.example/", "allow"),
        ("http://d.example/", "block"),
    ]
    store.log.write([LogRecord(now, "10.0.0.1", "GET", url, "image", action, "unknown") for url, action in visits])
    (second,) = source_jobs.preview(settings, str(list_file), {"category": "ads"})
    assert second["changes"] == {
        "known": 1,
        "visited": [{"host": "b.example", "requests": 2, "rule": ".b.example"}],
        "looked_at": 3,
    }
    assert "mine" not in enabled(settings)
    with pytest.raises(SourceError):
        source_jobs.preview(settings, str(list_file.with_name("none.txt")), {})


def test_a_list_that_cannot_be_read_is_named_and_the_others_count(settings: Settings, list_file: Path) -> None:
    subscribe(settings, list_file)
    assert source_jobs.publish(settings) == []
    (settings.data_dir / "sources" / "mine" / "list").unlink()
    (settings.data_dir / "sources" / "mine" / "list").mkdir()
    assert [(one["name"], one["status"]) for one in source_jobs.publish(settings, full=True)] == [("mine", "failed")]
