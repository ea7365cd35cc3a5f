"""The preparation of the state folder at a start."""

from pathlib import Path

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.engine.adblock.index import sections
from gatewayfilter.errors import SnapshotError, StoreError
from gatewayfilter.processes import data_dir
from gatewayfilter.processes.data_dir import prepare_lists
from gatewayfilter.wiring import newest_engine


def test_a_snapshot_of_another_version_is_published_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an update of the program the filter starts with lists that this version compiles."""
    settings = Settings(data_dir=tmp_path / "state")
    monkeypatch.setattr(sections, "MAGIC", b"GFADB\x00\x00\x00")
    prepare_lists(settings)
    monkeypatch.undo()
    prepare_lists(settings)
    engine = newest_engine(settings)
    assert len(list((tmp_path / "state" / "snapshots").glob("snapshot-*.gfs"))) == 3, "and the copy of the first"
    assert engine.state.snapshot.adblock is not None


class Opened:
    """Stands in for the database, and for the folder of snapshots."""

    def __init__(self, current: object, refused: list[str], error: Exception | None = None) -> None:
        self.state, self.refused, self.error = current, refused, error
        self.log = list[object]()

    def close(self) -> None:
        self.log.append("close")

    def current(self) -> object:
        return self.state

    def open_newest(self) -> tuple["Opened", list[str]]:
        if self.error is not None:
            raise self.error
        self.log.append("snapshot")
        return self, self.refused


@pytest.mark.parametrize(
    ("current", "refused", "error", "log"),
    [
        (None, [], None, ["publish", "close"]),
        ("snapshot", [], None, ["snapshot", "close", "close"]),
        ("snapshot", ["the newest is damaged"], None, ["snapshot", "close", "publish", "close"]),
        ("snapshot", [], SnapshotError("none is good"), ["publish", "close"]),
    ],
)
def test_a_snapshot_is_published_where_there_is_no_good_one(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    current: object,
    refused: list[str],
    error: Exception | None,
    log: list[str],
) -> None:
    opened = Opened(current, refused, error)
    monkeypatch.setattr(data_dir, "open_store", lambda _: opened)
    monkeypatch.setattr(data_dir, "snapshot_folder", lambda _: opened)
    monkeypatch.setattr(data_dir, "publish_now", lambda _, store: opened.log.append("publish" if store is opened else store))
    prepare_lists(Settings())
    assert opened.log == log
    assert caplog.messages == [*refused, *(["none is good; publishing a new one"] if error else [])]


def test_a_database_that_fails_does_not_stop_a_filter_that_has_a_snapshot(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Settings) -> None:
        raise StoreError("no database")

    opened = Opened("snapshot", [])
    monkeypatch.setattr(data_dir, "open_store", fail)
    monkeypatch.setattr(data_dir, "snapshot_folder", lambda _: opened)
    prepare_lists(Settings())
    assert "filtering goes on with the last snapshot" in caplog.text
    opened.state = None
    with pytest.raises(StoreError, match="no database"):
        prepare_lists(Settings())
