"""Files that are replaced all or none: what is staged, moved, kept and taken back, and what an earlier process has left."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.errors import BackupError
from gatewayfilter.use_cases.backup.file_swap import FileSwap

ARCHIVE: Any = "archive"


def change(target: Path, *blocks: bytes) -> Any:
    """A new file, or the removal of one."""
    return SimpleNamespace(target=target, removes=not blocks, blocks=lambda archive: blocks if archive == ARCHIVE else ())


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state folder with three files; another one lies beside it."""
    folder = tmp_path / "state"
    (folder / "lists" / "old").mkdir(parents=True)
    (folder / "swap").mkdir()
    for name, text in (("a", "a1"), ("b", "b1"), ("lists/old/list", "l1"), ("../outside", "o1")):
        (folder / name).write_text(text)
    (folder / "a").chmod(0o640)
    return folder


def staged(state: Path) -> FileSwap:
    swap = FileSwap(state / "swap")
    swap.stage(
        [
            change(state / "lists" / "old" / "list"),
            change(state / "a", b"a", b"2"),
            change(state / "new" / "deep" / "c", b"c2"),
            change(state.parent / "outside", b"o2"),
            change(state / "b"),
            change(state / "gone"),
        ],
        ARCHIVE,
    )
    return swap


def texts(state: Path) -> dict[str, str]:
    found = [path for path in state.parent.rglob("*") if path.is_file()]
    return {path.relative_to(state, walk_up=True).as_posix(): path.read_text() for path in found}


BEFORE = {"a": "a1", "b": "b1", "lists/old/list": "l1", "../outside": "o1"}
AFTER = {"a": "a2", "new/deep/c": "c2", "../outside": "o2"}


def test_all_files_take_their_places(state: Path) -> None:
    swap = staged(state)
    assert texts(state) == BEFORE | {"swap/file-1": "a2", "swap/file-2": "c2", "../.outside.restore": "o2"}
    assert (state / "swap" / "file-1").stat().st_mode & 0o777 == 0o640
    assert (state / "swap" / "file-2").stat().st_mode & 0o777 == 0o600
    before = swap.begun
    swap.begin()
    assert (before, swap.begun) == (False, True)
    journal = state / "swap" / "journal.json"
    assert json.loads(journal.read_text()) == [
        [None, str(state / "lists/old/list")],
        [str(state / "swap/file-1"), str(state / "a")],
        [str(state / "swap/file-2"), str(state / "new/deep/c")],
        [str(state.parent / ".outside.restore"), str(state.parent / "outside")],
        [None, str(state / "b")],
        [None, str(state / "gone")],
    ]
    assert (journal.stat().st_mode & 0o777, list((state / "swap").glob("*.part"))) == (0o600, [])
    swap.apply()
    kept = {"swap/old-0": "l1", "swap/old-1": "a1", "swap/old-4": "b1", "../.outside.before-restore": "o1"}
    assert texts(state) == AFTER | kept | {"swap/journal.json": journal.read_text()}
    assert ((state / "lists" / "old").exists(), (state / "lists").exists()) == (False, True)
    assert [(state / name).stat().st_mode & 0o777 for name in ("new", "new/deep")] == [0o700, 0o700]
    swap.end()
    assert (texts(state), (state / "swap").exists()) == (AFTER, False)


def test_moves_are_taken_back(state: Path) -> None:
    swap = staged(state)
    swap.begin()
    swap.apply()
    swap.undo()
    assert (texts(state), (state / "swap").exists(), swap.begun) == (BEFORE, False, False)


def test_a_later_process_completes_what_was_begun(state: Path) -> None:
    first = staged(state)
    first.begin()
    (state / "swap" / "file-1").replace(state / "a")  # the process ended after this move
    later = FileSwap(state / "swap")
    later.resume()
    later.apply()
    assert {name: text for name, text in texts(state).items() if not name.startswith(("swap/", "../."))} == AFTER
    assert not (state / "swap" / "old-1").exists()
    later.end()
    assert texts(state) == AFTER


def test_what_fails_in_between_is_taken_back(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swap = staged(state)
    swap.begin()
    replace = Path.replace

    def failing(path: Path, target: Path) -> Any:
        if target.name == "c":
            raise OSError(28, "No space left on device")
        return replace(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", failing)
        with pytest.raises(OSError, match="No space left"):
            swap.apply()
    swap.undo()
    assert texts(state) == BEFORE


@pytest.mark.parametrize("text", ["", "{", "7", "[[1]]", "[7]"])
def test_a_damaged_journal_is_named(state: Path, text: str) -> None:
    swap = FileSwap(state / "swap")
    with pytest.raises(BackupError, match="is damaged"):
        swap.resume()
    (state / "swap" / "journal.json").write_text(text)
    with pytest.raises(BackupError) as refused:
        swap.resume()
    assert str(refused.value) == f"an interrupted restore cannot be completed: {state}/swap/journal.json is damaged"


def test_old_files_are_copied_where_there_are_no_links(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swap = staged(state)
    swap.begin()
    (state / "swap" / "old-1").write_text("of an earlier try")

    def refuse(*_: object) -> None:
        raise OSError(18, "Cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    swap.apply()
    assert ((state / "swap" / "old-1").read_text(), (state / "a").read_text()) == ("a1", "a2")
    swap.undo()
    assert texts(state) == BEFORE


def test_files_belong_to_whom_they_belonged(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owners: list[tuple[Any, ...]] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "fchown", lambda _, *owner: owners.append(owner))
    monkeypatch.setattr(os, "chown", lambda path, *owner: owners.append((Path(path).name, *owner)))
    swap = staged(state)
    own = state.stat().st_uid, state.stat().st_gid
    assert owners == [own] * 3
    owners.clear()
    swap.begin()
    swap.apply()
    assert owners == [("new", *own), ("deep", *own)]
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    owners.clear()
    staged(state).stage([change(state / "z" / "y", b"x")], ARCHIVE)
    assert owners == []
