"""Decisions in a network with policies: two clients are treated differently, and what outranks what."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.model import (
    Action,
    CategoryAction,
    Change,
    ChangeKind,
    Client,
    EntryKind,
    Group,
    HostAction,
    LearnedEntry,
    ListAction,
    ManualRule,
    Pause,
    PauseScope,
    Policy,
    PolicyItem,
    PolicySet,
    Reason,
    Request,
    ResourceType,
    Schedule,
    ScheduleEffect,
    Source,
    UnknownAction,
    Verdict,
    Window,
    parse_matcher,
)
from gatewayfilter.urls import parse_url

NOON = datetime.fromisoformat("2026-05-04T12:00+00:00").timestamp()
NIGHT = NOON + 10 * 3600
CHILD, ADULT, STRANGER = "10.0.0.2", "10.0.0.3", "10.0.0.9"
BEDTIME = Schedule("bedtime", "kids", ScheduleEffect.BLOCK_ALL, (Window(21 * 60, 6 * 60),), "UTC")
PEOPLE: tuple[PolicyItem, ...] = (
    Group("kids", "kids"),
    Client("child", (parse_matcher(CHILD),), "kids"),
    Client("adult", (parse_matcher(ADULT), parse_matcher("user:anna"))),
)


def rule(text: str, action: ListAction = ListAction.BLOCK, scope: str = "", kind: EntryKind = EntryKind.DOMAIN) -> ManualRule:
    return ManualRule(1, action, kind, text, scope=scope)


def snapshot(*items: PolicyItem, rules: Sequence[ManualRule] = ()) -> Snapshot:
    builder = SnapshotBuilder(created_at=0.0)
    for name, category, keys in (
        ("casinos", "gambling", [".casino.example", ".both.example"]),
        ("networks", "social", [".social.example"]),
        ("traps", "malware", [".trap.example", ".both.example"]),
    ):
        builder.add_keys(builder.add_source(Source(name, category=category)), keys)
    builder.add_keys(builder.add_source(Source("good", ListAction.ALLOW, "press")), [".press.example"])
    builder.add_keys(builder.add_source(Source("banks", ListAction.SPLICE, "bank")), [".bank.example"])
    builder.add_adblock_list(builder.add_source(Source("easy", category="ads")), ["||ads.example^", "press.example##.ad"])
    learned = LearnedEntry("h.example/bad", ListAction.BLOCK, "gambling", "http://h.example/bad", "", 0.0, NIGHT * 2)
    builder.add_learned([learned])
    builder.set_rules(rules)
    builder.set_policies(PolicySet.of((*PEOPLE, *items)))
    return Snapshot.from_bytes(builder.build())


def engine(*items: PolicyItem, rules: Sequence[ManualRule] = (), now: float = NOON, off: Sequence[str] = ()) -> FilterEngine:
    return FilterEngine(snapshot(*items, rules=rules), off_categories=off, clock=lambda: now)


def decide(filter_engine: FilterEngine, host: str, client: str = CHILD, *, user: str = "", path: str = "/") -> Verdict:
    request = Request(parse_url(f"https://{host}{path}"), client=client, user=user)
    verdict = filter_engine.decide(request)
    assert filter_engine.explain(request).verdict == verdict
    return verdict


def outcome(filter_engine: FilterEngine, host: str, client: str = CHILD, **more: str) -> str:
    verdict = decide(filter_engine, host, client, **more)
    return f"{verdict.action} {verdict.reason}"


def policy(name: str = "kids", **values: Any) -> Policy:
    return replace(Policy(name), **values)


SOCIAL_OFF = policy("default", categories={"social": CategoryAction.ALLOW})


def test_two_clients_are_treated_differently() -> None:
    both = engine(policy(categories={"social": CategoryAction.BLOCK}), SOCIAL_OFF)
    assert outcome(both, "social.example") == "block blacklist"
    assert outcome(both, "social.example", ADULT) == "allow policy"
    assert outcome(both, "social.example", STRANGER) == "allow policy"
    assert outcome(both, "casino.example", ADULT) == "block blacklist"
    assert outcome(both, "casino.example", CHILD) == "block blacklist"


def test_a_proxy_user_outranks_the_address() -> None:
    both = engine(policy(block_all=True))
    assert outcome(both, "x.example") == "block policy"
    assert outcome(both, "x.example", user="anna") == "allow unknown"


def test_without_policies_nothing_changes() -> None:
    builder = SnapshotBuilder(created_at=0.0)
    plain = FilterEngine(Snapshot.from_bytes(builder.build()), clock=lambda: NOON)
    assert plain.state.policies is None
    assert decide(plain, "x.example").unknown_action is None


# One row for each pair of neighbours in the order: what outranks what.
PAUSED = Pause(PauseScope.GROUP, "kids", NOON + 60)
OWN, KIDS = "client:child", "group:kids"
ALLOW = ListAction.ALLOW
X_OK, OF_CHILD, OF_KIDS = rule(".x.example", ALLOW), rule(".x.example", scope=OWN), rule(".x.example", scope=KIDS)
CHILD_OK, KIDS_OK = rule(".x.example", ALLOW, OWN), rule(".x.example", ALLOW, KIDS)
NO_GAMBLING = policy(categories={"gambling": CategoryAction.ALLOW})
ORDER: list[tuple[str, tuple[PolicyItem, ...], tuple[ManualRule, ...], str, str]] = [
    ("pause over rule", (policy(), PAUSED), (rule(".x.example", scope=OWN),), "x.example", "allow pause"),
    ("pause over list", (policy(), PAUSED), (), "casino.example", "allow pause"),
    ("pause over adblock", (policy(), PAUSED), (), "ads.example", "allow pause"),
    ("pause over block-all", (policy(block_all=True), PAUSED), (), "x.example", "allow pause"),
    ("malware over pause", (policy(), PAUSED), (), "trap.example", "block blacklist"),
    ("malware over pause, two lists", (policy(), PAUSED), (), "both.example", "block blacklist"),
    ("rule over what a pause leaves", (policy(), PAUSED), (rule(".trap.example", ALLOW),), "trap.example", "allow manual-allow"),
    ("scoped rule over that", (policy(), PAUSED), (rule(".trap.example", ALLOW, OWN),), "trap.example", "allow manual-allow"),
    ("whole pause", (policy(), replace(PAUSED, harm_too=True)), (), "trap.example", "allow pause"),
    ("client over group", (policy(),), (CHILD_OK, OF_KIDS), "x.example", "allow manual-allow"),
    ("client over group, too", (policy(),), (KIDS_OK, OF_CHILD), "x.example", "block manual-block"),
    ("group over all", (policy(),), (X_OK, OF_KIDS), "x.example", "block manual-block"),
    ("allow over block", (policy(),), (CHILD_OK, OF_CHILD), "x.example", "allow manual-allow"),
    ("rule over block-all", (policy(block_all=True),), (rule(".x.example", ALLOW),), "x.example", "allow manual-allow"),
    ("rule over list", (policy(),), (rule(".trap.example", ALLOW, KIDS),), "trap.example", "allow manual-allow"),
    ("block-all over list", (policy(block_all=True),), (), "casino.example", "block policy"),
    ("block-all over allow list", (policy(block_all=True),), (), "press.example", "block policy"),
    ("other lists over an allowed category", (NO_GAMBLING,), (), "both.example", "block blacklist"),
    ("review", (policy(categories={"gambling": CategoryAction.REVIEW}),), (), "casino.example", "allow policy-review"),
    ("source off", (policy(sources={"casinos": False}),), (), "casino.example", "allow unknown"),
    ("source off, two lists", (policy(sources={"casinos": False}),), (), "both.example", "block blacklist"),
    ("adblock off", (policy(categories={"ads": CategoryAction.ALLOW}),), (), "ads.example", "allow unknown"),
    ("allow list", (NO_GAMBLING,), (), "press.example", "allow whitelist"),
]  # fmt: skip


@pytest.mark.parametrize(("items", "rules", "host", "expected"), [case[1:] for case in ORDER], ids=[case[0] for case in ORDER])
def test_what_outranks_what(items: tuple[PolicyItem, ...], rules: tuple[ManualRule, ...], host: str, expected: str) -> None:
    found = engine(*items, rules=[replace(one, rule_id=number) for number, one in enumerate(_distinct(rules))])
    assert outcome(found, host) == expected


def _distinct(rules: Sequence[ManualRule]) -> list[ManualRule]:
    """Rules of one pattern and scope differ by their group, as two rules of one identity would replace each other."""
    return [replace(one, group=f"g{number}") for number, one in enumerate(rules)]


def test_the_scope_of_a_rule_is_named() -> None:
    found = decide(engine(policy(), rules=[rule(".x.example", scope=OWN)]), "x.example")
    assert (found.source_list, found.rule) == (OWN, ".x.example")
    assert outcome(engine(policy(), rules=[rule(".x.example", scope=OWN)]), "x.example", ADULT) == "allow unknown"


def test_a_scoped_block_covers_other_spellings() -> None:
    found = engine(policy(), rules=[rule("x.example/page", scope=OWN, kind=EntryKind.URL)])
    for path in ("/page", "/page;v=1", "/p%61ge", "//page", "/page/", "/page?a=b"):
        assert outcome(found, "x.example", path=path) == "block manual-block", path
    assert outcome(found, "x.example", path="/other;v=1") == "allow unknown"


@pytest.mark.parametrize(("now", "expected"), [(NOON, "allow unknown"), (NIGHT, "block schedule")])
def test_a_schedule_blocks_in_its_window(now: float, expected: str) -> None:
    found = engine(policy(), BEDTIME, now=now)
    assert outcome(found, "x.example") == expected
    assert outcome(found, "x.example", ADULT) == "allow unknown"


def test_a_scheduled_category_names_list_and_schedule() -> None:
    games = replace(BEDTIME, effect=ScheduleEffect.BLOCK_CATEGORY, target="social")
    found = engine(policy(categories={"social": CategoryAction.ALLOW}), games, now=NIGHT)
    verdict = decide(found, "social.example")
    assert (verdict.action, verdict.reason, verdict.source_list) == (Action.BLOCK, Reason.SCHEDULE, "networks")
    assert verdict.detail == "bedtime blocks social"
    assert found.decide_host("social.example", CHILD).verdict.reason is Reason.SCHEDULE
    assert outcome(found, "casino.example") == "block blacklist"


def test_a_category_may_be_on_for_some_alone() -> None:
    found = engine(policy(categories={"gambling": CategoryAction.BLOCK}), off=["gambling"])
    for host, path in (("casino.example", "/"), ("h.example", "/bad")):
        assert decide(found, host, path=path).blocked
        assert not decide(found, host, ADULT, path=path).blocked


@pytest.mark.parametrize("action", UnknownAction)
def test_unknown_pages_are_treated_by_policy(action: UnknownAction) -> None:
    found = engine(policy(unknown=action))
    verdict = decide(found, "x.example")
    assert (verdict.unknown, verdict.unknown_action, verdict.blocked) == (True, action, False)
    assert decide(found, "x.example", ADULT).unknown_action is None
    assert decide(found, "press.example").unknown_action is None


@pytest.mark.parametrize(
    ("host", "child", "adult"),
    [
        ("casino.example", HostAction.DENY, HostAction.INTERCEPT),
        ("social.example", HostAction.INTERCEPT, HostAction.DENY),
        ("bank.example", HostAction.SPLICE, HostAction.SPLICE),
        ("x.example", HostAction.INTERCEPT, HostAction.INTERCEPT),
    ],
)
def test_connections_are_decided_by_policy(host: str, child: HostAction, adult: HostAction) -> None:
    found = engine(
        policy(categories={"social": CategoryAction.ALLOW}),
        policy("default", categories={"gambling": CategoryAction.ALLOW, "social": CategoryAction.BLOCK}),
        policy("own", categories={"gambling": CategoryAction.BLOCK}), Client("child", (parse_matcher(CHILD),), "kids", "own"),
    )  # fmt: skip
    for _ in range(2):  # the second time from the cache
        assert found.decide_host(host, CHILD).action is child
        assert found.decide_host(host, ADULT).action is adult


@pytest.mark.parametrize("action", UnknownAction)
def test_unknown_pages_that_have_to_wait_or_are_blocked_are_read_by_whatever_app(action: UnknownAction) -> None:
    found = engine(policy(unknown=action))
    verdict = found.decide_host("x.example", CHILD)
    waits = action in {UnknownAction.HOLD, UnknownAction.BLOCK}
    assert (verdict.action, verdict.named, verdict.verdict.unknown) == (HostAction.INTERCEPT, waits, True)
    assert not found.decide_host("x.example", ADULT).named
    assert found.decide_host("bank.example", CHILD).action is HostAction.SPLICE
    assert found.decide_host("casino.example", CHILD).action is HostAction.DENY


def test_a_denied_connection_tells_why() -> None:
    games = replace(BEDTIME, effect=ScheduleEffect.BLOCK_CATEGORY, target="social")
    scheduled = engine(policy(categories={"social": CategoryAction.ALLOW}), games, now=NIGHT).decide_host("social.example", CHILD)
    everything = engine(policy(block_all=True)).decide_host("x.example", CHILD)
    part = engine(policy(block_all=True), rules=[rule("x.example/page", ALLOW, kind=EntryKind.URL)])
    of_rule = engine(policy(), rules=[rule(".x.example", scope=OWN)]).decide_host("x.example", CHILD)
    assert scheduled.verdict.detail == "bedtime blocks social"
    assert everything.verdict.reason is Reason.POLICY
    assert of_rule.verdict.reason is Reason.MANUAL_BLOCK
    for denied in (scheduled, everything, of_rule):
        assert (denied.action, denied.named, denied.because) == (HostAction.DENY, True, denied.verdict)
    read = part.decide_host("x.example", CHILD)
    assert (read.action, read.named, read.verdict.unknown, read.because) == (HostAction.INTERCEPT, True, True, everything.verdict)


@pytest.mark.parametrize(
    ("rules", "action", "unknown"),
    [
        ([rule(".x.example", scope=OWN)], HostAction.DENY, False),
        ([rule(".x.example", scope=OWN), rule("x.example/a", ALLOW, OWN, EntryKind.URL)], HostAction.INTERCEPT, False),
        ([rule(".x.example", scope=KIDS), rule("x.example/a", ALLOW, OWN, EntryKind.URL)], HostAction.INTERCEPT, False),
        ([rule(".x.example", scope=OWN), rule("x.example/a", ALLOW, KIDS, EntryKind.URL)], HostAction.DENY, False),
        ([rule(".x.example", ALLOW, OWN), rule(".x.example", scope=KIDS)], HostAction.INTERCEPT, False),
        ([rule(".x.example", ALLOW, OWN)], HostAction.INTERCEPT, True),
        ([rule("x.example/a", scope=OWN, kind=EntryKind.URL)], HostAction.INTERCEPT, True),
        ([replace(rule(".x.example", scope=OWN), expires_at=NOON)], HostAction.INTERCEPT, None),
        ([replace(rule(".x.example", scope=OWN), expires_at=NOON + 1)], HostAction.DENY, False),
        ([rule(".y.example", scope=OWN)], HostAction.INTERCEPT, None),
    ],
)
def test_connections_are_denied_where_no_rule_before_allows_a_part(
    rules: list[ManualRule], action: HostAction, *, unknown: bool | None
) -> None:
    verdict = engine(policy(), rules=rules).decide_host("x.example", CHILD)
    assert (verdict.action, verdict.named) == (action, unknown is not None)
    assert verdict.verdict.unknown is (unknown is not False)


def test_block_all_denies_connections_but_those_with_an_allowed_part() -> None:
    found = engine(
        policy(block_all=True), rules=[rule("x.example/page", ALLOW, kind=EntryKind.URL), rule(".y.example", ALLOW, OWN)]
    )
    actions = {host: found.decide_host(host, CHILD).action for host in ("bank.example", "x.example", "y.example", "z.example")}
    assert actions == {
        "bank.example": HostAction.DENY,
        "x.example": HostAction.INTERCEPT,
        "y.example": HostAction.INTERCEPT,
        "z.example": HostAction.DENY,
    }
    assert found.decide_host("bank.example", ADULT).action is HostAction.SPLICE
    assert outcome(found, "x.example", path="/page") == "allow manual-allow"


def test_scoped_rules_decide_connections() -> None:
    found = engine(policy(), rules=[rule(".x.example", scope=OWN), rule("bank.example/a", scope=KIDS, kind=EntryKind.URL)])
    assert found.decide_host("x.example", CHILD).action is HostAction.DENY
    assert found.decide_host("x.example", ADULT).action is HostAction.INTERCEPT
    bank = found.decide_host("bank.example", CHILD)
    assert (bank.action, bank.named) == (HostAction.INTERCEPT, True)
    assert found.decide_host("bank.example", ADULT).action is HostAction.SPLICE


def test_a_pause_keeps_splicing_and_lifts_denials() -> None:
    found = engine(policy(block_all=True), PAUSED)
    actions = {host: found.decide_host(host, CHILD).action for host in ("bank.example", "casino.example", "trap.example")}
    assert actions == {"bank.example": HostAction.SPLICE, "casino.example": HostAction.INTERCEPT, "trap.example": HostAction.DENY}


@pytest.mark.parametrize("scope", ["", OWN, KIDS])
def test_a_pause_denies_no_host_that_a_manual_rule_allows(scope: str) -> None:
    found = engine(policy(), PAUSED, rules=[rule(".trap.example", ALLOW, scope)])
    assert found.decide_host("trap.example", CHILD).action is HostAction.INTERCEPT
    assert found.decide_host("www.both.example", CHILD).action is HostAction.DENY


def test_rules_of_lists_that_are_off_change_nothing() -> None:
    found = engine(policy(categories={"ads": CategoryAction.ALLOW}))
    request = Request(parse_url("https://press.example/"), resource_type=ResourceType.DOCUMENT, client=CHILD)
    assert found.change_response(request, 200, {"content-type": "text/html"}) is None
    assert found.change_response(replace(request, client=ADULT), 200, {"content-type": "text/html"}) is not None


def step(seq: int, item: PolicyItem, *, put: bool = True) -> Change:
    return Change(seq, ChangeKind.POLICY_PUT if put else ChangeKind.POLICY_REMOVED, policy=item)


def test_changes_take_effect_and_survive_a_swap() -> None:
    found = engine()
    assert outcome(found, "x.example") == "allow unknown"
    found.apply([step(1, policy(block_all=True))])
    assert outcome(found, "x.example") == "block policy"
    found.apply([step(2, PAUSED)])
    assert outcome(found, "x.example") == "allow pause"
    found.swap(snapshot())
    assert outcome(found, "x.example") == "allow pause"
    found.apply([step(3, PAUSED, put=False)])
    assert outcome(found, "x.example") == "block policy"
    found.apply([step(4, policy(block_all=True), put=False)])
    assert outcome(found, "x.example") == "allow unknown"
    found.apply([step(5 + number, item, put=False) for number, item in enumerate(PEOPLE)])
    assert found.state.policies is None


def test_learned_entries_reach_every_view() -> None:
    found = engine(policy(categories={"social": CategoryAction.ALLOW}))
    assert outcome(found, "new.example", path="/a") == "allow unknown"
    entry = LearnedEntry("new.example/a", ListAction.BLOCK, "gambling", "http://new.example/a", "", 0.0, NIGHT * 2)
    found.apply([Change(1, ChangeKind.LEARNED_ADDED, learned=entry)])
    assert outcome(found, "new.example", path="/a") == "block learned"
    found.apply([Change(2, ChangeKind.LEARNED_ADDED, learned=replace(entry, key=".wide.example", category="social"))])
    assert outcome(found, "wide.example") == "allow policy"
    assert outcome(found, "wide.example", ADULT) == "block learned"


def test_neighbours_are_met() -> None:
    found = engine(policy(block_all=True), Client("tablet", (parse_matcher("aa:bb:cc:dd:ee:ff"),), "kids"))
    assert outcome(found, "x.example", STRANGER) == "allow unknown"
    found.set_neighbours({STRANGER: "aa:bb:cc:dd:ee:ff"})
    assert outcome(found, "x.example", STRANGER) == "block policy"
    found.set_neighbours({})
    assert outcome(found, "x.example", STRANGER) == "allow unknown"


def test_policies_are_compiled_again_when_the_clock_is_set() -> None:
    now = [NOON]
    found = FilterEngine(snapshot(policy(), BEDTIME), clock=lambda: now[0])
    before = found.state.policies
    found.keep_time()
    assert found.state.policies is before
    now[0] = NOON + 30 * 86_400 + 10 * 3600  # far beyond the timelines
    assert outcome(found, "x.example") == "allow unknown"
    found.keep_time()
    assert outcome(found, "x.example") == "block schedule"


def test_explanations_name_what_is_in_force() -> None:
    found = engine(
        policy(categories={"social": CategoryAction.ALLOW}),
        BEDTIME,
        replace(PAUSED, until=NIGHT + 60),
        now=NIGHT,
        rules=[rule(".x.example", scope=OWN)],
    )
    told = {answer.decider: answer for answer in found.explain(Request(parse_url("https://x.example/"), client=CHILD)).answers}
    assert list(told)[:7] == ["client", "pause", OWN, "manual", "schedule", "policy", "bloom"]
    assert told["client"].explanation == "client child, group kids, policies kids, default"
    assert "until 2026-05-04T22:01:00+00:00" in told["pause"].explanation
    assert told[OWN].answer == "block"
    assert told["schedule"].explanation == "in force: bedtime; bedtime blocks everything"
    assert told["policy"].explanation == "allow: social"
