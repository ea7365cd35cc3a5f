"""Effects of modifier rules whose list is off or cancelled, and what is prepared: `gatewayfilter.engine.adblock.effects`."""

import pytest

from gatewayfilter.engine.adblock.compiler import AdblockBuilder
from gatewayfilter.engine.adblock.effects import AdblockEffects
from gatewayfilter.engine.adblock.index import cosmetic_index, rule_table
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.urls import parse_url

NAMES = ("first", "second")
PAGE = parse_url("https://a.test/?q=1&r=2")
HTML = {"content-type": "text/html"}


def effects_of(*lists: list[str]) -> AdblockEffects:
    builder = AdblockBuilder(judge=False)
    for source, lines in enumerate(lists):
        assert builder.add_list(source, lines).rejected == 0
    return AdblockEffects(builder.build())


def done(effects: AdblockEffects, off: frozenset[int]) -> list[bool]:
    """Returns which effects there are: on request, response, stub, page, and blocks of its parts."""
    page, script = Request(PAGE), Request(PAGE, PAGE, ResourceType.SCRIPT)
    stub = effects.stub_rule(script, NAMES, off)
    assert effects.stub(script, off) == ("noopjs" if stub else "")
    assert stub is None or effects.may_stub("a.test", "a.test", ResourceType.SCRIPT, off) is True
    return [
        effects.change_request(page, NAMES, off) is not None,
        effects.change_response(page, HTML, "", NAMES, off) is not None,
        stub is not None,
        bool(effects.switches(PAGE, off)),
        effects.suspends_generic(PAGE, off) is not None,
    ]


RULES = (
    ("||a.test^$removeparam=q", 0),
    ("||a.test^$removeparam=/^q/", 0),
    ("||a.test^$removeheader=request:dnt,document", 0),
    ("||a.test^$csp=sandbox", 1),
    ("||a.test^$removeheader=refresh,document", 1),
    ("||a.test^$redirect-rule=noopjs", 2),
    ("@@||a.test^$ghide", 3),
    ("@@||a.test^$genericblock", 4),
)


def test_a_rule_is_in_force_while_its_list_is_on_and_the_one_that_cancels_it_off() -> None:
    for rule, place in RULES:
        effects = effects_of([rule], ["||b.test^$csp=x"])
        for off in ((), (0,), (1,), (0, 1)):
            assert done(effects, frozenset(off)) == [each == place and 0 not in off for each in range(5)], (rule, off)
        effects = effects_of([rule], [f"{rule},badfilter"])
        for off in ((), (0,), (1,), (0, 1)):
            assert done(effects, frozenset(off)) == [each == place and off == (1,) for each in range(5)], (rule, off)


def test_pages_have_no_stub_and_rules_of_other_hosts_no_effect() -> None:
    effects = effects_of([rule.replace("a.test", "b.test") for rule, _ in RULES])
    assert done(effects, frozenset()) == [False] * 5
    effects = effects_of(["||a.test^$redirect-rule=noopjs,document"])
    assert effects.stub_rule(Request(PAGE), NAMES) is None


def test_which_requests_may_get_a_stub() -> None:
    rule = "||a.test^$redirect-rule=noopjs,script,document"
    for lists, host, kind, off, may in (
        (([rule],), "a.test", "script", (), True), (([rule],), "b.test", "script", (), False),
        (([rule],), "a.test", "image", (), False), (([rule],), "a.test", "document", (), False),
        (([rule], [f"{rule},badfilter"]), "a.test", "script", (), False),
        (([rule], [f"{rule},badfilter"]), "a.test", "script", (0,), False),
        (([rule], [f"{rule},badfilter"]), "a.test", "script", (1,), True),
        (([rule], [f"{rule},badfilter"]), "a.test", "document", (1,), False),
        (([rule], ["||b.test^$csp=x"]), "b.test", "script", (1,), False),
    ):  # fmt: skip
        assert effects_of(*lists).may_stub(host, "p.test", ResourceType(kind), frozenset(off)) is may, (lists, host, kind, off)


def test_of_stubs_with_the_same_priority_the_first_is_taken() -> None:
    script = Request(PAGE, PAGE, ResourceType.SCRIPT)
    for rules, stub in (
        (["noopjs:3", "1x1.gif:3"], "noopjs"), (["noopjs:3", "1x1.gif:4"], "1x1.gif"), (["noopjs:4", "1x1.gif:3"], "noopjs"),
        (["noopjs", "1x1.gif:1"], "1x1.gif"), (["noopjs:-1", "1x1.gif"], "1x1.gif"),
    ):  # fmt: skip
        assert effects_of([f"||a.test^$redirect-rule={value}" for value in rules]).stub(script) == stub, rules


def test_a_response_without_a_change_has_none() -> None:
    for rules in (["##.ad"], ["a.test##.ad"], ["a.test##^responseheader(refresh)"], ["||a.test^$csp=x"]):
        effects = effects_of(rules)
        for url, kind in (("https://b.test/", "script"), ("https://a.test/", "image"), ("https://b.test/", "document")):
            headers = HTML if rules != ["##.ad"] else {}
            assert effects.change_response(Request(parse_url(url), PAGE, ResourceType(kind)), headers, "", NAMES) is None


def test_a_rule_names_the_list_that_it_is_from() -> None:
    effects = effects_of(["||a.test^$csp=x"], ["||a.test^$removeheader=refresh,document", "||a.test^$removeparam=q"])
    found = effects.change_response(Request(PAGE), HTML, "", NAMES)
    assert found is not None
    assert [(rule.source_list, rule.line) for rule in found[0].rules] == [("first", 1), ("second", 1)]
    changed = effects.change_request(Request(PAGE), NAMES)
    assert changed is not None
    assert [(rule.source_list, rule.line, rule.modifier) for rule in changed.rules] == [("second", 2, "removeparam")]
    assert effects.rule_count == 3


def test_rules_for_every_site_are_compiled_before_the_first_page(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [
        *("*$csp=x,domain=~a.test", "*$removeheader=request:dnt,domain=~a.test", "*$redirect-rule=noopjs,domain=~a.test"),
        *("@@*$ghide,domain=~a.test", "@@*$genericblock,domain=~a.test", "##.a", "##.b", "#@#.b"),
    ]
    kinds = (ResourceType.DOCUMENT, ResourceType.SUBDOCUMENT, ResourceType.SCRIPT, ResourceType.XMLHTTPREQUEST)
    effects = effects_of(rules)
    effects.prepare(frozenset())

    def compile_late(_rule: object) -> None:
        pytest.fail("a rule was compiled for a page")

    monkeypatch.setattr(rule_table, "CompiledRule", compile_late)
    monkeypatch.setattr(cosmetic_index, "read_cosmetic", compile_late)
    for kind in kinds:
        request = Request(PAGE, PAGE, kind)
        found = effects.change_response(request, HTML, "", NAMES)
        style = found[0].style if found is not None else ""
        assert style == (".a{display:none!important}" if kind is ResourceType.DOCUMENT else "")
        assert effects.change_request(request, NAMES) is None
        assert effects.stub(request) == ""
    assert effects.switches(PAGE) == {}
    assert effects.suspends_generic(PAGE) is None
