"""Which URLs of unknown pages are queued, how often, and what is remembered of them."""

from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.config import UnknownRule
from gatewayfilter.interfaces import CrawlRequest
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.proxy.sync import url_reporter
from gatewayfilter.proxy.sync.url_reporter import UrlReporter
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

PAGE = "http://a.example/"


class Queue:
    """A queue that may be full, a clock, and a reporter to them."""

    def __init__(self, unknown: UnknownRule = UnknownRule.ALLOW) -> None:
        self.offered: list[str] = []
        self.full = False
        self.now = 0.0
        self.reporter = UrlReporter(self, unknown, lambda: self.now)

    def offer(self, offer: CrawlRequest) -> bool:
        self.offered.append(offer.url)
        return not self.full


def asked(
    url: str = PAGE,
    kind: ResourceType = ResourceType.DOCUMENT,
    method: str = "GET",
    *,
    private: bool = False,
    foreign: bool = False,
    plain: bool = True,
) -> Any:
    request = Request(parse_url(url), None, kind, method, "192.0.2.7")
    return SimpleNamespace(request=request, private=private, foreign_frame=foreign, plain_client=plain)


@all_cases(
    ("flow_request", "queued"),
    [
        (asked(), True),
        (asked(kind=ResourceType.SUBDOCUMENT), True),
        (asked(kind=ResourceType.SCRIPT), False),
        (asked(method="POST"), False),
        (asked(method="HEAD"), False),
        (asked("ws://a.example/"), False),
        (asked(private=True), False),
        (asked(foreign=True), False),
        (asked(PAGE + "x" * (2_048 - len(PAGE))), True),
        (asked(PAGE + "x" * (2_049 - len(PAGE))), False),
    ],
)
def test_which_pages_are_queued(flow_request: Any, *, queued: bool) -> None:
    queue = Queue()
    assert queue.reporter.is_due(flow_request) is queued
    assert queue.reporter.queue_page(flow_request) is queued
    assert queue.offered == ([flow_request.request.url.text] if queued else [])


@all_cases(
    ("rule", "queued"),
    [(UnknownRule.ALLOW, False), (UnknownRule.INSPECT, False), (UnknownRule.HOLD, True), (UnknownRule.BLOCK, True)],
)
def test_frames_of_other_sites_are_queued_where_pages_wait_for_a_verdict(rule: UnknownRule, *, queued: bool) -> None:
    queue, frame = Queue(rule), asked(kind=ResourceType.SUBDOCUMENT, foreign=True)
    assert queue.reporter.queue_page(frame) is queued
    assert queue.reporter.with_frames().queue_page(frame) is True
    assert len(queue.offered) == 1 + queued


def test_a_page_is_queued_once_a_minute() -> None:
    queue = Queue()
    for now, times, due in ((0.0, 1, True), (59.9, 1, False), (60.0, 2, True), (119.9, 2, False)):
        queue.now = now
        assert queue.reporter.is_due(asked()) is due
        assert queue.reporter.queue_page(asked()) is True
        assert len(queue.offered) == times


def test_what_a_full_queue_refused_is_offered_again() -> None:
    queue = Queue()
    queue.full = True
    assert queue.reporter.queue_page(asked()) is False
    queue.full = False
    assert queue.reporter.queue_page(asked()) is True
    assert len(queue.offered) == 2


def test_a_page_that_reached_the_learner_otherwise_counts_as_queued() -> None:
    queue = Queue()
    queue.reporter.mark_queued(asked())
    assert (queue.reporter.is_due(asked()), queue.reporter.queue_page(asked()), queue.offered) == (False, True, [])
    queue.now = 60.0
    assert queue.reporter.is_due(asked())


@all_cases(
    ("flow_request", "content_type", "queued"),
    [
        (asked(kind=ResourceType.OTHER), "text/html; charset=utf-8", True),
        (asked(kind=ResourceType.XMLHTTPREQUEST), "application/xhtml+xml", True),
        (asked(kind=ResourceType.OTHER), "text/plain", False),
        (asked(kind=ResourceType.SCRIPT), "text/html", False),
        (asked(), "text/html", False),
        (asked(kind=ResourceType.OTHER, plain=False), "text/html", False),
        (asked(kind=ResourceType.OTHER, private=True), "text/html", False),
    ],
)
def test_what_turns_out_to_be_a_page_is_queued(flow_request: Any, content_type: str, *, queued: bool) -> None:
    queue = Queue()
    queue.reporter.queue_html(flow_request, content_type)
    assert len(queue.offered) == queued


def test_the_page_queued_longest_ago_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(url_reporter, "_MOST_REMEMBERED", 2)
    queue = Queue()
    for name in ("a", "b"):
        queue.reporter.queue_page(asked(PAGE + name))
    queue.reporter.mark_queued(asked(PAGE + "a"))
    queue.reporter.queue_page(asked(PAGE + "c"))
    queue.offered.clear()
    for name in ("a", "c", "b"):
        queue.reporter.queue_page(asked(PAGE + name))
    assert queue.offered == [PAGE + "b"]
