"""Secrets of a state folder: made once, private, whole."""

import os
from pathlib import Path

import pytest

from gatewayfilter.errors import StartupError
from gatewayfilter.store.secret_key import load_key


def test_a_key_is_made_once_and_stays_private(tmp_path: Path) -> None:
    key = load_key(tmp_path, "request.key")
    assert len(key) == 32
    assert load_key(tmp_path, "request.key") == key
    assert load_key(tmp_path, "other.key") != key
    path = tmp_path / "request.key"
    assert path.stat().st_mode & 0o777 == 0o600
    for mode in (0o640, 0o604, 0o601):
        path.chmod(mode)
        assert load_key(tmp_path, "request.key") == key
        assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o400)
    load_key(tmp_path, "request.key")
    assert path.stat().st_mode & 0o777 == 0o400, "one that is private already is left alone"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["other.key", "request.key"]


def test_the_key_of_a_process_that_was_faster_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def after_another(made: Path, path: Path) -> None:
        path.write_bytes(b"k" * 32)
        link(made, path)

    monkeypatch.setattr(os, "link", after_another)
    assert load_key(tmp_path, "request.key") == b"k" * 32
    assert [one.name for one in tmp_path.iterdir()] == ["request.key"]


@pytest.mark.parametrize("content", [b"", b"k" * 31, b"k" * 33])
def test_what_is_no_key_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "request.key").write_bytes(content)
    with pytest.raises(StartupError, match="no key of 32 bytes"):
        load_key(tmp_path, "request.key")
    with pytest.raises(StartupError, match="cannot read or make"):
        load_key(tmp_path / "missing", "request.key")
