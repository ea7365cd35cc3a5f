"""The quick looks at modifier rules, which spare most requests a search: `gatewayfilter.engine.adblock.index.modifier_index`."""

import pytest

from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.index.modifier_index import (
    Group,
    ModifierIndex,
    ParamPlan,
    addresses_of,
    group_of,
    pack_modifiers,
    param_of,
)
from gatewayfilter.engine.adblock.index.rule_index import IndexPlan
from gatewayfilter.engine.adblock.index.rule_table import RuleColumns, pack_rules
from gatewayfilter.engine.adblock.index.sections import SectionReader, pack_numbers, pack_sections
from gatewayfilter.engine.adblock.syntax.parser import parse_line
from gatewayfilter.errors import SnapshotError
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

ALL_ON: frozenset[int] = frozenset()


def index_of(*rules: str) -> ModifierIndex:
    builder = AdblockBuilder(judge=False)
    assert builder.add_list(0, rules).rejected == 0
    return ModifierIndex(SectionReader(SectionReader(memoryview(builder.build())).last()))


def asked(url: str, source: str | None = None, kind: str = "document") -> Request:
    return Request(parse_url(url), parse_url(source) if source else None, ResourceType(kind))


A, B, P = "https://a.test/x", "https://b.test/x", "https://p.test/"


@all_cases(
    ("rule", "url", "source", "kind", "concerned"),
    [
        ("||a.test^$removeheader=request:dnt", A, None, "document", True),
        ("||a.test^$removeheader=request:dnt", A, P, "script", True),
        ("||a.test^$removeheader=request:dnt", B, None, "document", False),
        ("||a.test^$removeheader=request:dnt", B, P, "script", False),
        ("||a.test^$removeheader=request:dnt,script", A, P, "script", True),
        ("||a.test^$removeheader=request:dnt,script", A, P, "image", False),
        ("||a.test^$removeheader=request:dnt,script", A, None, "document", False),
        ("||a.test^$removeheader=request:dnt,script", A, P, "document", False),
        ("*$removeheader=request:dnt,document,domain=p.test", A, P, "document", True),
        ("*$removeheader=request:dnt,document,domain=a.test", A, P, "document", True),
        ("*$removeheader=request:dnt,document,domain=b.test", A, P, "document", False),
        ("*$removeheader=request:dnt,script,domain=p.test", A, P, "script", True),
        ("*$removeheader=request:dnt,script,domain=p.test", A, None, "script", False),
        ("||a.test^$removeheader=dnt", A, None, "document", False),
        ("||a.test^$removeparam=q", A, None, "document", False),
        ("||a.test^$csp=x", A, None, "document", False),
        ("||a.test^$urlskip=?u", A, None, "document", True),
        ("||a.test^$removeparam=/q/", A, None, "document", True),
    ],
)
def test_requests_that_rules_may_change(rule: str, url: str, source: str | None, kind: str, *, concerned: bool) -> None:
    index = index_of(rule)
    request = asked(url, source, kind)
    assert index.concern(request)[0] is concerned
    assert index.finds_any(Group.REQUEST, request) is concerned
    assert bool(index.find(Group.REQUEST, request, ALL_ON)) is concerned


@all_cases(
    ("rule", "url", "source", "kind", "named"),
    [
        ("$removeparam=q", A, None, "document", True),
        ("$removeparam=q", A, P, "script", True),
        ("||a.test^$removeparam=q", A, None, "document", True),
        ("||a.test^$removeparam=q", "https://www.a.test/", None, "document", True),
        ("||a.test^$removeparam=q", B, None, "document", False),
        ("$removeparam=q,to=a.test|b.test", B, None, "document", True),
        ("$removeparam=q,to=a.test", B, None, "document", False),
        ("$removeparam=q,to=b.*", B, None, "document", True),
        ("||a.test^$removeparam=q,to=www.a.test", A, None, "document", False),
        ("$removeparam=q,domain=p.test", A, P, "document", True),
        ("$removeparam=q,domain=p.*", A, P, "document", True),
        ("$removeparam=q,domain=a.test", A, P, "document", True),
        ("$removeparam=q,domain=b.test", A, P, "document", False),
        ("$removeparam=q,domain=/^b/", A, P, "document", True),
        ("$removeparam=q,script,domain=p.test", A, P, "script", True),
        ("$removeparam=q,script,domain=a.test", A, P, "script", False),
        ("$removeparam=q,script,domain=p.test", A, None, "script", False),
        ("@@||a.test^$removeparam=q", A, None, "document", False),
        ("$removeparam=/q/", A, None, "document", False),
    ],
)
def test_parameters_that_may_go(rule: str, url: str, source: str | None, kind: str, *, named: bool) -> None:
    assert index_of(rule).concern(asked(url, source, kind))[1] == ({"q"} if named else set())


def test_the_parameters_of_both_sources_of_a_page_may_go() -> None:
    index = index_of("$removeparam=q,domain=p.test", "$removeparam=r r,domain=a.test", "$removeparam=s,domain=b.test")
    assert index.concern(asked(A, P))[1] >= {"q", "r r", "r+r", "r%20r"}
    assert "s" not in index.concern(asked(A, P))[1]
    found = index.find_params(["q", "r r", "s", "t"], asked(f"{A}?q=1", P), ALL_ON)
    assert sorted(rule.value for rule in found) == ["q", "r r"]
    assert index.find_params(["q", "r r", "s"], asked(f"{A}?q=1", P), frozenset({0})) == []


@all_cases(
    ("rule", "host", "source", "kind", "may"),
    [
        ("||a.test^$redirect-rule=noopjs", "a.test", "", "script", True),
        ("||a.test^$redirect-rule=noopjs", "b.test", "", "script", False),
        ("||a.test^$redirect-rule=noopjs,image", "a.test", "", "script", False),
        ("||a.test^$redirect-rule=noopjs,domain=p.test", "a.test", "p.test", "script", True),
        ("||a.test^$redirect-rule=noopjs,domain=p.test", "a.test", "q.test", "script", False),
        ("/ad$redirect-rule=noopjs", "a.test", "q.test", "script", True),
        ("||a.test^$csp=x", "a.test", "", "subdocument", False),
    ],
)
def test_stubs_that_may_be_named_between_two_hosts(rule: str, host: str, source: str, kind: str, *, may: bool) -> None:
    assert index_of(rule).may_find(Group.REDIRECT, host, source, ResourceType(kind)) is may


@all_cases(
    ("rule", "asks"),
    [
        ("||a.test^$csp=x", True),
        ("||a.test^$removeheader=refresh", True),
        ("||a.test^$removeheader=request:dnt", False),
        ("*$script,ipaddress=192.0.2.1", True),
        ("||a.test^$script,header=x", True),
        ("||a.test^$redirect-rule=noopjs", False),
        ("@@||a.test^$ghide", False),
    ],
)
def test_whether_any_rule_is_about_responses(rule: str, *, asks: bool) -> None:
    assert index_of(rule).asks_responses is asks


def test_rules_are_found_by_the_address_of_the_server() -> None:
    index = index_of("||a.test^$ipaddress=192.0.2.1|2001:db8::1", "*$script,ipaddress=192.0.2.1", "||a.test^$header=x")
    for address, source, kind, rules in (
        ("192.0.2.1", P, "script", [0, 1]), ("2001:DB8:0::1", P, "script", [0]), ("192.0.2.1", P, "image", [0]),
        ("192.0.2.2", P, "script", []), ("nonsense", P, "script", []),
    ):  # fmt: skip
        found = index.find_addresses(address, asked(A, source, kind), ALL_ON)
        assert sorted(rule.match.line - 1 for rule in found) == rules
        assert index.find_addresses(address, asked(A, source, kind), frozenset({0})) == []
    assert sorted(rule.match.line for rule in index.find_conditional(asked(A, P, "script"), ALL_ON)) == [1, 2, 3]
    assert sorted(rule.match.line for rule in index.find_conditional(asked(B, P, "script"), ALL_ON)) == [2]
    assert index_of("||a.test^$header=x").find_addresses("192.0.2.1", asked(A), ALL_ON) == []


def test_by_what_a_rule_is_found() -> None:
    for line, group, param, addresses in (
        ("*$removeparam=q", Group.REQUEST, "q", ()), ("*$removeparam=/q/", Group.REQUEST, "", ()),
        ("*$removeparam", Group.REQUEST, "", ()), ("*$removeparam=~q", Group.REQUEST, "", ()),
        ("@@*$removeparam=q", Group.REQUEST, "", ()), ("*$urlskip=?u", Group.REQUEST, "", ()),
        ("*$removeheader=request:dnt", Group.REQUEST, "", ()), ("*$removeheader=REQUEST:dnt", Group.REQUEST, "", ()),
        ("*$removeheader=refresh", Group.RESPONSE, "", ()), ("@@*$removeheader", Group.RESPONSE, "", ()),
        ("*$csp=x", Group.RESPONSE, "", ()), ("*$permissions=x", Group.RESPONSE, "", ()),
        ("*$replace=/a/b/", Group.RESPONSE, "", ()),
        ("*$script,header=x", Group.RESPONSE, "", ()), ("*$script,ipaddress=192.0.2.1", Group.RESPONSE, "", ("192.0.2.1",)),
        ("@@*$script,ipaddress=192.0.2.1", Group.RESPONSE, "", ()), ("*$script,ipaddress=192.0.2.*", Group.RESPONSE, "", ()),
        ("*$redirect-rule=noopjs", Group.REDIRECT, "", ()), ("@@||a.test^$redirect=noopjs", Group.REDIRECT, "", ()),
        ("@@*$generichide", Group.PAGE, "", ()), ("@@*$elemhide", Group.PAGE, "", ()),
        ("@@*$genericblock", Group.SUSPEND, "", ()),
    ):  # fmt: skip
        (rule,) = parse_line(line).rules
        assert (group_of(rule), param_of(rule), addresses_of(rule)) == (group, param, addresses), line


def test_what_an_exception_lifts() -> None:
    for exception, rule, lifts in (
        ("@@*$csp", "*$csp=x", True), ("@@*$csp=x", "*$csp=x", True), ("@@*$csp=y", "*$csp=x", False),
        ("@@*$csp", "*$csp=x,important", False), ("@@*$csp,important", "*$csp=x,important", True),
        ("@@*$csp,important", "*$csp=x", True), ("@@*$csp=y,important", "*$csp=x", False),
    ):  # fmt: skip
        index = index_of(exception, rule)
        assert index.ready(0).lifts(index.ready(1)) is lifts, (exception, rule)


def test_a_form_with_another_number_of_groups_or_names_is_refused() -> None:
    sections = pack_modifiers(RuleColumns([], [], []), ParamPlan(), {}, [IndexPlan() for _ in Group])

    def opened(changed: list[bytes]) -> ModifierIndex:
        return ModifierIndex(SectionReader(memoryview(pack_sections(changed))))

    assert opened(sections).asks_responses is False
    for kinds in (len(Group) - 1, len(Group) + 1):
        with pytest.raises(ValueError, match="zip"):
            opened([*sections[:-1], pack_numbers([0] * kinds)])
    place = len(pack_rules(RuleColumns([], [], [])))  # behind the rules: names of parameters
    for starts, numbers in (([0], [5]), ([0, 0, 0], []), ([], [])):
        changed = [*sections[: place + 1], pack_numbers(starts), pack_numbers(numbers), *sections[place + 3 :]]
        with pytest.raises(SnapshotError, match="damaged"):
            opened(changed)
