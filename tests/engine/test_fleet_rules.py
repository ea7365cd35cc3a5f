"""Rules of a fleet's publisher: locked ones first, then those of this machine, then the others."""

from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.builder import SnapshotBuilder
from gatewayfilter.engine.snapshot.reader import Snapshot
from gatewayfilter.model import (
    FLEET,
    FLEET_LOCKED,
    Client,
    EntryKind,
    ListAction,
    ManualRule,
    PolicySet,
    Request,
    parse_matcher,
)
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

BLOCK, ALLOW = ListAction.BLOCK, ListAction.ALLOW
PC = Client("pc", (parse_matcher("192.0.2.7"),))


def engine(*rules: tuple[ListAction, str, str]) -> FilterEngine:
    builder = SnapshotBuilder()
    numbered = enumerate(rules, 1)
    builder.set_rules(
        ManualRule(number, action, EntryKind.DOMAIN, ".site.example", group=group, scope=scope)
        for number, (action, group, scope) in numbered
    )
    builder.set_policies(PolicySet.of([PC]))
    return FilterEngine(Snapshot.from_bytes(builder.build()))


@all_cases(
    ("rules", "blocked"),
    [
        ([(BLOCK, FLEET, "")], True),
        ([(BLOCK, FLEET, ""), (ALLOW, "", "")], False),
        ([(ALLOW, FLEET, ""), (BLOCK, "", "")], True),
        ([(BLOCK, FLEET_LOCKED, ""), (ALLOW, "", "")], True),
        ([(ALLOW, FLEET_LOCKED, ""), (BLOCK, "", "")], False),
        ([(BLOCK, FLEET_LOCKED, ""), (ALLOW, FLEET, ""), (ALLOW, "group", "")], True),
        ([(BLOCK, FLEET_LOCKED, ""), (ALLOW, "", "client:pc")], True),
        ([(BLOCK, FLEET, ""), (ALLOW, "", "client:pc")], False),
        ([(BLOCK, FLEET, "client:pc"), (ALLOW, "", "client:pc")], False),
        ([(BLOCK, "", ""), (ALLOW, "", "")], False),
    ],
)
def test_which_rule_counts(rules: list[tuple[ListAction, str, str]], *, blocked: bool) -> None:
    found = engine(*rules)
    request = Request(parse_url("http://www.site.example/a"), client="192.0.2.7")
    assert found.decide(request).blocked is blocked


def test_a_rule_that_is_locked_for_another_site_or_not_at_all_outranks_no_client() -> None:
    builder = SnapshotBuilder()
    rules = [(BLOCK, ".other.example", FLEET_LOCKED, ""), (ALLOW, ".site.example", "", ""), (ALLOW, ".site.example", FLEET, "")]
    rules += [(BLOCK, ".site.example", "", "client:pc"), (BLOCK, ".third.example", "", "client:pc")]
    builder.set_rules(
        ManualRule(number, action, EntryKind.DOMAIN, pattern, group=group, scope=scope)
        for number, (action, pattern, group, scope) in enumerate(rules, 1)
    )
    builder.set_policies(PolicySet.of([PC]))
    found = FilterEngine(Snapshot.from_bytes(builder.build()))
    for host in ("site.example", "third.example"):
        verdict = found.decide(Request(parse_url(f"http://{host}/"), client="192.0.2.7"))
        assert (verdict.blocked, verdict.source_list) == (True, "client:pc")


@all_cases(("group", "words"), [(FLEET, "from the fleet's publisher"), (FLEET_LOCKED, "and locked"), ("", "")])
def test_check_names_the_publisher(group: str, words: str) -> None:
    answers = engine((BLOCK, group, "")).explain(Request(parse_url("http://site.example/")))
    sentence = next(answer.explanation for answer in answers.answers if answer.decider == "manual")
    assert words in sentence
    assert ("publisher" in sentence) is bool(group)
