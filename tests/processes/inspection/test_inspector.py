"""The process that looks at pages while their clients wait judges and learns as the learner does."""

import signal
import socket
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from gatewayfilter.classify import ReloadingClassifier
from gatewayfilter.config import Settings
from gatewayfilter.errors import ClassifyError, ConfigError, StoreError
from gatewayfilter.interfaces import Page, PassedResponse
from gatewayfilter.model import Classification
from gatewayfilter.processes.inspection import inspector
from gatewayfilter.processes.inspection.frames import LENGTHS, pack_request, unpack_answer
from gatewayfilter.settings import ClassifySettings
from gatewayfilter.store import Store
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
    learning._thread.join(60)
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
    learning._thread.join(60)
    assert learning._second_look is look
    assert [store is None for store in tried] == [True, False, False]


def test_the_last_judgements_are_kept_and_no_more(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspector, "_MOST_TO_LEARN", 3)
    judge = inspector._Remembering(settings)
    pages = [replace(PAGE, final_url=f"http://casino.example/{number}") for number in range(5)]
    for page in pages:
        assert judge.judge(page) is not None
    assert [known[0] for known in judge._recent.values()] == pages[2:]
    assert judge.judge(replace(PAGE, headers={"content-type": "video/mp4"})) is None


class Learned:
    """Stands in for the pipeline: what it was given, and its failures."""

    def __init__(self) -> None:
        self.urls = list[str]()
        self.errors: dict[str, Exception] = {}

    def page(self, page: Page) -> None:
        if (error := self.errors.get(page.url)) is not None:
            raise error
        self.urls.append(page.url)


def test_urls_that_no_crawler_may_fetch_are_not_learned(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    learned, closed = Learned(), list[Store | None]()
    monkeypatch.setattr(Store, "close", lambda store: closed.append(store))  # noqa: PLW0108  a method
    monkeypatch.setattr(inspector, "learning_sink", lambda *_, **__: learned)
    monkeypatch.setattr(inspector, "may_crawl", lambda url, _: "its port" * (url.host == "private.example"))
    learned.errors = {"http://full.example/": StoreError("the disk is full"), "http://bug.example/": KeyError("bug")}
    learning = inspector._Learning(settings, inspector._Remembering(settings))
    assert learning._thread.daemon
    for host in ("a", "private", "full", "bug", "b"):
        learning.take(replace(PAGE, url=f"http://{host}.example/"))
    learning.finish()
    learning._thread.join(60)
    assert learned.urls == ["http://a.example/", "http://b.example/"]
    assert "the disk is full; an inspected page is not learned" in caplog.text
    assert "learning a page failed" in caplog.text
    assert closed == [learning._store]


def test_more_than_it_can_learn_is_passed_over(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(inspector, "_MOST_TO_LEARN", 2)
    monkeypatch.setattr(inspector._Learning, "_run", lambda _: None)  # it learns nothing yet
    learning = inspector._Learning(settings, inspector._Remembering(settings))
    for _ in range(3):
        learning.take(PAGE)
    assert learning._queue.qsize() == 2
    assert caplog.messages == ["too much to learn at once; a page is passed over"]


class Judged:
    """Stands in for what learns and judges."""

    made: list["Judged"]

    def __init__(self, *_: object) -> None:
        self.taken = list[str]()
        self.finished = False
        self.made.append(self)

    def verdict(self, page: Page) -> Classification | None:
        return None if page.url.endswith("none") else Classification("gambling", 30.0, float(len(page.body)))

    def take(self, page: Page) -> None:
        self.taken.append(page.url)

    def finish(self) -> None:
        self.finished = True


def test_pages_are_answered_in_turn_and_public_ones_learned(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = list[object]()
    monkeypatch.setattr(Judged, "made", [], raising=False)
    monkeypatch.setattr(inspector, "_Learning", Judged)
    monkeypatch.setattr(inspector, "begin_child", begun.append)
    monkeypatch.setattr("gatewayfilter.processes.inspection.inspector.signal.signal", lambda *given: begun.append(given))
    html = {"content-type": "text/html"}
    asked = [
        PassedResponse("http://a.example/", 200, html, b"12345", True),
        PassedResponse("http://b.example/", 200, html, b"123", False),
        PassedResponse("http://c.example/none", 200, html, b"123", True),
        PassedResponse("http://d.example/", 200, {**html, "content-encoding": "gzip"}, b"broken", True),
    ]
    ours, theirs = socket.socketpair()
    ours.settimeout(30)
    running = threading.Thread(target=inspector.run_inspector, args=(settings, theirs))
    running.start()
    answers = []
    with ours, ours.makefile("rb") as stream:
        for number, response in enumerate(asked):
            ours.sendall(pack_request(number, response))
            answered, head, _ = LENGTHS.unpack(stream.read(LENGTHS.size))  # at once, not with the next one
            answers.append((answered, unpack_answer(stream.read(head))))
    running.join(30)
    assert [number for number, _ in answers] == [0, 1, 2, 3]
    assert [None if found is None else found.limit for _, found in answers] == [5.0, 3.0, None, None]
    assert begun == [settings, (signal.SIGTERM, signal.SIG_DFL)]
    (learning,) = Judged.made
    assert (learning.taken, learning.finished) == (["http://a.example/"], True)
    ours, theirs = socket.socketpair()
    with ours:
        ours.sendall(LENGTHS.pack(1, 4, 0) + b"no j")
        inspector.run_inspector(settings, theirs)  # ends as well
    assert Judged.made[1].finished


def test_a_verdict_stands_where_the_database_fails_the_second_look(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise StoreError("locked")

    monkeypatch.setattr(inspector._Learning, "_run", lambda _: None)
    judge = inspector._Remembering(settings)
    learning = inspector._Learning(settings, judge)
    found = judge.judge(PAGE)
    monkeypatch.setattr(learning, "_second_look", SimpleNamespace(look=fail))
    assert learning.verdict(PAGE) == found
    assert found is not None
    assert "a page is judged without a second look" in caplog.text
    monkeypatch.setattr(learning, "_recognition", SimpleNamespace(page=fail))
    assert learning.verdict(PAGE) == found


def test_content_that_a_person_decided_about_is_not_judged_again(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = list[object]()
    decided = replace(Classification("gambling", 99.0, 20.0), doubt="")
    known = SimpleNamespace(judge="ada", classification=decided)
    recognizing = SimpleNamespace(page=lambda _: ("digest", known))

    def recognition(*_: object) -> object:
        opened.append(recognizing)
        return recognizing

    monkeypatch.setattr(inspector, "recognition", recognition)
    monkeypatch.setattr(inspector, "holds_here", lambda one, _page, _judge: one.judge == "ada")
    monkeypatch.setattr(inspector, "learning_sink", lambda *_, **__: SimpleNamespace(page=lambda _: None))
    monkeypatch.setattr(inspector, "second_look", lambda *_: None)
    judge = inspector._Remembering(settings)
    learning = inspector._Learning(settings, judge)
    learning.take(PAGE)
    learning.finish()
    learning._thread.join(60)
    assert len(opened) == 1
    assert learning.verdict(PAGE) is decided
    known.judge = "somebody, elsewhere"
    assert learning.verdict(PAGE) == judge.judge(PAGE)
    known.judge = ""
    assert learning.verdict(PAGE) is decided, "what the classifier found of the same content"
