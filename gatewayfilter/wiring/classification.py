"""Wiring of the classifier: the words, rules and models that pages are judged by."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from gatewayfilter.config import bundled_folder

if TYPE_CHECKING:
    from gatewayfilter.classify import (
        CustomWords,
        Lexicon,
        PageClassifier,
        ReloadingClassifier,
        RuleBook,
    )
    from gatewayfilter.config import Settings
    from gatewayfilter.extraction.rule_folder import RuleFolder
    from gatewayfilter.store import Store


def words_folder(settings: Settings) -> Path:
    """Returns the folder of the operator's own words, which add to the bundled lexicon."""
    return settings.data_dir / "words"


def custom_words(settings: Settings) -> CustomWords:
    """Returns the operator's own words, to change them."""
    from gatewayfilter.classify import CustomWords

    return CustomWords(words_folder(settings))


def load_lexicon(settings: Settings) -> Lexicon:
    """Returns the bundled lexicon with the operator's words over it."""
    from gatewayfilter.classify import Lexicon

    return Lexicon.load(words_folders(settings))


def kept_lexicon(settings: Settings) -> Lexicon:
    """Returns the words in use, kept by this process until they change: reading them takes 0.3 s."""
    return _lexicon_of(words_in_use(settings), tuple(words_folders(settings)))


@lru_cache(maxsize=1)
def _lexicon_of(version: str, folders: tuple[Path, ...]) -> Lexicon:  # noqa: ARG001  what was read of a version stays right until they change
    from gatewayfilter.classify import Lexicon

    return Lexicon.load(list(folders))


def words_folders(settings: Settings) -> list[Path]:
    """Returns the folders of all words in use: the bundled ones, and the operator's over them."""
    return [bundled_folder() / "words", words_folder(settings)]


def words_in_use(settings: Settings) -> str:
    """Returns the version of the words and extraction rules in use."""
    from gatewayfilter.classify import words_version

    version = words_version(words_folders(settings), topics=settings.classify.topics, strictness=settings.classify.strictness)
    return f"{version}{rule_book(settings).version()}"


def rules_folder(settings: Settings) -> RuleFolder:
    """Returns the operator's extraction rules, to change them. Loads no classifier."""
    from gatewayfilter.extraction.rule_folder import RuleFolder

    return RuleFolder(settings.data_dir / "rules")


def rule_book(settings: Settings, store: Store | None = None) -> RuleBook:
    """Returns the extraction rules in use, which follow changes of their folder; `store` gets the counts of what they read."""
    from gatewayfilter.classify import RuleBook

    folder = settings.data_dir / "rules"
    if store is None:
        return RuleBook(folder)
    from gatewayfilter.extraction.match_counts import MatchCounts

    matches = MatchCounts(store.rule_matches.add)
    store.before_close(matches.flush)
    return RuleBook(folder, matches=matches)


def reloading_classifier(settings: Settings, rules: RuleBook | None = None) -> ReloadingClassifier:
    """Returns a classifier that takes in changes of the words in use; `rules` as `rule_book`, where it is at hand."""
    from gatewayfilter.classify import ReloadingClassifier

    return ReloadingClassifier(
        words_folders(settings),
        extractor=settings.classify.extractor,
        rules=rules or rule_book(settings),
        topics=settings.classify.topics,
        strictness=settings.classify.strictness,
    )


def classifier(settings: Settings) -> PageClassifier:
    """Returns the classifier over the lexicon in use."""
    from gatewayfilter.classify import load_classifier

    return load_classifier(
        words_folders(settings),
        settings.classify.extractor,
        rule_book(settings),
        topics=settings.classify.topics,
        strictness=settings.classify.strictness,
    )
