"""Proposed phrases in the child process: the words in use are read once, and again when they change."""

import pytest

from gatewayfilter.classify import Lexicon
from gatewayfilter.config import Settings
from gatewayfilter.use_cases.learning import word_jobs
from gatewayfilter.use_cases.review.review_reports import phrases
from gatewayfilter.wiring import load_lexicon, words_in_use


@pytest.mark.usefixtures("store")
def test_words_are_read_when_they_change_alone(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Lexicon] = []

    def noted(given: Settings) -> Lexicon:
        read.append(load_lexicon(given))
        return read[-1]

    monkeypatch.setattr(word_jobs, "load_lexicon", noted)
    assert [phrases(settings, 20) for _ in range(3)] == [[], [], []]
    assert len(read) == 1
    monkeypatch.setattr(word_jobs, "words_in_use", lambda given: f"{words_in_use(given)} changed")
    assert phrases(settings, 20) == []
    assert len(read) == 2
