"""Conditions on the log, its rows as a file, its report, facts beside requests, and the health of the filter."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.certificates.authority import ensure_ca
from gatewayfilter.config import Settings
from gatewayfilter.errors import MissingItemError, PolicyError, SnapshotError
from gatewayfilter.gateway.runtime_state import RuntimeStateFile
from gatewayfilter.interfaces import CrawlRequest, UnblockRequest
from gatewayfilter.model import (
    Client,
    LearnedEntry,
    ListAction,
    LogCount,
    LogDimension,
    LogQuery,
    LogRecord,
    Reason,
    parse_matcher,
)
from gatewayfilter.store import Store
from gatewayfilter.use_cases.policies import PolicyEditor
from gatewayfilter.use_cases.requests import read_word
from gatewayfilter.use_cases.traffic.health_facts import GatewayLeaks, health_facts
from gatewayfilter.use_cases.traffic.log_clients import LogClients
from gatewayfilter.use_cases.traffic.log_files import COLUMNS, exported_rows, purge_log
from gatewayfilter.use_cases.traffic.log_filters import FindClients, LogFilters
from gatewayfilter.use_cases.traffic.log_groups import grouped_page
from gatewayfilter.use_cases.traffic.log_overview import Span, span_edges
from gatewayfilter.use_cases.traffic.log_report import make_report
from gatewayfilter.use_cases.traffic.request_facts import facts_of, find_request

NOW = 1_800_000_000.0
CLIENTS = cast(
    "FindClients",
    SimpleNamespace(named=lambda text: frozenset({text, "10.0.0.1"}), group=lambda name: frozenset({"10.0.0.1", f"of {name}"})),
)


def visit(client: str, at: float = NOW, host: str = "a.example", action: str = "allow", **values: Any) -> LogRecord:
    reason = "blacklist" if action == "block" else "unknown"
    return LogRecord(at, client, "GET", f"http://{host}/x", "document", action, reason, **values)


def query(**values: str) -> LogQuery:
    return LogFilters(**values).query(CLIENTS, NOW, UTC)


def test_conditions_are_read() -> None:
    assert query() == LogQuery()
    found = query(q=" x ", outcome="blocked", category="ads", list="mine", site="*.A.example", since="1h", until="30m")
    assert (found.text, found.action, found.category, found.source_list, found.host) == ("x", "block", "ads", "mine", "a.example")
    assert (found.since, found.until, found.reason) == (NOW - 3_600, NOW - 1_800, "")
    assert query(site=" .b.example ").host == "b.example"


@pytest.mark.parametrize(
    ("outcome", "action", "reason"),
    [
        ("blocked", "block", ""),
        ("allowed", "allow", ""),
        ("learned", "block", Reason.LEARNED.value),
        ("unknown", "allow", Reason.UNKNOWN.value),
    ],
)
def test_outcomes(outcome: str, action: str, reason: str) -> None:
    found = query(outcome=outcome)
    assert (found.action, found.reason) == (action, reason)
    assert query(outcome=outcome, reason=Reason.BLACKLIST.value).reason == Reason.BLACKLIST.value


def test_clients_and_groups_are_both_asked() -> None:
    assert query().clients is None
    assert query(client="kim").clients == frozenset({"kim", "10.0.0.1"})
    assert query(group="kids").clients == frozenset({"10.0.0.1", "of kids"})
    assert query(client="kim", group="kids").clients == frozenset({"10.0.0.1"})


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"outcome": "odd"}, "'odd' is no outcome: write blocked, allowed, learned, unknown"),
        ({"reason": "odd"}, "'odd' is no reason"),
        ({"site": "a b"}, "'a b' is no host"),
        ({"since": "soon"}, "no time"),
        ({"until": "soon"}, "no time"),
        ({"q": "x" * 201}, "more than 200 characters"),
    ],
)
def test_conditions_that_are_none(values: dict[str, str], sentence: str) -> None:
    with pytest.raises(PolicyError, match=sentence):
        query(**values)
    assert query(q="x" * 200).text == "x" * 200


def test_conditions_as_an_address_has_them() -> None:
    filters = LogFilters(q="x", client="kim")
    assert filters.given == {"q": "x", "client": "kim"}
    assert filters.but(client="", group="kids") == {"q": "x", "group": "kids"}


def test_the_log_as_rows(store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    PolicyEditor(store.policies).add_client(Client("kim", (parse_matcher("10.0.0.1"),)))
    store.log.write([visit("10.0.0.1", user=""), visit("10.0.0.2", 1e30), visit("10.0.0.1")])
    monkeypatch.setattr("gatewayfilter.use_cases.traffic.log_files._PAGE", 2)
    rows = list(exported_rows(store, LogQuery(), LogClients(store, settings)))
    assert [row["id"] for row in rows] == [3, 2, 1]
    assert {tuple(row) for row in rows} == {COLUMNS}
    assert [row["client_name"] for row in rows] == ["kim", "", "kim"]
    assert [row["time"] for row in rows] == ["2027-01-15T08:00:00.000+00:00", "", "2027-01-15T08:00:00.000+00:00"]
    with pytest.raises(PolicyError, match="name a time or a client"):
        purge_log(store, settings, None, "")
    with pytest.raises(PolicyError):
        purge_log(store, settings, None, "nobody")
    assert purge_log(store, settings, NOW, "kim") == 0
    assert purge_log(store, settings, None, "kim") == 2
    assert purge_log(store, settings, 1e29, "") == 0
    assert purge_log(store, settings, 1e31, "") == 1


def test_clients_of_the_log_by_name_and_group(store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    mac = "02:00:00:00:00:01"
    monkeypatch.setattr("gatewayfilter.use_cases.traffic.log_clients.neighbours_now", lambda: {"10.0.0.5": mac})
    matchers = ("10.0.0.1", "user:anna", mac, "10.1.0.0/24")
    PolicyEditor(store.policies).add_client(Client("anna", tuple(map(parse_matcher, matchers))))
    store.log.write([visit("10.1.0.7"), visit("10.0.0.9"), visit("10.0.0.8", user="ben")])
    while store.log_counter.step():
        pass
    names = LogClients(store, settings)
    assert names.named("anna") == {"10.0.0.1", "user:anna", "10.0.0.5", "10.1.0.7"}
    assert (names.named("user:ben"), names.named("::ffff:10.0.0.9"), names.user("ben")) == (
        *(frozenset({"user:ben"}), frozenset({"10.0.0.9"}), frozenset({"user:ben"})),
    )
    assert names.user("user:ben") == {"user:ben"}
    assert [names.name(one) for one in ("10.0.0.5", "user:anna", "10.1.0.7", "10.0.0.9", "user:ben")] == ["anna"] * 3 + ["", ""]
    assert (names.shown("10.0.0.1"), names.shown("10.0.0.9")) == ("anna", "10.0.0.9")
    assert names.group("default") == {*names.named("anna"), "10.0.0.9", "user:ben"}
    with pytest.raises(PolicyError, match="'nobody' is neither an address nor the name"):
        names.named("nobody")
    with pytest.raises(MissingItemError, match="no group 'none'"):
        names.group("none")


def test_a_report_of_a_time_span(store: Store, settings: Settings) -> None:
    editor = PolicyEditor(store.policies)
    editor.add_client(Client("kim", (parse_matcher("10.0.0.1"), parse_matcher("10.0.0.2"))))
    hour = NOW - NOW % 3_600
    for client, at, action in (
        ("10.0.0.1", hour + 10, "block"),
        ("10.0.0.2", hour + 20, "allow"),
        ("10.0.0.3", hour + 30, "block"),
        ("10.0.0.3", hour + 40, "block"),
        ("10.0.0.4", hour - 7_200, "block"),
    ):
        store.log.write([visit(client, at, category="ads", action=action)])
    while store.log_counter.step():
        pass
    ask = [
        UnblockRequest(f"http://{name}.example/", "10.0.0.1", "blacklist", "", "", "", "", at)
        for name, at in (("in", hour), ("at-the-end", hour + 3_600), ("before", hour - 1))
    ]
    store.unblock.ask(ask)
    for name, at in (("x", hour + 5), ("y", hour - 5)):
        entry = LearnedEntry(f"{name}.example/", ListAction.BLOCK, "ads", f"http://{name}.example/", "", at, 4e9)
        store.lists.put_learned([entry])
    found = make_report(store, settings, hour, hour + 3_600)
    assert (found.since, found.until, found.made_at == pytest.approx(time.time(), abs=600)) == (hour, hour + 3_600, True)
    assert found.clients == (LogCount("10.0.0.3", 2, 2), LogCount("kim", 2, 1))
    assert found.blocked(LogDimension.CATEGORY) == (LogCount("ads", 4, 3),)
    assert found.blocked(LogDimension.SOURCE) == ()
    assert {(device.client, device.name) for device in found.new_devices} == {
        ("10.0.0.1", "kim"),
        ("10.0.0.2", "kim"),
        ("10.0.0.3", ""),
    }
    assert [request.url for request in found.requests] == ["http://in.example/"]
    assert ([entry.url for entry in found.learned], found.learned_count) == (["http://x.example/"], 1)
    assert (found.sources > 0, found.failing) == (True, ())
    assert make_report(store, settings, hour).until == pytest.approx(time.time(), abs=600), "now"


def test_a_day_of_the_overview_ends_with_this_hour() -> None:
    now = datetime(2026, 6, 10, 12, 30, tzinfo=UTC).timestamp()
    edges = span_edges(Span.DAY, now, UTC)
    assert (edges[-1], edges[0], len(edges)) == (now + 1_800, now + 1_800 - 86_400, 25)
    week = span_edges(Span.WEEK, now, UTC)
    assert (datetime.fromtimestamp(week[0], UTC).day, datetime.fromtimestamp(week[-1], UTC).day) == (4, 11)
    month = span_edges(Span.MONTH, now, UTC)
    assert (datetime.fromtimestamp(month[0], UTC).isoformat()[:10], len(month)) == ("2026-05-12", 31)


def test_groups_of_the_log_end_at_their_number_or_their_time(store: Store) -> None:
    store.log.write([visit(f"10.0.0.{number}", host=f"h{number}.example") for number in range(5)])
    page = grouped_page(store.log_search, LogQuery(), 2)
    assert ([group.client for group in page.groups], page.timed_out) == (["10.0.0.4", "10.0.0.3"], False)
    rest = grouped_page(store.log_search, LogQuery(), 9, before=page.before)
    assert ([group.client for group in rest.groups], rest.before) == (["10.0.0.2", "10.0.0.1", "10.0.0.0"], None)


@pytest.mark.parametrize(
    ("values", "whole_site", "page_only"),
    [
        ({"reason": "blacklist", "rule": ".games.example"}, True, False),
        ({"reason": "blacklist", "rule": "games.example/x"}, False, False),
        ({"reason": "learned", "rule": "games.example/x"}, False, True),
        ({"reason": "learned", "rule": "games.example"}, True, False),
    ],
)
def test_how_much_an_approval_is_for(values: dict[str, str], store: Store, *, whole_site: bool, page_only: bool) -> None:
    asked = UnblockRequest("http://games.example/x", "10.0.0.7", values["reason"], "", values["rule"], "", "", NOW)
    store.unblock.ask([asked])
    entry = LearnedEntry("games.example/x", ListAction.BLOCK, "games", "http://games.example/x", "many words", NOW, 4e9)
    store.lists.put_learned([entry])
    (facts,) = facts_of(store, [find_request(store, store.unblock.open_requests()[0].request_id)], NOW)
    assert (facts.whole_site, facts.page_only, facts.detail) == (whole_site, page_only, "many words")
    assert (facts.icon, facts.group, facts.groups, facts.evidence) == ("", "", (), ())
    assert facts_of(store, [], NOW) == []


def test_the_longest_answer_to_a_user() -> None:
    assert read_word("x" * 300) == "x" * 300


@pytest.fixture
def resolvers() -> Callable[[], tuple[int, int]]:
    return lambda: (3, 5)


def test_health_without_anything(settings: Settings, store: Store, resolvers: Callable[[], tuple[int, int]]) -> None:
    found = health_facts(settings, store, resolvers, NOW)
    assert (found.ca_days, found.leaks, found.queued, found.queued_since) == (None, None, None, None)
    learning = settings.model_copy(update={"learn": settings.learn.model_copy(update={"enabled": True})})
    assert health_facts(learning, store, resolvers, NOW).queued == 0
    store.frontier.add([CrawlRequest("http://a.example/", not_before=NOW - 5)], NOW - 9)
    found = health_facts(settings, store, resolvers, NOW)
    assert (found.queued, found.queued_since) == (1, NOW - 5)


def test_health_of_a_gateway_and_its_certificate(
    settings: Settings,
    store: Store,
    resolvers: Callable[[], tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = ensure_ca(settings.data_dir / "ca")
    ends = made.expires_at.timestamp()
    for left_s, days in ((86_400.0 * 3, 3), (86_400.0 * 3 - 1, 2), (-1.0, -1)):
        assert health_facts(settings, store, resolvers, ends - left_s).ca_days == days
    Path(settings.data_dir / "ca" / "mitmproxy-ca-cert.pem").write_text("no certificate")
    assert health_facts(settings, store, resolvers, NOW).ca_days is None
    gateway = settings.model_copy(update={"proxy": settings.proxy.model_copy(update={"mode": "transparent"})})
    states: list[Any] = [None, SimpleNamespace(quic_rejected=True), SimpleNamespace(quic_rejected=False)]
    found = []
    for state in states:
        monkeypatch.setattr(RuntimeStateFile, "read", lambda _, state=state: state)
        found.append(health_facts(gateway, store, resolvers, NOW).leaks)
    assert found == [GatewayLeaks(False, 3, 5), GatewayLeaks(True, 3, 5), GatewayLeaks(False, 3, 5)]

    def unreadable() -> tuple[int, int]:
        raise SnapshotError("damaged")

    assert health_facts(gateway, store, unreadable, NOW).leaks == GatewayLeaks(False, 0, 0)
