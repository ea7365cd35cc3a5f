"""What is held of the snapshot in use, and when a database is not the one that it was made from."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import SnapshotError
from gatewayfilter.processes import published_snapshot
from gatewayfilter.processes.published_snapshot import PublishedSnapshot


class Folder:
    """Stands in for the folder of snapshots."""

    def __init__(self) -> None:
        self.points: tuple[int, int] | None = (1, 1)
        self.log = list[str]()
        self.fails = False
        self.meta: dict[str, Any] = {"notes": {"feed_mark": "m"}}

    def pointing(self) -> tuple[int, int] | None:
        return self.points

    def open_newest(self, *, verify: bool) -> tuple[Any, list[str]]:
        assert not verify, "its facts are all that is read"
        if self.fails:
            raise SnapshotError("none")
        self.log.append("open")
        info = SimpleNamespace(feed_seq=7, created_at=100.0)
        return SimpleNamespace(info=info, meta=self.meta, close=lambda: self.log.append("close")), []


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Folder:
    found = Folder()
    monkeypatch.setattr(published_snapshot, "snapshot_folder", lambda _: found)
    return found


def test_its_facts_are_read_when_another_one_is_in_use(folder: Folder, tmp_path: Path) -> None:
    held = PublishedSnapshot(Settings(data_dir=tmp_path))
    assert (held.feed_seq, held.created_at, folder.log) == (7, 100.0, ["open", "close"])
    held.refresh()
    assert (held.feed_seq, held.created_at, folder.log) == (7, 100.0, ["open", "close"])
    folder.points = (1, 2)
    held.refresh()
    assert len(folder.log) == 4
    folder.points, folder.fails = None, True
    held.refresh()
    assert (held.feed_seq, held.created_at) == (0, 0.0)
    folder.fails = False
    held.refresh()
    held.refresh()  # with nothing that points, it is looked at each time
    assert (held.feed_seq, len(folder.log)) == (7, 8)


@pytest.mark.parametrize(
    ("last", "mark", "meta", "is_other", "begins"),
    [
        (7, "m", {"notes": {"feed_mark": "m"}}, False, []),
        (9, "m", {"notes": {"feed_mark": "m"}}, False, []),
        (9, "other", {"notes": {"feed_mark": "m"}}, True, []),
        (9, "other", {}, False, []),  # one of an earlier version has no mark
        (6, "m", {"notes": {"feed_mark": "m"}}, True, [7]),
    ],
)
def test_the_database_of_a_snapshot(
    folder: Folder, tmp_path: Path, last: int, mark: str, meta: dict[str, Any], *, is_other: bool, begins: list[int]
) -> None:
    folder.meta = meta
    begun = list[int]()
    feed = SimpleNamespace(last_seq=lambda: last, mark=lambda number: mark if number == 7 else "", begin_after=begun.append)
    held = PublishedSnapshot(Settings(data_dir=tmp_path))
    assert held.is_of_another_database(cast("Any", SimpleNamespace(feed=feed))) is is_other
    assert begun == begins
