"""Hosts whose connections pass unread: what such lists and rules say, and that they decide no URL."""

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.policies.effective_policy import ListSelection
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.engine.state.engine_state import EngineState
from gatewayfilter.engine.state.host_cache import work_out
from gatewayfilter.engine.state.overlay import Overlay
from gatewayfilter.engine.tables.bloom import BloomAnswer
from gatewayfilter.model import Action, EntryKind, ListAction, ManualRule, Reason, Request, Source, Verdict
from gatewayfilter.urls import digest_of, parse_url
from tests.case_tables import all_cases

SPLICE = ListAction.SPLICE


def spliced(*keys: str, rules: tuple[ManualRule, ...] = (), black: tuple[str, ...] = ()) -> Snapshot:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("banks", SPLICE, "bank")), keys)
    builder.add_keys(builder.add_source(Source("bad")), black)
    builder.set_rules(rules)
    return Snapshot.from_bytes(builder.build())


def facts_of(snapshot: Snapshot, url: str) -> Verdict | None:
    state = EngineState(snapshot, Overlay.over(snapshot.rules, 0), ListSelection())
    return work_out(state.lists, parse_url(url), 0.0).splice


@all_cases(
    ("url", "rule"),
    [
        ("https://bank.example/", ".bank.example"),
        ("https://www.bank.example/login", ".bank.example"),
        ("https://host.example/", "host.example"),
        ("https://sub.host.example/", None),
        ("https://other.example/", None),
        ("https://page.example/only/x", None),
    ],
)
def test_the_list_speaks_of_hosts(url: str, rule: str | None) -> None:
    verdict = facts_of(spliced(".bank.example", "host.example", "page.example/only/*", "page.example/only/x"), url)
    expected = None if rule is None else Verdict(Action.ALLOW, Reason.SPLICELIST, "banks", rule, category="bank")
    assert verdict == expected


def test_the_list_is_counted_and_behind_the_gate() -> None:
    snapshot = spliced(".bank.example", "host.example")
    assert (snapshot.info.splicelist, snapshot.info.blacklist) == (2, 0)
    assert snapshot.bloom.ask(digest_of(".bank.example")) is BloomAnswer.MAYBE
    assert snapshot.splicelist.find(digest_of(".bank.example")) is not None
    assert snapshot.blacklist.find(digest_of(".bank.example")) is None


@pytest.mark.parametrize(("black", "reason"), [((), Reason.UNKNOWN), ((".bank.example",), Reason.BLACKLIST)])
def test_the_list_decides_no_url(black: tuple[str, ...], reason: Reason) -> None:
    engine = FilterEngine(spliced(".bank.example", "bank.example/*", black=black))
    request = Request(parse_url("https://bank.example/x"))
    assert engine.decide(request).reason is reason
    assert engine.explain(request).verdict.reason is reason


@all_cases(
    ("kind", "pattern"),
    [(EntryKind.DOMAIN, ".bank.example"), (EntryKind.URL, "bank.example/x"), (EntryKind.WILDCARD, "*bank*")],
)
@all_cases(("black", "reason"), [((), Reason.UNKNOWN), ((".bank.example",), Reason.BLACKLIST)])
def test_a_persons_splice_rule_neither_allows_nor_blocks_a_url(
    kind: EntryKind, pattern: str, black: tuple[str, ...], reason: Reason
) -> None:
    rules = (ManualRule(1, SPLICE, kind, pattern),)
    engine = FilterEngine(spliced(rules=rules, black=black))
    request = Request(parse_url("https://bank.example/x"))
    assert engine.decide(request).reason is reason
    answers = {answer.decider: answer.answer for answer in engine.explain(request).answers}
    assert answers["manual"] == "miss"


def test_a_splice_rule_does_not_hide_one_that_blocks() -> None:
    rules = (
        ManualRule(1, SPLICE, EntryKind.DOMAIN, ".bank.example"),
        ManualRule(2, ListAction.BLOCK, EntryKind.URL, "bank.example/x"),
    )
    engine = FilterEngine(spliced(rules=rules))
    assert engine.decide(Request(parse_url("https://bank.example/x"))).reason is Reason.MANUAL_BLOCK
