"""People's rules: how they are written, what they cover, and that none can hang the filter."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.engine.state.manual_rules import (
    MAX_PATTERN_LENGTH,
    ManualRules,
    classify_pattern,
    compile_pattern,
    written_pattern,
)
from gatewayfilter.engine.state.wildcards import SearchedUrl
from gatewayfilter.errors import RuleError
from gatewayfilter.model import EntryKind, ListAction, ManualRule
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases

URL, PREFIX, HOST, DOMAIN = EntryKind.URL, EntryKind.PREFIX, EntryKind.HOST, EntryKind.DOMAIN
WILDCARD, REGEX = EntryKind.WILDCARD, EntryKind.REGEX


def rule(pattern: str, kind: EntryKind | None = None, **facts: object) -> ManualRule:
    found, text = (kind, pattern) if kind else classify_pattern(pattern, force=True)
    action = ListAction(str(facts.get("action", "block")))
    expires_at = facts.get("expires_at")
    assert expires_at is None or isinstance(expires_at, float)
    return ManualRule(1, action, found, text, group=str(facts.get("group", "")), expires_at=expires_at)


def covers(pattern: str, url: str) -> bool:
    rules, parsed = ManualRules([rule(pattern)]), parse_url(url)
    return rules.find(parsed, rules.for_host(parsed), 0.0) is not None


@all_cases(
    ("pattern", "path", "blocked"),
    [
        ("example.com/bad", "/bad", True),
        ("example.com/bad", "/bad?x", True),
        ("example.com/bad", "/bad?", True),
        ("example.com/bad", "/bad/", True),
        ("example.com/bad", "/bad/?x=1&y", True),
        ("example.com/bad/", "/bad", True),
        ("example.com/bad", "/bad/x", False),
        ("example.com/bad", "/bad.html", False),
        ("example.com/bad", "/", False),
        ("example.com/", "/?p=1", True),
        ("example.com/", "/bad", False),
        ("example.com/bad?x=1", "/bad?x=1", True),
        ("example.com/bad?x=1", "/bad?x=2", False),
        ("example.com/bad?x=1", "/bad", False),
    ],
)
def test_a_page_is_blocked_with_any_query_and_allowed_as_it_is(pattern: str, path: str, *, blocked: bool) -> None:
    url = parse_url(f"https://example.com{path}")
    found = []
    for action in ("block", "allow"):
        rules = ManualRules([rule(pattern, URL, action=action)])
        found.append(rules.find(url, rules.for_host(url), 0.0) is not None)
        assert rules.of_parts(url, ListAction(action))
    assert found == [blocked, url.key == pattern]


@all_cases(
    ("text", "kind", "pattern"),
    [
        ("example.com", DOMAIN, ".example.com"),
        (" Example.COM. ", DOMAIN, ".example.com"),
        (".example.com", DOMAIN, ".example.com"),
        ("*.example.com", DOMAIN, ".example.com"),
        ("||example.com^", DOMAIN, ".example.com"),
        ("bücher.example", DOMAIN, ".xn--bcher-kva.example"),
        ("|example.com", HOST, "example.com"),
        ("192.0.2.7", HOST, "192.0.2.7"),
        ("[2001:db8::1]", HOST, "[2001:db8::1]"),
        ("2001:db8::1", HOST, "[2001:db8::1]"),
        ("https://example.com/a?b", URL, "example.com/a?b"),
        ("example.com/", URL, "example.com/"),
        ("http://example.com", URL, "example.com/"),
        ("example.com/%61", URL, "example.com/a"),
        ("example.com:8443/a", URL, "example.com:8443/a"),
        ("example.com/a/*", PREFIX, "example.com/a/*"),
        ("https://example.com/*", PREFIX, "example.com/*"),
        ("example.com:8443", PREFIX, "example.com:8443/*"),
        ("*.example.com/*", WILDCARD, "*.example.com/*"),
        ("*.example.com:8443", WILDCARD, "*.example.com:8443"),
        ("*.cdn.*/banner*", WILDCARD, "*.cdn.*/banner*"),
        ("example.com/*?x=1", WILDCARD, "example.com/*?x=1"),
        ("/ads?[0-9]+/", REGEX, "ads?[0-9]+"),
    ],
)
def test_what_people_write(text: str, kind: EntryKind, pattern: str) -> None:
    assert classify_pattern(text) == (kind, pattern)


@all_cases(
    ("text", "why"),
    [
        ("", "printable"),
        ("a\nb", "printable"),
        ("x" * 3_000, "may have 2048 characters"),
        ("/ads", "does not end with a slash"),
        ("//", "does not end with a slash"),
        ("/(/", "regular expression"),
        (r"/(a)\1/", "regular expression"),
        ("exa mple.com", "no URL, host, wildcard"),
        ("|", "no URL, host, wildcard"),
        ("ftp://example.com/x", "no URL, host, wildcard"),
        ("com", "public suffix"),
        ("co.uk", "public suffix"),
        ("*", "nearly every URL"),
        ("http*://*.c*", "nearly every URL"),
        ("/.*/", "every URL"),
        ("/^(http|ws)/", "every URL"),
    ],
)
def test_what_is_no_pattern_is_one_sentence(text: str, why: str) -> None:
    with pytest.raises(RuleError, match=why) as caught:
        classify_pattern(text)
    assert "\n" not in str(caught.value)


@all_cases("text", ["com", "*", "/.*/"])
def test_force_takes_what_is_too_broad(text: str) -> None:
    classify_pattern(text, force=True)


@given(st.text(max_size=40))
def test_any_text_is_a_pattern_or_a_rule_error(text: str) -> None:
    try:
        kind, pattern = classify_pattern(text)
    except RuleError:
        return
    compile_pattern(kind, pattern)
    url = parse_url("https://www.example.com:8080/a/b?c")
    rules = ManualRules([ManualRule(1, ListAction.BLOCK, kind, pattern)])
    rules.find(url, rules.for_host(url), 0.0)


@all_cases(
    ("pattern", "covered", "not_covered"),
    [
        ("example.com", ["http://example.com/", "wss://a.b.example.com:81/x"], ["http://example.com.evil.test/", "http://anexample.com/"]),
        ("|example.com", ["https://example.com/x"], ["https://www.example.com/x"]),
        ("192.0.2.7", ["http://192.0.2.7:81/"], ["http://1.192.0.2.7.test/"]),
        ("example.com/a?b=1", ["http://example.com/a?b=1", "https://example.com/%61?b=1"], ["http://example.com/a", "http://example.com/a?b=12"]),
        ("example.com/a/*", ["http://example.com/a", "http://example.com/a/b?c", "http://www.example.com/a/"], ["http://example.com/ab"]),
        ("example.com:81", ["http://example.com:81/x", "http://www.example.com:81/x"], ["http://example.com/x"]),
        ("*.example.com/*", ["http://a.example.com/", "http://example.com/x", "http://a.example.com:81/x"], ["http://anexample.com/"]),
        ("*.example.com/x", ["http://a.example.com/X"], ["http://a.example.com/xy"]),
        ("ads*.example.com", ["http://ads7.example.com/x", "http://ads.example.com:81/"], ["http://bads.example.com/"]),
        ("*casino*", ["http://casino.test/", "http://x.test/a/Casino.html", "http://x.test/?q=casino"], ["http://x.test/casin"]),
        ("https://*/secret*", ["https://x.test/secret?a"], ["http://x.test/secret"]),
        ("http*://*.x.test/*", ["http://x.test/", "https://a.x.test/"], ["wss://x.test/"]),
        ("*aa*aa*", ["http://x.test/aaaa"], ["http://x.test/aaa"]),
        ("x.test/a*a", ["http://x.test/aa"], ["http://x.test/a"]),
        ("/ads?[0-9]+/", ["http://x.test/AD7", "http://ads12.test/"], ["http://x.test/ads"]),
        ("/^https:/", ["https://x.test/"], ["http://x.test/https:"]),
        (r"/\.zip$/", ["http://x.test/a.zip"], ["http://x.test/a.zip?x"]),
    ],
)  # fmt: skip
def test_what_a_pattern_covers(pattern: str, covered: list[str], not_covered: list[str]) -> None:
    assert [url for url in covered if not covers(pattern, url)] == []
    assert [url for url in not_covered if covers(pattern, url)] == []


@all_cases(
    ("pattern", "covered", "stretched"),
    [
        ("*.good.test/a*", ["http://good.test/a", "http://x.good.test:81/ab?c"],
         ["http://bad.test/?.good.test/a", "http://bad.test/x.good.test/a", "http://bad.test/a?b/x.good.test/a"]),
        ("https://*.good.test/*", ["https://x.good.test/a/b"], ["https://bad.test/?.good.test/"]),
        ("*.cdn.*/banner*", ["http://a.cdn.test/banner1"], ["http://bad.test/?a.cdn.x/banner", "http://bad.test/a.cdn.b/banner"]),
        ("good.*/x", ["http://good.test/x"], ["http://good.test/secret?/x", "http://good.bad.test/secret/x"]),
        ("*.good.test:8443", ["http://x.good.test:8443/a"], ["http://bad.test/?.good.test:8443"]),
        ("*/free/*.js", ["http://any.test/free/a.js", "http://any.test/x/free/a.js"], []),
        ("*good*.js", ["http://any.test/good/a.js"], []),
    ],
)  # fmt: skip
def test_an_allow_for_a_host_is_not_stretched_to_others(pattern: str, covered: list[str], stretched: list[str]) -> None:
    kind, pattern = classify_pattern(pattern)
    rules = ManualRules(
        [ManualRule(1, ListAction.ALLOW, kind, pattern), ManualRule(2, ListAction.BLOCK, EntryKind.REGEX, "http")]
    )
    decided = {text: find(rules, text) for text in [*covered, *stretched]}
    assert [text for text, rule in decided.items() if rule is not None and rule.action is ListAction.ALLOW] == covered


@given(st.text("ab*", max_size=8), st.text("ab", max_size=8))
def test_a_wildcard_equals_a_naive_glob(pattern: str, text: str) -> None:
    def naive(pattern: str, text: str) -> bool:
        if not pattern:
            return not text
        if pattern[0] == "*":
            return any(naive(pattern[1:], text[start:]) for start in range(len(text) + 1))
        return bool(text) and text[0] == pattern[0] and naive(pattern[1:], text[1:])

    matches = compile_pattern(WILDCARD, f"x/{pattern}")
    assert matches is not None
    assert matches(SearchedUrl(parse_url(f"http://x/{text}"))) == naive(pattern, text)


@all_cases("pattern", [r"(a)\1", r"^(?=a)(a+)+$", r"(?=x)x.*.*x"])
def test_expressions_that_could_hang_are_refused(pattern: str) -> None:
    with pytest.raises(RuleError):
        compile_pattern(REGEX, pattern)


@all_cases(
    "pattern",
    [
        *(r"a+b?a+c", r"[a-z]*a[a-z]*!", r"(foo|bar)+z", r"^http://x/(a|b)+!"),
        # these only because another engine searches for them, which never goes back
        *(r"^(a+)+$", r"x(a|aa)+$", r"x(a*)*b", r"(.*a){20}", r"(x+x+)+y", r"^(\w+\s?)*$", r"x.*.*x"),
    ],
)
def test_expressions_that_are_taken_end_soon_on_the_worst_url(pattern: str) -> None:
    """No stopwatch: a search without a bound would not end within the test's time limit."""
    matches = compile_pattern(REGEX, pattern)
    assert matches is not None
    for text in ("a" * 60_000, "foobar" * 10_000, "ab" * 30_000):
        matches(SearchedUrl(parse_url(f"http://x/{text}")))


def test_wildcards_with_many_stars_end_soon() -> None:
    matches = compile_pattern(WILDCARD, "*a" * 500 + "!")
    assert matches is not None
    assert not matches(SearchedUrl(parse_url("http://x/" + "a" * 60_000)))


def find(rules: ManualRules, text: str, now: float = 0.0) -> ManualRule | None:
    url = parse_url(text)
    return rules.find(url, rules.for_host(url), now)


def test_allow_beats_block_whatever_is_more_specific() -> None:
    allow, block = rule("example.com", action="allow"), rule("example.com/bad")
    assert find(ManualRules([block, allow]), "http://example.com/bad") == allow
    assert find(ManualRules([block]), "http://example.com/bad") == block


def test_expiry_is_honoured_when_deciding() -> None:
    rules = ManualRules([rule("example.com", expires_at=100.0)])
    assert find(rules, "http://example.com/", 99.9) is not None
    assert find(rules, "http://example.com/", 100.0) is None


def test_a_group_is_only_a_name_for_rules() -> None:
    rules = ManualRules([rule("example.com", group="kids"), rule("|example.com", action="allow", group="work")])
    found = find(rules, "http://example.com/")
    assert found is not None
    assert found.group == "work"


def test_a_rule_that_is_switched_off_is_kept_but_not_applied() -> None:
    on = [rule("example.com"), rule("*casino*"), rule("example.com/x/*")]
    rules = ManualRules([replace(item, enabled=False) for item in on])
    assert (len(rules), bool(rules)) == (3, False)
    assert find(rules, "http://example.com/casino") is None
    assert find(rules.switched_off(), "http://example.com/casino") == on[0]
    assert find(rules.changed(on, []), "http://example.com/casino") == on[0]
    assert len(rules.changed(on, []).switched_off()) == 0


def test_a_rule_that_cannot_be_compiled_is_kept_but_not_applied() -> None:
    rules = ManualRules([rule("^(a+)+$", REGEX), rule("example.com")])
    assert len(rules) == 2
    assert find(rules, "http://x.test/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!") is None


def test_changes_add_replace_and_remove_without_touching_the_old_rules() -> None:
    old = ManualRules([rule("example.com"), rule("*casino*")])
    allow = rule("example.com", action="allow")
    new = old.changed([allow, rule("/poker/")], [rule("*casino*")])
    assert find(new, "http://example.com/") == allow
    assert find(new, "http://x.test/casino") is None
    assert find(new, "http://x.test/poker") is not None
    assert len(new) == 2
    assert find(old, "http://example.com/") == rule("example.com")
    assert find(old, "http://x.test/casino") is not None


def test_verdicts_show_a_regular_expression_between_slashes() -> None:
    assert [written_pattern(rule(text)) for text in ("/ad[sx]/", "example.com")] == ["/ad[sx]/", ".example.com"]


def test_force_takes_no_expression_that_could_hang() -> None:
    for text in (r"/(a)\1/", "/(/"):
        with pytest.raises(RuleError):
            classify_pattern(text, force=True)


def test_an_expression_has_a_character_at_least() -> None:
    assert classify_pattern("/q/") == (EntryKind.REGEX, "q")
    for text in ("/", "//"):
        with pytest.raises(RuleError, match="does not end with a slash"):
            classify_pattern(text)


def test_a_wildcard_has_three_letters_or_digits() -> None:
    assert classify_pattern("*ab1*") == (EntryKind.WILDCARD, "*ab1*")
    assert classify_pattern("https://*ab1*") == (EntryKind.WILDCARD, "https://*ab1*")
    for text in ("*ab*", "https://*ab*", "*://*a-b*"):
        with pytest.raises(RuleError, match="fits nearly every URL"):
            classify_pattern(text)


def test_a_pattern_may_have_as_many_characters_as_its_bound() -> None:
    text = "x.example/" + "a" * (MAX_PATTERN_LENGTH - 10)
    assert classify_pattern(text) == (EntryKind.URL, text)
    with pytest.raises(RuleError, match=f"{MAX_PATTERN_LENGTH} characters, not {MAX_PATTERN_LENGTH + 1}"):
        classify_pattern(text + "a")
