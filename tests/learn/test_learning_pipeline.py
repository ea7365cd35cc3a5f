from dataclasses import replace

import pytest

from gatewayfilter.config import LearnSettings
from gatewayfilter.errors import ClassifyError, StoreError
from gatewayfilter.interfaces import Page, PageSink
from gatewayfilter.learn import ContentIds, LearningPipeline, ListGrowth, Recognition
from gatewayfilter.learn.verdicts.content_id import image_digest, image_identity
from gatewayfilter.model import Classification, Evidence, Fingerprint, LearnedEntry, ListAction
from gatewayfilter.settings import DomainGrowth
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters
from tests.learn.review_world import BODY, World
from tests.learn.review_world import CasinoClassify as Casinos

URL = "http://a.example/"


class CasinoClassify:
    """Finds casinos, and cannot read what begins with an exclamation mark."""

    def classify_page(self, page: Page) -> Classification:
        if page.body.startswith(b"!"):
            raise ClassifyError("not readable")
        return self.classify_text(page.body.decode(errors="replace"))

    def classify_text(self, text: str) -> Classification:
        return Classification("gambling", 42.0, 20.0) if "casino" in text else Classification("", 0.0, 20.0)


class FailingListGrowth(ListGrowth):
    def learn(self, page: Page, classification: Classification, **how: bool) -> LearnedEntry:
        raise StoreError("the disk is full")


@pytest.fixture
def counters() -> Counters:
    return Counters()


@pytest.fixture
def list_growth(store: Store) -> ListGrowth:
    return ListGrowth(store.lists, store.verdicts, LearnSettings())


@pytest.fixture
def sink(list_growth: ListGrowth, counters: Counters) -> PageSink:
    return LearningPipeline(CasinoClassify(), list_growth, counters)


def page(body: bytes, *, status: int = 200, content_type: str = "text/html") -> Page:
    return Page(URL, URL, status, {"content-type": content_type}, body)


@pytest.mark.parametrize(
    ("body", "action", "counter"),
    [
        (b"<p>the best casino", ListAction.BLOCK, "pages_harmful"),
        (b"<p>the best bread", ListAction.ALLOW, "pages_harmless"),
    ],
)
def test_a_page_is_judged_and_learned(
    sink: PageSink, store: Store, counters: Counters, body: bytes, action: ListAction, counter: str
) -> None:
    classification = sink.page(page(body))
    assert classification is not None
    assert classification.harmful is (action is ListAction.BLOCK)
    assert [entry.action for entry in store.lists.learned()] == [action]
    assert counters.as_dict() == {counter: 1}


@pytest.mark.parametrize(
    "skipped",
    [
        page(b"<p>casino", status=404),
        page(b"<p>casino", status=302),
        page(b"\x89PNG casino", content_type="image/png"),
        page(b""),
        page(b"! casino"),
    ],
    ids=["not found", "redirect", "image", "empty", "unreadable"],
)
def test_what_is_no_page_is_skipped_and_counted(sink: PageSink, store: Store, counters: Counters, skipped: Page) -> None:
    assert sink.page(skipped) is None
    assert list(store.lists.learned()) == []
    assert counters.as_dict() == {"pages_skipped": 1}


def test_a_verdict_that_cannot_be_kept_is_an_error_and_not_counted(store: Store, counters: Counters) -> None:
    sink = LearningPipeline(CasinoClassify(), FailingListGrowth(store.lists, store.verdicts, LearnSettings()), counters)
    with pytest.raises(StoreError, match="disk is full"):
        sink.page(page(b"<p>casino"))
    assert counters.as_dict() == {}


class Pictures:
    def classify_image(self, body: bytes, content_type: str) -> Classification | None:
        assert content_type == "image/png"
        return Classification("adult" if b"nude" in body else "", 42.0, 20.0)


def test_images_are_worth_fetching_where_something_may_judge_them(
    store: Store, list_growth: ListGrowth, counters: Counters
) -> None:
    now = [0.0]
    recognition = Recognition(store.fingerprints, ContentIds(b"k" * 32), str, lambda: now[0])
    for images, known, expected in ((None, None, False), (Pictures(), None, True), (None, recognition, False)):
        sink = LearningPipeline(CasinoClassify(), list_growth, counters, recognition=known, images=images)
        assert sink.knows_images() is expected
    identity = image_identity(image_digest(b"nude"))
    store.fingerprints.put(Fingerprint(identity, Classification("adult", 1.0, 1.0), "import", "", "", 0.0, 1e12))
    now[0] = 60.0
    assert sink.knows_images()
    assert not sink.is_near_duplicate(page(b"<p>bread"))
    for status, body, found in ((200, b"nude", "adult"), (404, b"nude", None), (200, b"", None), (200, b"dressed", None)):
        judged = sink.page(page(body, status=status, content_type="image/png"))
        assert (judged.category if judged is not None else None) == found
    assert (counters.as_dict()["images_known_bad"], counters.as_dict()["pages_skipped"]) == (1, 3)
    both = LearningPipeline(CasinoClassify(), list_growth, counters, recognition=recognition, images=Pictures())
    assert [found and found.category for found in both.batch([page(b"a nude", content_type="image/png")])] == ["adult"]
    assert counters.as_dict()["images_known_bad"] == 1


class Reader:
    """Reads a page's text, and counts."""

    def __init__(self) -> None:
        self.read = 0

    def text_of(self, page: Page) -> str:
        self.read += 1
        return page.body.decode(errors="replace")


def test_texts_are_read_of_harmful_pages_alone(store: Store, list_growth: ListGrowth, counters: Counters) -> None:
    reader = Reader()
    recognition = Recognition(store.fingerprints, ContentIds(b"k" * 32), str)
    sink = LearningPipeline(CasinoClassify(), list_growth, counters, recognition=recognition, read_text=reader)
    read = []
    for body in (b"! not readable", b"<p>bread", b"<p>casino", b"<p>bread", b"<p>casino"):
        sink.page(page(body))
        read.append(reader.read)
    assert read == [0, 0, 1, 1, 1], "and once of each content"
    assert counters.as_dict() == {"pages_skipped": 1, "pages_harmless": 2, "pages_harmful": 2, "fingerprint_hits": 2}


class Digesting(Pictures, CasinoClassify):
    """Judges pictures and pages, each with a digest."""

    def classify_image(self, body: bytes, content_type: str) -> Classification | None:
        found = super().classify_image(body, content_type)
        return replace(found, text_digest=b"d" * 16) if found is not None else None

    def classify_page(self, page: Page) -> Classification:
        return replace(super().classify_page(page), text_digest=b"e" * 16)


def test_pictures_count_for_no_host(store: Store, counters: Counters) -> None:
    settings = LearnSettings(domains=DomainGrowth.BLOCK)
    judge = Digesting()
    sink = LearningPipeline(judge, ListGrowth(store.lists, store.verdicts, settings), counters, settings, images=judge)
    found = sink.page(page(b"nude", content_type="image/png"))
    assert found is not None
    assert found.harmful
    assert store.verdicts.host_pages("a.example").pages == 0
    sink.page(page(b"<p>casino"))
    assert store.verdicts.host_pages("a.example").harmful == {"gambling": 1}


def test_a_near_duplicate_is_told_of_once_by_the_url_that_answered(store: Store) -> None:
    world = World(store, LearnSettings())
    world.visit()
    world.now += 100
    mirror = Page(
        "http://a.example/", "http://b.example/", 200, {"content-type": "text/html"}, BODY.replace(b"casino", b"parlour")
    )
    assert not world.sink.is_near_duplicate(mirror)
    world.sink.page(mirror)
    assert [world.sink.is_near_duplicate(mirror) for _ in range(2)] == [True, False]


class Unreadable(Casinos):
    """Judges pages whose text cannot be read for people."""

    def text_of(self, page: Page) -> str:
        raise ClassifyError(f"no text in {page.url}")


def test_a_page_whose_text_cannot_be_read_gets_a_task_without_one(store: Store) -> None:
    world = World(store, LearnSettings(), classify=Unreadable())
    found = world.visit()
    assert found is not None
    assert found.harmful
    (task,) = store.reviews.tasks()
    assert (task.text, task.simhash, task.content) == ("", 0, None)
    assert task.page == world.recognition.ids.of_page(BODY)


def test_words_of_a_request_that_are_no_evidence_cost_no_second_judgement(store: Store) -> None:
    world = World(store, LearnSettings())
    for number, query in enumerate(("", "?q=bread")):
        found = world.visit(f"http://play.example/{query}", BODY + b"%d" % number)
        assert found is not None
        assert found.harmful
        assert world.classify.judged == number + 1
    world.visit("http://play.example/?q=casino", BODY + b"2")
    assert world.classify.judged > 3


class ByAddress(Casinos):
    """Judges by the words of the address alone."""

    def classify_page(self, page: Page) -> Classification:
        self.judged += 1
        word = "casino" if "casino" in page.final_url else "museum" if "museum" in page.final_url else ""
        weight = {"casino": 42.0, "museum": -5.0, "": 0.0}[word]
        evidence = (Evidence(word, "gambling", weight, "url", 3),) if word else ()
        doubt = "gambling" if not word and b"perhaps" in page.body else ""
        return Classification("gambling" if weight > 0 else "", weight, 20.0, {}, evidence, doubt=doubt)


@pytest.mark.parametrize(
    ("url", "body", "content_type", "kept"),
    [
        ("http://a.example/", b"<p>bread", "text/html", True),
        ("http://a.example/casino", b"<p>bread", "text/html", False),
        ("http://a.example/museum", b"<p>perhaps", "text/html", False),  # elsewhere it is in doubt
        ("http://a.example/museum", b"<p>bread", "text/html", True),
        ("http://a.example/", b"<p>perhaps", "text/html", True),
        ("http://a.example/", b"<html>bread", "application/xml", True),
        ("http://a.example/", b"<html>perhaps", "application/xml", False),
        ("http://a.example/", b"bread", "text/plain", False),
        ("http://a.example/", b"<p>perhaps", "application/xhtml+xml", True),
        ("http://a.example/", b"<html><p>bread", "application/rss+xml", False),
        ("http://a.example/", b"%PDF-1.7 bread", "application/pdf", True),
        ("http://a.example/", b"%PDF-1.7 perhaps", "application/pdf", False),
        ("http://a.example/", b"<form><input type=password name=pass></form>", "text/html", False),
    ],
)
def test_which_verdicts_are_kept_for_the_same_content_at_other_addresses(
    store: Store, url: str, body: bytes, content_type: str, *, kept: bool
) -> None:
    world = World(store, LearnSettings(), classify=ByAddress())
    assert world.visit(url, body, content_type=content_type) is not None
    assert (world.recognition.recorded(world.recognition.ids.of_page(body)) is not None) is kept
