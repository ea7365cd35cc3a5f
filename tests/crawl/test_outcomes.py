from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl import CrawlContext
from gatewayfilter.crawl import outcomes as outcomes_module
from gatewayfilter.crawl.links.strategy import strategy_of
from gatewayfilter.crawl.net.fetch_errors import BadAnswerError, HostBusyError, RefusedError, UnreachableError
from gatewayfilter.crawl.outcomes import (
    BACK_OFF_S,
    BUFFERED_REST_S,
    JUDGED_REST_S,
    REFUSED_REST_S,
    UNJUDGED_REST_S,
    DeadLetter,
    OutcomeHandler,
    Rest,
    Retry,
    Visited,
)
from gatewayfilter.crawl.page_judge import Target, VisitResult
from gatewayfilter.errors import StoreError, UrlError
from gatewayfilter.interfaces import Lease, Page, Revisits, Validators
from gatewayfilter.model import Classification
from gatewayfilter.settings import CrawlTask
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import digest_of, parse_url
from tests.case_tables import all_cases
from tests.crawl.crawl_fakes import HARMLESS, FakeFrontier, FakeSink

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


@all_cases(
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


@pytest.mark.parametrize(
    ("attempts", "grown_s"), [(0, 5.0), (1, 5.0), (2, 30.0), (3, 180.0), (4, 1080.0), (5, 3600.0), (900, 3600.0)]
)
def test_waits_grow_with_each_try_up_to_an_hour(attempts: int, grown_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    for jitter, chosen in ((0.5, min), (1.5, max)):
        monkeypatch.setattr(outcomes_module, "_JITTER", SimpleNamespace(uniform=chosen))
        completion = _outcomes().not_kept(Lease("http://a.example/", 1, attempts, "token", NOW))
        assert completion == Retry(completion.lease, NOW + grown_s * jitter, "the verdict could not be kept", counted=False)


def test_a_page_is_given_up_after_its_last_try() -> None:
    outcomes = _outcomes()
    most = CrawlSettings().max_attempts
    error = UnreachableError("no answer")
    for attempts, kind in ((most - 1, Retry), (most, DeadLetter)):
        assert type(outcomes.of_error(Lease("http://a.example/", 1, attempts, "token", NOW), error)) is kind
    for attempts, died in ((most + 2, False), (most + 3, True)):
        assert outcomes.has_died_too_often(Lease("http://a.example/", 1, attempts, "token", NOW)) is died


def visit(*, classification: Classification | None = HARMLESS, headers: dict[str, str] | None = None, **more: Any) -> VisitResult:
    return VisitResult(Page("http://a.example/", "http://a.example/", 200, headers or {}, b"x"), classification, (), **more)


class Notes:
    """Keeps the pages whose validators are noted."""

    def __init__(self) -> None:
        self.pages: list[Page] = []

    def note(self, page: Page) -> None:
        self.pages.append(page)


@all_cases(
    ("seen", "known", "rest_s", "noted"),
    [
        (visit(), False, JUDGED_REST_S, False),
        (visit(), True, JUDGED_REST_S, True),
        (visit(headers={"etag": "1"}), False, JUDGED_REST_S, True),
        (visit(headers={"last-modified": "1"}), False, JUDGED_REST_S, True),
        (visit(headers={"etag": "1"}, rendered=True), True, JUDGED_REST_S, False),
        (visit(headers={"etag": "1"}, unchanged=True), True, JUDGED_REST_S, False),
        (visit(classification=None, headers={"etag": "1"}), True, UNJUDGED_REST_S, False),
        (visit(classification=None, buffered=True), False, BUFFERED_REST_S, False),
    ],
)
def test_how_long_a_visited_page_rests_and_what_is_noted_of_it(
    seen: VisitResult, rest_s: float, *, known: bool, noted: bool
) -> None:
    frontier, notes = FakeFrontier("http://a.example/"), Notes()
    context = CrawlContext(frontier, FakeSink(), CrawlSettings(), Counters(), clock=lambda: NOW, revisits=cast("Revisits", notes))
    outcomes = OutcomeHandler(context)
    (lease,) = frontier.lease(1, 60.0, NOW)
    url = parse_url(lease.url)
    validators = Validators(lease.url, "e", "") if known else None
    target = Target(url, lease.priority, strategy_of(context.settings, ""), validators=validators)
    with outcomes.together():
        assert outcomes.complete(Visited(lease, target, seen)) == [url.digest]
    assert frontier.finished == {lease.url: NOW + rest_s}
    assert notes.pages == ([seen.page] if noted else [])


@pytest.mark.parametrize(("rest_s", "failed_s"), [(60.0, 7200.0), (9000.0, 9000.0)])
def test_a_page_of_a_task_that_comes_again_does_so_in_place_of_its_rest(rest_s: float, failed_s: float) -> None:
    settings = CrawlSettings(tasks={"news": CrawlTask(recrawl_hours=2, priority=40)})
    frontier = FakeFrontier()
    outcomes = OutcomeHandler(CrawlContext(frontier, FakeSink(), settings, Counters(), clock=lambda: NOW))
    lease = Lease("http://a.example/", 10, 1, "token", NOW, "news", 1)
    outcomes.complete(Rest(lease, rest_s))
    assert frontier.due_again == {lease.url: (NOW + failed_s, 40)}
    target = Target(parse_url(lease.url), 10, strategy_of(settings, "news"), 1)
    assert len(outcomes.complete(Visited(lease, target, visit()))) == 2, "seen by the task and by all others"
    assert frontier.due_again == {lease.url: (NOW + 7200.0, 40)}


def test_a_dead_letter_can_be_found_again_where_it_was_a_url() -> None:
    frontier, counters = FakeFrontier(), Counters()
    seen = MemorySet()
    outcomes = OutcomeHandler(CrawlContext(frontier, FakeSink(), CrawlSettings(), counters, clock=lambda: NOW, seen=seen))
    lease = Lease("http://a.example/", 10, 1, "token", NOW)
    seen.add(digest_of(lease.url))
    outcomes.complete(DeadLetter(lease, "not a URL", known=False))
    assert (digest_of(lease.url) in seen, counters.as_dict()) == (True, {})
    outcomes.complete(DeadLetter(lease, "no answer"))
    assert (digest_of(lease.url) in seen, counters.as_dict()) == (False, {"dead_letters": 1})
    assert frontier.buried == {lease.url: "no answer"}


class MemorySet:
    """A set of seen URLs that can forget."""

    def __init__(self) -> None:
        self._digests: set[bytes] = set()

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._digests

    def add(self, digest: bytes) -> bool:
        self._digests.add(digest)
        return True

    def remove(self, digest: bytes) -> bool:
        self._digests.discard(digest)
        return True

    def save(self) -> None:
        """There is no file."""


@all_cases(
    ("seen", "noted"),
    [
        (visit(headers={"etag": "1"}), True),
        (visit(), False),
        (visit(headers={"etag": "1"}, classification=None), False),
    ],
)
def test_of_a_page_out_of_the_buffer_validators_are_noted(seen: VisitResult, *, noted: bool) -> None:
    notes, frontier = Notes(), FakeFrontier()
    context = CrawlContext(frontier, FakeSink(), CrawlSettings(), Counters(), clock=lambda: NOW, revisits=cast("Revisits", notes))
    link = parse_url("http://b.example/")
    found = replace(seen, links=(link,))
    assert link.digest in OutcomeHandler(context).scanned(found)
    assert notes.pages == ([seen.page] if noted else [])
    assert [offer.url for offer in frontier.added] == [link.text]
