"""What cosmetic rules are read as, and what is told of others: `gatewayfilter.engine.adblock.syntax.cosmetic_rule`."""

import pytest

from gatewayfilter.engine.adblock.syntax.cosmetic_rule import MAX_BODY, Effect, read_any_cosmetic, read_cosmetic
from gatewayfilter.errors import RuleError, UnsupportedError

HIDE, STYLE, REMOVE, SCRIPT_TEXT, HEADER = Effect.HIDE, Effect.STYLE, Effect.REMOVE, Effect.SCRIPT_TEXT, Effect.HEADER


def test_effect_and_text() -> None:
    for line, effect, text, style in (
        ("##.ad", HIDE, ".ad", ""), ("##.a  >  .b", HIDE, ".a>.b", ""), ("a.test#?#.a:has(.b)", HIDE, ".a:has(.b)", ""),
        ("a.test##.a:-abp-has(.b)", HIDE, ".a:has(.b)", ""), ("a.test##.a:if(.b)", HIDE, ".a:has(.b)", ""),
        ("a.test##.a:remove()", REMOVE, ".a", ""), ("a.test#$#.a { remove: true; }", REMOVE, ".a", ""),
        ("a.test#$#.a {remove:true}", REMOVE, ".a", ""), ("a.test##.a:style(top: 0)", STYLE, ".a", "top:0!important"),
        ("a.test#$#.a { top: 0 }", STYLE, ".a", "top:0!important"),
        ("a.test#$?#.a:has(.b) { top: 0 }", STYLE, ".a:has(.b)", "top:0!important"),
        ("a.test##^.a", REMOVE, ".a", ""), ("a.test$$div[id]", REMOVE, "div[id]", ""),
        ("a.test##^script:has-text(x)", SCRIPT_TEXT, "x", ""), ("a.test##^script:contains(x)", SCRIPT_TEXT, "x", ""),
        ("a.test##^script:has-text(x):has-text(/y/i)", SCRIPT_TEXT, "x\n/y/i", ""),
        ("a.test##^div.a:has-text(x)", REMOVE, "div.a:has-text(x)", ""),
        ("a.test##^div:not(.a):contains(x)", REMOVE, "div:not(.a):has-text(x)", ""),
        ('a.test$$script[tag-content="x"]', SCRIPT_TEXT, "x", ""), ('a.test$$SCRIPT[tag-content="x"]', SCRIPT_TEXT, "x", ""),
        ("a.test##^responseheader( Set-Cookie )", HEADER, "set-cookie", ""),
        ("a.test##^responseheader(location)", HEADER, "location", ""),
    ):  # fmt: skip
        rule = read_cosmetic(line)
        assert (rule.effect, rule.text, rule.style, rule.exception, rule.path) == (effect, text, style, False, None), line
        assert rule.hosts.names == ({"a.test"} if line.startswith("a.test") else set()), line


def test_exceptions_need_no_host() -> None:
    for line, effect in (
        ("#@#.a", HIDE), ("#@?#.a:has(.b)", HIDE), ("#@$#.a { top: 0 }", STYLE), ("#$@#.a { top: 0 }", STYLE),
        ("#@#.a:style(top: 0)", STYLE), ("#@#.a:remove()", REMOVE), ("#@#^.a", REMOVE), ("#@#^script:has-text(x)", SCRIPT_TEXT),
        ("#@#^responseheader(refresh)", HEADER), ('$@$script[tag-content="x"]', SCRIPT_TEXT), ("a.test#@#.a", HIDE),
    ):  # fmt: skip
        rule = read_cosmetic(line)
        assert (rule.exception, rule.effect) == (True, effect), line


def test_what_a_proxy_cannot_apply_is_named() -> None:
    for line, name in (
        ("[$path=/x]a.test##.a", "[$…]"), ("a.test#%#x", "#%#"), ("a.test##+js(x)", "##+js"),
        ("a.test##script:inject(x)", "##+js"), ("a.test>>##.a", ">>"), ("##.a:style(top: 0)", "a style for every site"),
        ("~a.test##.a:style(top: 0)", "a style for every site"), ("##.a:remove()", "a removal on every site"),
        ("##^.a", "a removal on every site"), ("$$div[id]", "a removal on every site"),
        ("##^responseheader(refresh)", "a removal on every site"), ("a.test##^responseheader(x)", "##^responseheader()"),
        ("##.a:matches-media((width: 1px))", ":matches-media()"),
        ("a.test##.a:matches-media((width: 1px)):remove()", ":matches-media()"), ("##.a:matches-path(/x)", ":matches-path()"),
        ("a.test##.a:upward(1)", ":upward()"), ("a.test##^.a:upward(1)", "##^:upward()"),
        ("a.test##^.a:has-text(x) > :has-text(y)", "##^:has-text()"),
        ('a.test$$div[tag-content="x"]', "$$ with special attributes"),
        ('a.test$$script[id][tag-content="x"]', "$$ with special attributes"),
        ('a.test$$script[tag-content="x"][id]', "$$ with special attributes"),
        ('a.test$$script[wildcard="x"]', "$$ with special attributes"),
    ):  # fmt: skip
        with pytest.raises(UnsupportedError) as raised:
            read_cosmetic(line)
        assert raised.value.name == name, line


def test_what_is_no_rule_is_an_error() -> None:
    for line in (
        "a.test", "a.test#$#.a", "a.test#$#.a { top: 0", "a.test##.a {", "a.test##", "a.test#$#.a {}", "a b##.a", "~*##.a",
        "/(/##.a", "a.test##^script:has-text()", "a.test##^script:has-text(/(/)", "a.test$$responseheader(refresh)",
    ):  # fmt: skip
        with pytest.raises(RuleError) as raised:
            read_cosmetic(line)
        assert not isinstance(raised.value, UnsupportedError), line


def test_hosts_before_the_mark() -> None:
    for hosts, names, patterns, not_names, not_patterns in (
        ("a.test", {"a.test"}, (), set(), ()), ("a.test,~b.a.test", {"a.test"}, (), {"b.a.test"}, ()),
        (" a.test , A.b.Test,, ", {"a.test", "a.b.test"}, (), set(), ()), ("a.*", {"a.*"}, (), set(), ()),
        ("*", set(), (), set(), ()), ("*,~a.test", set(), (), {"a.test"}, ()),
        ("/a{1,2}/,b.test", {"b.test"}, ("a{1,2}",), set(), ()), ("~/a{1,2}/,b.test", {"b.test"}, (), set(), ("a{1,2}",)),
        ("/a/,/b/", set(), ("a", "b"), set(), ()), ("~a.test,~/b/", set(), (), {"a.test"}, ("b",)),
    ):  # fmt: skip
        rule = read_any_cosmetic(f"{hosts}##.a")
        assert (set(rule.hosts.names), rule.hosts.patterns) == (names, patterns), hosts
        assert (set(rule.not_hosts.names), rule.not_hosts.patterns) == (not_names, not_patterns), hosts
        assert rule.generic is not bool(names or patterns), hosts


def test_conditions_of_media_stand_around_the_css() -> None:
    for line, media, css in (
        ("a.test##.a:matches-media((width: 1px))", "(width: 1px)", "@media (width: 1px){.a{display:none!important}}"),
        ("a.test##.a:style(top: 0)", "", ".a{top:0!important}"),
        ("a.test##.a:matches-media((width: 1px) and (height: 2px))", "(width: 1px) and (height: 2px)", None),
    ):  # fmt: skip
        rule = read_cosmetic(line)
        assert rule.media == media
        assert rule.shared is not bool(media)
        assert css is None or rule.css == css


def test_what_follows_a_mark_is_bounded() -> None:
    for mark, begin in (("#?#", ""), ("##", "^"), ("$$", "")):
        selector = "div" + ",div" * 1_000
        longest = f"a.test{mark}{(begin + selector).ljust(MAX_BODY)}"
        assert read_any_cosmetic(longest).text == selector
        with pytest.raises(RuleError, match=f"longer than {MAX_BODY} characters"):
            read_any_cosmetic(f"{longest} ")
