"""The preparation of the state folder at a start."""

from pathlib import Path

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.engine.adblock.index import sections
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
