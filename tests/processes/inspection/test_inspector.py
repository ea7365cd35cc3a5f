"""The process that looks at pages while their clients wait judges and learns as the learner does."""

from dataclasses import replace
from pathlib import Path

import pytest

from gatewayfilter.classify import ReloadingClassifier
from gatewayfilter.config import Settings
from gatewayfilter.errors import ClassifyError, ConfigError
from gatewayfilter.interfaces import Page
from gatewayfilter.model import Classification
from gatewayfilter.processes.inspection import inspector
from gatewayfilter.settings import ClassifySettings
from gatewayfilter.wiring import open_store, words_in_use

PAGE = Page("http://shop.example/", "http://shop.example/", 200, {"content-type": "text/html"}, b"<p>Bread and butter")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    words = tmp_path / "few"
    words.mkdir()
    few = 'category = "gambling"\nlanguage = "en"\nlimit = 20.0\nmin_words = 2\n[words]\n10 = ["casino"]\n'
    (words / "gambling-en.toml").write_text(few, encoding="utf-8")
    (words / "text-model.npz").write_bytes(b"not read where the model does not count")
    monkeypatch.setattr(inspector, "words_folders", lambda _: [words])
    monkeypatch.setattr("gatewayfilter.wiring.classification.words_folders", lambda _: [words])
    return Settings(data_dir=tmp_path, classify=ClassifySettings(topics=False))


def test_it_judges_by_what_the_settings_say(settings: Settings) -> None:
    assert inspector._Remembering(settings).words_version() == words_in_use(settings)


def test_what_was_judged_by_other_words_is_judged_anew(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[Page] = []
    classify = ReloadingClassifier.classify_page

    def counted(classifier: ReloadingClassifier, page: Page) -> Classification:
        judged.append(page)
        return classify(classifier, page)

    monkeypatch.setattr(ReloadingClassifier, "classify_page", counted)
    judge = inspector._Remembering(settings)
    page = replace(PAGE, final_url="http://casino.example/")  # its URL counts: known content is none
    first = judge.classify_page(page)
    assert (judge.classify_page(page), len(judged)) == (first, 1)
    monkeypatch.setattr(judge, "words_version", lambda: "others")
    judge.classify_page(page)
    assert len(judged) == 2


def test_a_learner_that_cannot_begin_opens_the_database_once(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Settings] = []
    tried: list[int] = []

    def refuse(*_: object, **__: object) -> None:
        tried.append(1)
        raise ClassifyError("no words")

    def opening(wanted: Settings) -> object:
        opened.append(wanted)
        return open_store(wanted)

    monkeypatch.setattr(inspector, "open_store", opening)
    monkeypatch.setattr(inspector, "learning_sink", refuse)
    learning = inspector._Learning(settings, inspector._Remembering(settings))
    for _ in range(3):
        learning.take(PAGE)
    learning.finish()
    assert not learning._thread.is_alive()
    assert (len(opened), len(tried)) == (1, 4)


CASINO = b"<title>Casino</title><p>A casino, another word: roulette"


@pytest.mark.parametrize(("host", "harmful"), [("shop.example", True), ("www.gov.uk", False)])
def test_a_trusted_host_is_not_blocked_while_its_client_waits(settings: Settings, host: str, *, harmful: bool) -> None:
    (settings.data_dir / "few" / "more.toml").write_text('category = "gambling"\n[words]\n15 = ["roulette"]\n', encoding="utf-8")
    learning = inspector._Learning(settings, inspector._Remembering(settings))
    try:
        page = Page(f"http://{host}/", f"http://{host}/", 200, {"content-type": "text/html"}, CASINO)
        found = learning.verdict(page)
        assert found is not None
        assert (found.harmful, found.doubt) == (harmful, "" if harmful else "gambling")
    finally:
        learning.finish()


def test_settings_that_fail_the_second_look_are_tried_again(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []
    look = object()

    def second_look(_: Settings, store: object) -> object:
        tried.append(store)
        if len(tried) <= 2:  # without the database, and with it
            raise ConfigError("the list of trusted hosts cannot be read")
        return look

    monkeypatch.setattr(inspector, "second_look", second_look)
    monkeypatch.setattr(inspector, "learning_sink", lambda *_, **__: None)
    learning = inspector._Learning(settings, inspector._Remembering(settings))
    learning.take(PAGE)
    learning.take(PAGE)
    learning.finish()
    assert learning._second_look is look
    assert [store is None for store in tried] == [True, False, False]
