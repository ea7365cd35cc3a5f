"""Decisions for other proxies: verdict, log, counters, crawl queue and life of the answer."""

import pytest

from gatewayfilter.config import UnknownRule
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.integration.request_decider import AskedRequest
from gatewayfilter.model import Reason, ResourceType
from tests.integration.integration_engine import Records, decider_over


@pytest.mark.parametrize(
    ("asked", "blocked", "reason", "offered"),
    [
        (AskedRequest("http://www.blocked.test/a?b=1", "192.0.2.7"), True, Reason.BLACKLIST, False),
        (AskedRequest("blocked.test:443", "192.0.2.7", method="CONNECT"), True, Reason.BLACKLIST, False),
        (AskedRequest("garden.test:443", "192.0.2.7", method="CONNECT"), False, Reason.UNKNOWN, False),
        (AskedRequest("https://garden.test/", "192.0.2.7"), False, Reason.UNKNOWN, True),
        (AskedRequest("https://garden.test/", private=True), False, Reason.UNKNOWN, False),
        (AskedRequest("https://garden.test/x.png"), False, Reason.UNKNOWN, False),
        (AskedRequest("https://garden.test/x", destination="image"), False, Reason.UNKNOWN, False),
        (AskedRequest("https://garden.test/x", method="POST"), False, Reason.UNKNOWN, False),
        (
            AskedRequest("https://garden.test/f", destination="iframe", referer="https://other.test/"),
            False,
            Reason.UNKNOWN,
            False,
        ),
        (
            AskedRequest("https://garden.test/f", destination="iframe", referer="https://garden.test/"),
            False,
            Reason.UNKNOWN,
            True,
        ),
        (AskedRequest("https://blocked.test/", method="connect"), True, Reason.BLACKLIST, False),
        (AskedRequest("http://garden.test/", method="G\ud800T"), True, Reason.BAD_REQUEST, False),
        (AskedRequest("no url"), True, Reason.BAD_REQUEST, False),
        (AskedRequest("http://\ud800.test/"), True, Reason.BAD_REQUEST, False),
        (AskedRequest("http://garden.test/" + "a" * 70_000), True, Reason.BAD_REQUEST, False),
        (AskedRequest("http://garden.test/", "1" * 5_000), True, Reason.BAD_REQUEST, False),
        (AskedRequest("", method="CONNECT"), True, Reason.BAD_REQUEST, False),
    ],
)
def test_a_request_is_decided_logged_and_queued(
    listed: FilterEngine, asked: AskedRequest, *, blocked: bool, reason: Reason, offered: bool
) -> None:
    records = Records()
    decider, counters = decider_over(listed, records)
    found = decider.decide(asked)
    assert (found.verdict.blocked, found.verdict.reason) == (blocked, reason)
    assert len(records.records) + len(records.unreadable) == 1
    assert (counters["requests"], counters["blocked"]) == (1, int(blocked))
    assert bool(records.offers) is offered
    assert bool(records.uses) is not blocked


def test_a_page_is_offered_once_a_minute_and_unknown_pages_may_be_blocked(listed: FilterEngine) -> None:
    records = Records()
    decider, _ = decider_over(listed, records, unknown=UnknownRule.BLOCK)
    for _ in range(3):
        assert decider.decide(AskedRequest("https://garden.test/")).verdict.blocked
    assert records.offers == ["https://garden.test/"]


def test_a_connect_with_a_url_is_no_tunnel_and_names_are_plain(listed: FilterEngine) -> None:
    records = Records()
    decider, _ = decider_over(listed, records, unknown=UnknownRule.BLOCK)
    assert decider.decide(AskedRequest("http://garden.test/page", method="connect")).verdict.blocked
    for client, shown in (("::ffff:192.0.2.7", "192.0.2.7"), ("fe80::1%eth0", "fe80::1"), ("\ud800", ""), ("a\nb", "")):
        request = decider.decide(AskedRequest("http://garden.test/", client, "an\nna")).request
        assert request is not None
        assert (request.client, request.user) == (shown, "an\ufffdna")


def test_answers_live_as_long_as_their_verdicts_hold(listed: FilterEngine) -> None:
    decider, _ = decider_over(listed, Records(), ttl_s=60)
    assert decider.decide(AskedRequest("http://blocked.test/")).ttl_s == 60
    assert decider.decide(AskedRequest("http://garden.test/")).ttl_s == 5
    assert decider_over(listed, Records())[0].decide(AskedRequest("http://blocked.test/")).ttl_s == 0


def test_a_second_decision_leaves_no_trace(listed: FilterEngine) -> None:
    records = Records()
    decider, counters = decider_over(listed, records)
    found = decider.peek(AskedRequest("http://garden.test/page", resource_type=ResourceType.DOCUMENT))
    assert found.verdict.unknown
    assert decider.peek(AskedRequest("blocked.test:443", method="CONNECT")).verdict.blocked
    assert decider.peek(AskedRequest("not a url")).verdict.blocked
    assert (records.records, records.offers, counters["requests"]) == ([], [], 0)
