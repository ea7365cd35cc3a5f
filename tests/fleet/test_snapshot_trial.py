"""The trial of a snapshot before it takes the place of the last one: what cannot be used is thrown away, though it is signed."""

from pathlib import Path

import pytest

from gatewayfilter.engine.snapshot.format import read_sections
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.fleet.download import ContentError
from gatewayfilter.fleet.follower import _one_line, _try_out


@pytest.fixture
def whole() -> bytearray:
    return bytearray(SnapshotBuilder(created_at=1.0).build())


def test_what_is_no_snapshot_is_thrown_away(tmp_path: Path) -> None:
    path = tmp_path / "x.part"
    path.write_bytes(b"no snapshot" * 100)
    with pytest.raises(ContentError, match="is as signed, but cannot be used"):
        _try_out(path)
    assert not path.exists()
    with pytest.raises(ContentError, match=r"cannot be used: .*No such file"):
        _try_out(path)


def test_a_snapshot_that_can_be_used_stays_and_is_closed(
    tmp_path: Path, whole: bytearray, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.part"
    path.write_bytes(whole)
    closed: list[bytes] = []
    monkeypatch.setattr(Snapshot, "close", lambda snapshot: closed.append(snapshot.mark))
    _try_out(path)
    assert closed == [Snapshot.from_bytes(bytes(whole)).mark]
    assert path.read_bytes() == whole


def test_a_snapshot_that_is_damaged_inside_is_thrown_away(tmp_path: Path, whole: bytearray) -> None:
    path = tmp_path / "x.part"
    table = read_sections(bytes(whole))["blacklist"]
    whole[table.offset + table.length - 1] ^= 1
    path.write_bytes(whole)
    with pytest.raises(ContentError, match="is as signed, but cannot be used"):
        _try_out(path)
    assert not path.exists()


def test_what_is_told_of_a_fault_is_one_line_of_bounded_length() -> None:
    assert _one_line("a\nb" + "x" * 600) == "a b" + "x" * 497
