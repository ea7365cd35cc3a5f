import hashlib
import logging
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from gatewayfilter.classify import (
    MODEL_FILE,
    CustomWords,
    Lexicon,
    LinearModel,
    ReloadingClassifier,
    RuleBook,
    RuleFolder,
    reloading_classifier,
    zones,
)
from gatewayfilter.classify.models.linear_model import BITS
from gatewayfilter.classify.reloading_classifier import CHECK_EVERY_S, judging_code, load_classifier, words_version
from gatewayfilter.errors import ClassifyError
from gatewayfilter.extraction.rules import parse_rule
from gatewayfilter.interfaces import Page
from tests.classify.models.text_models import made

PAGE = Page("http://x.example/", "http://x.example/", 200, {"content-type": "text/plain"}, b"lucky wheel")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def later(self) -> None:
        self.now += CHECK_EVERY_S


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def following(tmp_path: Path, clock: Clock) -> ReloadingClassifier:
    return ReloadingClassifier([tmp_path / "bundled", tmp_path / "own"], clock)


def test_words_are_taken_in_while_it_is_in_use(following: ReloadingClassifier, tmp_path: Path, clock: Clock) -> None:
    own = CustomWords(tmp_path / "own")
    assert following.classify_page(PAGE).score == 0
    own.add("gambling", "lucky wheel", 8.0)
    assert following.classify_page(PAGE).score == 0  # not every page looks at the files
    clock.later()
    assert following.classify_page(PAGE).score == 8.0
    own.add("gambling", "lucky wheel", 9.0)  # the same size
    clock.later()
    assert following.classify_text("lucky wheel").score == 9.0
    own.remove("gambling", "lucky wheel", Lexicon.load([tmp_path / "own"]))
    clock.later()
    assert following.classify_page(PAGE).score == 0
    own.path("gambling").unlink()
    own.add("fraud", "lucky wheel", 7.0)
    clock.later()
    assert following.classify_page(PAGE).scores == {"fraud": 7.0}


def test_words_are_looked_at_no_sooner_than_that_after_the_start(
    following: ReloadingClassifier, tmp_path: Path, clock: Clock
) -> None:
    before = following.words_version()
    CustomWords(tmp_path / "own").add("gambling", "lucky wheel", 8.0)
    assert following.classify_page(PAGE).score == 0
    clock.later()
    assert following.words_version() != before  # asked alone, too
    assert following.classify_page(PAGE).score == 8.0


@pytest.mark.parametrize("topics", [True, False])
def test_a_text_model_is_taken_in_where_it_is_wanted(tmp_path: Path, clock: Clock, *, topics: bool) -> None:
    following = ReloadingClassifier([tmp_path], clock, topics=topics)
    CustomWords(tmp_path).add("gambling", "lucky wheel", 8.0)
    clock.later()
    certain: list[float | None] = []
    versions = [following.words_version()]
    for weight in (-4.0, 4.0):
        made(tmp_path, lucky=weight)
        clock.later()
        found = following.classify_page(PAGE)
        assert load_classifier([tmp_path], topics=topics).classify_page(PAGE) == found
        certain.append(found.certainty)
        versions.append(following.words_version())
    if topics:
        assert (certain[0] or 0.0) < (certain[1] or 0.0)
        assert len(set(versions)) == 3
    else:
        assert certain == [None, None]
        assert len(set(versions)) == 1


def test_a_change_of_the_extraction_rules_changes_the_version(tmp_path: Path, clock: Clock) -> None:
    rules = RuleBook(tmp_path / "rules", clock)
    following = ReloadingClassifier([tmp_path / "bundled"], clock, rules=rules)
    without = following.words_version()
    RuleFolder(tmp_path / "rules").add(parse_rule("urls = '.*'\n[fields.x]\ncss = 'h1'", "all"))
    assert following.words_version() == without  # not every page looks at the files
    clock.later()
    assert following.words_version() != without
    rules.close()


def always(logit: float) -> LinearModel:
    return LinearModel(np.zeros(1 << BITS, np.float32), logit, 100, 50, 0.9, 0.0)


def test_a_model_is_taken_in_while_it_is_in_use(
    following: ReloadingClassifier, tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    own = CustomWords(tmp_path / "own")
    for word in ("lucky", "wheel"):
        own.add("gambling", word, 8.0)
    path = tmp_path / "own" / MODEL_FILE
    clock.later()
    by_words = following.classify_page(PAGE).score
    names = [following.words_version()]
    assert by_words == 16.0
    always(8.0).save(path)
    assert following.classify_page(PAGE).score == by_words  # not every page looks at the files
    clock.later()
    sure = following.classify_page(PAGE).score
    names.append(following.words_version())
    assert sure > by_words
    always(-8.0).save(path)  # the same size
    clock.later()
    assert following.classify_page(PAGE).score < by_words
    names.append(following.words_version())
    path.write_bytes(b"no model")
    clock.later()
    with caplog.at_level(logging.WARNING):
        assert following.classify_page(PAGE).score < by_words  # the last good one goes on
    assert "no model of this program" in caplog.text
    assert following.words_version() == names[-1]
    path.unlink()
    clock.later()
    assert following.classify_page(PAGE).score == by_words
    assert following.words_version() == names[0]
    assert len(set(names)) == 3


def test_a_bad_file_keeps_the_last_good_words(
    following: ReloadingClassifier, tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    own = CustomWords(tmp_path / "own")
    own.add("gambling", "lucky wheel", 8.0)
    clock.later()
    assert following.classify_page(PAGE).score == 8.0
    with caplog.at_level(logging.WARNING):
        own.path("gambling").write_text("category = [", encoding="utf-8")
        for _ in range(5):
            clock.later()
            assert following.classify_page(PAGE).score == 8.0
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1
    assert "not valid TOML" in caplog.text
    own.path("gambling").unlink()
    own.add("gambling", "lucky wheel", 6.0)
    clock.later()
    assert following.classify_page(PAGE).score == 6.0


def test_a_file_that_cannot_be_looked_at(
    following: ReloadingClassifier, tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "gone.toml").symlink_to(tmp_path / "nowhere")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            clock.later()
            assert following.classify_page(PAGE).score == 0
        assert len(caplog.records) == 1
        (tmp_path / "own" / "gone.toml").rename(tmp_path / "own" / "also.toml")
        clock.later()
        following.classify_page(PAGE)
    assert ["gone.toml" in record.message for record in caplog.records] == [True, False]


def test_without_good_words_there_is_no_beginning(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("category = 1", encoding="utf-8")
    with pytest.raises(ClassifyError, match=r"bad\.toml"):
        ReloadingClassifier([tmp_path])


def test_other_threads_judge_by_the_old_words_meanwhile(
    following: ReloadingClassifier, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    CustomWords(tmp_path / "own").add("gambling", "lucky wheel", 8.0)
    clock.later()
    loading, go_on = threading.Event(), threading.Event()
    load = Lexicon.load

    def slow_load(folders: tuple[Path, ...]) -> Lexicon:
        loading.set()
        assert go_on.wait(10)
        return load(folders)

    monkeypatch.setattr(Lexicon, "load", slow_load)
    scores: list[float] = []
    first = threading.Thread(target=lambda: scores.append(following.classify_page(PAGE).score))
    first.start()
    assert loading.wait(10)
    assert following.classify_page(PAGE).score == 0
    go_on.set()
    first.join(10)
    assert scores == [8.0]
    assert following.classify_page(PAGE).score == 8.0


def test_code_that_judges_otherwise_is_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_package = words_version([tmp_path])
    root = tmp_path / "package"
    for name in ("classify/words/rule.py", "documents/page.py", "extraction/field.py", "web/server.py", "classify/fast.so"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"1")
    digests = []
    for name in ("web/server.py", "classify/fast.so", "classify/words/rule.py", "documents/page.py", "extraction/field.py"):
        (root / name).write_bytes(b"2")
        judging_code.cache_clear()
        digests.append(judging_code(root))
    assert digests[0] == digests[1]  # neither judges, or the one is made from the source of the other
    assert len(set(digests[1:])) == 4
    monkeypatch.setattr("gatewayfilter.classify.reloading_classifier._CODE", root)
    assert words_version([tmp_path]) != of_package


def test_classifiers_of_the_same_words_share_them(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        CustomWords(tmp_path / name).add("gambling", "lucky wheel", 9.0 if name == "three" else 8.0)
    one, two, three = (load_classifier([tmp_path / name]) for name in ("one", "two", "three"))
    assert one.lexicon is two.lexicon
    assert [found.classify_page(PAGE).score for found in (one, two, three)] == [8.0, 8.0, 9.0]


def test_words_of_other_folders_are_others(tmp_path: Path) -> None:
    """A later folder overrides an earlier one, and its words need not be those of the text model."""
    CustomWords(tmp_path / "one").add("gambling", "lucky wheel", 8.0)
    CustomWords(tmp_path / "two").add("gambling", "lucky wheel", 9.0)
    folders = [tmp_path / "one", tmp_path / "two"]
    assert load_classifier(folders).classify_page(PAGE).score == 9.0
    assert load_classifier(folders[::-1]).classify_page(PAGE).score == 8.0
    assert load_classifier(folders[:1]).classify_page(PAGE).score == 8.0


def test_words_that_change_while_they_are_read_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = CustomWords(tmp_path)
    words.add("gambling", "lucky wheel", 8.0)
    words.add("gambling", "read late", 1.0)  # in no other test: what was read last is kept from one to the next
    load = Lexicon.load

    def load_late(folders: Sequence[Path]) -> Lexicon:
        words.add("gambling", "lucky wheel", 9.0)
        return load(folders)

    with monkeypatch.context() as patch:
        patch.setattr(Lexicon, "load", load_late)
        assert load_classifier([tmp_path]).classify_page(PAGE).score == 9.0
    words.add("gambling", "lucky wheel", 8.0)
    assert load_classifier([tmp_path]).classify_page(PAGE).score == 8.0


def test_digests_are_made_where_md5_is_refused_for_security(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(data: bytes = b"", *, usedforsecurity: bool = True) -> object:
        if usedforsecurity:
            raise ValueError("[digital envelope routines] unsupported")  # by OpenSSL in FIPS mode
        return hashlib.md5(data, usedforsecurity=False)

    expected = words_version([tmp_path])
    judging_code.cache_clear()
    for module in (reloading_classifier, zones):
        monkeypatch.setattr(module, "md5", refusing)
    assert words_version([tmp_path]) == expected
    assert load_classifier([tmp_path]).classify_page(PAGE).text_digest == hashlib.md5(b"\nlucky wheel\n").digest()
