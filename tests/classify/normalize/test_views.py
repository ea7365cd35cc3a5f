"""The compiled views give what plain_views.py says, whatever the text."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gatewayfilter.classify import Lexicon, PageClassifier
from gatewayfilter.classify.lexicon.word_file import WordFile
from gatewayfilter.classify.normalize import plain_views, views
from gatewayfilter.compiled import why_not
from tests.case_tables import all_cases

SAMPLES = Path(__file__).parents[1] / "samples"
NOT_BUILT = why_not("gatewayfilter.classify.normalize._views")
needs_compiled = pytest.mark.skipif(bool(NOT_BUILT), reason=f"_views is not in use: {NOT_BUILT}")

TRICKS = "abz019@$2 .*|/~+=\u00b7\u2022\n-_"
GROUPS = [
    TRICKS,
    "\u0430\u0435\u0436\u03b1\u03b3\u00e9\u00fc\u00df\u0131\u0130\u03a3\u03c2K",  # look-alikes, and capitals that fold oddly
    "\u200b\u00ad\u0301\u0345\u3099\uff9e\u200d\ufe0f",  # without width, and combining
    "\uac00\u1100\u1161\u11a8\u0e33\u09be\u0915",  # what composes with its neighbour
    "\u4e2d\u8d4c\u535a\u8ced\u59b3\u9f9c\uf900\ufa1f\u3220\u3280\u2f00\u2026 .*",
    "\uff21\uff42\uff11\u2122\u00bd\ufb01\u00b2\u2460\u00a8\u00a0\u2028\x85\x1c\t\r\x00",
    "\ud800\udc00\U0001f600\U0001f1e6\U0001f100\U00020000\U0010ffff",  # halves of pairs, and beyond the first plane
]
texts = st.one_of(
    st.lists(st.sampled_from(GROUPS), min_size=1, max_size=3).flatmap(lambda groups: st.text("".join(groups), max_size=40)),
    st.text(TRICKS, max_size=60),
    st.text(st.characters(codec=None), max_size=12),
)


@needs_compiled
@settings(max_examples=30)
@given(texts)
@example("")
@example(" \n - \n")
@example("\u2026" * 300)
@example("A\u0301\u03a3")
def test_the_normal_view_is_the_same(text: str) -> None:
    assert views.normal_view(text) == plain_views.normal_view(text)


@needs_compiled
@settings(max_examples=30)
@given(texts)
@example("c a s i n o  x y. z w and a b c dd e f g h")
@example("a" + "*" * 4 + "b" + "*" * 3 + "c\nmp3 2nd b2b p0rn")
@example("\u8d4c" + " " * 4 + "\u535a.*.\u5f69\u200b\n\u0430bc \u0430\u0431\u0432")
def test_changed_lines_are_the_same(text: str) -> None:
    for seen in (text, plain_views.normal_view(text)):
        assert views.changed_lines(seen) == plain_views.changed_lines(seen)
        assert views.squashed_view(seen) == plain_views.squashed_view(seen)


@needs_compiled
@all_cases("name", sorted(path.name for path in SAMPLES.glob("*.txt")))
def test_samples_are_the_same(name: str) -> None:
    text = (SAMPLES / name).read_text(encoding="utf-8")
    normal = plain_views.normal_view(text)
    assert views.normal_view(text) == normal
    assert views.changed_lines(normal) == plain_views.changed_lines(normal)


@needs_compiled
@pytest.mark.parametrize(
    "text",
    [
        "c a s i n o " * 10_000,
        "a*" * 50_000,
        "p0rn " * 20_000,
        "\u2026\u2122 " * 30_000,
        "\u8d4c.\u535a" * 30_000,
        "a\u0301" * 30_000,
        " \n" * 50_000,
        "\u200b" * 100_000,
    ],
    ids=["spelled", "marks", "leet", "several", "han", "combining", "blanks", "hidden"],
)
def test_long_tricks_are_the_same(text: str) -> None:
    normal = plain_views.normal_view(text)
    assert views.normal_view(text) == normal
    assert views.changed_lines(normal) == plain_views.changed_lines(normal)


def test_what_is_folded_alone_composes_with_nothing_before_it() -> None:
    composing = {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}
    for code in range(0x20000):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            composing.add(int(parts[1], 16))
    # Letters, marks, Hangul, Han and compatibility forms; the others of a block are like these.
    codes = (*range(0x900), *range(0x1E00, 0x3400), *range(0x4E00, 0x4F00), *range(0xAC00, 0xAD00), *range(0xFB00, 0x10000))
    alone = [chr(code) for code in codes if views.folded_alone(chr(code)) is not None]
    assert len(alone) > 7_000
    assert not [character for character in alone if ord(unicodedata.normalize("NFKD", character)[0]) in composing]


def test_characters_whose_neighbours_matter_are_left_to_python() -> None:
    assert [views.folded_alone(character) for character in "\u03a3\u0301\u1161\u0e33\u0130\U00020000\ud800"] == [None] * 7
    assert [views.folded_alone(character) for character in "A-\t\u2026\u8ced\uff21\u2122"] == [
        "a", " ", " ", "...", "\u8d4c", "a", "tm"
    ]  # fmt: skip


def test_python_does_the_work_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "_FOLDER", None)
    monkeypatch.setattr(views, "_SQUASHER", None)
    assert views.normal_view(" \uff23as1n0-X\n\n c.a.s.i.n.o ") == "cas1n0 x\nc.a.s.i.n.o"
    assert views.changed_lines("cas1n0 x\nplain\nc.a.s.i.n.o") == "casino x\ncasino"
    assert views.changed_lines("plain\ntext") == ""
    assert views.squashed_view("cas1n0\nplain") == "casino\nplain"
    assert views.squashed_view("a “quoted” cas1n0") == "a “quoted” casino"


@all_cases("text", ["\ud800 casino", "casino \udfff\udfff bonus", "c\udc00asino"])
def test_halves_of_pairs_end_nothing(text: str) -> None:
    classifier = PageClassifier(Lexicon.of([WordFile("bad", words={"casino": 6.0})]))
    found = classifier.classify_text(text)
    assert [(hit.word, text[hit.position : hit.position + 6]) for hit in found.evidence] == (
        [("casino", "casino")] if "casino" in text else []
    )
