"""`$client` and `$ctag`: rules that hold for some clients, by name, address, network and group."""

from ipaddress import ip_network

import pytest

from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.matcher import AdblockMatcher
from gatewayfilter.engine.adblock.syntax.client_option import read_clients, read_tags
from gatewayfilter.engine.adblock.syntax.parser import LineKind, parse_line
from gatewayfilter.engine.adblock.syntax.rule import ClientSet
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.reader import Snapshot, SnapshotBuilder
from gatewayfilter.errors import RuleError
from gatewayfilter.model import Client, Group, PolicySet, Request, ResourceType, Source, parse_matcher
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

CHILD, ADULT, STRANGER = "10.0.0.2", "10.0.0.3", "10.0.9.9"
PEOPLE = (
    Group("kids"),
    Client("Frank's laptop", (parse_matcher(CHILD),), "kids"),
    Client("mary", (parse_matcher(ADULT),)),
)


def engine(*rules: str, people: bool = True) -> FilterEngine:
    builder = SnapshotBuilder(created_at=0.0)
    builder.add_adblock_list(builder.add_source(Source("own", category="ads")), list(rules))
    if people:
        builder.set_policies(PolicySet.of(PEOPLE))
    return FilterEngine(Snapshot.from_bytes(builder.build()))


def blocked(found: FilterEngine, url: str = "https://ads.example/x") -> set[str]:
    clients = (CHILD, ADULT, STRANGER)
    return {
        client for client in clients if found.decide(Request(parse_url(url), None, ResourceType.SCRIPT, client=client)).blocked
    }


@all_cases(
    ("rule", "clients"),
    [
        ("||ads.example^$client=mary", {ADULT}),
        (r"||ads.example^$client='Frank\'s laptop'", {CHILD}),
        (r'||ads.example^$client="Frank\'s laptop"|mary', {CHILD, ADULT}),
        ("||ads.example^$client=~mary", {CHILD, STRANGER}),
        ("||ads.example^$client=10.0.0.2", {CHILD}),
        ("||ads.example^$client=10.0.0.0/24|~mary", {CHILD}),
        ("||ads.example^$client=nobody", set()),
        ("||ads.example^$client=~nobody", {CHILD, ADULT, STRANGER}),
        ("||ads.example^$ctag=kids", {CHILD}),
        ("||ads.example^$ctag=~kids", {ADULT, STRANGER}),
        ("||ads.example^$ctag=kids|default", {CHILD, ADULT, STRANGER}),
        ("||ads.example^$ctag=user_child", set()),
        ("/x$client=mary,ctag=default", {ADULT}),
        ("||ads.example^$CLIENT=mary,method=get", {ADULT}),
        ("||ads.example/x$client=mary,match-case", {ADULT}),
    ],
)
def test_which_clients(rule: str, clients: set[str]) -> None:
    found = engine(rule)
    assert blocked(found) == clients
    assert blocked(found) == clients  # from the caches
    told = found.explain(Request(parse_url("https://ads.example/x"), None, ResourceType.SCRIPT, client=CHILD)).verdict
    assert told.blocked is (CHILD in clients)


def test_an_exception_for_one_client() -> None:
    assert blocked(engine("||ads.example^", "@@||ads.example^$client=mary")) == {CHILD, STRANGER}


def test_without_policies_addresses_count_and_names_do_not() -> None:
    assert blocked(engine("||ads.example^$client=10.0.0.2|mary", people=False)) == {CHILD}
    assert blocked(engine("||ads.example^$ctag=kids", people=False)) == set()


def test_only_blocks_and_exceptions_are_limited_to_clients() -> None:
    for rule in ("||a.example^$removeparam=x,client=mary", "@@||a.example^$elemhide,client=mary", "||a.example^$csp=x,ctag=kids"):
        assert parse_line(rule).kind is LineKind.UNSUPPORTED
    (exception,) = parse_line("@@||a.example^$document,client=mary").rules
    assert not exception.modifier


@all_cases(
    ("value", "why"),
    [
        *((value, "empty client") for value in ("", "a|", "|", "~", "''", "x" * 3 + "|" * 3)),
        *((value, "with | between them") for value in ("'open", "a|'b'c", "'b'xc")),
    ],
)
def test_what_cannot_be_read_is_refused(value: str, why: str) -> None:
    for read in (read_clients, read_tags):
        with pytest.raises(RuleError, match=why):
            read(value)


def test_many_clients_are_bounded() -> None:
    names = [f"c{number}" for number in range(1_001)]
    assert read_clients("|".join(names[:1_000])) == (ClientSet(frozenset(names[:1_000])), ClientSet())
    for read in (read_clients, read_tags):
        with pytest.raises(RuleError, match="too many clients"):
            read("|".join(names))


def test_names_addresses_and_networks_are_told_apart() -> None:
    included, excluded = read_clients("2001:DB8:0::1|10.0.0.7/24|~ 10.0.0.9 |~fd00::/8|a/b|~'10.0.0.8'|10.0.0.300")
    assert included == ClientSet(frozenset({"a/b", "10.0.0.300"}), frozenset({"2001:db8::1"}), (ip_network("10.0.0.0/24"),))
    assert excluded == ClientSet(frozenset(), frozenset({"10.0.0.9", "10.0.0.8"}), (ip_network("fd00::/8"),))
    assert read_tags("a|~b|'c|d'") == (frozenset({"a", "c|d"}), frozenset({"b"}))


@all_cases(
    ("rules", "names_clients"),
    [
        (["||a.example^"], False),
        (["||a.example^$script", "/ads?client=", "&ctag=1", "||client.example^", "?a=1&client=ca-pub-$script"], False),
        (["/clients/$third-party", "ctagger", "||b.example^$domain=client.example"], False),
        (["||a.example^$client=kim"], True),
        (["||a.example^", "||b.example^$script,client=~kim"], True),
        (["||a.example^$ Client = kim"], True),
        (["||a.example^$ctag=school"], True),
        (["||a.example^$script, ctag=school"], True),
        (["||a.example^$" + " " * 60 + "client=kim"], True),
    ],
)
def test_a_table_without_such_rules_costs_nothing(rules: list[str], names_clients: bool) -> None:  # noqa: FBT001
    """Patterns of URLs that have a parameter of that name are in nearly every list."""
    builder = AdblockBuilder()
    builder.add_list(0, rules)
    assert AdblockMatcher(builder.build()).names_clients == names_clients
