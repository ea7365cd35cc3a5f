"""The files of the backlog: who may read them, and cursors that mean nothing: `gatewayfilter.crawl.buffer.backlog`."""

import os
from pathlib import Path

import pytest

from gatewayfilter.crawl import Backlog


def test_journal_and_cursor_are_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "archive" / "b.log"
    mask = os.umask(0)
    try:
        backlog = Backlog(path)
        for name in "ab":
            backlog.put(name)
        backlog.advance()
    finally:
        os.umask(mask)
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert (modes, path.parent.stat().st_mode & 0o777) == ({"b.log": 0o600, "b.cursor": 0o600}, 0o700)
    assert path.with_suffix(".cursor").read_bytes() == b"0000000000000002"


@pytest.mark.parametrize("cursor", ["8", "1", "-1"])
def test_a_cursor_that_means_nothing_is_written_anew_at_once(tmp_path: Path, cursor: str) -> None:
    """What is appended later must not grow up to it."""
    path = tmp_path / "b.log"
    path.write_text("a\nb\n")
    path.with_suffix(".cursor").write_text(cursor)
    assert len(Backlog(path)) == 2
    assert int(path.with_suffix(".cursor").read_bytes()) == 0
    Backlog(path).put("new")
    assert len(Backlog(path)) == 3


def test_a_cursor_at_the_end_leaves_nothing_and_a_torn_line_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "b.log"
    path.write_text("a\nb\nhalf")
    path.with_suffix(".cursor").write_text("4")
    assert (len(Backlog(path)), path.read_text()) == (0, "a\nb\n")
    path.write_text("a\nb\n")
    backlog = Backlog(path)
    assert (len(backlog), backlog.first()) == (0, None)
    backlog.put("c")
    assert (backlog.first(), path.read_text()) == ("c", "a\nb\nc\n")
    backlog.advance()
    assert (backlog.first(), path.read_bytes(), path.with_suffix(".cursor").read_bytes()) == (None, b"", b"0" * 16)


def test_a_journal_without_a_cursor_is_adopted(tmp_path: Path) -> None:
    (tmp_path / "old.log").write_text("")
    own = Backlog(tmp_path / "own.log")
    assert own.adopt(tmp_path / "old.log") == 0
    assert list(tmp_path.iterdir()) == []
