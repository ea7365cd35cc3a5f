"""Pages that want the learner to fail, through all of it: judged, listed, asked about, decided, known again."""

import random

import pytest

from gatewayfilter.classify import Lexicon, PageClassifier, WordFile, breakdown_of
from gatewayfilter.interfaces import Page
from gatewayfilter.learn import ContentIds, LearningPipeline, ListGrowth, Recognition, ReviewService, TaskIntake
from gatewayfilter.learn.review.phrase_suggestions import propose
from gatewayfilter.learn.review.task_intake import MAX_TEXT
from gatewayfilter.model import ListAction, ReviewState, ScoreBreakdown
from gatewayfilter.settings import LearnSettings
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters

SIZE = 2_000_000
HARMFUL = {
    "one word": b"casino " * (SIZE // 7),
    "one word in the title": b"<title>" + b"casino " * (SIZE // 7),
    "no blank": b"<p>casino " + b"a" * SIZE,
    "undecodable": b"<p>casino \xff\xfe\x80 " + random.Random(1).randbytes(50_000),
    "tags without end": b"<p>casino " + b"<b>" * (SIZE // 4),
    "attributes without end": b"<p>casino <i " + b"x=1 " * (SIZE // 5) + b">",
    "zeros": b"<p>casino \x00\x00 " + b"\x00" * 1000,
    "lone surrogates": "<p>casino \ud800 \udfff".encode("utf-8", "surrogatepass"),
    "marks": ("<p>casino " + "\u0301" * 100_000).encode(),
    "lines": b"<p>casino " + b"\n" * SIZE,
}


class SmallClassifier(PageClassifier):
    """Knows one word, and tells how it counted."""

    def __init__(self) -> None:
        super().__init__(Lexicon.of([WordFile("gambling", words={"casino": 30.0}, min_words=1, limit=20.0)]))

    def breakdown_of(self, page: Page, category: str) -> ScoreBreakdown | None:
        return breakdown_of(self.explain(page), "words", category)


class Learner:
    """A learner and a desk over one store, with the real classifier over one word."""

    def __init__(self, store: Store) -> None:
        settings, counters, classifier = LearnSettings(), Counters(), SmallClassifier()
        recognition = Recognition(store.fingerprints, ContentIds(b"k" * 32), str)
        self.sink = LearningPipeline(
            classifier,
            ListGrowth(store.lists, store.verdicts, settings, together=store.learning),
            counters,
            settings,
            recognition=recognition,
            intake=TaskIntake(store.reviews, counters, 100, together=store.deciding, explain=classifier),
            read_text=classifier,
        )
        self.desk = ReviewService(store.reviews, store.lists, store.verdicts, recognition, settings, together=store.deciding)


@pytest.fixture
def learner(store: Store) -> Learner:
    return Learner(store)


def page(body: bytes, host: str = "a.example") -> Page:
    return Page(f"http://{host}/", f"http://{host}/", 200, {"content-type": "text/html"}, body)


@pytest.mark.parametrize("name", HARMFUL)
def test_it_is_blocked_shown_and_decided_like_any_other(store: Store, learner: Learner, name: str) -> None:
    found = learner.sink.page(page(HARMFUL[name]))
    assert found is not None
    assert found.category == "gambling"
    [task] = store.reviews.tasks()
    assert task.blocked
    assert "casino" in task.text
    assert len(task.text) <= MAX_TEXT
    assert task.score_breakdown is not None
    assert task.score_breakdown.score == found.score
    learner.desk.reject(task.task_id, "ada", "x" * 10_000)
    propose(store.reviews.tasks(ReviewState.REJECTED), [])
    again = learner.sink.page(page(HARMFUL[name], "b.example"))
    assert again is not None
    assert not again.harmful
    assert [entry.action for entry in store.lists.find_learned(["b.example/"])] == [ListAction.ALLOW]
