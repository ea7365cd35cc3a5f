import pytest

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl import CrawlContext
from gatewayfilter.crawl.net.fetch_errors import BadAnswerError, HostBusyError, RefusedError, UnreachableError
from gatewayfilter.crawl.outcomes import (
    BACK_OFF_S,
    REFUSED_REST_S,
    UNJUDGED_REST_S,
    DeadLetter,
    OutcomeHandler,
    Rest,
    Retry,
)
from gatewayfilter.errors import StoreError, UrlError
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


@pytest.mark.parametrize(
    ("error", "attempts", "counted", "least_s", "most_s"),
    [
        (HostBusyError("busy", 40.0), 1, False, 40.0, 60.0),
        (StoreError("locked"), 1, False, 0.5 * BACK_OFF_S, 1.5 * BACK_OFF_S),
        (UnreachableError("no answer"), 1, True, 0.5 * BACK_OFF_S, 1.5 * BACK_OFF_S),
        (UnreachableError("not yet", 500.0), 1, True, 500.0, 500.0),
    ],
)
def test_what_is_tried_again_and_when(error: Exception, attempts: int, least_s: float, most_s: float, *, counted: bool) -> None:
    lease = Lease("http://a.example/", 1, attempts, "token", NOW)
    completion = _outcomes().of_error(lease, error)
    assert isinstance(completion, Retry)
    assert completion.counted == counted
    assert least_s <= completion.at - NOW <= most_s


def test_what_is_not_tried_again() -> None:
    outcomes = _outcomes()
    lease = Lease("http://a.example/", 1, 99, "token", NOW)
    assert outcomes.of_error(lease, RefusedError("no")) == Rest(lease, REFUSED_REST_S)
    assert outcomes.of_error(lease, BadAnswerError("a bomb")) == Rest(lease, UNJUDGED_REST_S)
    assert outcomes.of_error(lease, UnreachableError("no answer")) == DeadLetter(lease, "no answer")
    assert outcomes.of_error(lease, UrlError("bad")) == DeadLetter(lease, "not a URL", known=False)
    assert outcomes.of_error(lease, ZeroDivisionError()) == DeadLetter(lease, "failed with ZeroDivisionError")
    assert outcomes.stopped(lease) == Retry(lease, NOW, "the crawler was stopped", counted=False)


def _outcomes() -> OutcomeHandler:
    return OutcomeHandler(CrawlContext(FakeFrontier(), FakeSink(), CrawlSettings(), Counters(), clock=lambda: NOW))
