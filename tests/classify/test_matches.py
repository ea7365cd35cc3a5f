"""What counts of the automaton's matches: compiled and in Python the same, in the same order."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.classify import Lexicon, matches, scanner
from gatewayfilter.classify.lexicon_file import WordFile
from gatewayfilter.classify.near import MOST, Near
from gatewayfilter.classify.scanner import Scanner
from gatewayfilter.classify.views import normal_view
from gatewayfilter.compiled import load, why_not

NOT_BUILT = why_not("gatewayfilter.classify._matches")
compiled = load("gatewayfilter.classify._matches")
needs_compiled = pytest.mark.skipif(bool(NOT_BUILT), reason=f"_matches is not in use: {NOT_BUILT}")

LETTERS = "ab1\u00e9\u8d4c\u535a\u0e01"
phrases = st.builds(
    lambda left, bare, right: f"{left}{bare}{right}",
    st.sampled_from(["", "", "*"]),
    st.text(LETTERS, min_size=1, max_size=3) | st.sampled_from(["a b", "ab a", "b.a", "\u8d4c a"]),
    st.sampled_from(["", "", "*"]),
)
several = st.lists(phrases, max_size=4)
files = st.builds(
    lambda name, words, context, exceptions, offers, near, parts: WordFile(
        name,
        words=dict.fromkeys(words, 6.0),
        context=dict.fromkeys(context, 3.0),
        exceptions=exceptions,
        offers=offers,
        near=[Near(f"near {number}", 2.0, tuple(one), tuple(other)) for number, (one, other) in enumerate(near) if one and other],
        combinations=dict.fromkeys([tuple(parts)] if len(set(parts)) > 1 else [], 7.0),
    ),
    st.sampled_from(["one", "two", "any"]),
    several,
    several,
    st.lists(phrases, max_size=2),
    st.lists(phrases, max_size=1),
    st.lists(st.tuples(several, several), max_size=3),
    several,
)
texts = st.text(LETTERS + " .\n\U0001f600", max_size=60)


@needs_compiled
@settings(max_examples=100)
@given(st.lists(files, min_size=1, max_size=3), texts)
def test_the_same_counts(words: list[WordFile], text: str) -> None:
    assert compiled is not None
    scan = Scanner(Lexicon.of(words))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanner, "_settle", matches.settle)
        plain = scan.scan(text)
        patch.setattr(scanner, "_settle", compiled.settle)
        assert list(scan.scan(text).items()) == list(plain.items())


@needs_compiled
@pytest.mark.parametrize("far", [9, 10, 11, 35, 36, 37])
@pytest.mark.parametrize("between", [" ", ".", "\u8d4c"])
def test_the_same_is_near(far: int, between: str) -> None:
    assert compiled is not None
    scan = Scanner(Lexicon.of([WordFile("bad", near=[Near("n", 2.0, ("ab", "\u535a"), ("ba", "\u7537"))])]))
    for one, other in (("ab", "ba"), ("\u535a", "\u7537"), ("\u535a", "ba")):
        text = f"{one}{between * far}{other} " * (MOST + 2)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(scanner, "_settle", matches.settle)
            plain = scan.scan(text)
            patch.setattr(scanner, "_settle", compiled.settle)
            assert list(scan.scan(text).items()) == list(plain.items())


@needs_compiled
def test_any_order_of_matches_will_do() -> None:
    assert compiled is not None
    scan = Scanner(Lexicon.of([WordFile("bad", words={"a": 1.0, "a b": 1.0, "a b a": 1.0}, exceptions=["b a"])]))
    patterns = scan._patterns
    found = [(number, start, start + len(text)) for start in (0, 4) for number, text in enumerate(("b a", "a", "a b", "a b a"))]
    text = "a b a b a"
    assert compiled.settle(text, found[::-1], patterns) == matches.settle(text, found, patterns)


@needs_compiled
@pytest.mark.parametrize("match", [(0, 9, 12), (0, 0, 99), (7, 0, 1), (0, -5, 1), ("a", 0, 1), (0, 0)])
def test_impossible_matches_are_errors(match: tuple[int, int, int]) -> None:
    assert compiled is not None
    patterns = Scanner(Lexicon.of([WordFile("bad", words={"a": 1.0})]))._patterns
    text = "a b"
    try:
        hits = compiled.settle(text, [match], patterns)
    except (IndexError, TypeError, ValueError):
        return
    assert all(0 <= start <= len(text) for start, _ in hits.values())


def test_python_does_the_work_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "_settle", matches.settle)
    scan = Scanner(Lexicon.of([WordFile("bad", words={"casino": 6.0}, near=[Near("n", 2.0, ("hurt",), ("boss",))])]))
    text = normal_view("Casino, hurt your boss")
    hits = scan.scan(text)
    assert {text[start:end] for start, end in hits.values()} == {"casino", "hurt your boss"}
