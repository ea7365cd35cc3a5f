import pytest

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl import CrawlContext
from gatewayfilter.crawl.net.fetch_errors import RefusedError
from gatewayfilter.crawl.outcomes import REFUSED_REST_S, OutcomeHandler
from gatewayfilter.errors import StoreError
from gatewayfilter.interfaces import Lease
from gatewayfilter.telemetry import Counters
from tests.crawl.crawl_fakes import FakeFrontier, FakeSink

NOW = 1_700_000_000.0


def test_of_a_transaction_that_fails_nothing_is_settled_with_the_next_one() -> None:
    frontier = FakeFrontier("http://a.example/", "http://b.example/")
    outcomes = OutcomeHandler(CrawlContext(frontier, FakeSink(), CrawlSettings(), Counters(), clock=lambda: NOW))
    first, second = frontier.lease(2, 60.0, NOW)

    def complete(lease: Lease, *, fails: bool) -> None:
        with outcomes.together():
            outcomes.complete(outcomes.failed(lease, RefusedError("robots.txt does not allow it")))
            if fails:
                raise StoreError("the disk is full")

    with pytest.raises(StoreError):
        complete(first, fails=True)
    assert frontier.finished == {}
    complete(second, fails=False)
    assert frontier.finished == {second.url: NOW + REFUSED_REST_S}
