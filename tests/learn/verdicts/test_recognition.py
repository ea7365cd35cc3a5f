from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import Page
from gatewayfilter.learn import ContentIds, Recognition
from gatewayfilter.learn.verdicts.content_id import image_digest, image_identity
from gatewayfilter.learn.verdicts.recognition import MANUAL_VALID_S, VALID_S
from gatewayfilter.model import Classification, ContentId, Evidence, Fingerprint
from gatewayfilter.store import Store

HARMFUL = Classification("gambling", 42.0, 20.0)
HARMLESS = Classification("", 1.0, 20.0)
IDS = ContentIds(b"k" * 32)
PAGE = Page("http://a.example/", "http://a.example/", 200, {}, b"<p>casino")


class Setting:
    """The world around a recognition: time and words that change."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.words = "words-1"


@pytest.fixture
def setting() -> Setting:
    return Setting()


@pytest.fixture
def recognition(store: Store, setting: Setting) -> Recognition:
    return recognise_with(store, setting)


def recognise_with(store: Store, setting: Setting) -> Recognition:
    return Recognition(store.fingerprints, IDS, lambda: setting.words, lambda: setting.now)


def said(recognition: Recognition) -> Classification | None:
    found = recognition.page(PAGE)[1]
    return None if found is None else found.classification


def test_content_is_known_again_in_this_process_and_the_next(store: Store, setting: Setting, recognition: Recognition) -> None:
    identity, known = recognition.page(PAGE)
    assert known is None
    recognition.record(identity, HARMFUL, PAGE.url)
    assert said(recognition) == HARMFUL
    assert said(recognise_with(store, setting)) == HARMFUL


def test_other_words_judge_anew(recognition: Recognition, setting: Setting) -> None:
    recognition.record(IDS.of_page(PAGE.body), HARMFUL, PAGE.url)
    assert said(recognition) == HARMFUL
    setting.words = "words-2"
    assert said(recognition) is None


def test_a_persons_word_does_not_age_with_the_words(recognition: Recognition, setting: Setting) -> None:
    identity = IDS.of_page(PAGE.body)
    recognition.record(identity, HARMLESS, PAGE.url, judge="ada")
    setting.words = "words-2"
    assert said(recognition) == HARMLESS
    recognition.record(identity, HARMFUL, PAGE.url)
    assert said(recognition) == HARMLESS
    recognition.forget(identity)
    assert said(recognition) is None


def test_it_is_forgotten_after_a_month_unless_it_is_met_again(recognition: Recognition, setting: Setting) -> None:
    recognition.record(IDS.of_page(PAGE.body), HARMFUL, PAGE.url)
    setting.now += VALID_S - 1
    assert said(recognition) == HARMFUL
    setting.now += VALID_S - 1
    assert said(recognition) == HARMFUL
    setting.now += VALID_S + 1
    assert said(recognition) is None


def test_a_persons_word_outlives_the_month_and_hits_shorten_nothing(
    store: Store, recognition: Recognition, setting: Setting
) -> None:
    recognition.record(IDS.of_page(PAGE.body), HARMLESS, PAGE.url, judge="ada")
    assert said(recognition) == HARMLESS
    recognition.flush()
    setting.now += 12 * VALID_S
    store.fingerprints.sweep(setting.now)
    recognition.record(IDS.of_page(PAGE.body), HARMFUL, PAGE.url)
    assert said(recognise_with(store, setting)) == HARMLESS


def test_what_a_person_says_in_another_process_is_heard(store: Store, setting: Setting, recognition: Recognition) -> None:
    identity = IDS.of_page(PAGE.body)
    recognition.record(identity, HARMFUL, PAGE.url)
    assert said(recognition) == HARMFUL
    recognise_with(store, setting).record(identity, HARMLESS, PAGE.url, judge="ada")
    assert said(recognition) == HARMLESS


def test_what_a_person_says_of_a_page_in_doubt_is_heard(store: Store, setting: Setting, recognition: Recognition) -> None:
    identity = IDS.of_page(PAGE.body)
    recognition.record(identity, replace(HARMLESS, doubt="gambling"), PAGE.url)
    assert said(recognition) == replace(HARMLESS, doubt="gambling")
    recognise_with(store, setting).record(identity, HARMFUL, PAGE.url, judge="ada")
    assert said(recognition) == HARMFUL


def test_hits_are_counted_in_memory_and_written_together(store: Store, recognition: Recognition) -> None:
    recognition.record(IDS.of_page(PAGE.body), HARMFUL, PAGE.url)
    for _ in range(5):
        recognition.page(PAGE)
    assert store.fingerprints.stats()["hits"] == 0
    recognition.flush()
    recognition.flush()
    assert store.fingerprints.stats()["hits"] == 5


def test_hits_are_written_before_the_store_is_closed(
    store: Store, recognition: Recognition, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store.before_close(recognition.flush)
    recognition.record(IDS.of_page(PAGE.body), HARMFUL, PAGE.url)
    for count in (1, 2):
        recognition.page(PAGE)
        store.flush()
        assert store.fingerprints.stats()["hits"] == count
    recognition.page(PAGE)
    store.close()
    with closing(Store.open(f"sqlite:///{tmp_path / 'gatewayfilter.sqlite3'}")) as again:
        assert again.fingerprints.stats()["hits"] == 3

    def refused() -> None:
        raise StoreError("the disk is full")

    store.before_close(refused)
    store.close()
    assert "the disk is full" in caplog.text


def test_hits_that_could_not_be_written_are_not_lost(
    store: Store, recognition: Recognition, monkeypatch: pytest.MonkeyPatch
) -> None:
    recognition.record(IDS.of_page(PAGE.body), HARMFUL, PAGE.url)
    recognition.page(PAGE)

    def full(*_: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(store.fingerprints, "touch", full)
        with pytest.raises(StoreError):
            recognition.flush()
    recognition.page(PAGE)
    recognition.flush()
    assert store.fingerprints.stats()["hits"] == 2


def test_images_are_known_by_lists_of_md5s(store: Store, recognition: Recognition) -> None:
    assert recognition.image(b"GIF89a") is None
    identity: ContentId = image_identity(image_digest(b"GIF89a"))
    store.fingerprints.put(Fingerprint(identity, HARMFUL, "import", "", "", 0.0, 1e12))
    found = recognition.image(b"GIF89a")
    assert found is not None
    assert found.classification == HARMFUL
    assert recognition.image(b"GIF89b") is None


def test_a_process_that_looks_at_many_pages_reads_what_is_known_at_once(store: Store, setting: Setting) -> None:
    contents = [IDS.of_page(b"%d" % number) for number in range(40)]
    writer = recognise_with(store, setting)
    for number, content in enumerate(contents):
        writer.record(content, HARMFUL if number == 39 else HARMLESS, PAGE.url)
    looked_up: list[ContentId] = []
    find = store.fingerprints.find

    def counting(content: ContentId, now: float) -> Fingerprint | None:
        looked_up.append(content)
        return find(content, now)

    for by_page in (False, True):
        reader = recognise_with(store, setting)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store.fingerprints, "find", counting)
            found = [reader.page(page_of(n))[1] if by_page else reader.find(content) for n, content in enumerate(contents)]
        assert [item is not None and item.content for item in found] == contents
        assert looked_up == [*contents[:16], contents[39]], "harmful ones are looked up each time: a person may decide meanwhile"
        looked_up.clear()


def test_what_is_read_at_once_is_judged_by_the_words_in_use(store: Store, setting: Setting) -> None:
    contents = [IDS.of_page(b"%d" % number) for number in range(20)]
    writer = recognise_with(store, setting)
    for content in contents:
        writer.record(content, HARMLESS, PAGE.url)
    setting.words = "words-2"
    reader = recognise_with(store, setting)
    assert [reader.find(content) for content in contents] == [None] * 20


def test_little_evidence_is_kept_with_a_harmless_verdict(store: Store, setting: Setting, recognition: Recognition) -> None:
    evidence = tuple(Evidence(f"word {number}", "gambling", 1.0, "main", number) for number in range(30))
    for said_of, kept in ((HARMLESS, 5), (HARMFUL, 30)):
        recognition.record(IDS.of_page(PAGE.body), replace(said_of, evidence=evidence), PAGE.url)
        found = recognise_with(store, setting).page(PAGE)[1]
        assert found is not None
        assert found.classification.evidence == evidence[:kept]


class Counting:
    """Fingerprints of a store, with the queries that were made of them."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.queries: list[str] = []
        for name in ("find", "find_all", "holds", "newest", "touch"):
            monkeypatch.setattr(store.fingerprints, name, self._counting(name, getattr(store.fingerprints, name)))

    def _counting(self, name: str, query: Callable[..., object]) -> Callable[..., object]:
        def counted(*given: object) -> object:
            self.queries.append(name)
            return query(*given)

        return counted

    def taken(self) -> list[str]:
        taken, self.queries = self.queries, []
        return taken


def page_of(number: int) -> Page:
    return replace(PAGE, body=b"%d" % number)


def test_a_page_costs_a_look_up_and_several_cost_one_together(
    store: Store, recognition: Recognition, setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        recognition.record(IDS.of_page(page_of(number).body), HARMLESS, PAGE.url)
    counting = Counting(store, monkeypatch)
    assert recognition.page(page_of(0))[1] is not None
    assert counting.taken() == ["find"]
    assert recognition.find(IDS.of_page(page_of(2).body)) is not None
    assert counting.taken() == ["find"]
    known = [found is not None for _, found in recognition.pages([page_of(number) for number in (0, 1, 2, 3, 4)])]
    assert known == [True, True, True, False, False]
    assert counting.taken() == ["find_all"]
    setting.now += 30.0
    recognition.pages([page_of(0), page_of(1), page_of(2)])
    assert counting.taken() == [], "harmless ones are used from memory for ten minutes"
    setting.now += 569.999
    recognition.pages([page_of(0), page_of(1)])
    assert set(counting.taken()) <= {"touch"}
    setting.now += 0.001
    recognition.page(page_of(0))
    assert "find" in counting.taken()


def test_hits_are_written_once_a_minute_and_from_two_hundred_contents_on(
    store: Store, recognition: Recognition, setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    recognition.record_all({IDS.of_page(b"%d" % number): (HARMLESS, PAGE.url) for number in range(200)}, setting.words)
    recognition.pages([page_of(number) for number in range(199)])
    counting = Counting(store, monkeypatch)
    recognition.page(page_of(0))
    assert counting.taken() == []
    recognition.page(page_of(199))
    assert counting.taken()[-1:] == ["touch"]
    for later, written in ((59.9, []), (0.1, ["touch"]), (59.9, [])):
        setting.now += later
        recognition.page(page_of(0))
        assert counting.taken() == written, later


def test_whether_there_are_images_is_asked_once_a_minute(
    store: Store, recognition: Recognition, setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = Counting(store, monkeypatch)
    assert not recognition.knows_images()
    store.fingerprints.put(Fingerprint(image_identity(image_digest(b"GIF89a")), HARMFUL, "import", "", "", 0.0, 1e12))
    setting.now += 59.9
    assert not recognition.knows_images()
    assert counting.taken() == ["holds"]
    setting.now += 0.1
    assert recognition.knows_images()
    assert counting.taken() == ["holds"]
    monkeypatch.setattr(store.fingerprints, "holds", refusing)
    setting.now += 60.0
    assert recognition.knows_images(), "what was known before stands while the database refuses"
    assert not recognise_with(store, setting).knows_images()


def refusing(*_: object) -> bool:
    raise StoreError("busy")


def test_how_long_what_is_recorded_is_kept_and_what_of_it(store: Store, recognition: Recognition, setting: Setting) -> None:
    content = IDS.of_page(PAGE.body)
    recognition.record(content, HARMFUL, PAGE.url)
    assert recognition.recorded(content) == Fingerprint(content, HARMFUL, "", "words-1", PAGE.url, 1000.0, 1000.0 + VALID_S)
    recognition.record(content, HARMFUL, PAGE.url, judge="ada", at=7.0)
    assert recognition.recorded(content) == Fingerprint(content, HARMFUL, "ada", "", PAGE.url, 7.0, 1000.0 + MANUAL_VALID_S)
    other = IDS.of_page(b"other")
    recognition.record_all({other: (HARMLESS, PAGE.url)}, "words-0")
    recorded = recognition.recorded(other)
    assert recorded is not None
    assert (recorded.words, recorded.judged_at) == ("words-0", 1000.0)
    assert recognition.words() == "words-1"
    assert recognition.find(other) is None, "the words changed while it was judged"
    setting.words = "words-0"
    assert recognition.find(other) is not None


def test_the_memory_of_a_process_is_bounded(store: Store, recognition: Recognition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.learn.verdicts.recognition._MOST_RECENT", 2)
    for number in range(3):
        recognition.record(IDS.of_page(page_of(number).body), HARMLESS, PAGE.url)
    for number in (0, 1, 2):
        recognition.page(page_of(number))
    counting = Counting(store, monkeypatch)
    for number, queries in ((1, []), (2, []), (0, ["find"]), (1, ["find"])):
        recognition.page(page_of(number))
        assert counting.taken() == queries, number


def test_the_contents_met_last_are_kept_in_memory(
    store: Store, recognition: Recognition, setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatewayfilter.learn.verdicts.recognition._MOST_RECENT", 2)
    for number in range(3):
        recognition.record(IDS.of_page(page_of(number).body), HARMLESS, PAGE.url)
    for number in (0, 1):
        recognition.page(page_of(number))
    setting.now += 600.0
    for number in (0, 2):
        recognition.page(page_of(number))
    counting = Counting(store, monkeypatch)
    recognition.page(page_of(0))
    assert counting.taken() == [], "it was read again, and the other one is the older"


def test_memory_keeps_nothing_longer_than_it_counts(
    store: Store, recognition: Recognition, setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    recognition.record(IDS.of_page(PAGE.body), HARMLESS, PAGE.url)
    setting.now += VALID_S - 10.0
    assert said(recognition) == HARMLESS
    counting = Counting(store, monkeypatch)
    for later_s, asked in ((9.9, False), (0.1, True)):
        setting.now += later_s
        recognition.page(PAGE)
        assert ("find" in counting.taken()) is asked


def test_what_is_said_here_counts_at_once_though_another_verdict_is_in_memory(recognition: Recognition) -> None:
    content = IDS.of_page(PAGE.body)
    recognition.record(content, HARMLESS, PAGE.url)
    assert said(recognition) == HARMLESS
    recognition.record(content, HARMFUL, PAGE.url, judge="ada")
    assert said(recognition) == HARMFUL
    recognition.forget(content)
    recognition.record(content, HARMLESS, PAGE.url)
    assert said(recognition) == HARMLESS
    recognition.forget(content)
    assert said(recognition) is None
