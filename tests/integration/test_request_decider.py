"""Decisions for other proxies: verdict, log, counters, crawl queue and life of the answer."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.config import UnknownRule
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.integration.request_decider import AskedRequest, RequestDecider
from gatewayfilter.model import Action, HostAction, HostVerdict, Reason, Request, ResourceType, UnknownAction, Verdict
from gatewayfilter.proxy.request.resource_type import resource_type_of
from gatewayfilter.telemetry import Counters
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


def test_how_long_an_answer_of_an_unknown_url_lives(listed: FilterEngine) -> None:
    for ttl_s, lives_s in ((0, 0), (3, 3), (5, 5), (6, 5)):
        decider, _ = decider_over(listed, Records(), ttl_s=ttl_s)
        assert (decider.ttl_s, decider.decide(AskedRequest("http://garden.test/")).ttl_s) == (ttl_s, lives_s)


@pytest.mark.parametrize(
    ("asked", "readable"),
    [
        (AskedRequest("http://garden.test/" + "a" * (65_536 - 19)), True),
        (AskedRequest("http://garden.test/" + "a" * (65_537 - 19)), False),
        (AskedRequest("http://garden.test/", "1" * 100), True),
        (AskedRequest("http://garden.test/", "1" * 101), False),
        (AskedRequest("http://garden.test/", method="GE T"), True),
        (AskedRequest("http://garden.test/", method="G\nT"), False),
        (AskedRequest("http://garden.test/", method="GÉT"), False),
    ],
)
def test_what_is_too_long_or_no_word_is_not_read(listed: FilterEngine, asked: AskedRequest, *, readable: bool) -> None:
    records = Records()
    decider, counters = decider_over(listed, records)
    assert (decider.decide(asked).request is not None) is readable
    assert (len(records.records), len(records.unreadable)) == ((1, 0) if readable else (0, 1))
    assert counters["requests"] == 1
    assert (decider.peek(asked).request is not None) is readable


def test_what_cannot_be_read_is_logged_with_what_can(listed: FilterEngine) -> None:
    records = Records()
    decider, _ = decider_over(listed, records)
    decider.decide(AskedRequest("no url", "::ffff:192.0.2.7", method="G\nT" + "x" * 200))
    decider.decide(AskedRequest("no url", "1" * 101))
    assert records.unreadable == [("192.0.2.7", "G\ufffdT" + "x" * 97), ("", "GET")]


def test_a_request_is_read_as_it_is_judged(listed: FilterEngine) -> None:
    decider, _ = decider_over(listed, Records())
    read = decider.read(AskedRequest("http://a.test/x.css", "192.0.2.7", "u" * 101, "", "http://r.test/"))
    assert read.source is not None
    assert (read.method, read.user, read.source.text, read.resource_type) == (
        "GET",
        "u" * 100,
        "http://r.test/",
        ResourceType.STYLESHEET,
    )
    for referer in ("", "-", "no url", "http://\ud800.test/", "http://r.test/" + "a" * (2_049 - 14)):
        assert decider.read(AskedRequest("http://a.test/", referer=referer)).source is None
    assert decider.read(AskedRequest("http://a.test/", referer="http://r.test/" + "a" * (2_048 - 14))).source is not None
    socket = decider.read(AskedRequest("wss://a.test/"))
    assert socket.resource_type is ResourceType.WEBSOCKET
    assert decider.read(AskedRequest("http://a.test/x", accept="image/png")).resource_type is ResourceType.IMAGE
    assert decider.read(AskedRequest("http://a.test/x", destination="font")).resource_type is ResourceType.FONT
    tunnel = decider.read(AskedRequest("a.test:443", "192.0.2.7", "kim", "connect"))
    assert (tunnel.url.host, tunnel.resource_type, tunnel.client, tunnel.user) == (
        "a.test",
        ResourceType.OTHER,
        "192.0.2.7",
        "kim",
    )


def test_a_response_that_is_blocked_is_counted_and_logged(listed: FilterEngine) -> None:
    records = Records()
    decider, counters = decider_over(listed, records)
    request = decider.read(AskedRequest("http://garden.test/"))
    verdict = decider.peek(AskedRequest("http://blocked.test/")).verdict
    decider.block(request, verdict)
    assert (records.records, counters["blocked"], counters["requests"]) == ([(request, verdict)], 1, 0)


def test_a_tunnel_is_decided_by_its_host_alone(listed: FilterEngine) -> None:
    records = Records()
    decider, counters = decider_over(listed, records, unknown=UnknownRule.BLOCK)
    assert not decider.decide(AskedRequest("garden.test:443", method="CONNECT")).verdict.blocked
    assert decider.decide(AskedRequest("https://garden.test/", method="CONNECT")).verdict.blocked
    assert decider.decide(AskedRequest("https://garden.test/")).verdict.blocked
    assert (counters["unknown"], counters["requests"]) == (2, 3)


def test_unknown_requests_are_counted_and_quotas_only_where_there_are_some(listed: FilterEngine) -> None:
    records = Records()
    decider, counters = decider_over(listed, records)
    for url in ("http://garden.test/", "http://blocked.test/"):
        decider.decide(AskedRequest(url))
    assert (counters["unknown"], counters["blocked"], counters["requests"], len(records.uses)) == (1, 1, 2, 1)
    records.active = False
    decider.decide(AskedRequest("http://garden.test/"))
    assert len(records.uses) == 1


def test_a_second_decision_leaves_no_trace(listed: FilterEngine) -> None:
    records = Records()
    decider, counters = decider_over(listed, records)
    found = decider.peek(AskedRequest("http://garden.test/page", resource_type=ResourceType.DOCUMENT))
    assert found.verdict.unknown
    assert decider.peek(AskedRequest("blocked.test:443", method="CONNECT")).verdict.blocked
    assert decider.peek(AskedRequest("not a url")).verdict.blocked
    assert (records.records, records.offers, counters["requests"]) == ([], [], 0)


class Engine:
    """Decides as it is told, and has policies where it has a mark."""

    def __init__(self, verdict: Verdict, host: HostVerdict | None = None, mark: tuple[int, ...] | None = None) -> None:
        self._verdict, self._host, self._mark = verdict, host, mark

    def decide(self, _: Request) -> Verdict:
        return self._verdict

    def decide_host(self, *_: str) -> HostVerdict:
        assert self._host is not None
        return self._host

    def policy_mark(self) -> tuple[int, ...] | None:
        return self._mark


def decider_by(engine: Engine, records: Records, *, unknown: UnknownRule = UnknownRule.ALLOW) -> RequestDecider:
    return decider_over(cast("FilterEngine", engine), records, unknown=unknown, ttl_s=60)[0]


@pytest.mark.parametrize(
    ("rule", "own", "blocked"),
    [
        (UnknownRule.ALLOW, None, False),
        (UnknownRule.BLOCK, None, True),
        (UnknownRule.ALLOW, UnknownAction.BLOCK, True),
        (UnknownRule.BLOCK, UnknownAction.ALLOW, False),
        (UnknownRule.BLOCK, UnknownAction.HOLD, False),
    ],
)
def test_a_policy_of_its_own_decides_of_unknown_pages(rule: UnknownRule, own: UnknownAction | None, *, blocked: bool) -> None:
    found = Verdict(Action.ALLOW, Reason.UNKNOWN, unknown=True, unknown_action=own)
    decided = decider_by(Engine(found), Records(), unknown=rule).decide(AskedRequest("http://a.test/")).verdict
    assert (decided.blocked, decided.unknown) == (blocked, True)
    blocks = Verdict(Action.BLOCK, Reason.POLICY, unknown=True)
    assert decider_by(Engine(blocks), Records()).decide(AskedRequest("http://a.test/")).verdict == blocks


@pytest.mark.parametrize("rule", list(UnknownRule))
@pytest.mark.parametrize(
    "found", [Verdict(Action.ALLOW, Reason.POLICY), Verdict(Action.BLOCK, Reason.POLICY, unknown=True)], ids=["known", "blocked"]
)
def test_what_is_decided_otherwise_is_no_unknown_page(found: Verdict, rule: UnknownRule) -> None:
    records = Records()
    decider, counters = decider_over(cast("FilterEngine", Engine(found)), records, unknown=rule)
    assert decider.decide(AskedRequest("http://a.test/")).verdict == found
    assert (counters["unknown"], records.offers) == (0, [])


def test_answers_are_not_reused_where_there_are_policies() -> None:
    allowed = Verdict(Action.ALLOW, Reason.POLICY)
    for mark, ttl_s in ((None, 60), ((1,), 0), ((), 0)):
        assert decider_by(Engine(allowed, mark=mark), Records()).decide(AskedRequest("http://a.test/")).ttl_s == ttl_s


def test_a_connection_that_is_denied_is_blocked_for_the_reason_of_the_host() -> None:
    allowed, blocked = Verdict(Action.ALLOW, Reason.POLICY), Verdict(Action.BLOCK, Reason.BLACKLIST, "mine")
    asked = AskedRequest("a.test:443", method="CONNECT")
    for action, verdict, expected in (
        (HostAction.DENY, blocked, blocked),
        (HostAction.DENY, allowed, Verdict(Action.BLOCK, Reason.POLICY)),
        (HostAction.SPLICE, allowed, allowed),
    ):
        decider = decider_by(Engine(allowed, HostVerdict(action, verdict)), Records())
        assert decider.decide(asked).verdict == decider.peek(asked).verdict == expected


def test_the_time_that_a_decision_takes_is_counted_in_microseconds() -> None:
    counters, ticks, taken = Counters(), iter((1_000_000, 1_017_999)), list[int]()
    log = SimpleNamespace(record=lambda _request, _verdict, elapsed_us: taken.append(elapsed_us))
    engine = cast("FilterEngine", Engine(Verdict(Action.ALLOW, Reason.POLICY)))
    decider = RequestDecider(engine, counters, resource_type_of, recorder=cast("Any", log), clock_ns=lambda: next(ticks))
    request = decider.decide(AskedRequest("http://a.test/")).request
    assert request is not None
    decider.block(request, Verdict(Action.BLOCK, Reason.LEARNED))
    assert taken == [17, 0]
    assert counters.decision_times.collect()["sum"] == 17
