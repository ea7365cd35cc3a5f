"""What each change of the engine does to a flow, at its bounds; no proxy and no origin."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mitmproxy import http
from mitmproxy.connection import Client, Server
from mitmproxy.test import tflow

from gatewayfilter.config import CosmeticScope, FilterSettings
from gatewayfilter.model import Action, Enforcement, Reason, Request, RequestChange, ResourceType, ResponseChange, Verdict
from gatewayfilter.proxy.response import adblock_modifiers
from gatewayfilter.proxy.response.adblock_modifiers import LowerHeaders, TrafficChanges
from gatewayfilter.proxy.response.body_rewriter import EditedBody
from gatewayfilter.proxy.response.download_check import CheckedDownload
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import Url, parse_url
from tests.case_tables import all_cases

SITE = "http://site.example/page?a=1"
FORM: Any = object()
STRICT = Enforcement("safesearch", "", parameters=(("safe", "active"),))
BLOCK = Verdict(Action.BLOCK, Reason.FILE_SIZE)


class Engine:
    """Returns what the test has set."""

    def __init__(self) -> None:
        self.request: RequestChange | None = None
        self.response: ResponseChange | None = None
        self.required: Enforcement | None = None
        self.asked: list[object] = []

    def enforced(self, request: Request) -> Enforcement | None:
        return self.required

    def change_request(self, request: Request) -> RequestChange | None:
        return self.request

    def change_response(
        self, request: Request, status: int, headers: Mapping[str, str], address: str = ""
    ) -> ResponseChange | None:
        self.asked.append((status, dict(headers), address))
        return self.response


class Swap:
    """A `BodyEdit`."""

    def apply(self, text: str) -> str:
        return text.replace("a", "b")


class Downloads:
    """The download rules of a policy."""

    most_bytes = 5
    judges_content = False

    def __init__(self) -> None:
        self.block: Verdict | None = None
        self.seen: dict[str, str] = {}

    def judge_head(self, url: Url, headers: Mapping[str, str]) -> Verdict | None:
        self.seen = dict(headers)
        return self.block

    def judge_begin(self, url: Url, headers: Mapping[str, str], begin: bytes) -> Verdict | None:
        raise AssertionError

    def too_large(self) -> Verdict:
        return BLOCK


class Changed:
    """A flow, and what is done to it."""

    def __init__(self, url: str = SITE, method: str = "GET", kind: ResourceType = ResourceType.DOCUMENT, **sent: str) -> None:
        self.engine, self.counters, self.now = Engine(), Counters(), 100.0
        self.told: list[Verdict] = []
        self.changes = self.with_settings(FilterSettings())
        self.flow = tflow.tflow(req=http.Request.make(method, url))
        self.flow.request.headers = http.Headers((), **sent)
        self.request = Request(parse_url(url), None, kind, method, "10.0.0.5")

    def with_settings(self, settings: FilterSettings) -> TrafficChanges:
        counter: Any = SimpleNamespace(response=lambda request, verdict, started: self.told.append(verdict))
        self.changes = TrafficChanges(cast("Any", self.engine), settings, self.counters, lambda: self.now, counter=counter)
        return self.changes

    def before(self, **change: Any) -> tuple[http.Response | None, Url | None, object]:
        self.engine.request = RequestChange(**change)
        return self.changes.before(self.flow, self.request)

    def after(self, status: int = 200, headers: dict[str, str] | None = None, **change: Any) -> Verdict | None:
        self.engine.response = ResponseChange(**change)
        answer = http.Response.make(status)
        head = {"content-type": "text/html", "content-length": "9"} | (headers or {})
        answer.headers = http.Headers([(name.encode(), value.encode()) for name, value in head.items()])
        answer.stream = True
        self.flow.response = answer
        return self.changes.after(self.flow, self.request)

    @property
    def response(self) -> http.Response:
        assert self.flow.response is not None
        return self.flow.response

    def body(self, text: bytes = b"<head>a") -> bytes | None:
        """Returns a body as it is rewritten, `None` where nothing is done to it."""
        stream = self.response.stream
        return stream.whole(text) if isinstance(stream, EditedBody) else None


def test_the_view_of_headers_is_in_lower_case() -> None:
    headers = LowerHeaders(http.Headers([(b"Via", b"a"), (b"VIA", b"b"), (b"X-Y", b"c")]))
    assert (list(headers), len(headers), headers["via"], headers["X-y"]) == (["via", "x-y"], 2, "a, b", "c")
    assert ("vIA" in headers, "z" in headers) == (True, False)


@all_cases(
    ("accepted", "sent"),
    [
        ("gzip, br", "gzip, br"),
        ("gzip,br", "gzip,br"),
        ("gzip, dcb", "gzip"),
        ("dcb, dcz", "identity"),
        ("GZIP;q=1, dcb", "GZIP;q=1"),
        ("gzip, ", "gzip"),
        ("", "identity"),
        (f"gzip, {'x' * 94}", "gzip"),
        (f"gzip, {'x' * 95}", "gzip"),
    ],
)
def test_encodings_that_cannot_be_read_are_not_asked_for(accepted: str, sent: str) -> None:
    page = Changed(accept_encoding=accepted)
    assert page.changes.before(page.flow, page.request) == (None, None, None)
    assert page.flow.request.headers["accept-encoding"] == sent
    frame = Changed(kind=ResourceType.SUBDOCUMENT, accept_encoding=accepted)
    frame.before()
    assert frame.flow.request.headers["accept-encoding"] == sent
    other = Changed(kind=ResourceType.SCRIPT, accept_encoding=accepted)
    other.before()
    assert other.flow.request.headers["accept-encoding"] == accepted
    assert "accept-encoding" not in Changed().flow.request.headers
    without = Changed()
    without.before()
    assert "accept-encoding" not in without.flow.request.headers
    before = adblock_modifiers._supported.cache_info().currsize
    Changed(accept_encoding="gzip, " + "y" * 95).before()
    assert adblock_modifiers._supported.cache_info().currsize == before, "long ones are not remembered"


def test_an_accept_encoding_is_remembered_up_to_its_most_characters() -> None:
    known = adblock_modifiers._supported
    known.cache_clear()
    for length, remembered in ((100, 1), (101, 1)):
        Changed(accept_encoding="gzip".ljust(length, "z")).before()
        assert known.cache_info().currsize == remembered


def test_header_fields_of_a_request_are_removed_and_counted() -> None:
    changed = Changed(x_a="1", te="trailers")
    assert changed.before(remove_headers=("x-a", "te", "x-none"), form=FORM) == (None, None, FORM)
    assert list(changed.flow.request.headers) == ["te"]
    assert (changed.counters["requests_changed"], changed.counters["searches_enforced"]) == (1, 0)
    assert changed.before(remove_headers=("x-none", "te")) == (None, None, None)
    assert changed.counters["requests_changed"] == 1


def test_a_policy_is_enforced_on_what_is_sent() -> None:
    changed = Changed()
    changed.before(enforced=STRICT)
    assert changed.flow.request.path == "/page?a=1&safe=active"
    assert changed.counters.as_dict() == {"searches_enforced": 1}
    redirected = Changed()
    answer, _, _ = redirected.before(enforced=STRICT, url="http://other.example/", redirect=True)
    assert answer is not None
    assert (redirected.flow.request.path, redirected.counters["searches_enforced"]) == ("/page?a=1", 0)
    allowed = Changed()
    allowed.changes.enforce(allowed.flow, allowed.request)
    assert allowed.counters.as_dict() == {}
    allowed.engine.required = STRICT
    allowed.changes.enforce(allowed.flow, allowed.request)
    assert (allowed.flow.request.path, allowed.counters.as_dict()) == ("/page?a=1&safe=active", {"searches_enforced": 1})


def test_a_request_is_rewritten_within_its_origin() -> None:
    changed = Changed(method="POST")
    answer, other, _ = changed.before(url="http://site.example/page")
    assert (answer, other, changed.flow.request.path) == (None, parse_url("http://site.example/page"), "/page")
    assert changed.counters["requests_changed"] == 1
    for url in (SITE, "http://", "no url"):
        assert changed.before(url=url, redirect=True)[:2] == (None, None)
    assert changed.counters["requests_changed"] == 1


@all_cases(
    ("method", "url", "goes"),
    [
        ("GET", "http://other.example/", True),
        ("HEAD", "https://site.example/page?a=1", True),
        ("GET", "http://site.example:81/", True),
        ("POST", "http://other.example/", False),
        ("GET", "ws://other.example/", False),
    ],
)
def test_another_origin_is_redirected_to(method: str, url: str, *, goes: bool) -> None:
    changed = Changed(method=method)
    answer, other, _ = changed.before(url=url)
    assert (answer is not None, other, changed.flow.request.path) == (goes, None, "/page?a=1")
    assert changed.counters["requests_changed"] == int(goes)
    if answer is not None:
        assert (answer.status_code, dict(answer.headers), answer.content) == (
            307,
            {
                "location": url,
                "cache-control": "no-store",
                "access-control-allow-origin": "*",
                "x-gatewayfilter": "redirect; reason=adblock",
                "content-length": "0",
            },
            b"",
        )


def test_nobody_is_redirected_in_circles(monkeypatch: pytest.MonkeyPatch) -> None:
    changed, there = Changed(), "http://site.example/b"

    def redirected(seconds: float, client: str = "10.0.0.5") -> bool:
        changed.now += seconds
        back = Request(parse_url(there), None, ResourceType.DOCUMENT, "GET", client)
        changed.engine.request = RequestChange(url=SITE, redirect=True)
        return changed.changes.before(changed.flow, back)[0] is not None

    assert changed.before(url=there, redirect=True)[0] is not None
    assert redirected(9.75) is False
    assert redirected(0.0, "10.0.0.6") is True
    assert changed.before(url=there, redirect=True)[0] is not None, "of another client"
    assert redirected(9.75) is False, "the time begins anew"
    assert redirected(0.25) is True
    monkeypatch.setattr(adblock_modifiers, "_MOST_REDIRECTED", 3)
    changed = Changed()
    for url in (there, "http://site.example/c", there, "http://site.example/d", "http://site.example/e"):
        changed.before(url=url, redirect=True)
    assert redirected(0.0) is False, "the one that was longest ago is forgotten"
    changed.before(url="http://site.example/f", redirect=True)
    assert redirected(0.0) is True, "three are remembered"


def test_the_engine_sees_the_head_of_a_response() -> None:
    changed = Changed()
    changed.flow.server_conn = Server(address=("site.example", 80))
    assert changed.after(201, {"x-a": "b"}) is None
    assert changed.engine.asked == [(201, {"content-type": "text/html", "x-a": "b", "content-length": "9"}, "")]
    changed.flow.server_conn.peername = ("192.0.2.7", 80)
    changed.after()
    assert cast("tuple[object, ...]", changed.engine.asked[1])[2] == "192.0.2.7"
    changed.engine.response = None
    assert changed.changes.after(changed.flow, changed.request) is None
    assert changed.counters.as_dict() == {}


def test_header_fields_of_a_response_are_removed_and_added() -> None:
    changed = Changed()
    assert changed.after(200, {"x-a": "b"}, remove_headers=("x-a", "content-length", "x-none")) is None
    assert dict(changed.response.headers) == {"content-type": "text/html", "content-length": "9"}
    assert changed.counters["responses_changed"] == 1
    changed.after(csp=("a", "b\r\nx: y", "b\nx", "c"), permissions=("d",))
    assert changed.response.headers.get_all("content-security-policy") == ["a", "c"]
    assert changed.response.headers["permissions-policy"] == "d"
    assert changed.counters["responses_changed"] == 2
    changed.after(csp=("a\r",), permissions=("d\n",), remove_headers=("te",))
    assert (changed.counters["responses_changed"], changed.response.stream) == (2, True)
    blocked = Verdict(Action.BLOCK, Reason.ADBLOCK)
    assert changed.after(verdict=blocked, csp=("a",)) is blocked
    assert "content-security-policy" not in changed.response.headers
    assert changed.after(verdict=Verdict(Action.ALLOW, Reason.ADBLOCK), csp=("a",)) is None
    assert changed.response.headers["content-security-policy"] == "a"


STYLE = b"<head><style>p{}</style>a"


@all_cases(
    ("scope", "sheets", "found"),
    [
        (CosmeticScope.ALL, ("p{}", "q{}"), b"<head><style>p{}q{}</style>a"),
        (CosmeticScope.ALL, ("", "q{}"), b"<head><style>q{}</style>a"),
        (CosmeticScope.ALL, ("p{}", ""), STYLE),
        (CosmeticScope.SPECIFIC, ("p{}", "q{}"), STYLE),
        (CosmeticScope.SPECIFIC, ("", "q{}"), None),
        (CosmeticScope.OFF, ("p{}", "q{}"), None),
    ],
)
def test_which_sheets_are_put_in(scope: CosmeticScope, sheets: tuple[str, str], found: bytes | None) -> None:
    changed = Changed()
    changed.with_settings(FilterSettings(cosmetic=scope))
    changed.after(style=sheets[0], generic_style=sheets[1])
    assert changed.body() == found
    assert changed.counters["responses_changed"] == (found is not None)


@all_cases(
    ("content_type", "kind", "more", "styled", "edited"),
    [
        ("text/html", ResourceType.DOCUMENT, {}, True, True),
        (" Text/HTML ; charset=utf-8", ResourceType.SUBDOCUMENT, {}, True, True),
        ("text/html; charset=UTF-16LE", ResourceType.DOCUMENT, {}, False, True),
        ("text/html", ResourceType.SCRIPT, {}, False, True),
        ("text/html", ResourceType.DOCUMENT, {"content-disposition": " Attachment; filename=x"}, False, True),
        ("text/html", ResourceType.DOCUMENT, {"content-disposition": "inline"}, True, True),
        ("text/plain", ResourceType.DOCUMENT, {}, False, True),
        ("text/event-stream", ResourceType.XMLHTTPREQUEST, {}, False, False),
        ("application/json", ResourceType.XMLHTTPREQUEST, {}, False, True),
        ("application/ld+json", ResourceType.XMLHTTPREQUEST, {}, False, True),
        ("application/atom+xml", ResourceType.XMLHTTPREQUEST, {}, False, True),
        ("application/pdf", ResourceType.DOCUMENT, {}, False, False),
        ("image/png", ResourceType.IMAGE, {}, False, False),
        ("", ResourceType.DOCUMENT, {}, False, False),
    ],
)
def test_which_bodies_are_changed(
    content_type: str, kind: ResourceType, more: dict[str, str], *, styled: bool, edited: bool
) -> None:
    head = {"content-type": content_type, **more}
    for change, expected in (
        ({"style": "p{}"}, STYLE if styled else None),
        ({"edits": (Swap(),)}, b"<hebd>b" if edited else None),
    ):
        changed = Changed(kind=kind)
        changed.after(200, head, **change)
        assert changed.body() == expected
        assert changed.counters["responses_changed"] == (expected is not None)
    removed = Changed(kind=kind)
    removed.after(200, head, remove_elements=("p",))
    is_page = styled or "UTF-16" in content_type
    found = removed.body(b"<head></head><p>x</p>")
    assert (found is not None, b"<p>" in (found or b"")) == (is_page, False)
    off = Changed(kind=kind)
    off.with_settings(FilterSettings(replace=False))
    off.after(200, head, edits=(Swap(),), remove_elements=("p",))
    assert (off.body(), off.counters.as_dict()) == (None, {})


def test_a_sheet_repeats_the_charset_that_only_the_page_names() -> None:
    page = b"<head><meta charset=gbk>a"
    for content_type, meta in (("text/html", b'<meta charset="gbk">'), ("text/html; Charset=gbk", b"")):
        changed = Changed()
        changed.after(200, {"content-type": content_type}, style="p{}")
        assert changed.body(page) == b"<head>" + meta + b"<style>p{}</style><meta charset=gbk>a"


@all_cases(
    ("method", "status", "version", "found"),
    [
        ("GET", 200, "HTTP/1.1", True),
        ("POST", 404, "HTTP/2.0", True),
        ("get", 299, "HTTP/1.1", True),
        ("HEAD", 200, "HTTP/1.1", False),
        ("head", 200, "HTTP/1.1", False),
        ("CONNECT", 200, "HTTP/1.1", False),
        ("GET", 200, "HTTP/1.0", False),
        ("GET", 199, "HTTP/1.1", False),
        *(("GET", status, "HTTP/1.1", False) for status in (101, 103, 204, 205, 206, 304)),
    ],
)
def test_responses_without_a_body_stay(method: str, status: int, version: str, *, found: bool) -> None:
    changed = Changed()
    changed.flow.request.data.method = method.encode()
    changed.flow.request.data.http_version = version.encode()
    changed.after(status, style="p{}")
    assert changed.body() == (STYLE if found else None)
    assert ("content-length" not in changed.response.headers) == found


def test_header_fields_that_hold_for_the_bytes_of_the_origin_go() -> None:
    of_bytes = ("content-encoding", "content-md5", "digest", "repr-digest", "content-digest", "accept-ranges", "trailer")
    head = dict.fromkeys(of_bytes, "gzip") | {"etag": '"x"', "transfer-encoding": "gzip", "last-modified": "now"}
    for version, answered, framing in (
        (b"HTTP/1.1", b"HTTP/1.1", {"transfer-encoding": "chunked"}),
        (b"HTTP/2.0", b"HTTP/2.0", {}),
        (b"HTTP/3", b"HTTP/1.1", {}),
    ):
        changed = Changed()
        changed.flow.request.data.http_version = version
        changed.after(200, head, style="p{}")
        changed.response.data.http_version = answered
        assert dict(changed.response.headers) == {
            "content-type": "text/html",
            "etag": 'W/"x"',
            "last-modified": "now",
            **framing,
        }
    for tag in ('W/"x"', "x", ""):
        changed.after(200, {"etag": tag}, style="p{}")
        assert changed.response.headers["etag"] == tag
    untouched = Changed()
    untouched.after(200, head)
    assert dict(untouched.response.headers) == {"content-type": "text/html", "content-length": "9", **head}


def test_the_policy_of_a_page_lets_the_sheet_in_alone() -> None:
    for change, extended in (({"style": "p{}"}, True), ({"edits": (Swap(),)}, False)):
        changed = Changed()
        changed.after(200, {"content-security-policy": "default-src 'self'"}, **change)
        assert ("style-src" in changed.response.headers["content-security-policy"]) == extended


def test_what_cannot_be_decoded_passes_or_is_broken_off() -> None:
    changed = Changed()
    changed.after(200, {"content-encoding": "dcb"}, style="p{}")
    assert (changed.body(), changed.response.headers["content-length"]) == (None, "9")
    assert changed.counters.as_dict() == {"edits_skipped": 1}
    for killable in (True, False):
        broken = Changed()
        broken.after(200, {"content-encoding": "gzip"}, style="p{}")
        if not killable:
            broken.flow.live = False
        stream = broken.response.stream
        assert callable(stream)
        assert stream(b"no gzip") == []
        assert (broken.flow.error is not None, broken.counters["edits_failed"]) == (killable, 1)


def test_a_text_that_is_too_long_to_be_changed_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.proxy.response.body_rewriter.MOST_HELD", 5)
    changed = Changed()
    changed.after(edits=(Swap(),))
    assert changed.body(b"aaaaaa") == b"aaaaaa"
    assert changed.counters.as_dict() == {"edits_skipped": 1, "responses_changed": 1}


@all_cases(
    ("status", "sent", "judged", "place"),
    [
        (200, {}, True, False),
        (299, {}, True, False),
        (206, {"range": "bytes=5-"}, True, True),
        (206, {}, True, False),
        (200, {"range": "bytes=5-"}, True, False),
        (204, {}, False, False),
        (205, {}, False, False),
        (199, {}, False, False),
        (300, {}, False, False),
        (404, {}, False, False),
    ],
)
def test_which_downloads_are_judged(status: int, sent: dict[str, Any], *, judged: bool, place: bool) -> None:
    rules, head = (
        Downloads(),
        {"content-disposition": "inline", "content-encoding": "br", "content-range": "bytes 5-8/9", "x": "y"},
    )
    changed = Changed(**sent)
    assert changed.after(status, head, downloads=rules) is None
    of_file = {":status": str(status), "content-type": "text/html", "content-length": "9", **head}
    del of_file["x"]
    if not place:
        del of_file["content-range"]
    assert rules.seen == (of_file if judged else {})
    assert isinstance(changed.response.stream, CheckedDownload) == judged
    assert changed.counters.as_dict() == {}
    rules.block = BLOCK
    assert changed.after(status, head, downloads=rules, csp=("a",)) == (BLOCK if judged else None)
    assert ("content-security-policy" in changed.response.headers) != judged


def test_a_download_that_grows_too_large_is_cut() -> None:
    for killable in (True, False):
        changed = Changed()
        changed.after(style="p{}", downloads=Downloads())
        stream = changed.response.stream
        assert isinstance(stream, CheckedDownload)
        assert isinstance(stream.then, EditedBody), "what goes on is rewritten all the same"
        changed.flow.live = killable
        assert stream(b"<head>") == []
        assert (changed.told, changed.flow.error is not None) == ([BLOCK], killable)
    plain = Changed()
    plain.after(downloads=Downloads())
    stream = plain.response.stream
    assert isinstance(stream, CheckedDownload)
    assert (stream.then, stream(b"12345"), plain.told) == (None, [b"12345"], [])
    unlogged = TrafficChanges(cast("Any", plain.engine), FilterSettings(), plain.counters)
    unlogged.after(plain.flow, plain.request)
    last = plain.response.stream
    assert callable(last)
    assert last(b"123456") == []
    assert plain.flow.error is not None
    assert isinstance(plain.flow.client_conn, Client)
