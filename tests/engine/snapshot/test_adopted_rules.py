"""Adblock rules that a snapshot reuses from the one before: they stay those of the other's file, and are verified there."""

import os
from pathlib import Path

import pytest

from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import Source

RULES = ["||ads.example^", "/banner/*$image", "ads.example##.ad"]


def saved(path: Path, *keys: str, rules: list[str] | None = None) -> Path:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("black")), keys)
    builder.add_adblock_list(builder.add_source(Source("ads")), RULES if rules is None else rules)
    path.write_bytes(builder.build())
    return path


@pytest.fixture(name="both")
def _both(tmp_path: Path) -> tuple[Snapshot, Snapshot]:
    """An old snapshot whose rules are opened, and a new one with the same rules."""
    old = Snapshot.open(saved(tmp_path / "old", ".a.example"))
    assert old.adblock.rule_count == 2
    return old, Snapshot.open(saved(tmp_path / "new", ".b.example"))


def test_equal_rules_are_opened_once(both: tuple[Snapshot, Snapshot], monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[Snapshot] = []

    def release(snapshot: Snapshot) -> None:
        released.append(snapshot)

    monkeypatch.setattr(Snapshot, "release_pages", release)
    old, new = both
    new.adopt(old)
    assert (new.adblock is old.adblock, new.effects is old.effects) == (True, False), "effects were not opened"
    assert released == [old]
    old.adopt(old)
    assert released == [old]


def test_other_rules_are_their_own(both: tuple[Snapshot, Snapshot], tmp_path: Path) -> None:
    other = Snapshot.open(saved(tmp_path / "other", rules=["||other.example^"]))
    other.adopt(both[0])
    assert other.adblock.rule_count == 1
    saved(tmp_path / "old", rules=[])
    assert not other.is_cut_off()
    other.verify()


def test_rules_that_were_adopted_are_verified_in_their_file(both: tuple[Snapshot, Snapshot], tmp_path: Path) -> None:
    old, new = both
    new.adopt(old)
    new.verify()
    place = (tmp_path / "old").read_bytes().index(bytes(old.section("adblock")))
    with (tmp_path / "old").open("r+b") as file:
        file.seek(place + 200)
        byte = file.read(1)
        file.seek(place + 200)
        file.write(bytes([byte[0] ^ 1]))
    for damaged in (old, new):
        with pytest.raises(SnapshotError, match="adblock"):
            damaged.verify()
    with pytest.raises(SnapshotError, match="adblock"):
        old.verify_rules()
    new.verify_rules()


@pytest.mark.parametrize("name", ["old", "new"])
def test_a_file_that_became_shorter_is_told(both: tuple[Snapshot, Snapshot], tmp_path: Path, name: str) -> None:
    old, new = both
    new.adopt(old)
    assert not new.is_cut_off()
    os.truncate(tmp_path / name, (tmp_path / name).stat().st_size - 1)
    assert new.is_cut_off()
    assert old.is_cut_off() is (name == "old")
    with pytest.raises(SnapshotError, match="shorter"):
        new.verify()


def test_rules_are_adopted_from_where_they_were_opened(both: tuple[Snapshot, Snapshot], tmp_path: Path) -> None:
    old, new = both
    new.adopt(old)
    third = Snapshot.open(saved(tmp_path / "third", ".c.example"))
    third.adopt(new)
    assert third.adblock is old.adblock
    os.truncate(tmp_path / "old", 8)
    assert third.is_cut_off()


def test_a_snapshot_in_memory_is_never_cut_off(tmp_path: Path) -> None:
    whole = Snapshot.from_bytes(saved(tmp_path / "x").read_bytes())
    assert not whole.is_cut_off()
    whole.verify()
    whole.release_pages()
    assert whole.adblock.rule_count == 2
