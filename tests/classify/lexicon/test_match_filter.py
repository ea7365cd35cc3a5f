"""What counts of what a scan finds: compiled and in Python the same, in the same order."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gatewayfilter.classify import Lexicon
from gatewayfilter.classify.lexicon import scanner
from gatewayfilter.classify.lexicon.match_filter import Automaton, Hits, Meaning, Patterns, Role, SideGroups, settle
from gatewayfilter.classify.lexicon.proximity import MOST, Proximity
from gatewayfilter.classify.lexicon.scanner import Scanner
from gatewayfilter.classify.lexicon.word_file import WordFile
from gatewayfilter.classify.normalize.views import normal_view
from gatewayfilter.compiled import load, why_not

NOT_BUILT = why_not("gatewayfilter.classify.lexicon._scanner")
compiled = load("gatewayfilter.classify.lexicon._scanner")
needs_compiled = pytest.mark.skipif(bool(NOT_BUILT), reason=f"_scanner is not in use: {NOT_BUILT}")

ROOT = Path(__file__).parents[3]
LETTERS = "ab1\u00e9\u8d4c\u535a\u0e01"
phrases = st.builds(
    lambda left, bare, right: f"{left}{bare}{right}",
    st.sampled_from(["", "", "*"]),
    st.text("ab\u8d4c", min_size=1, max_size=3)
    | st.text(LETTERS, min_size=1, max_size=2)
    | st.sampled_from(["a b", "ab a", "b.a", "\u8d4c a", "a b a", "b ab a", "a b.ab", "a\u8d4ca", "a. \u8d4c a"]),
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
        near=[
            Proximity(f"near {number}", 2.0, tuple(one), tuple(other))
            for number, (one, other) in enumerate(near)
            if one and other
        ],
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
texts = st.text("ab\u8d4c .", max_size=60) | st.text(LETTERS + " .\n\U0001f600", max_size=60)


def both(words: list[WordFile]) -> tuple[Callable[[str], Hits], Callable[[str], Hits]]:
    """Returns the compiled scan of a lexicon, and Python's, over the same meanings."""
    made: list[tuple[list[str], Patterns]] = []

    class Noting:
        def __init__(self, texts: list[str], patterns: Patterns) -> None:
            made.append((texts, patterns))

        def scan(self, text: str) -> Hits:
            raise AssertionError(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanner, "_compiled", None)
        patch.setattr(scanner, "Automaton", Noting)
        Scanner(Lexicon.of(words))
    assert compiled is not None
    return compiled.Finder(*made[0]).scan, Automaton(*made[0]).scan


@needs_compiled
@settings(max_examples=30)
@given(st.lists(files, min_size=1, max_size=3), texts)
@example([WordFile("one", words={"\U0001f600": 1.0, "\U0001f600a": 1.0, "a": 1.0})], "a \U0001f600a\U0001f600")
@example([WordFile("one", words={"a*": 1.0, "*b": 1.0, "*1*": 1.0}, exceptions=["ab"])], "ba ab bab b1b a1 1a aab abb")
@example([WordFile("one", near=[Proximity("n", 1.0, ("a*", "b"), ("*b", "\u8d4c"))])], "ba ab ab b \u8d4c a\u8d4c")
@example([WordFile("one", words={"a b": 1.0, "*b a": 1.0, "b": 1.0, "\u8d4c a": 1.0})], "a b ab a  b \u8d4c a a\u8d4c a b")
@example(
    [WordFile("one", words={"\u00e9": 1.0, "a \u00e9*": 1.0, "\U0001f600 a": 1.0})],
    "\u00e9 a \u00e9b\ud800 \u00e9\U0001f600 a \ufffd",
)
@example([WordFile("one", words={"*a": 1.0, "ab": 1.0, "abc*": 1.0, "b": 1.0})], "abcd xab a ab")
def test_the_same_counts(words: list[WordFile], text: str) -> None:
    fast, plain = both(words)
    assert list(fast(text).items()) == list(plain(text).items())


@needs_compiled
@pytest.mark.parametrize("far", [9, 10, 11, 35, 36, 37])
@pytest.mark.parametrize("between", [" ", ".", "\u8d4c"])
def test_the_same_is_near(far: int, between: str) -> None:
    fast, plain = both([WordFile("bad", near=[Proximity("n", 2.0, ("ab", "\u535a"), ("ba", "\u7537"))])])
    for one, other in (("ab", "ba"), ("\u535a", "\u7537"), ("\u535a", "ba")):
        text = f"{one}{between * far}{other} " * (MOST + 2)
        assert list(fast(text).items()) == list(plain(text).items())


@pytest.mark.slow
@needs_compiled
def test_the_bundled_words_find_the_same(lexicon: Lexicon) -> None:
    fast = Scanner(lexicon)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanner, "_compiled", None)
        plain = Scanner(lexicon)
    for path in sorted((ROOT / "tests" / "classify" / "samples").glob("*.txt")):
        text = normal_view(path.read_text(encoding="utf-8")[:20_000])
        assert spoken(fast.scan(text)) == spoken(plain.scan(text))


def spoken(hits: Hits) -> list[tuple[str, str, Role, int, int]]:
    return [(meaning.phrase, meaning.category, meaning.role, *place) for meaning, place in hits.items()]


@needs_compiled
@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("a" * 100, "a" * 100_000),
        ("a " * 49 + "b", "a " * 50_000),
        ("\u8d4c" * 99 + "\u535a", "\u8d4c" * 50_000),
        ("*" + "a" * 99 + "b", "a" * 50_000),
    ],
    ids=["one word", "many words", "han", "open"],
)
def test_long_repetitions_find_the_same(words: str, text: str) -> None:
    fast, plain = both([WordFile("bad", words={words: 1.0, words[:50].strip() + "c": 1.0})])
    assert list(fast(text).items()) == list(plain(text).items())


@needs_compiled
def test_hundreds_of_phrases_find_the_same() -> None:
    chance = random.Random(7)
    alphabet = [chr(0x4E00 + number) for number in range(300)] + list("abcdefghij ")
    made = ("".join(chance.choices(alphabet, k=chance.randint(1, 4))).strip() for _ in range(800))
    words = {f"{chance.choice(['', '', '*'])}{word}{chance.choice(['', '', '*'])}": 1.0 for word in made if word}
    fast, plain = both([WordFile("bad", words=words)])
    text = normal_view("".join(chance.choices(alphabet, k=2_000)))
    found = list(fast(text).items())
    assert len(found) > 100
    assert found == list(plain(text).items())


@needs_compiled
def test_phrases_of_several_words_find_the_same() -> None:
    chance = random.Random(11)
    words = ["a", "ab", "the", "best", "of", "casino", "new", "1", "x" * 70]
    made = [" ".join(chance.choices(words, k=chance.randint(1, 4))) for _ in range(60)]
    marks = ("", "", "*")
    fast, plain = both([WordFile("bad", words={f"{chance.choice(marks)}{phrase}{chance.choice(marks)}": 1.0 for phrase in made})])
    for _ in range(50):
        text = "".join(f"{chance.choice(words)}{chance.choice((' ', ' ', ' ', '. ', 's ', '-'))}" for _ in range(40))
        assert list(fast(text).items()) == list(plain(text).items())
        assert list(fast(text.strip()).items()) == list(plain(text.strip()).items())


@needs_compiled
@pytest.mark.parametrize("letters", [62, 63, 64, 65, 200])
def test_the_beginning_of_a_long_word_is_found(letters: int) -> None:
    fast, plain = both([WordFile("bad", words={"a" * letters + "*": 1.0})])
    for more in ("", "b", " b", "a" * 70):
        text = f"b {'a' * letters}{more} {'a' * (letters - 1)}b"
        assert list(fast(text).items()) == list(plain(text).items()) != []


@needs_compiled
def test_no_phrases_and_no_text() -> None:
    assert compiled is not None
    assert compiled.Finder([], Patterns(b"", [], {}, [])).scan("text") == {}
    assert both([WordFile("bad", words={"a": 1.0})])[0]("") == {}


@needs_compiled
@pytest.mark.parametrize(
    "patterns",
    [Patterns(b"", [], {}, []), Patterns(b"\x10", [], {}, []), Patterns(b"\x10", [()], {0: ((0, 5, 0),)}, [])],
    ids=["no kinds", "no meanings", "no such pair"],
)
def test_patterns_that_do_not_fit_are_errors(patterns: Patterns) -> None:
    assert compiled is not None
    with pytest.raises(ValueError, match=r"must have|no pair"):
        compiled.Finder(["a"], patterns)


def test_matches_may_come_in_any_order() -> None:
    meanings = [((0, 0, "bad", Meaning(text, "bad", Role.WORD, 1.0)),) for text in ("a", "a b", "a b a")]
    patterns = Patterns(b"\x03\x03\x03", list(meanings), {}, [])
    found = [(number, start, start + 1 + 2 * number) for start in (0, 4) for number in range(3)]
    settled = [settle("a b a b a", matches, patterns, SideGroups(patterns)) for matches in (found, found[::-1])]
    assert settled == [{meanings[2][0][3]: (0, 5)}] * 2


def python_scan(monkeypatch: pytest.MonkeyPatch, *words: WordFile) -> Callable[[str], list[str]]:
    """Returns what gives the texts that count of a text, by the scan without compiled code."""
    monkeypatch.setattr(scanner, "_compiled", None)
    scan = Scanner(Lexicon.of(words)).scan
    return lambda text: [text[start:end] for start, end in scan(text).values()]


def test_halves_of_pairs_hide_no_phrase_that_overlaps_another(monkeypatch: pytest.MonkeyPatch) -> None:
    scan = python_scan(monkeypatch, WordFile("bad", words={"a b": 1.0, "b c": 1.0}), WordFile("other", words={"b": 1.0}))
    for text in ("a b c", "a b c \ud800", "\udc00 a b c"):
        assert scan(text) == ["a b", "b c", "b"], text


def test_python_counts_whole_words_that_nothing_covers(monkeypatch: pytest.MonkeyPatch) -> None:
    near = Proximity("n", 2.0, ("hurt",), ("boss",))
    scan = python_scan(
        monkeypatch,
        WordFile("bad", words={"casino": 1.0, "free casino": 1.0, "*tube": 1.0}, context={"royale": 1.0}, near=[near]),
        WordFile("other", words={"casino": 1.0}, exceptions=["casino royale", "casino royale free", "hurt feelings", "royale"]),
    )
    for text, found in (
        ("casino", ["casino"] * 2), ("free casino", ["free casino", "casino"]), ("", []), ("none", []),
        ("xcasino casino9 écasino casinoé 9casino casinox", []), ("的casino的", ["casino"] * 2),
        ("xtube éxtube tubex tubeé", ["tube"]), ("casino royale", ["royale"]), ("casino royales casino", ["casino"] * 2),
        ("casino royale free casino", ["royale", "free casino", "casino"]),
        ("hurt feelings of a boss", []), ("hurt boss", ["hurt boss"]), ("hurt bosses", []), ("hurt", []),
    ):  # fmt: skip
        assert scan(text) == found, text


def test_python_does_the_work_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    scan = python_scan(monkeypatch, WordFile("casino", words={"casino": 6.0}, near=[Proximity("n", 2.0, ("hurt",), ("boss",))]))
    assert scan(normal_view("Casino, hurt your boss")) == ["casino", "hurt your boss"]
