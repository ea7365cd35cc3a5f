"""Requests that cannot be read are counted and recorded as blocked, with their client where it is known."""

import pytest
from mitmproxy.test import tflow

from gatewayfilter.model import LogRecord
from gatewayfilter.proxy.sync.decision_counter import DecisionCounter
from gatewayfilter.proxy.sync.decision_recorder import DecisionRecorder
from gatewayfilter.telemetry import Counters


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
