import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatewayfilter.crawl import Backlog


def waiting(backlog: Backlog) -> list[str]:
    found = []
    while (reference := backlog.first()) is not None:
        found.append(reference)
        backlog.advance()
    return found


def test_references_come_in_order_and_stay_until_they_are_done(tmp_path: Path) -> None:
    backlog = Backlog(tmp_path / "archive" / "backlog.log")
    assert backlog.first() is None
    for name in "abc":
        backlog.put(name)
    assert (backlog.first(), backlog.first(), len(backlog)) == ("a", "a", 3)
    assert waiting(backlog) == ["a", "b", "c"]
    assert (tmp_path / "archive").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "archive" / "backlog.log").stat().st_size == 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(steps=st.lists(st.sampled_from(["put", "advance", "reopen"]), max_size=40))
def test_another_process_goes_on_where_one_stopped(tmp_path: Path, steps: list[str]) -> None:
    path = tmp_path / "b.log"
    path.unlink(missing_ok=True)
    path.with_suffix(".cursor").unlink(missing_ok=True)
    backlog = Backlog(path)
    model: list[str] = []
    for number, step in enumerate(steps):
        if step == "put":
            backlog.put(f"page {number}")
            model.append(f"page {number}")
        elif step == "advance" and model:
            backlog.advance()
            model.pop(0)
        elif step == "reopen":
            backlog = Backlog(path)
        assert len(backlog) == len(model)
    assert waiting(Backlog(path)) == model


@pytest.mark.parametrize(
    ("journal", "cursor", "expected"),
    [
        ("a\nb\nhalf", "0", ["a", "b"]),
        ("a\nb\n", "2", ["b"]),
        ("a\nb\n", "99", ["a", "b"]),
        ("a\nb\n", "1", ["a", "b"]),
        ("a\nb\n", "zero", ["a", "b"]),
        ("a\nb\n", "-3", ["a", "b"]),
        ("", "4", []),
        ("half", "0", []),
    ],
)
def test_what_a_killed_process_left(tmp_path: Path, journal: str, cursor: str, expected: list[str]) -> None:
    path = tmp_path / "b.log"
    path.write_text(journal)
    path.with_suffix(".cursor").write_text(cursor)
    backlog = Backlog(path)
    backlog.put("new")
    assert waiting(Backlog(path)) == [*expected, "new"]


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backlog = Backlog(tmp_path / "b.log")
    backlog.put("a")
    with monkeypatch.context() as patched:
        patched.setattr("os.write", lambda *_: 1)
        with pytest.raises(OSError, match="No space"):
            backlog.put("bcd")
    backlog.put("e")
    assert waiting(Backlog(tmp_path / "b.log")) == ["a", "e"]


def test_the_journal_of_a_crawler_that_is_no_more_is_taken_over(tmp_path: Path) -> None:
    own, other = Backlog(tmp_path / "backlog.log"), Backlog(tmp_path / "backlog-1.log")
    own.put("mine")
    for name in ("done", "a", "b"):
        other.put(name)
    other.advance()
    assert own.adopt(tmp_path / "backlog-1.log") == 2
    assert waiting(Backlog(tmp_path / "backlog.log")) == ["mine", "a", "b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backlog.cursor", "backlog.log"]
    assert own.adopt(tmp_path / "backlog-9.log") == 0


def test_a_takeover_that_was_cut_off_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Backlog(tmp_path / "backlog-1.log")
    for name in "abc":
        other.put(name)
    own = Backlog(tmp_path / "backlog.log")
    put = Backlog.put

    def dies(self: Backlog, reference: str) -> None:
        if reference == "c":
            raise KeyboardInterrupt
        put(self, reference)

    monkeypatch.setattr(Backlog, "put", dies)
    with pytest.raises(KeyboardInterrupt):
        own.adopt(tmp_path / "backlog-1.log")
    monkeypatch.setattr(Backlog, "put", put)
    again = Backlog(tmp_path / "backlog.log")
    assert again.adopt(tmp_path / "backlog-1.log") == 1
    assert waiting(again) == ["a", "b", "c"]


def test_no_descriptor_is_left_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backlog, is_open, opened = Backlog(tmp_path / "b.log"), set[int](), list[str]()
    really_open, really_close = os.open, os.close

    def note_open(path: Any, *how: int) -> int:
        descriptor = really_open(path, *how)
        if tmp_path in Path(path).parents:
            is_open.add(descriptor)
            opened.append(Path(path).name)
        return descriptor

    def note_close(descriptor: int) -> None:
        is_open.discard(descriptor)
        really_close(descriptor)

    monkeypatch.setattr(os, "open", note_open)
    monkeypatch.setattr(os, "close", note_close)
    for name in ("a", "b"):
        backlog.put(name)
    assert waiting(backlog) == ["a", "b"]
    assert {"b.log", "b.cursor"} <= {*opened}
    assert is_open == set()
