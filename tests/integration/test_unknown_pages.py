"""Offers of unknown pages to the crawler: which, how often, how many are remembered."""

import pytest

from gatewayfilter.integration import unknown_pages
from gatewayfilter.integration.unknown_pages import UnknownPages
from gatewayfilter.interfaces import CrawlRequest
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import parse_url

PAGE = "http://a.test/"


class Sink:
    def __init__(self) -> None:
        self.offers: list[CrawlRequest] = []
        self.takes = True

    def offer(self, offer: CrawlRequest) -> bool:
        if self.takes:
            self.offers.append(offer)
        return self.takes


def request(url: str = PAGE, kind: ResourceType = ResourceType.DOCUMENT, method: str = "GET", source: str = "") -> Request:
    return Request(parse_url(url), parse_url(source) if source else None, kind, method)


@pytest.mark.parametrize(
    ("asked", "frames", "offered"),
    [
        (request(), False, True),
        (request("https://a.test/"), False, True),
        (request("wss://a.test/"), False, False),
        (request(method="POST"), False, False),
        (request(method="HEAD"), False, False),
        (request(kind=ResourceType.IMAGE), False, False),
        (request(PAGE + "a" * (2_048 - len(PAGE))), False, True),
        (request(PAGE + "a" * (2_049 - len(PAGE))), False, False),
        (request(kind=ResourceType.SUBDOCUMENT), False, False),
        (request(kind=ResourceType.SUBDOCUMENT), True, True),
        (request(kind=ResourceType.SUBDOCUMENT, source="http://b.test/"), False, False),
        (request(kind=ResourceType.SUBDOCUMENT, source="http://b.test/"), True, True),
        (request("http://x.a.example/", ResourceType.SUBDOCUMENT, source="http://y.a.example/"), False, True),
        (request(source="http://b.test/"), False, True),
    ],
)
def test_which_pages_are_offered(asked: Request, *, frames: bool, offered: bool) -> None:
    sink = Sink()
    assert UnknownPages(sink).offer(asked, frames=frames) is offered
    assert [one.url for one in sink.offers] == [asked.url.text] * offered


def test_a_page_is_offered_again_after_a_minute() -> None:
    sink, now = Sink(), [0.0]
    pages = UnknownPages(sink, lambda: now[0])
    for moment, offered in ((0.0, True), (59.9, False), (60.0, True), (119.9, False), (120.0, True)):
        now[0] = moment
        assert pages.offer(request(), frames=False) is offered
    assert len(sink.offers) == 3


def test_a_page_that_the_queue_refuses_is_offered_at_its_next_visit() -> None:
    sink = Sink()
    pages = UnknownPages(sink, lambda: 5.0)
    sink.takes = False
    assert not pages.offer(request(), frames=False)
    sink.takes = True
    assert pages.offer(request(), frames=False)
    assert not pages.offer(request(), frames=False)


def test_the_oldest_offer_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unknown_pages, "_MOST_REMEMBERED", 2)
    sink, now = Sink(), [0.0]
    pages = UnknownPages(sink, lambda: now[0])
    urls = [f"http://a.test/{number}" for number in range(3)]
    for moment, which in ((0.0, 0), (1.0, 1), (60.5, 0), (60.5, 2)):  # the first one again: the second is the oldest
        now[0] = moment
        assert pages.offer(request(urls[which]), frames=False)
    assert [pages.offer(request(urls[which]), frames=False) for which in (0, 2, 1)] == [False, False, True]
