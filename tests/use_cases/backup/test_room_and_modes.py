"""The room that a restore needs, the modes of what it makes, and what lies in its way."""

import shutil
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter.certificates.authority import ensure_ca
from gatewayfilter.errors import BackupError
from gatewayfilter.model import EntryKind, ListAction
from gatewayfilter.store import Store
from gatewayfilter.store.backup import Part
from gatewayfilter.use_cases.backup import Archive, Restore, Wanted, back_up, finish_interrupted, restore_plan, restoring, sealing
from gatewayfilter.use_cases.backup.state_files import Places

type Use = Callable[[Restore, Path], object]


@pytest.fixture
def places(tmp_path: Path) -> Places:
    folder = tmp_path / "here"
    folder.mkdir()
    return Places(folder, folder / "config.toml", folder / "proxy-users", folder / "ca")


@pytest.fixture
def here(places: Places) -> Store:
    return Store.open(f"sqlite:///{places.data_dir / 'gatewayfilter.sqlite3'}")


@pytest.fixture
def backup(here: Store, places: Places, tmp_path: Path) -> Path:
    here.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "a.test")
    back_up(here, places, tmp_path / "b", Wanted())
    return tmp_path / "b"


@pytest.mark.parametrize(("use", "copies"), [(Restore.preview, 1), (Restore.carry_out, 3)])
def test_a_restore_needs_the_room_of_its_copies(
    use: Use, copies: int, backup: Path, here: Store, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(backup.parent)
    with Archive(backup) as archive:
        needed = copies * archive.total_bytes
    with closing(here):
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=needed - 1))
        with pytest.raises(BackupError, match="too little room"):
            use(Restore(here, places), backup)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=needed))
        assert use(Restore(here, places), backup)


def test_what_was_backed_up_is_told(here: Store, places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "_COST", 2**4)
    for name in ("words/a.toml", "sources/ads/list", "sources/ads/source.json", "proxy-users", "config.toml"):
        (places.data_dir / name).parent.mkdir(parents=True, exist_ok=True)
        (places.data_dir / name).write_text("a = 1\n")
    places.ca.mkdir()
    with closing(here):
        here.lists.add_rule(ListAction.BLOCK, EntryKind.HOST, "a.test")
        plain = back_up(here, places, tmp_path / "b", Wanted(lists=False))
        sealed = back_up(here, places, tmp_path / "c", Wanted(passphrase="correct horse"))
    assert (plain.path, plain.size_bytes, plain.with_ca) == (tmp_path / "b", (tmp_path / "b").stat().st_size, False)
    assert (sealed.path, sealed.with_ca) == (tmp_path / "c", True)
    kinds = ("manual rules", "words", "subscriptions", "settings", "proxy users")
    assert {kind: plain.counts[kind] for kind in kinds} == dict.fromkeys(kinds, 1)
    with Archive(tmp_path / "b") as archive:
        assert archive.state_names() == ["sources/ads/source.json", "words/a.toml"]
        assert (archive.with_lists, archive.counts["manual_rules"]) == (False, 1)
    with Archive(tmp_path / "c") as archive:
        assert archive.state_names() == ["sources/ads/list", "sources/ads/source.json", "words/a.toml"]
        assert archive.with_lists


def test_files_that_are_as_they_were_are_no_change(here: Store, places: Places, tmp_path: Path) -> None:
    words = places.data_dir / "words"
    words.mkdir()
    for name in ("same.toml", "longer.toml", "shorter.toml", "other.toml"):
        (words / name).write_text("a = 1\n")
    with closing(here):
        back_up(here, places, tmp_path / "b", Wanted())
        assert restore_plan.count_files(_planned(tmp_path / "b", places)) == []
        (words / "longer.toml").write_text("a = 1\nb = 2\n")
        (words / "shorter.toml").write_text("a")
        (words / "other.toml").write_text("b = 1\n")
        changed = {change.target.name for change in _planned(tmp_path / "b", places)}
    assert changed == {"longer.toml", "shorter.toml", "other.toml"}


def _planned(path: Path, places: Places) -> list[restore_plan.FileChange]:
    with Archive(path) as archive:
        return restore_plan.plan_files(archive, places, None)


def test_what_a_restore_makes_is_private(backup: Path, here: Store, places: Places) -> None:
    with closing(here):
        made = Restore(here, places).carry_out(backup).safety_copy
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (made, made.parent, places.data_dir / "restore.lock")]
    assert modes == [0o600, 0o700, 0o600]


def test_what_is_no_folder_of_a_restore_stops_no_start(backup: Path, here: Store, places: Places) -> None:
    (places.data_dir / restoring.WORK).touch()
    with closing(here):
        assert finish_interrupted(here, places.data_dir) is False
        with pytest.raises(BackupError, match="cannot write to"):
            Restore(here, places).carry_out(backup)
    assert (places.data_dir / restoring.WORK).is_file()


@pytest.mark.parametrize("parts", [{Part.STATE}, {Part.STATE, Part.LOG}])
def test_the_safety_copy_has_the_parts_that_are_restored(here: Store, places: Places, tmp_path: Path, parts: set[Part]) -> None:
    with closing(here):
        back_up(here, places, tmp_path / "b", Wanted(frozenset(parts), lists=False))
        made = Restore(here, places).carry_out(tmp_path / "b").safety_copy
    with Archive(made) as archive:
        assert ("decisions" in archive.tables(), archive.with_lists) == (Part.LOG in parts, False)


def test_the_safety_copy_has_the_authority_that_is_replaced(
    here: Store, places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "_COST", 2**4)
    key = ensure_ca(places.ca).path.read_bytes()
    with closing(here):
        back_up(here, places, tmp_path / "b", Wanted(passphrase="correct horse"))
        for passphrase, sealed in ((None, False), ("correct horse", True)):
            with Archive(Restore(here, places, passphrase).carry_out(tmp_path / "b").safety_copy) as archive:
                assert restoring.holds_authority(archive) is sealed
        shutil.rmtree(places.ca)
        made = Restore(here, places, "correct horse").carry_out(tmp_path / "b")
    with Archive(made.safety_copy) as archive:
        assert restoring.holds_authority(archive) is False, "there was none"
    assert (ensure_ca(places.ca).path.read_bytes(), restore_plan.CERTIFICATE_AUTHORITY in made.files) == (key, True)
