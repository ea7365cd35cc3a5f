"""Login clones and fingerprints: the same bytes are harmless at the service and a clone elsewhere, whichever is met first."""

from collections.abc import Callable, Sequence

import pytest

from gatewayfilter.classify import Lexicon, PageClassifier, WordFile
from gatewayfilter.classify.imitated_services import ImitatedServices
from gatewayfilter.interfaces import Page
from gatewayfilter.learn import ContentIds, LearningPipeline, ListGrowth, Recognition
from gatewayfilter.model import Classification
from gatewayfilter.settings import LearnSettings
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters

OWN, FOREIGN = "https://www.paypal.com/y", "http://site.example/x"
BODY = (
    b"<title>Log in to your PayPal account</title><link rel=canonical href=https://www.paypal.com/y>"
    b"<form action=/y><input name=email><input type=password name=pw></form>"
)


@pytest.mark.parametrize("order", [(OWN, FOREIGN, OWN, FOREIGN), (FOREIGN, OWN, FOREIGN, OWN)])
def test_a_verdict_by_address_holds_for_that_address_alone(new_store: Callable[[], Store], order: Sequence[str]) -> None:
    store, settings = new_store(), LearnSettings()
    services = ImitatedServices(["PayPal = paypal.com"])
    classifier = PageClassifier(Lexicon.of([WordFile("fraud", words={"lure": 30.0}, limit=20.0)]), services=services)
    growth = ListGrowth(store.lists, store.verdicts, settings, together=store.learning)
    recognition = Recognition(store.fingerprints, ContentIds(b"k" * 32), str)
    sink = LearningPipeline(classifier, growth, Counters(), settings, recognition=recognition)
    for url in order:
        found = sink.page(Page(url, url, 200, {"content-type": "text/html; charset=utf-8"}, BODY))
        assert found is not None
        assert found.category == ("fraud" if url == FOREIGN else ""), url


@pytest.mark.parametrize(
    ("approved", "met", "category"),
    [
        (FOREIGN, FOREIGN, ""),
        (FOREIGN, "http://login.site.example/other", ""),
        (FOREIGN, "http://phish.test/x", "fraud"),
        ("http://a.phish.test/x", "http://b.phish.test/x", ""),
    ],
)
def test_the_approval_of_a_login_page_holds_on_its_own_site(
    new_store: Callable[[], Store], approved: str, met: str, category: str
) -> None:
    store, settings = new_store(), LearnSettings()
    services = ImitatedServices(["PayPal = paypal.com"])
    classifier = PageClassifier(Lexicon.of([WordFile("fraud", words={"lure": 30.0}, limit=20.0)]), services=services)
    growth = ListGrowth(store.lists, store.verdicts, settings, together=store.learning)
    recognition = Recognition(store.fingerprints, ContentIds(b"k" * 32), str)
    sink = LearningPipeline(classifier, growth, Counters(), settings, recognition=recognition)
    recognition.record(recognition.ids.of_page(BODY), Classification("", 0.0, 20.0, {}, ()), approved, judge="kim")
    found = sink.page(Page(met, met, 200, {"content-type": "text/html; charset=utf-8"}, BODY))
    assert found is not None
    assert found.category == category


def test_a_block_by_hand_holds_everywhere(new_store: Callable[[], Store]) -> None:
    store, settings = new_store(), LearnSettings()
    growth = ListGrowth(store.lists, store.verdicts, settings, together=store.learning)
    recognition = Recognition(store.fingerprints, ContentIds(b"k" * 32), str)
    classifier = PageClassifier(Lexicon.of([WordFile("fraud", words={"lure": 30.0}, limit=20.0)]))
    sink = LearningPipeline(classifier, growth, Counters(), settings, recognition=recognition)
    recognition.record(recognition.ids.of_page(BODY), Classification("fraud", 30.0, 20.0, {}, ()), FOREIGN, judge="kim")
    found = sink.page(Page(OWN, OWN, 200, {"content-type": "text/html"}, BODY))
    assert found is not None
    assert found.category == "fraud"
