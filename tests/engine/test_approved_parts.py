"""Parts of sites that were approved on request: what their pages load from blocked sites."""

import pytest

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.model import (
    APPROVED,
    Change,
    ChangeKind,
    EntryKind,
    HostAction,
    ListAction,
    ManualRule,
    Policy,
    PolicyItem,
    PolicySet,
    Request,
    ResourceType,
    Verdict,
)
from gatewayfilter.urls import parse_url
from tests.engine.test_policy_decision import ADULT, BEDTIME, CHILD, NIGHT, NOON, snapshot

IMAGE, SCRIPT, FRAME, PAGE = ResourceType.IMAGE, ResourceType.SCRIPT, ResourceType.SUBDOCUMENT, ResourceType.DOCUMENT
KIDS: tuple[PolicyItem, ...] = (Policy("kids"), Policy("default"), BEDTIME)


def approval(scope: str = "", until: float | None = None, group: str = APPROVED) -> ManualRule:
    return ManualRule(1, ListAction.ALLOW, EntryKind.DOMAIN, ".games.example", "request 1", group, until, scope=scope)


def engine(rule: ManualRule, now: float = NOON) -> FilterEngine:
    return FilterEngine(snapshot(*KIDS, rules=[rule]), clock=lambda: now)


def decide(
    found: FilterEngine, host: str, kind: ResourceType = IMAGE, source: str = "www.games.example", client: str = CHILD
) -> Verdict:
    page = parse_url(f"https://{source}/") if source else None
    request = Request(parse_url(f"https://{host}/x"), page, kind, client=client)
    verdict = found.decide(request)
    explained = found.explain(request)
    assert explained.verdict == verdict
    return verdict


@pytest.mark.parametrize("scope", ["", "client:child", "group:kids"])
def test_parts_from_a_blocked_site(scope: str) -> None:
    verdict = decide(engine(approval(scope)), "cdn.casino.example")
    assert (verdict.blocked, verdict.reason, verdict.source_list, verdict.rule) == (
        False,
        "manual-allow",
        scope,
        ".games.example",
    )
    request = Request(parse_url("https://casino.example/x"), parse_url("https://games.example/"), SCRIPT, client=CHILD)
    assert engine(approval(scope)).explain(request).answers[-1].decider == "parts"


def test_parts_during_a_schedule() -> None:
    night = engine(approval("client:child"), NIGHT)
    assert not decide(night, "cdn.example").blocked
    assert decide(night, "cdn.example", PAGE).blocked
    assert decide(night, "cdn.example", source="other.example").blocked
    assert night.decide_host("cdn.example", CHILD).action is HostAction.INTERCEPT
    assert engine(approval("client:other"), NIGHT).decide_host("cdn.example", CHILD).action is HostAction.DENY


@pytest.mark.parametrize(
    ("rule", "host", "kind", "source", "client"),
    [
        (approval(), "casino.example", PAGE, "games.example", CHILD),
        (approval(), "casino.example", FRAME, "games.example", CHILD),
        (approval(), "casino.example", ResourceType.OBJECT, "games.example", CHILD),
        (approval(), "casino.example", IMAGE, "", CHILD),
        (approval(), "casino.example", IMAGE, "other.example", CHILD),
        (approval(), "casino.example", IMAGE, "notgames.example", CHILD),
        (approval(), "trap.example", IMAGE, "games.example", CHILD),
        (approval(), "both.example", IMAGE, "other.example", CHILD),
        (approval(), "ads.example", IMAGE, "games.example", CHILD),
        (approval("client:child"), "casino.example", IMAGE, "games.example", ADULT),
        (approval(until=NOON), "casino.example", IMAGE, "games.example", CHILD),
        (approval(group=""), "casino.example", IMAGE, "games.example", CHILD),
    ],
)
def test_what_stays_blocked(rule: ManualRule, host: str, kind: ResourceType, source: str, client: str) -> None:
    assert decide(engine(rule), host, kind, source, client).blocked


def test_without_policies() -> None:
    found = snapshot(rules=[approval()])
    found.policies = PolicySet()
    plain = FilterEngine(found, clock=lambda: NOON)
    assert plain.state.policies is None
    assert not decide(plain, "casino.example").blocked
    assert decide(plain, "casino.example", PAGE).blocked
    assert decide(plain, "casino.example", source="other.example").blocked
    assert plain.decide_host("casino.example", CHILD).action is HostAction.INTERCEPT
    assert plain.decide_host("trap.example", CHILD).action is HostAction.DENY


def test_approvals_for_everybody_end_without_policies() -> None:
    now = [NOON]
    found = snapshot()
    found.policies = PolicySet()
    plain = FilterEngine(found, clock=lambda: now[0])
    assert plain.policy_mark() is None
    plain.apply([Change(1, ChangeKind.MANUAL_ADDED, manual=approval("", NOON + 60))])
    assert plain.policy_mark() is not None
    now[0] += 60
    assert plain.policy_mark() is None


def test_open_connections_are_reviewed_when_an_approval_ends_or_is_withdrawn() -> None:
    now = [NOON]
    rule = approval("client:child", NOON + 60)
    found = FilterEngine(snapshot(*KIDS), clock=lambda: now[0])
    marks = [found.policy_mark()]
    found.apply([Change(1, ChangeKind.MANUAL_ADDED, manual=rule)])
    marks.append(found.policy_mark())
    now[0] += 59
    assert found.policy_mark() == marks[-1]
    now[0] += 1
    marks.append(found.policy_mark())
    now[0] -= 60
    found.apply([Change(2, ChangeKind.MANUAL_REMOVED, manual=rule)])
    assert marks[0] != marks[1] != marks[2]
    assert found.policy_mark() == marks[2] == marks[0]
