"""Character references, one by one in short texts and all at once in long ones."""

import html

import pytest

from gatewayfilter.documents.html import character_references
from gatewayfilter.documents.html.character_references import unescape
from tests.case_tables import all_cases

REFERENCES = (
    ("&amp;", "&"), ("&amp", "&"), ("&ampx", "&x"), ("&notit;", "¬it;"), ("&notin;", "∉"), ("&nosuch;", "&nosuch;"),
    ("&no;", "&no;"), ("&;", "&;"),
    ("&", "&"), ("& amp;", "& amp;"), ("&CounterClockwiseContourIntegral;", "∳"), ("&am&amp;", "&am&"), ("&#65;", "A"),
    ("&#65", "A"), ("&#x41;", "A"),
    ("&#X41", "A"), ("&#x4a;", "J"), ("&#065;", "A"), ("&#0000000065;", "A"), ("&#x00000000041;", "A"), ("&#;", "&#;"),
    ("&#x;", "&#x;"), ("&#xg", "&#xg"),
    ("&#0;", "\ufffd"), ("&#000000000;", "\ufffd"), ("&#128;", "€"), ("&#x80;", "€"), ("&#159;", "Ÿ"), ("&#160;", "\xa0"),
    ("&#xD7FF;", "\ud7ff"),
    ("&#xD800;", "\ufffd"), ("&#xDFFF;", "\ufffd"), ("&#xE000;", "\ue000"), ("&#xFFFD;", "\ufffd"), ("&#x10000;", "\U00010000"),
    ("&#x10FFFF;", "\U0010ffff"), ("&#x110000;", "\ufffd"), ("&#99999999;", "\ufffd"), ("&#999999999;", "\ufffd"),
    ("&#9999999999999;", "\ufffd"),
    ("&#1;", ""), ("&#x1F600;", "\U0001f600"), ("&#65x", "Ax"), ("&lt;p&gt;", "<p>"), ("&copy2", "©2"), ("&Copy", "&Copy"),
    ("&frac12;", "½"),
)  # fmt: skip


@all_cases(("text", "meant"), REFERENCES)
def test_references(text: str, meant: str) -> None:
    assert unescape(text) == meant
    assert unescape(f"a {text} b") == f"a {meant} b"
    long = " ".join([text] * 300)
    assert unescape(long) == " ".join([meant] * 300), "of a long text each is found out once"


def test_long_texts_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of `_SHORT` characters is a long one."""
    asked = list[str]()
    real = character_references._meaning

    def meaning(reference: str) -> str:
        asked.append(reference)
        return real(reference)

    monkeypatch.setattr(character_references, "_meaning", meaning)
    for length, count in ((299, 2), (300, 1)):
        asked.clear()
        text = "&#66; &#66; ".ljust(length, "x")
        assert unescape(text) == html.unescape(text)
        assert asked == ["#66;"] * count
    assert unescape("x" * 400) == "x" * 400


def test_what_names_nothing_is_not_kept() -> None:
    meanings = character_references._Meanings()
    assert [meanings[name] for name in ("zz;", "amp;", "#65;", "am", "zz;")] == ["&zz;", "&", "A", "&am", "&zz;"]
    assert set(meanings) == {"amp;", "#65;", "am"}
