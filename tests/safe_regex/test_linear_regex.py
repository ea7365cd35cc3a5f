"""Expressions that RE2 runs: how JavaScript's syntax is translated, what is refused and why, and replacements."""

from types import SimpleNamespace

import pytest

from gatewayfilter.errors import RuleError, UnsupportedError
from gatewayfilter.safe_regex import re2
from gatewayfilter.safe_regex.re2 import Substitution, compile_linear, split_substitution, translate


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        ("a", "a"), (r"\u{61}", r"\x{61}"), (r"\u{10FFFF}", r"\x{10FFFF}"), (r"\u4e2d", r"\x{4e2d}"), (r"\cA", r"\x01"),
        (r"\cj", r"\x0a"),
        (r"\cZ", r"\x1a"), (r"\é", "é"), (r"\中x", "中x"), ("[^]", r"[\s\S]"), ("[]", r"[^\s\S]"), (r"\.", r"\."),
        (r"\\u0041", r"\\u0041"),
        ("[^a]", "[^a]"), ("a[]b[^]", r"a[^\s\S]b[\s\S]"), (r"\u{1234567}", r"\u{1234567}"), (r"\u41", r"\u41"), ("\n", "\n"),
        ("", ""),
    ],
)  # fmt: skip
def test_translation_to_re2(text: str, translated: str) -> None:
    assert translate(text) == translated


@pytest.mark.parametrize(
    ("text", "flags", "matches", "misses"),
    [
        ("a.c", "", "abc", "a\nc"), ("a.c", "s", "a\nc", "ac"), ("abc", "i", "aBC", "ab"), ("abc", "", "abc", "ABC"),
        ("^b$", "m", "a\nb", "a\nab"),
        ("^b$", "", "b", "a\nb"), (r"\u0062", "gimsuy", "B", "c"), ("[]", "", "", "a"), ("[^]b", "", "\nb", "b"),
    ],
)  # fmt: skip
def test_flags_of_an_expression(text: str, flags: str, matches: str, misses: str) -> None:
    search = compile_linear(text, flags).search
    assert (search(matches) is not None) is (text != "[]")
    assert search(misses) is None


@pytest.mark.parametrize(
    ("text", "flags", "kind", "reason"),
    [
        ("a", "x", RuleError, "unknown flags 'x' of"), ("a", "x" * 30, RuleError, f"unknown flags '{'x' * 20}' of"),
        ("(?=a)", "", UnsupportedError, "look-around, back-reference or long repetition"),
        (r"(a)\1", "", UnsupportedError, "back-reference"),
        ("a{2000}", "", UnsupportedError, "long repetition"), ("((a{100}){100}){100}", "", UnsupportedError, "long repetition"),
        ("(a", "", RuleError, "is not valid: missing"), ("[b-a]", "", RuleError, "is not valid: invalid character class range"),
        ("\ud800", "", RuleError, "is not valid: $"),
    ],
)  # fmt: skip
def test_why_re2_does_not_run_an_expression(text: str, flags: str, kind: type[RuleError], reason: str) -> None:
    with pytest.raises(RuleError, match=reason) as refused:
        compile_linear(text, flags)
    assert type(refused.value) is kind


@pytest.mark.parametrize(
    ("expression", "replacement", "flags", "text", "edited"),
    [
        ("a", "b", "", "xaya", "xbya"), ("a", "b", "g", "xaya", "xbyb"), ("a", "b", "gi", "AaA", "bbb"),
        ("a", "", "g", "aXa", "X"),
        ("a", "b", "g", "xyz", "xyz"), ("(a)(b)?", "[$1|$2]", "g", "ab a", "[a|b] [a|]"), ("a", "$$&$&", "", "a", "$&a"),
        ("^", "x", "", "ab", "xab"),
        ("(?<n>a)", "<$<n>>", "", "ba", "b<a>"), ("a", "$1$0$01$10", "", "a", "$1$0$01$10"), ("(a)", "$01$10", "", "a", "a$10"),
        ("a", "b", "g", "a\ud800", "a\ud800"), ("", "-", "g", "ab", "-a-b-"),
    ],
)  # fmt: skip
def test_replacements(expression: str, replacement: str, flags: str, text: str, edited: str) -> None:
    assert Substitution(expression, replacement, flags).apply(text) == edited


def test_replacements_end_with_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the text is left as it is."""
    limit = re2.TIME_LIMIT_S
    times = [100.0, 100.0, 100.0 + limit, 100.0 + 1.5 * limit, 1_000.0]
    monkeypatch.setattr(re2, "time", SimpleNamespace(perf_counter=lambda: times.pop(0)))
    assert Substitution("a", "b", "g").apply("aaaaa") == "bbbaa"


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("/a/b/", ("a", "b", "")), ("/a/b/gi", ("a", "b", "gi")), ("//b/g", ("", "b", "g")), ("///", ("", "", "")),
        (r"/a\/b/c/", (r"a\/b", "c", "")),
        (r"/a/b\/c/g", ("a", "b/c", "g")), (r"/a\\/b/", ("a\\\\", "b", "")), ("'/a/b/'", ("a", "b", "")),
        ('"/a/b/g"', ("a", "b", "g")),
        ("`/a/b/`", ("a", "b", "")), ("/a/b/c/d", ("a", "b", "c/d")), ("/'/'/", ("'", "'", "")),
    ],
)  # fmt: skip
def test_parts_of_a_substitution(value: str, parts: tuple[str, str, str]) -> None:
    assert split_substitution(value) == parts


@pytest.mark.parametrize("value", ["", "'", "''", "/", "//", "/a/b", "a/b/c/", r"/a/b\/", "'/a/b/", "'/a/b\"", "/a\\", " /a/b/"])
def test_what_is_no_substitution(value: str) -> None:
    with pytest.raises(RuleError, match="has the form"):
        split_substitution(value)
