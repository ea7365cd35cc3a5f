import pytest

from gatewayfilter.config import LearnSettings
from gatewayfilter.errors import ClassifyError, StoreError
from gatewayfilter.interfaces import Page, PageSink
from gatewayfilter.learn import LearningPipeline, ListGrowth
from gatewayfilter.model import Classification, LearnedEntry, ListAction
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters

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
