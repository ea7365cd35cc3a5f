"""What goes out where the filter itself failed, up to the failure of that answer."""

import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mitmproxy import http
from mitmproxy.test import tflow

from gatewayfilter.config import OnError
from gatewayfilter.model import Action, Reason, Verdict
from gatewayfilter.proxy.pages.block_page import BlockPages
from gatewayfilter.proxy.response import response_answerer
from gatewayfilter.proxy.response.response_answerer import ResponseAnswerer
from gatewayfilter.telemetry import Counters


class Pages:
    """Makes no pages where `broken`."""

    broken = False

    def failure(self, method: str, language: str) -> http.Response:
        if self.broken:
            raise RuntimeError("no page")
        return http.Response.make(503, f"{method} {language}")


def answerer(on_error: OnError, *, broken: bool = False) -> tuple[ResponseAnswerer, Counters]:
    pages, counters = Pages(), Counters()
    pages.broken = broken
    return ResponseAnswerer(cast("BlockPages", pages), on_error, counters), counters


def flow_of(*, answered: bool = False) -> http.HTTPFlow:
    flow = tflow.tflow(resp=answered)
    flow.request.headers["accept-language"] = "zh"
    return flow


@pytest.fixture
def replaced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """The responses that were sent in place of others, with the connection."""
    found: list[tuple[Any, Any]] = []
    monkeypatch.setattr(response_answerer, "replace_response", lambda flow, connection: found.append((flow.response, connection)))
    return found


def test_a_failed_request_is_answered_or_passes() -> None:
    flow = flow_of()
    made, counters = answerer(OnError.BLOCK)
    made.fail(flow)
    assert flow.response is not None
    assert (flow.response.status_code, flow.response.text) == (503, "GET zh")
    assert (flow.request.stream, counters["hook_errors"]) == (False, 1)
    flow = flow_of()
    answerer(OnError.ALLOW)[0].fail(flow)
    assert (flow.response, flow.request.stream) == (None, True)
    flow = flow_of(answered=True)
    before = flow.response
    answerer(OnError.BLOCK)[0].fail(flow)
    assert flow.response is before


def test_a_failed_response_is_replaced_or_passes(replaced: list[tuple[Any, Any]]) -> None:
    flow = flow_of(answered=True)
    made, counters = answerer(OnError.BLOCK)
    connection = object()
    made.connections = {flow.client_conn.id: connection}  # type: ignore[dict-item]
    made.fail_response(flow)
    assert flow.response is not None
    assert (flow.response.status_code, counters["hook_errors"]) == (503, 1)
    assert replaced == [(flow.response, connection)]
    flow = flow_of(answered=True)
    before = flow.response
    answerer(OnError.ALLOW)[0].fail_response(flow)
    assert flow.response is before
    assert len(replaced) == 1


@pytest.mark.parametrize("answered", [False, True])
def test_no_answer_is_no_way_through(replaced: list[tuple[Any, Any]], *, answered: bool) -> None:
    flow = flow_of(answered=answered)
    made, _ = answerer(OnError.BLOCK, broken=True)
    (made.fail_response if answered else made.fail)(flow)
    assert flow.error is not None
    assert flow.error.msg == flow.error.KILLED_MESSAGE
    assert replaced == []
    (made.fail_response if answered else made.fail)(flow)  # killed already: nothing is raised


def test_a_response_is_blocked_for_the_filters_own_failure() -> None:
    flow = flow_of(answered=True)
    made, counters = answerer(OnError.BLOCK)
    made.block_response(flow, cast("Any", None), Verdict(Action.BLOCK, Reason.FAILURE))
    assert flow.response is not None
    assert (flow.response.status_code, counters["hook_errors"]) == (503, 0)


def test_failures_are_logged_now_and_then(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    made, counters = answerer(OnError.BLOCK)
    now = [0.0]
    monkeypatch.setattr(response_answerer, "time", SimpleNamespace(monotonic=lambda: now[0]))
    logged = []
    for now[0] in (0.0, 5.0, 9.9, 10.0, 19.9, 20.0):
        caplog.clear()
        with caplog.at_level(logging.ERROR):
            made.report_failure()
        logged.append(len(caplog.records))
    assert logged == [1, 0, 0, 1, 0, 1]
    assert counters["hook_errors"] == 6
