"""Deny, splice or intercept: what is said of a host before any URL is known."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.engine.state.manual_rules import classify_pattern
from gatewayfilter.model import (
    Change,
    ChangeKind,
    HostAction,
    LearnedEntry,
    ListAction,
    ManualRule,
    Reason,
    Request,
    ResourceType,
    Source,
)
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

ALLOW, BLOCK, SPLICE = ListAction.ALLOW, ListAction.BLOCK, ListAction.SPLICE
DENY, PASS, LOOK = HostAction.DENY, HostAction.SPLICE, HostAction.INTERCEPT
NOW = 1_000.0


def engine(
    black: Sequence[str] = (),
    splice: Sequence[str] = (),
    adblock: Sequence[str] = (),
    manual: Sequence[tuple[ListAction, str]] = (),
    *,
    learned: Sequence[LearnedEntry] = (),
    expires_at: float | None = None,
    off: Sequence[str] = (),
) -> FilterEngine:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("bad", BLOCK, "phishing")), black)
    builder.add_keys(builder.add_source(Source("banks", SPLICE, "finance")), splice)
    builder.add_adblock_list(builder.add_source(Source("ads", BLOCK, "ads")), adblock)
    builder.add_learned(learned)
    builder.set_rules(
        ManualRule(number, action, *classify_pattern(text), expires_at=expires_at)
        for number, (action, text) in enumerate(manual, 1)
    )
    return FilterEngine(Snapshot.from_bytes(builder.build()), off_categories=off, clock=lambda: NOW)


HOST = "pay.bank.example"
CASES = [
    # black, splice, adblock, person, action, reason, named
    ((), (), (), (), LOOK, Reason.UNKNOWN, False),
    ((), (".bank.example",), (), (), PASS, Reason.SPLICELIST, False),
    ((), ("pay.bank.example",), (), (), PASS, Reason.SPLICELIST, False),
    ((), (".other.example",), (), (), LOOK, Reason.UNKNOWN, False),
    ((".bank.example",), (), (), (), DENY, Reason.BLACKLIST, True),
    (("pay.bank.example",), (".bank.example",), (), (), DENY, Reason.BLACKLIST, True),
    ((".bank.example",), (), (), ((ALLOW, "bank.example"),), LOOK, Reason.MANUAL_ALLOW, True),
    ((".bank.example",), (".bank.example",), (), ((ALLOW, "bank.example"),), LOOK, Reason.MANUAL_ALLOW, True),
    ((".bank.example",), (), (), ((SPLICE, "bank.example"),), DENY, Reason.BLACKLIST, True),
    # a part that a person allows keeps the rest from being refused unseen
    ((".bank.example",), (), (), ((ALLOW, "pay.bank.example/help"),), LOOK, Reason.BLACKLIST, True),
    ((".bank.example",), (), (), ((ALLOW, "pay.bank.example/help/*"),), LOOK, Reason.BLACKLIST, True),
    ((".bank.example",), (), (), ((ALLOW, "pay.bank.example:8443"),), LOOK, Reason.BLACKLIST, True),
    ((".bank.example",), (), (), ((ALLOW, "*/help/*"),), LOOK, Reason.BLACKLIST, True),
    ((".bank.example",), (), (), ((ALLOW, "/help[0-9]/"),), LOOK, Reason.BLACKLIST, True),
    ((".bank.example",), (), (), ((ALLOW, "www.bank.example/help"),), DENY, Reason.BLACKLIST, True),
    # people's blocks
    ((), (), (), ((BLOCK, "bank.example"),), DENY, Reason.MANUAL_BLOCK, True),
    ((), (".bank.example",), (), ((BLOCK, "bank.example"),), DENY, Reason.MANUAL_BLOCK, True),
    ((), (), (), ((BLOCK, "bank.example"), (ALLOW, "pay.bank.example")), LOOK, Reason.MANUAL_ALLOW, True),
    ((), (), (), ((BLOCK, "bank.example"), (SPLICE, "pay.bank.example")), DENY, Reason.MANUAL_BLOCK, True),
    # people's splices
    ((), (), (), ((SPLICE, "bank.example"),), PASS, Reason.MANUAL_SPLICE, False),
    ((), (), (), ((SPLICE, "www.bank.example"),), LOOK, Reason.UNKNOWN, False),
    ((), (".bank.example",), (), ((ALLOW, "bank.example"),), PASS, Reason.SPLICELIST, False),
    # a block of a part: never passed through unread
    (("pay.bank.example/trap/*",), (".bank.example",), (), (), LOOK, Reason.UNKNOWN, True),
    ((), (".bank.example",), (), ((BLOCK, "pay.bank.example/trap"),), LOOK, Reason.UNKNOWN, True),
    ((), (".bank.example",), (), ((BLOCK, "pay.bank.example/trap/*"),), LOOK, Reason.UNKNOWN, True),
    ((), (".bank.example",), (), ((BLOCK, "pay.*.example/trap/*"),), LOOK, Reason.UNKNOWN, True),
    ((), (".bank.example",), (), ((BLOCK, "*.bank.example/trap*"),), LOOK, Reason.UNKNOWN, True),
    ((), (".bank.example",), (), ((BLOCK, "/^https?:..pay\\./"),), LOOK, Reason.UNKNOWN, True),
    ((), (".bank.example",), ("||bank.example^",), (), LOOK, Reason.UNKNOWN, True),
    ((), (".bank.example",), ("||pay.bank.example^$third-party",), (), LOOK, Reason.UNKNOWN, True),
    ((), (), ("||pay.bank.example^$image",), (), LOOK, Reason.UNKNOWN, True),
    # … but one of another host, or of no host, does not unseat a splice
    ((), (".bank.example",), ("||ads.example^",), (), PASS, Reason.SPLICELIST, False),
    ((), (".bank.example",), (), ((BLOCK, "*/banner/*"),), PASS, Reason.SPLICELIST, False),
    ((), (".bank.example",), (), ((BLOCK, "other.example/trap"),), PASS, Reason.SPLICELIST, False),
    ((), (".bank.example",), (), ((BLOCK, "/banner[0-9]+/"),), PASS, Reason.SPLICELIST, False),
]  # fmt: skip


@all_cases(("black", "splice", "adblock", "manual", "action", "reason", "named"), CASES)
def test_cases(
    black: Sequence[str],
    splice: Sequence[str],
    adblock: Sequence[str],
    manual: Sequence[tuple[ListAction, str]],
    action: HostAction,
    reason: Reason,
    named: bool,  # noqa: FBT001  a column of the table
) -> None:
    found = engine(black, splice, adblock, manual).decide_host(HOST)
    assert (found.action, found.verdict.reason, found.named) == (action, reason, named)


def test_what_has_expired_or_is_off_does_not_count() -> None:
    assert engine(manual=[(BLOCK, HOST)], expires_at=NOW).decide_host(HOST).action is LOOK
    assert engine(manual=[(BLOCK, HOST)], expires_at=NOW + 1).decide_host(HOST).action is DENY
    assert engine(manual=[(SPLICE, HOST)], expires_at=NOW).decide_host(HOST).action is LOOK
    assert engine([HOST], [HOST], off=["phishing"]).decide_host(HOST).action is PASS
    assert engine(splice=[HOST], off=["finance"]).decide_host(HOST).action is LOOK
    old = LearnedEntry(".bank.example", BLOCK, "gambling", "", "", 0.0, NOW)
    assert engine(learned=[old]).decide_host(HOST).action is LOOK


def test_a_block_that_is_added_while_it_runs_counts_at_once() -> None:
    running = engine(splice=[HOST])
    assert running.decide_host(HOST).action is PASS
    kind, pattern = classify_pattern("bank.example")
    running.apply([Change(1, ChangeKind.MANUAL_ADDED, manual=ManualRule(1, BLOCK, kind, pattern))])
    assert running.decide_host(HOST).action is DENY


@all_cases(
    ("host", "action"),
    [
        ("PAY.Bank.Example.", PASS),
        ("192.0.2.7", DENY),
        ("[2001:db8::7]", DENY),
        ("[2001:DB8:0::7]", DENY),
        ("", LOOK),
        ("not a host", LOOK),
        ("a/b", LOOK),
        ("\ud800", LOOK),
        ("pay.bank.example@evil.example", LOOK),
    ],
)
def test_path_spellings(host: str, action: HostAction) -> None:
    assert engine(["192.0.2.7", "[2001:db8::7]"], [".bank.example"]).decide_host(host).action is action


@settings(max_examples=30)
@given(st.text(max_size=60))
def test_any_text_has_an_answer(text: str) -> None:
    assert engine([".bank.example"]).decide_host(text).action in HostAction


@settings(max_examples=30)
@given(
    st.lists(st.sampled_from([HOST, ".bank.example", ".example", f"{HOST}/*", f"{HOST}/a/*"]), max_size=2),
    st.lists(st.sampled_from([HOST, ".bank.example", ".example"]), max_size=2),
    st.lists(
        st.tuples(st.sampled_from(ListAction), st.sampled_from([HOST, "bank.example", f"{HOST}/a", f"{HOST}/a/*", "*/abc/*"])),
        max_size=3,
        unique_by=lambda rule: rule[1],
    ),
    st.sampled_from(["/", "/a", "/a/b", "/abc/d"]),
)
def test_it_agrees_with_the_decision_on_urls(
    black: list[str], splice: list[str], manual: list[tuple[ListAction, str]], path: str
) -> None:
    decide = engine(black, splice, manual=manual)
    found = decide.decide_host(HOST)
    blocked = decide.decide(Request(parse_url(f"https://{HOST}{path}"), None, ResourceType.DOCUMENT)).blocked
    if found.action is DENY:
        assert blocked
    if found.action is PASS and path != "/abc/d":  # `*/abc/*` names no host: the only rule here that a splice may outrun
        assert not blocked


def test_what_is_remembered_of_a_host_ends_with_the_rule_and_with_the_state() -> None:
    now = [NOW]
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_keys(builder.add_source(Source("banks", SPLICE, "finance")), [HOST])
    kind, pattern = classify_pattern(HOST)
    builder.set_rules([ManualRule(1, BLOCK, kind, pattern, expires_at=NOW + 10)])
    running = FilterEngine(Snapshot.from_bytes(builder.build()), clock=lambda: now[0])
    assert [running.decide_host(HOST).action for _ in range(3)] == [DENY] * 3
    now[0] += 9.9
    assert running.decide_host(HOST).action is DENY
    now[0] += 0.1
    assert [running.decide_host(HOST).action for _ in range(2)] == [PASS] * 2
    kind, pattern = classify_pattern(f"{HOST}/part")
    running.apply([Change(1, ChangeKind.MANUAL_ADDED, manual=ManualRule(2, BLOCK, kind, pattern))])  # touches no host's facts
    assert running.decide_host(HOST).action is LOOK
    assert running.decide_host("other.example").action is LOOK
