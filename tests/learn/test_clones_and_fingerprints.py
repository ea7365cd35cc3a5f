"""Login clones and fingerprints: the same bytes are harmless at the service and a clone elsewhere, whichever is met first."""

from collections.abc import Callable, Sequence

import pytest

from gatewayfilter.classify import Lexicon, PageClassifier, WordFile
from gatewayfilter.classify.imitated_services import ImitatedServices
from gatewayfilter.interfaces import Page
from gatewayfilter.learn import ContentIds, LearningPipeline, ListGrowth, Recognition
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
