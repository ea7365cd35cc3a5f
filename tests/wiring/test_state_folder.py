"""What is joined over the state folder: its parts, engines over its snapshots, a database made again from them."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import SnapshotBuilder
from gatewayfilter.errors import SnapshotError, StartupError
from gatewayfilter.model import EntryKind, LearnedEntry, ListAction, Request, ResourceType, Source
from gatewayfilter.store import Store
from gatewayfilter.urls import parse_url
from gatewayfilter.wiring import filtering, recovery, storage


def decided(engine: FilterEngine, host: str) -> str:
    request = Request(parse_url(f"http://{host}/"), None, ResourceType.DOCUMENT)
    return engine.decide(request).reason.value


def snapshot(settings: Settings, *hosts: str) -> None:
    builder = SnapshotBuilder()
    builder.add_keys(builder.add_source(Source("list", category="ads")), hosts)
    storage.snapshot_folder(settings).publish(builder.build())


def test_where_things_are_in_the_state_folder(settings: Settings) -> None:
    folder = settings.data_dir
    assert storage.spool_folder(settings) == folder / "spool"
    assert storage.own_services(settings).parent == folder
    assert storage.fleet_folder(settings).base.is_relative_to(folder / "fleet")
    assert storage.publisher_snapshot(settings) is None
    base = storage.fleet_folder(settings).base
    base.parent.mkdir(parents=True)
    following = Settings(data_dir=folder, fleet={"follow": "https://a.test/", "key": "k" * 44})  # type: ignore[arg-type]
    assert storage.publisher_snapshot(following) is None
    base.write_bytes(b"")
    assert storage.publisher_snapshot(following) == base
    assert storage.publisher_snapshot(settings) is None


def test_the_state_folder_is_the_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(data_dir=tmp_path / "a" / "b")
    for _ in range(2):
        storage.prepare_data_dir(settings)
        assert settings.data_dir.stat().st_mode & 0o777 == 0o700
        settings.data_dir.chmod(0o755)
    needed: list[int] = []

    def may(_: object, mode: int) -> bool:
        needed.append(mode)
        return True

    monkeypatch.setattr(os, "access", may)
    for flag, mode in (
        (0, os.R_OK | os.W_OK | os.X_OK),
        (os.ST_RDONLY, os.R_OK | os.X_OK),
        (os.ST_RDONLY | 64, os.R_OK | os.X_OK),
    ):
        monkeypatch.setattr(os, "statvfs", lambda _, flag=flag: SimpleNamespace(f_flag=flag))
        assert storage.on_read_only_disk(settings) is bool(flag)
        storage.prepare_data_dir(settings)
        assert needed.pop() == mode
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(StartupError, match="cannot write to the state folder"):
        storage.prepare_data_dir(settings)
    (tmp_path / "file").touch()
    with pytest.raises(StartupError, match="cannot use the state folder"):
        storage.prepare_data_dir(Settings(data_dir=tmp_path / "file"))
    monkeypatch.undo()
    assert not storage.on_read_only_disk(Settings(data_dir=tmp_path / "none"))


def test_titles_of_categories_are_in_the_language_that_is_asked_for() -> None:
    registry = storage.categories()
    english, chinese = (storage.category_title(registry, "gambling", language) for language in ("en", "zh-Hans"))
    assert english.isascii()
    assert not chinese.isascii()


def test_a_wrong_catalogue_of_services_leaves_the_bundled_one(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    bundled = storage.usable_services(settings)
    assert bundled == storage.services(settings)
    storage.own_services(settings).write_text("[no")
    assert storage.usable_services(settings) == bundled
    assert "only the bundled services are known" in caplog.text


def test_a_database_keeps_the_bound_of_the_queue(settings: Settings) -> None:
    bounded = Settings(data_dir=settings.data_dir, crawl={"max_waiting": 1_234})  # type: ignore[arg-type]
    store = storage.open_store(bounded)
    assert store.frontier.max_waiting == 1_234
    store.close()


def test_the_engine_is_over_the_newest_good_snapshot(settings: Settings, store: Store) -> None:
    with pytest.raises(SnapshotError):
        filtering.newest_engine(settings)
    snapshot(settings, "a.test")
    assert decided(filtering.newest_engine(settings), "a.test") == "blacklist"
    off = Settings(data_dir=settings.data_dir, filter={"disabled_categories": ["ads"]})  # type: ignore[arg-type]
    assert decided(filtering.newest_engine(off), "a.test") == "unknown"
    store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "b.test")
    engine = filtering.open_engine(settings, store)
    assert [decided(engine, host) for host in ("a.test", "b.test", "c.test")] == ["blacklist", "manual-block", "unknown"]


@pytest.mark.parametrize(("damaged", "refuses"), [((), 0), (("newer",), 1), (None, 1)])
def test_a_damaged_snapshot_is_marked_to_be_made_again(
    damaged: tuple[str, ...] | None, refuses: int, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot(settings, "a.test")
    good, _ = storage.snapshot_folder(settings).open_newest()
    refused: list[bool] = []

    def open_newest() -> tuple[object, tuple[str, ...]]:
        if damaged is None:
            raise SnapshotError("none is good")
        return good, damaged

    folder = SimpleNamespace(open_newest=open_newest, refuse=lambda: refused.append(True))
    monkeypatch.setattr(filtering, "snapshot_folder", lambda _: folder)
    if damaged is None:
        with pytest.raises(SnapshotError, match="none is good"):
            filtering.newest_engine(settings)
    else:
        assert decided(filtering.newest_engine(settings), "a.test") == "blacklist"
    assert len(refused) == refuses


def test_engines_over_lists_alone_touch_no_state(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("a.test\nb.test\n")
    engine = filtering.engine_for_lists([tmp_path / "list.txt"])
    assert [decided(engine, host) for host in ("a.test", "c.test")] == ["blacklist", "unknown"]
    image = filtering.image_of(engine, tmp_path / "image")
    assert image is not None
    assert (tmp_path / "image").stat().st_size > 0
    with pytest.raises(StartupError, match="cannot write"):
        filtering.image_of(engine, tmp_path / "none" / "image")


class Snapshot:
    """A snapshot that holds what a test wants."""

    def __init__(self, **holds: object) -> None:
        self.policies: object = ()
        self.rules: object = ()
        self.records: object = ()
        self.info = SimpleNamespace(feed_seq=7, learned=2)
        self.closed = 0
        for name, value in holds.items():
            setattr(self, name, value)

    def close(self) -> None:
        self.closed += 1


def entry(key: str, expires_at: float) -> LearnedEntry:
    return LearnedEntry(key, ListAction.BLOCK, "gambling", f"http://{key}/", "", 0.0, expires_at)


def test_a_lost_database_is_made_again_of_what_is_still_in_force(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_900_000_000.0
    monkeypatch.setattr("gatewayfilter.wiring.recovery.time", SimpleNamespace(time=lambda: now))
    monkeypatch.setattr(recovery, "_CHUNK", 2)
    for host, ends in (("always.test", None), ("later.test", now + 1), ("now.test", now), ("past.test", now - 1)):
        store.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, host, expires_at=ends)
    rules = store.lists.rules()
    for rule in rules:
        store.lists.remove_rule(rule.rule_id)
    entries = [entry(f"{number}.test", now + number) for number in range(-1, 4)]
    found = Snapshot(rules=rules, records=entries)
    folder = SimpleNamespace(open_newest=lambda: (found, ()))
    assert recovery.fill_from_snapshot(folder, store) == 2  # type: ignore[arg-type]
    assert [rule.pattern for rule in store.lists.rules()] == ["always.test", "later.test"]
    assert sorted(one.key for one in store.lists.learned()) == ["1.test", "2.test", "3.test"]
    assert (store.feed.last_seq() > 1_000, found.closed) == (True, 1)


def test_without_a_snapshot_a_lost_database_stays_empty(store: Store) -> None:
    def none() -> object:
        raise SnapshotError("none")

    assert recovery.fill_from_snapshot(SimpleNamespace(open_newest=none), store) == 0  # type: ignore[arg-type]
    assert (store.lists.rules(), store.feed.last_seq()) == ([], 0)
