"""How an expression is read: its sets of characters, its parts, and what is refused with which reason."""

import re

import pytest

from gatewayfilter.errors import RuleError
from gatewayfilter.safe_regex import syntax
from gatewayfilter.safe_regex.literals import literals_of
from gatewayfilter.safe_regex.syntax import Assertion, Chars, Choice, Node, Repeat, Sequence, fold_case, parse_regex

ASCII = "".join(map(chr, range(128)))
LETTERS = "abcdefghijklmnopqrstuvwxyz"
DIGITS = "0123456789"
WORD = DIGITS + LETTERS + LETTERS.upper() + "_"


def without(characters: str) -> str:
    return "".join(character for character in ASCII if character not in characters)


SETS = (
    ("a", "a"), ("A", "A"), (".", without("\n\r")), (r"\d", DIGITS), (r"\D", without(DIGITS)), (r"\w", WORD),
    (r"\W", without(WORD)),
    (r"\s", " \t\n\r\f\v"), (r"\S", without(" \t\n\r\f\v")), (r"\t", "\t"), (r"\n", "\n"), (r"\r", "\r"), (r"\f", "\f"),
    (r"\v", "\v"),
    (r"\0", "\0"), (r"\x41", "A"), (r"\x7f", "\x7f"), (r"\xE9", ""), (r"\u0061", "a"), (r"\u00e9", ""), (r"\u4e2d", ""),
    (r"\/", "/"),
    (r"\.", "."), (r"\é", ""), ("é", ""), ("[abc]", "abc"), ("[^abc]", without("abc")), ("[]", ""), ("[^]", ASCII),
    ("[a^]", "a^"),
    ("[a-c]", "abc"), ("[a-a]", "a"), ("[-a]", "-a"), ("[a-]", "a-"), ("[a-c-e]", "abc-e"), (r"[\d-z]", DIGITS + "-z"),
    (r"[a-\d]", "a-" + DIGITS), (r"[\w-\d]", WORD + "-"), (r"[\b]", "\b"), (r"[\b-\n]", "\b\t\n"), (r"[\x08-\b]", "\b"),
    (r"[\]]", "]"), (r"[\\-a]", "\\]^_`a"), ("[é-z]", ""), ("[z-é]", "z{|}~\x7f"), ("[é]", ""), ("[^é]", ASCII),
    (r"[\x61-c]", "abc"),
    ("[*+?.()|$]", "*+?.()|$"), ("{", "{"), ("}", "}"), ("]", "]"), ("-", "-"),
)  # fmt: skip
"""One character of an expression → the characters that it matches."""


def members(characters: str) -> int:
    return sum(1 << ord(character) for character in characters)


@pytest.mark.parametrize(("text", "characters"), SETS)
def test_sets_of_characters(text: str, characters: str) -> None:
    assert parse_regex(text, match_case=True) == Chars(members(characters))


@pytest.mark.parametrize(
    ("text", "characters"), [("a", "aA"), ("Z", "zZ"), ("[^a]", without("aA")), ("[a1@]", "aA1@"), (r"\x4B", "kK")]
)
def test_case_is_folded_where_it_does_not_matter(text: str, characters: str) -> None:
    assert parse_regex(text, match_case=False) == Chars(members(characters))


def test_both_cases_of_letters_and_of_nothing_else() -> None:
    assert fold_case(members("aZ[@`{1")) == members("aAzZ[@`{1")


A, B = Chars(members("a")), Chars(members("b"))
PARTS: tuple[tuple[str, Node], ...] = (
    ("", Sequence(())), ("ab", Sequence((A, B))), ("a|b", Choice((A, B))), ("a|", Choice((A, Sequence(())))), ("(a)", A),
    ("(?:a)", A),
    ("(?<name>a)", A), ("(?<n>a)b", Sequence((A, B))), ("((a|b))", Choice((A, B))), ("^", Assertion("^")),
    ("$", Assertion("$")),
    (r"\b", Assertion(r"\b")), (r"\B", Assertion(r"\B")), ("(?=a)", Assertion("(?=", A)), ("(?!a)", Assertion("(?!", A)),
    ("(?<=a)", Assertion("(?<=", A)), ("(?<!a)", Assertion("(?<!", A)), ("(?=a|b)", Assertion("(?=", Choice((A, B)))),
    ("a*", Repeat(A, 0, None, lazy=False)), ("a+", Repeat(A, 1, None, lazy=False)), ("a?", Repeat(A, 0, 1, lazy=False)),
    ("a*?", Repeat(A, 0, None, lazy=True)), ("a??", Repeat(A, 0, 1, lazy=True)), ("a{2}", Repeat(A, 2, 2, lazy=False)),
    ("a{2}?", Repeat(A, 2, 2, lazy=True)), ("a{2,}", Repeat(A, 2, None, lazy=False)), ("a{2,3}", Repeat(A, 2, 3, lazy=False)),
    ("a{2,2}b", Sequence((Repeat(A, 2, 2, lazy=False), B))), ("a{0}", Repeat(A, 0, 0, lazy=False)),
    ("a{0,0}", Repeat(A, 0, 0, lazy=False)), ("a{1000}", Repeat(A, 1000, 1000, lazy=False)),
    ("a{0,1000}", Repeat(A, 0, 1000, lazy=False)), ("a{00002}", Repeat(A, 2, 2, lazy=False)),
    ("a{00001,00002}", Repeat(A, 1, 2, lazy=False)), ("(?:ab)?", Repeat(Sequence((A, B)), 0, 1, lazy=False)),
)  # fmt: skip


@pytest.mark.parametrize(("text", "node"), PARTS)
def test_parts(text: str, node: Node) -> None:
    assert parse_regex(text, match_case=True) == node


@pytest.mark.parametrize(
    "text", ["{", "{}", "{,}", "{,3}", "{x}", "{2", "{2,", "{2,3", "{1,x}", "{1,2,3}", "{-1}", "{٣}", "{1,٣}", "{²}", "{1,²}"]
)
def test_braces_that_hold_no_numbers_are_characters(text: str) -> None:
    characters = tuple(Chars(members(character) if character.isascii() else 0) for character in f"a{text}")
    assert parse_regex(f"a{text}", match_case=True) == Sequence(characters)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a{1001}", "repeats more than 1000 times"), ("a{0,1001}", "more than 1000"), ("a{1001,}", "more than 1000"),
        ("a{000001}", "more than 1000"), ("a{1,000002}", "more than 1000"), ("a{3,2}", "range out of order"),
        ("[b-a]", "range out of order"),
        ("*", "nothing to repeat"), ("a|+", "nothing to repeat"), ("a**", "nothing to repeat"),
        ("a{2}{3}", "nothing to repeat"),
        ("a???", "nothing to repeat"), ("^*", "repeats an assertion"), ("(?=a)+", "repeats an assertion"),
        (r"\b?", "repeats an assertion"),
        ("(a", r"unmatched '\('"), ("a)", r"unmatched '\)'"), ("[a", "ends too early"), ("[", "ends too early"),
        ("[a-", "ends too early"),
        ("\\", "ends too early"), ("[\\", "ends too early"), ("(", r"unmatched '\('"), ("(?a)", "group that is not supported"),
        ("(?<1>a)", "group that is not supported"), ("(?<>a)", "group that is not supported"),
        ("(?<ab", "not supported|nested"),
        (r"\1", "back-reference"), (r"\9", "back-reference"), (r"\ka", "back-reference"), (r"\cA", "back-reference"),
        (r"\pL", "back-reference"),
        (r"\PL", "back-reference"), (r"\x4", "escape that is not supported"), (r"\x4g", "escape that is not supported"),
        (r"\u004", "escape that is not supported"), (r"\u004g", "escape that is not supported"),
        (r"\u", "escape that is not supported"),
    ],
)  # fmt: skip
def test_why_an_expression_is_refused(text: str, reason: str) -> None:
    with pytest.raises(RuleError, match=reason):
        parse_regex(text, match_case=False)


def test_bounds_of_length_and_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "MAX_REGEX_LENGTH", 7)
    monkeypatch.setattr(syntax, "MAX_DEPTH", 3)
    for text in ("a" * 7, "(((a)))", "(a)|(b)", "((a|b))"):
        parse_regex(text, match_case=True)
    with pytest.raises(RuleError, match="longer than 7 characters"):
        parse_regex("a" * 8, match_case=True)
    monkeypatch.setattr(syntax, "MAX_REGEX_LENGTH", 20)
    with pytest.raises(RuleError, match="nested too deeply"):
        parse_regex("((((a))))", match_case=True)


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        ("ab", ("ab",)), ("aB1", ("ab1",)), ("a", ("a",)), ("[ab]a", ("a",)), ("a[ab]b", ("a", "b")), ("[aB]", ()),
        ("[a1]", ()), ("[aA]", ("a",)),
        ("[@`]", ()), ("[Aa]b", ("ab",)), ("a{2}b", ("a", "b")), ("(?:ab){1,2}", ("ab",)), ("(?:ab)?c", ("c",)), ("a|b", ()),
        ("", ()),
        ("x(?:a|b)y", ("x", "y")), ("a^b", ("ab",)), ("a(?=x)b", ("ab",)), ("a(bc)d", ("abcd",)), ("[abc]", ()), ("A", ("a",)),
    ],
)  # fmt: skip
def test_literals_of_both_cases(text: str, literals: tuple[str, ...]) -> None:
    found = literals_of(parse_regex(text, match_case=True))
    # an expression that tells cases apart has the same literals, in lower case, as URLs are indexed by
    assert found == literals
    assert re.sub("[^a-z0-9]", "", "".join(found)) == "".join(found)
