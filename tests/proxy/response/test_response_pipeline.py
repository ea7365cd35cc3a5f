"""What becomes of each response, and what is learned of it; origins, the inspector and the crawler's queue are stand-ins."""

import asyncio
import json
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mitmproxy import flow as mitmproxy_flow
from mitmproxy import http
from mitmproxy.connection import Server
from mitmproxy.test import tflow

from gatewayfilter.config import Settings
from gatewayfilter.errors import InspectError
from gatewayfilter.interfaces import PassedResponse
from gatewayfilter.model import Action, Classification, JudgeDownload, Reason, Request, Verdict
from gatewayfilter.proxy.request.flow_request import read_flow
from gatewayfilter.proxy.request.pending_flow import PENDING, InspectedFlow, PendingFlow
from gatewayfilter.proxy.response import inspection
from gatewayfilter.proxy.response.body_rewriter import EditedBody
from gatewayfilter.proxy.response.download_check import CheckedDownload
from gatewayfilter.proxy.response.inspection import FAILURE, ResponseInspection
from gatewayfilter.proxy.response.page_capture import MOST_COPIED, PassedCopy
from gatewayfilter.proxy.response.response_pipeline import ResponsePipeline
from gatewayfilter.telemetry import Counters
from tests.case_tables import all_cases

BLOCK = Verdict(Action.BLOCK, Reason.ADBLOCK)
HARMFUL = Classification("gambling", 42.0, 20.0)
SITE = "http://site.example/"


@cache
def _settings(wanted: str) -> Settings:
    """Returns settings, which are read once: that takes longer than these tests."""
    return Settings.model_validate(json.loads(wanted))


class Pipeline:
    """A pipeline, and what it did."""

    def __init__(
        self,
        unknown: str = "allow",
        *,
        passive: bool = True,
        on_error: str = "allow",
        mode: str = "regular",
        learns: bool = True,
        inspects: bool = True,
        changes: bool = True,
        **more: Any,
    ) -> None:
        self.done: list[tuple[object, ...]] = []
        self.counters, self.after = Counters(), cast("Verdict | None", None)
        self.due, self.kept, self.full = True, True, False
        self.copied: list[PassedResponse] = []
        self.pages: list[PassedResponse] = []
        self.found: Classification | Exception | None = None
        self.streams: list[Any] = []
        wanted = {
            "proxy": {"unknown": unknown, "on_error": on_error, "mode": mode, "inspect_ms": 20},
            "learn": {"passive": passive, **more.get("learn", {})},
            "filter": more.get("filter", {}),
            "crawl": {"allow_networks": ["10.0.0.0/8"]},
        }
        self.settings = _settings(json.dumps(wanted))
        answerer = SimpleNamespace(
            replace_response=lambda flow, request, verdict: self.done.append(("replace", verdict)),
            block_response=lambda flow, request, verdict: self.done.append(("block", verdict)),
            stream_of=lambda flow: SimpleNamespace(override=None) if self.kept else None,
        )
        counter = SimpleNamespace(
            response=lambda request, verdict, started: self.done.append(("count", request.url.text, verdict))
        )
        traffic = SimpleNamespace(after=self._change)
        reporter = SimpleNamespace(
            queue_page=lambda request: self.done.append(("queue",)),
            queue_html=lambda request, kind: self.done.append(("queue html", kind)),
            mark_queued=lambda request: self.done.append(("mark",)),
            is_due=lambda request: self.due,
        )
        services: Any = SimpleNamespace(passed=self, inspect=self if inspects else None)
        self.reporter = cast("Any", reporter) if learns else None
        self.answerer, self.counter = cast("Any", answerer), cast("Any", counter)
        self.pipeline = ResponsePipeline(
            self.settings, services, self.answerer, self.counter, self.counters,
            changes=cast("Any", traffic) if changes else None, reporter=self.reporter,
        )  # fmt: skip

    def _change(self, flow: http.HTTPFlow, request: Request) -> Verdict | None:
        self.done.append(("change",))
        return self.after

    def passed(self, page: PassedResponse) -> bool:
        self.copied.append(page)
        return not self.full

    async def inspect(self, page: PassedResponse) -> Classification | None:
        self.pages.append(page)
        if isinstance(self.found, TimeoutError):
            await asyncio.sleep(5)
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def begin(self, flow: http.HTTPFlow, *, unknown: bool = True, untouched: bool = False) -> list[tuple[object, ...]]:
        """Has a response begin; returns what was done."""
        self.done.clear()
        flow.metadata[PENDING] = PendingFlow(read_flow(flow), unknown, untouched)
        assert flow.response is not None
        self.pipeline.begin(flow, flow.response)
        return self.done

    def finish(self, flow: http.HTTPFlow, body: bytes = b"body") -> list[tuple[object, ...]]:
        self.done.clear()
        assert flow.response is not None
        flow.response.data.content = body
        judging = self.pipeline.finish(flow)
        assert judging is not None
        asyncio.run(cast("Any", judging))
        return self.done


def flow_to(
    url: str = SITE,
    method: str = "GET",
    status: int = 200,
    peer: str = "10.0.0.9",
    answer: dict[str, str] | None = None,
    **sent: str,
) -> http.HTTPFlow:
    flow = tflow.tflow(req=http.Request.make(method, url))
    flow.request.headers = http.Headers((), **({"sec_fetch_dest": "document"} | sent))
    flow.client_conn.sni = None
    flow.server_conn = Server(address=(flow.request.host, flow.request.port))
    flow.server_conn.peername = (peer, 80)
    flow.response = http.Response.make(status)
    head = {"content-type": "text/html"} | (answer or {})
    flow.response.headers = http.Headers([(name.encode(), value.encode()) for name, value in head.items()])
    flow.response.data.content = None
    return flow


def test_responses_stream_and_are_sanitized() -> None:
    found, flow = Pipeline(), flow_to(answer={"alt-svc": "h3"})
    assert flow.response is not None
    found.pipeline.begin(flow, flow.response)
    assert (flow.response.stream, "alt-svc" in flow.response.headers, found.done) == (True, False, [])
    assert found.pipeline.finish(flow) is None
    found.pipeline.forget(flow)


def test_rules_change_what_no_person_has_allowed() -> None:
    found = Pipeline()
    assert found.begin(flow_to(), unknown=False) == [("change",)]
    assert found.begin(flow_to(), unknown=False, untouched=True) == []
    found.after = BLOCK
    flow = flow_to()
    assert found.begin(flow) == [("change",), ("replace", BLOCK), ("count", SITE, BLOCK)]
    assert flow.response is not None
    assert (flow.response.stream, flow.metadata) == (True, {})
    assert Pipeline(changes=False).begin(flow_to(), unknown=False) == []


def test_public_pages_are_copied_as_they_pass() -> None:
    found = Pipeline(changes=False)
    for full, done, counter in ((False, ("mark",), "captures_queued"), (True, ("queue",), "captures_dropped")):
        found.full = full
        flow = flow_to(answer={"content-encoding": "br", "content-language": "de", "x-a": "b"})
        assert found.begin(flow) == []
        assert flow.response is not None
        stream = flow.response.stream
        assert isinstance(stream, PassedCopy)
        assert (stream(b"bo"), stream(b"dy"), stream(b"")) == ([b"bo"], [b"dy"], [])
        assert (found.done, found.counters[counter]) == ([done], 1)
        head = {"content-type": "text/html", "content-encoding": "br", "content-language": "de"}
        assert found.copied.pop() == PassedResponse(SITE, 200, head, b"body", True, "sec-fetch-dest document")
    flow = flow_to()
    found.begin(flow)
    assert flow.response is not None
    long = flow.response.stream
    assert callable(long)
    long(bytes(MOST_COPIED))
    assert found.done == []
    long(b"x")
    assert (found.done, found.copied) == ([("queue",)], [])
    assert found.counters.as_dict() == {"captures_queued": 1, "captures_dropped": 1}


def test_a_copy_is_of_what_the_origin_sent() -> None:
    found, flow = Pipeline(), flow_to()
    assert flow.response is not None
    seen: list[bytes] = []
    original = found.pipeline._changes
    assert original is not None

    def edits(_: http.HTTPFlow, request: Request) -> None:
        assert flow.response is not None
        flow.response.stream = lambda data: seen.append(data) or [b"changed"]  # type: ignore[func-returns-value]

    original.after = edits  # type: ignore[method-assign, assignment]
    found.begin(flow)
    stream = flow.response.stream
    assert isinstance(stream, PassedCopy)
    assert (stream(b"page"), stream(b"")) == ([b"changed"], [b"changed"])
    assert (seen, found.copied[0].body) == ([b"page", b""], b"page")


def test_what_is_not_copied_is_queued() -> None:
    for made, flow in (
        (Pipeline(passive=False), flow_to()),
        (Pipeline("hold"), flow_to()),
        (Pipeline("inspect", inspects=False), flow_to(peer="192.168.0.1")),
        (Pipeline(), flow_to(answer={"set-cookie": "a=b"})),
        (Pipeline(), flow_to(cookie="a=b")),
        (Pipeline(), flow_to(method="POST")),
        (Pipeline(), flow_to(status=201)),
        (Pipeline(), flow_to(peer="192.168.0.1")),
        (Pipeline(), flow_to(answer={"content-type": "image/png"})),
        (Pipeline(), flow_to(status=404)),
    ):
        assert ("queue",) in made.begin(flow)
        assert made.copied == []
        assert flow.response is not None
        assert flow.response.stream is True
    late = Pipeline()
    late.due = False
    assert late.begin(flow_to()) == [("change",), ("queue",)]
    guessed = flow_to()
    del guessed.request.headers["sec-fetch-dest"]
    assert Pipeline(passive=False).begin(guessed) == [("change",), ("queue",), ("queue html", "text/html")]
    assert Pipeline(learns=False).begin(flow_to()) == [("change",)]
    assert Pipeline().begin(flow_to(), unknown=False) == [("change",)]


def test_nothing_is_copied_once_a_connection_has_carried_a_body() -> None:
    for first in (flow_to(method="POST"), flow_to(content_length="5"), flow_to(transfer_encoding="chunked")):
        found, flow = Pipeline(), flow_to()
        found.begin(first, unknown=False)
        flow.server_conn = first.server_conn
        assert ("queue",) in found.begin(flow)
        assert ("queue",) not in found.begin(flow_to()), "over another connection"
    unannounced = flow_to(transfer_encoding="chunked")
    unannounced.request.data.http_version = b"HTTP/2.0"
    found, flow = Pipeline(), flow_to()
    assert unannounced.response is not None
    found.pipeline.begin(unannounced, unannounced.response)
    flow.server_conn = unannounced.server_conn
    assert ("queue",) in found.begin(flow)
    plain, later = flow_to(), flow_to()
    plain.request.data.http_version = b"HTTP/2.0"
    found = Pipeline()
    found.begin(plain)
    later.server_conn = plain.server_conn
    assert ("queue",) not in found.begin(later)


@all_cases(
    ("url", "fields", "public"),
    [
        (SITE, {}, True),
        (SITE, {"proxy_authorization": "Basic x"}, False),
        ("http://192.168.0.1/", {}, False),
        ("http://10.0.0.1/", {}, True),
    ],
)
def test_behind_a_parent_the_url_says_where_a_page_comes_from(url: str, fields: dict[str, Any], *, public: bool) -> None:
    found = Pipeline(mode="upstream:http://parent.example:3128", changes=False)
    assert found.begin(flow_to(url, peer="192.168.0.1", **fields)) == ([] if public else [("queue",)])


def test_without_a_peer_nothing_is_public() -> None:
    flow = flow_to()
    flow.server_conn.peername = None
    assert ("queue",) in Pipeline().begin(flow)


def test_a_page_is_kept_until_it_was_inspected() -> None:
    for public, answer in ((True, None), (False, {"set-cookie": "a=b"})):
        found, flow = Pipeline("inspect", changes=False), flow_to(answer=answer)
        assert found.begin(flow) == ([] if public else [("queue",)])
        assert flow.response is not None
        assert (flow.response.stream, isinstance(flow.metadata[PENDING], InspectedFlow)) == (False, True)
        assert found.finish(flow) == ([("mark",)] if public else [])
        (page,) = found.pages
        assert (page.body, page.public, page.url, page.said) == (
            b"body",
            public,
            SITE,
            "sec-fetch-dest document" if public else "",
        )
        assert (found.counters.as_dict(), flow.metadata) == ({"inspected": 1}, {})
        assert flow.response.data.content == b"body"
    other = flow_to(answer={"content-type": "image/png"})
    assert found.begin(other) == [("queue",)]
    assert other.response is not None
    assert other.response.stream is True


def test_harmful_pages_are_blocked() -> None:
    for public, answer in ((True, None), (False, {"set-cookie": "a=b"})):
        found, flow = Pipeline("inspect", changes=False), flow_to(answer=answer)
        found.found = HARMFUL
        found.begin(flow)
        verdict = HARMFUL.block(unknown=not public)
        assert found.finish(flow)[-2:] == [("block", verdict), ("count", SITE, verdict)]
    for settings in (
        {"filter": {"disabled_categories": ["gambling"]}},
        {"learn": {"modes": {"gambling": "review"}}},
        {},
    ):
        found, flow = Pipeline("inspect", changes=False, **settings), flow_to()
        found.found = HARMFUL if settings else replace(HARMFUL, category="")
        found.begin(flow)
        assert found.finish(flow) == [("mark",)]


@all_cases("fault", [InspectError("x"), TimeoutError()])
@all_cases("on_error", ["allow", "block"])
def test_what_cannot_be_inspected_goes_by_on_error(fault: Exception, on_error: str) -> None:
    for learns in (True, False):
        found, flow = Pipeline("inspect", on_error=on_error, changes=False, learns=learns), flow_to()
        found.found = fault
        found.begin(flow)
        failed = [("block", FAILURE), ("count", SITE, FAILURE)] if on_error == "block" else []
        assert found.finish(flow) == [("queue",)] * learns + failed
        assert found.counters.as_dict() == {"inspect_failed": 1}
        lost, flow = Pipeline("inspect", on_error=on_error, changes=False, learns=learns), flow_to()
        lost.kept = False
        failed = [("replace", FAILURE), ("count", SITE, FAILURE)]
        copied = learns and on_error == "allow"
        assert lost.begin(flow) == (failed if on_error == "block" else [])
        assert flow.response is not None
        assert (isinstance(flow.response.stream, PassedCopy), lost.counters["inspect_failed"]) == (copied, 1)


def test_a_fault_of_another_kind_frees_its_place() -> None:
    found, flow = Pipeline("inspect"), flow_to()
    found.found = RuntimeError("x")
    found.begin(flow)
    with pytest.raises(RuntimeError):
        found.finish(flow)
    assert found.pipeline._inspection is not None
    assert vars(found.pipeline._inspection)["_kept"] == 0


def test_so_many_pages_are_kept_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "MOST_INSPECTED", 2)
    found, flows = Pipeline("inspect", changes=False), [flow_to() for _ in range(5)]
    for flow in flows[:3]:
        found.begin(flow)
    assert [PENDING in flow.metadata for flow in flows] == [True, True, False, False, False]
    found.pipeline.forget(flows[2])
    found.pipeline.forget(flows[0])
    found.pipeline.forget(flows[0])
    assert PENDING not in flows[0].metadata
    for flow in flows[3:]:
        found.begin(flow)
    assert [PENDING in flow.metadata for flow in flows] == [False, True, False, True, False]
    found.finish(flows[1])
    again = flow_to()
    found.begin(again)
    assert PENDING in again.metadata
    assert found.counters["inspect_failed"] == 2


class Kept:
    """A page that is kept, and the inspection of it."""

    def __init__(self, stream_as: object, *, learns: bool = True) -> None:
        self.found, self.flow = Pipeline("inspect", learns=learns), flow_to(answer={"transfer-encoding": "chunked"})
        self.request = read_flow(self.flow)
        self.held: list[Any] = []
        found = self.found
        self.inspection = ResponseInspection(
            found.settings, cast("Any", found), found.answerer, found.counter, found.counters, found.reporter
        )
        assert self.flow.response is not None
        self.response = self.flow.response
        self.response.stream = stream_as  # type: ignore[assignment]
        page = PassedResponse(SITE, 200, {}, b"", False)
        assert self.inspection.keep(self.flow, self.response, self.request, page)

    def finish(self, body: bytes) -> bytes | None:
        self.response.data.content = body
        judging = self.inspection.finish(self.flow)
        assert judging is not None
        asyncio.run(cast("Any", judging))
        return self.response.data.content


class Upper:
    """A stage."""

    def feed(self, data: bytes) -> list[bytes]:
        return [data.upper()]

    def finish(self) -> list[bytes]:
        return [b"!"]


class Rules:
    """The download rules of a policy: five bytes at most."""

    most_bytes, judges_content = 5, False

    def too_large(self) -> Verdict:
        return BLOCK


def test_a_page_that_was_kept_is_changed_as_in_a_stream() -> None:
    kept = Kept(EditedBody("", [Upper()], lambda: None))
    assert kept.finish(b"page") == b"PAGE!"
    assert dict(kept.response.headers) == {"content-type": "text/html", "content-length": "5"}
    broken = Kept(EditedBody("gzip", [Upper()], lambda: None))
    assert broken.finish(b"no gzip") == b"no gzip"
    assert broken.response.headers["transfer-encoding"] == "chunked"
    ended = Kept(EditedBody("", [Upper()], lambda: None))
    ended.flow.error = mitmproxy_flow.Error("gone")
    assert ended.finish(b"page") == b"page"


def test_a_download_that_was_kept_is_judged_as_well() -> None:
    rules, url = cast("JudgeDownload", Rules()), read_flow(flow_to()).request.url
    for then, body, result in ((None, b"12345", b"12345"), (EditedBody("", [Upper()], lambda: None), b"abcde", b"ABCDE!")):
        kept = Kept(CheckedDownload(rules, url, {}, then, lambda _: None))
        assert (kept.finish(body), kept.found.done) == (result, [])
    large = Kept(CheckedDownload(rules, url, {}, None, lambda _: None))
    large.finish(b"123456")
    assert large.found.done == [("block", BLOCK), ("count", SITE, BLOCK)]
    harmful = Kept(CheckedDownload(rules, url, {}, None, lambda _: None))
    harmful.found.found = HARMFUL
    harmful.finish(b"123456")
    assert harmful.found.done[0] == ("block", HARMFUL.block(unknown=True))


def test_a_page_that_is_too_long_streams_on_and_is_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[tuple[object, ...]] = []
    monkeypatch.setattr(inspection, "hold_response", lambda *arguments: held.append(arguments))
    for learns in (True, False):
        kept = Kept("stream", learns=learns)
        stream, stream_as, release = held.pop()
        assert (stream is not None, stream_as) == (True, "stream")
        cast("Any", release)()
        assert (kept.found.done, kept.flow.metadata) == ([("queue",)] * learns, {})
        assert vars(kept.inspection)["_kept"] == 0
        assert kept.inspection.finish(kept.flow) is None
