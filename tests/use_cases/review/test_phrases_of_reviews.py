"""Proposed phrases in the child process: the words in use are read once, and again when they change."""

from pathlib import Path

import pytest

from gatewayfilter.classify import Lexicon
from gatewayfilter.config import Settings
from gatewayfilter.use_cases.review.review_reports import phrases
from gatewayfilter.wiring import classification


@pytest.mark.usefixtures("store")
def test_words_are_read_when_they_change_alone(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[list[Path]] = []
    load = Lexicon.load

    def noted(folders: list[Path]) -> Lexicon:
        read.append(folders)
        return load(folders)

    monkeypatch.setattr(Lexicon, "load", noted)
    assert [phrases(settings, 20) for _ in range(3)] == [[], [], []]
    assert read == [classification.words_folders(settings)]
    version = classification.words_in_use(settings)
    monkeypatch.setattr(classification, "words_in_use", lambda _: f"{version} changed")
    assert phrases(settings, 20) == []
    assert len(read) == 2
