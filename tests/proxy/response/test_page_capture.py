"""Which responses are pages, which of them anybody would get, and how a page is copied as it passes."""

from dataclasses import replace
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.test import tflow

from gatewayfilter.addresses.links import NO_LINKS
from gatewayfilter.config import UnknownRule
from gatewayfilter.interfaces import CrawlRequest, PassedResponse
from gatewayfilter.model import ResourceType
from gatewayfilter.proxy.request.flow_request import FlowRequest, read_flow
from gatewayfilter.proxy.response.page_capture import (
    OpenNetworks,
    PassedCopy,
    echoable_text,
    is_html,
    is_page,
    is_public,
    passed_response,
)
from gatewayfilter.proxy.sync import url_reporter
from gatewayfilter.proxy.sync.url_reporter import UrlReporter
from tests.case_tables import all_cases

SITE = "http://site.example/page"


def asked(method: str = "GET", url: str = SITE, **fields: str) -> FlowRequest:
    flow = tflow.tflow(req=http.Request.make(method, url))
    flow.request.headers = http.Headers((), **({"sec_fetch_dest": "document"} | fields))
    flow.server_conn.address, flow.client_conn.sni = None, None
    return read_flow(flow)


def plain(kind: ResourceType, method: str = "GET") -> FlowRequest:
    """A request without Sec-Fetch headers, so that its resource type is guessed."""
    known = asked(method)
    return replace(known, request=replace(known.request, resource_type=kind), plain_client=True)


def answer(status: int = 200, **fields: str) -> http.Response:
    made = http.Response.make(status)
    made.headers = http.Headers((), **({"content_type": "text/html"} | fields))
    return made


@all_cases(
    ("request_", "response", "page"),
    [
        (asked(), answer(), True),
        (asked(), answer(299), True),
        (asked(), answer(199), False),
        (asked(), answer(300), False),
        (asked(), answer(204), False),
        (asked(), answer(205), False),
        (asked(), answer(content_type="Application/XHTML+xml; charset=x"), True),
        (asked(), answer(content_type="text/plain"), False),
        (asked(), http.Response.make(200), False),
        (asked("POST"), answer(), True),
        (asked("PUT"), answer(), False),
        (asked(sec_fetch_dest="iframe"), answer(), True),
        (asked(sec_fetch_dest="image"), answer(), False),
        (plain(ResourceType.IMAGE), answer(), True),
    ],
)
def test_what_is_a_page(request_: FlowRequest, response: http.Response, *, page: bool) -> None:
    assert is_page(request_, response) == page
    assert is_html(response.headers) == (response.headers.get("content-type", "").lower() not in {"", "text/plain"})


@all_cases(
    ("request_", "response", "public"),
    [
        (asked(), answer(), True),
        (asked("POST"), answer(), False),
        (asked(), answer(201), False),
        (asked(cookie="a=b"), answer(), False),
        (replace(asked(), foreign_frame=True), answer(), False),
        (asked(), answer(set_cookie="a=b"), False),
        (asked(), answer(www_authenticate="Basic"), False),
        (asked(), answer(cache_control="max-age=5, No-Store"), False),
        (asked(), answer(cache_control='private="x"'), False),
        (asked(), answer(cache_control="no-cache, max-age=0"), True),
        (asked(), answer(vary="Accept, Cookie"), False),
        (asked(), answer(vary="*"), False),
        (asked(), answer(vary="authorization"), False),
        (asked(), answer(vary="Accept-Encoding"), True),
    ],
)
def test_what_everybody_gets(request_: FlowRequest, response: http.Response, *, public: bool) -> None:
    assert is_public(request_, response) == public


def test_addresses_that_pages_are_learned_from() -> None:
    found = OpenNetworks(["10.1.0.0/16", "fd00::/64"], lambda: NO_LINKS)
    for address, is_open in (
        ("10.1.2.3", True),
        ("10.2.2.3", False),
        ("::ffff:10.1.2.3", True),
        ("fd00::5", True),
        ("fd01::5", False),
        ("8.8.8.8", True),
        ("127.0.0.1", False),
        ("site.example", False),
        ("", False),
    ):
        assert (address in found) == is_open


def test_what_of_a_response_leaves_the_proxy() -> None:
    response = answer(200, content_encoding="br", content_language="de", set_cookie="a=b")
    head = {"content-type": "text/html", "content-encoding": "br", "content-language": "de"}
    assert passed_response(asked(), response, "said") == PassedResponse(SITE, 200, head, b"", public=True, said="said")
    assert passed_response(asked(), answer(404), None) == PassedResponse(
        *(SITE, 404, {"content-type": "text/html"}, b"", False, ""),
    )
    assert passed_response(asked(), answer(), "").public


def test_what_a_page_may_echo_of_its_request() -> None:
    request = http.Request.make("GET", SITE)
    request.headers = http.Headers([(b"Host", b"site.example"), (b"Sec-CH-UA", b"x"), (b"Accept", b"a\xff")])
    assert echoable_text(request) == "sec-ch-ua x\na\ufffd"
    for size, found in ((4_096, True), (4_097, False)):
        request.headers = http.Headers([(b"HOST", b"h" * 900), (b"a", b"x" * (size - 5)), (b"b", b"y" * 5)])
        assert (echoable_text(request) is not None) == found


def test_a_copy_ends_with_its_body_or_where_it_is_too_long() -> None:
    done: list[bytes | None] = []
    copy = PassedCopy(None, done.append, 4)
    assert (copy(b"ab"), copy(b"cd"), done) == ([b"ab"], [b"cd"], [])
    assert (copy(b""), done) == ([], [b"abcd"])
    assert (copy(b"x"), copy(b""), done) == ([b"x"], [], [b"abcd"])
    long = PassedCopy(lambda data: [data.upper()], done.append, 4)
    assert (long(b"abcd"), long(b"e"), long(b"f"), long(b"")) == ([b"ABCD"], [b"E"], [b"F"], [b""])
    assert done == [b"abcd", None]


class Sink:
    """The crawler's queue."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        self.full = False

    def offer(self, offer: CrawlRequest) -> bool:
        if not self.full:
            self.urls.append(offer.url)
        return not self.full


class Reporting:
    """A reporter with its queue and a clock."""

    def __init__(self, unknown: UnknownRule = UnknownRule.ALLOW) -> None:
        self.sink, self.now = Sink(), 1_000.0
        self.reporter = UrlReporter(self.sink, unknown, lambda: self.now)

    def queued(self, request: FlowRequest) -> tuple[bool, int]:
        before = len(self.sink.urls)
        return self.reporter.queue_page(request), len(self.sink.urls) - before


def test_a_page_is_queued_once_a_minute() -> None:
    found, page = Reporting(), asked()
    assert found.reporter.is_due(page)
    assert found.queued(page) == (True, 1)
    assert not found.reporter.is_due(page)
    found.now += 59.5
    assert (found.queued(page), found.reporter.is_due(page)) == ((True, 0), False)
    found.now += 0.5
    assert (found.reporter.is_due(page), found.queued(page)) == (True, (True, 1))
    full = Reporting()
    full.sink.full = True
    assert (full.queued(page), full.reporter.is_due(page)) == ((False, 0), True)
    marked = Reporting()
    marked.reporter.mark_queued(page)
    assert (marked.queued(page), marked.reporter.is_due(page)) == ((True, 0), False)
    young = Reporting()
    young.now = 5.0
    assert young.reporter.is_due(page), "nothing was queued as yet"


@all_cases(
    ("request_", "queued"),
    [
        (asked(), True),
        (asked(sec_fetch_dest="iframe", sec_fetch_site="same-origin"), True),
        (asked(sec_fetch_dest="image"), False),
        (asked("POST"), False),
        (asked("HEAD"), False),
        (asked(authorization="Basic x"), False),
        (asked(range="bytes=0-"), False),
        (asked(url=f"http://site.example/{'x' * (2_048 - 20)}"), True),
        (asked(url=f"http://site.example/{'x' * (2_049 - 20)}"), False),
        (asked(upgrade="websocket"), False),
    ],
)
def test_what_is_queued(request_: FlowRequest, *, queued: bool) -> None:
    assert len(asked(url=f"http://site.example/{'x' * (2_048 - 20)}").request.url.text) == 2_048
    found = Reporting()
    assert (found.reporter.is_due(request_), found.queued(request_)) == (queued, (queued, int(queued)))


def test_frames_of_other_sites_are_queued_where_they_wait() -> None:
    frame = asked(sec_fetch_dest="iframe", sec_fetch_site="cross-site")
    assert frame.foreign_frame
    for unknown, queued in (
        (UnknownRule.ALLOW, False),
        (UnknownRule.INSPECT, False),
        (UnknownRule.HOLD, True),
        (UnknownRule.BLOCK, True),
    ):
        found = Reporting(unknown)
        assert found.queued(frame) == (queued, int(queued))
        with_frames: Any = found.reporter.with_frames()
        assert with_frames.queue_page(frame)
        assert found.sink.urls[-1] == SITE


def test_pages_that_were_guessed_to_be_something_else() -> None:
    for request, content_type, queued in (
        (plain(ResourceType.OTHER), "text/html; charset=x", 1),
        (plain(ResourceType.XMLHTTPREQUEST), "application/xhtml+xml", 1),
        (plain(ResourceType.IMAGE), "text/html", 0),
        (plain(ResourceType.DOCUMENT), "text/html", 0),
        (plain(ResourceType.OTHER), "application/json", 0),
        (plain(ResourceType.OTHER, "POST"), "text/html", 0),
        (replace(plain(ResourceType.OTHER), plain_client=False), "text/html", 0),
    ):
        found = Reporting()
        found.reporter.queue_html(request, content_type)
        assert len(found.sink.urls) == queued


def test_so_many_urls_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(url_reporter, "_MOST_REMEMBERED", 2)
    found = Reporting()
    first, second, third = (asked(url=f"http://site.example/{number}") for number in range(3))
    for request in (first, second):
        found.queued(request)
    found.reporter.mark_queued(first)
    assert found.queued(third) == (True, 1)
    assert [found.reporter.is_due(request) for request in (first, second, third)] == [False, True, False]
