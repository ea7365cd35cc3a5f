"""Requests that cannot be read are counted and recorded as blocked, with their client where it is known."""

import time

import pytest
from mitmproxy.test import tflow

from gatewayfilter.model import Action, LogRecord, Reason, Request, Verdict
from gatewayfilter.proxy.sync.decision_counter import DecisionCounter
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url
from tests.proxy.proxy_fakes import BLOCK


@pytest.mark.parametrize(("peer", "client"), [(("192.0.2.7", 4711), "192.0.2.7"), (None, "")])
def test_an_unreadable_request_is_recorded(peer: tuple[str, int] | None, client: str) -> None:
    records: list[LogRecord] = []
    counters = Counters()
    flow = tflow.tflow()
    setattr(flow.client_conn, "peername", peer)  # noqa: B010  it is empty after a reset
    DecisionCounter(counters, DecisionRecorder(records.append)).unreadable(flow, "kim")
    [record] = records
    assert (record.client, record.user, record.action, record.reason) == (client, "kim", "block", "bad-request")
    assert (counters["requests"], counters["blocked"]) == (1, 1)


@pytest.mark.parametrize("has_log", [True, False])
def test_a_request_counts_once_and_each_block_of_it(has_log: bool) -> None:  # noqa: FBT001
    records: list[LogRecord] = []
    counters = Counters()
    counter = DecisionCounter(counters, DecisionRecorder(records.append) if has_log else None)
    request = Request(parse_url("http://a.example/"), client="192.0.2.7")
    started_ns = time.perf_counter_ns() - 3_000_000_000
    counter.request(request, Verdict(Action.ALLOW, Reason.UNKNOWN), started_ns)
    assert (counters["requests"], counters["blocked"]) == (1, 0)
    counter.response(request, Verdict(Action.ALLOW, Reason.UNKNOWN), started_ns)
    assert (counters["requests"], counters["blocked"]) == (1, 0)
    counter.response(request, BLOCK, started_ns)
    assert (counters["requests"], counters["blocked"]) == (1, 1)
    counter.request(request, BLOCK, started_ns)
    assert (counters["requests"], counters["blocked"]) == (2, 2)
    counter.unreadable(tflow.tflow(), "")
    assert (counters["requests"], counters["blocked"]) == (3, 3)
    assert [record.action for record in records] == ["allow", "allow", "block", "block", "block"] * has_log
    assert all(record.elapsed_us >= 3_000_000 for record in records[:4])


def test_a_decision_is_timed_in_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatewayfilter.proxy.sync.decision_counter.time.perf_counter_ns", lambda: 9_002_500)
    records: list[LogRecord] = []
    counters = Counters()
    counter = DecisionCounter(counters, DecisionRecorder(records.append))
    request = Request(parse_url("http://a.example/"), client="192.0.2.7")
    counter.request(request, BLOCK, 5_000_000)
    counter.response(request, BLOCK, 6_000_000)
    assert [record.elapsed_us for record in records] == [4_002, 3_002]
    assert counters.decision_times.collect()["sum"] == 4_002
