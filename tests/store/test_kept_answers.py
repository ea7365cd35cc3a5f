"""Answers that are kept until a file changes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.store import kept_answers as module
from gatewayfilter.store.kept_answers import KeptAnswers


class Maker:
    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> list[dict[str, Any]]:
        self.made += 1
        return [{"made": self.made}]


def changed(file: Path, _: Path) -> None:
    file.write_text("longer than before")


def removed(file: Path, _: Path) -> None:
    file.unlink()


def damaged(_: Path, kept: Path) -> None:
    kept.write_bytes(kept.read_bytes()[:-3])


def another_shape(_: Path, kept: Path) -> None:
    kept.write_text("[]")


def nothing(_file: Path, _kept: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("happens", "further", "made"),
    [
        (nothing, "a", 1),
        (nothing, "b", 2),
        (changed, "a", 2),
        (removed, "a", 2),
        (damaged, "a", 2),
        (another_shape, "a", 2),
    ],
)
def test_an_answer_is_made_again_when_what_it_is_made_of_changes(
    tmp_path: Path, happens: Callable[[Path, Path], None], further: str, made: int
) -> None:
    file, make = tmp_path / "words.toml", Maker()
    file.write_text("first")
    answers = KeptAnswers(tmp_path / "cache")
    assert answers.rows("words", [file], make, "a") == [{"made": 1}]
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    happens(file, tmp_path / "cache" / "answer-words.json")
    assert answers.rows("words", [file] if file.exists() else [], make, further) == [{"made": made}]


def test_an_answer_that_is_too_long_or_cannot_be_written_is_given_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, blocked = Maker(), tmp_path / "file"
    blocked.touch()
    assert KeptAnswers(blocked / "cache").rows("words", [], make) == [{"made": 1}]
    monkeypatch.setattr("gatewayfilter.store.kept_answers._MOST_BYTES", 10)
    assert KeptAnswers(tmp_path).rows("words", [], make) == [{"made": 2}]
    assert KeptAnswers(tmp_path).rows("words", [], make) == [{"made": 3}]


def test_a_new_release_makes_them_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = Maker()
    KeptAnswers(tmp_path).rows("words", [], make)
    monkeypatch.setattr("gatewayfilter.store.kept_answers.__version__", "another")
    assert KeptAnswers(tmp_path).rows("words", [], make) == [{"made": 2}]


def test_an_answer_is_kept_up_to_its_longest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers, kept = KeptAnswers(tmp_path / "cache"), tmp_path / "cache" / "answer-words.json"
    assert answers.rows("words", [], Maker()) == [{"made": 1}]
    size = kept.stat().st_size
    for most, made in ((size, 1), (size - 1, 2)):
        monkeypatch.setattr(module, "_MOST_BYTES", most)
        make = Maker()
        kept.unlink(missing_ok=True)
        for _ in range(2):
            answers.rows("words", [], make)
        assert make.made == made
        assert kept.exists() is (most == size)
    monkeypatch.setattr(module, "_MOST_BYTES", size)
    answers.rows("words", [], Maker())
    kept.write_bytes(kept.read_bytes() + b"  ")
    make = Maker()
    answers.rows("words", [], make)
    assert make.made == 0, "what follows the longest is not read"
