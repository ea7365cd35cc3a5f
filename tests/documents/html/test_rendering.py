"""What attributes do to an element: hide it, show it again, text and documents of their own."""

import base64

import pytest

from gatewayfilter.documents.html import rendering
from gatewayfilter.documents.html.rendering import (
    DISPLAYED,
    FADED,
    HIDES,
    INVISIBLE,
    NOTHING,
    TINY,
    VISIBLE,
    Special,
    effect_of,
    meta_of,
    special,
    style_effect,
    undoes,
)
from tests.case_tables import all_cases

STYLES: dict[int, tuple[str, ...]] = {
    HIDES: (
        "display:none", " Display : NONE ;", "display:block;display:none", "display:none!important;display:block",
        "display:none/**/",
        "display:none ! IMPORTANT ;display:block", "/*;*/display:none", "display:no&#110;e", "visibility:inherit;display:none",
        "opacity:0", "opacity:.0", "opacity:-0", "opacity:0%", "clip:rect(0,0,0,0)", "CLIP:rect(1px 1px 1px 1px)",
        "clip-path:inset(50%)",
        "clip-path:inset(100%)", "clip-path:circle(0)", "transform:scale(0)", "transform:scale(0, 1)",
        "height:0;overflow:hidden",
        "width:0;overflow:clip", "max-height:0px;overflow:hidden", "max-width:0;overflow:hidden",
        "position:absolute;left:-9999px",
        "position:fixed;top:-2000px", "position:relative;right:-2001px", "position:absolute;bottom:-12345678901px",
        "margin-left:-2000px",
        "text-indent:-9999em", "margin-top:-2000px", "position:absolute;left:-0.5px;top:-3000.5px",
        "overflow:hidden;text-indent:-9999px",
        "height:0;overflow:hidden;display:block",
    ),
    DISPLAYED: ("display:block", "display:none;display:flex", "display:inline!important;display:none", "display:grid",
    "display:x-none"),
    INVISIBLE: ("visibility:hidden", "visibility:collapse", "visibility : Hidden"),
    VISIBLE: ("visibility:visible", "visibility:hidden;visibility:visible"),
    TINY: ("font-size:0", "font-size:1px", "font-size:.5px", "font-size:1.9pt", "font-size:0em", "font-size:0.0%"),
    FADED: ("color:transparent", "color:transparent;x:y"),
    HIDES | TINY | INVISIBLE | FADED: ("display:none;font-size:0;visibility:hidden;color:transparent",),
    DISPLAYED | VISIBLE: ("display:block;visibility:visible",),
    0: (
        "", "x:y", "visibility:inherit", "opacity:0.1", "opacity:", "opacity:1", "opacity:x", "font-size:2px", "font-size:1em",
        "font-size:-1px",
        "font-size:x", "font-size:2pt", "font-size:1%", "color:transparent;background:url(x)",
        "color:transparent;text-shadow:1px", "color:red",
        "clip-path:inset(49%)", "clip:rect(1px,0,0,0)", "transform:scale(1)", "height:0;overflow:visible",
        "height:1px;overflow:hidden",
        "height:0", "overflow:hidden", "height:0;overflow:hidden;padding:1px", "height:0;overflow:hidden;min-height:1px",
        "width:0;overflow:hidden;padding-top:1px", "position:relative;right:-1999px", "position:static;left:-9999px",
        "left:-9999px",
        "position:absolute;left:-9999px;transform:none", "position:absolute;left:-9999px;translate:1px",
        "animation:x;text-indent:-9999px",
        "position:absolute;left:9999px", "dis/**/play:none", "d\\isplay:none", "background:url(;display:none;)",
        "content:';display:none;'",
        'content:";display:none"', "display", "display:", "display:!important", "none", "text-indent:-9999 px",
        "text-indent:-1e5px",
    ),
}  # fmt: skip
"""Effect → styles that have it."""


@all_cases(("style", "effect"), [(style, effect) for effect, styles in STYLES.items() for style in styles])
def test_what_a_style_does(style: str, effect: int) -> None:
    assert style_effect(style) == effect
    assert style_effect(style + ";" + " " * 60) == effect, "a long one is read alike"
    assert effect_of(f' style="{style}"' if '"' not in style else f" style='{style}'") == effect


def test_short_styles_alone_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "_USUAL_STYLE", len("display:none;short"))
    rendering._usual_effect.cache_clear()
    for style, kept in (("display:none;short", 1), ("display:none;longer", 1), ("display:none", 2)):
        assert style_effect(style) == HIDES
        assert rendering._usual_effect.cache_info().currsize == kept


@all_cases(
    ("attributes", "effect"),
    [
        (" hidden", HIDES), ("/hidden", HIDES), (" HIDDEN=x", HIDES), (" hidden=''", HIDES), (" hidden=Until-Found", 0),
        (" popover", HIDES),
        (" popover=auto", HIDES), (" x=hidden", 0), (" x='a hidden b'", 0), (" hidden style=display:block", DISPLAYED),
        (" class=style", 0),
        (" popover style='display:flex'", DISPLAYED), (" hidden style='visibility:visible'", HIDES | VISIBLE), ("", 0),
        (" style", 0),
        (" hidden style='visibility:hidden'", HIDES | INVISIBLE), (" style='display:none' hidden=until-found", HIDES),
        (" aria-hidden", 0),
        (" title=style class=none", 0), (" data-popover=x", 0), (" STYLE=display:none", HIDES),
        (" style=display:none style=x", HIDES),
    ],
)  # fmt: skip
def test_what_attributes_do(attributes: str, effect: int) -> None:
    assert effect_of(attributes) == effect


def test_each_sign_of_a_style_is_looked_at() -> None:
    """Which styles may matter is found in two ways: by words in the attributes, and by an expression in the style."""
    for sign in (
        "none", "visib", "opacity", "hidden", "block", "font-size", "inline", "flex", "grid", "clip", "scale", "transparent",
        "&", "/*", "\\", "-1234",
        "height:0", "height : 0",
    ):  # fmt: skip
        assert rendering._may_matter(f" style='{sign}'"), sign
        assert rendering._SIGNS.search(sign), sign
    for other in ("", "-123", "height:1", "width:0", "color:red", "-a1234", "0-height"):
        assert rendering._may_matter(f" style='{other}'") is False, other
        assert rendering._SIGNS.search(other) is None, other


@all_cases(
    ("style", "hidden_by", "shown"),
    [
        ("font-size:9px", TINY, True), ("font-size:2px", TINY, True), ("font-size:1px", TINY, False),
        ("font-size:0", TINY, False),
        ("font-size:9em", TINY, False), ("font-size:90%", TINY, False), ("font-size:large", TINY, True),
        ("font:12px", TINY, True), ("", TINY, False),
        ("font-size:1px;font:12px", TINY, False), ("color:red", TINY, False), ("font-size:9&#112;x", TINY, True),
        ("font-size:9rem", TINY, False),
        ("color:red", FADED, True), ("color:transparent", FADED, False), ("color:inherit", FADED, False), ("", FADED, False),
        ("font-size:9px", FADED, False), ("color:r&#101;d", FADED, True), ("font-size:9px;color:red", TINY | FADED, False),
    ],
)  # fmt: skip
def test_what_shows_an_element_again(style: str, hidden_by: int, *, shown: bool) -> None:
    assert undoes(style, hidden_by) is shown


@all_cases(
    ("value", "size", "unit"),
    [
        ("", None, ""), ("0", 0.0, ""), ("1", 1.0, ""), ("-1", -1.0, ""), ("1.5", 1.5, ""), ("-1.5px", -1.5, "px"),
        (".5", 0.5, ""), (".", None, ""),
        ("-", None, ""), ("-.", None, ""), ("1.", 1.0, ""), ("1.em", 1.0, "em"), ("1e5", None, ""), ("10%", 10.0, "%"),
        ("1 px", None, ""),
        ("+1", None, ""), ("px", None, ""), ("123456789", 123456789.0, ""), ("1234567890px", 1234567890.0, "px"),
        ("0.98765432198", 0.987654321, ""),
        ("-99999999999", -1999999999.0, ""),
    ],
)  # fmt: skip
def test_lengths_of_css(value: str, size: float | None, unit: str) -> None:
    """Of more digits than anyone writes, some are read: enough to be far away."""
    assert rendering._length(value) == (size, unit)


@all_cases(
    ("attributes", "found"),
    [
        (" name=Description content='a &amp; b'", ("description", "a & b")),
        (" property=OG:title content=x", ("og:title", "x")),
        (" name=keywords content='a,\n b '", ("keywords", "a, b")),
        (" name='' property=og:description content=x", ("og:description", "x")),
        (" name=description property=og:title content=x", ("description", "x")), (" name=description", ("description", "")),
        (" content=description", ("", "description")), (" name=viewport content=x", ("", "")), (" charset=utf-8", ("", "")),
    ],
)  # fmt: skip
def test_what_a_meta_element_says(attributes: str, found: tuple[str, str]) -> None:
    assert meta_of(attributes) == (*found, ())


REFRESH = " http-equiv=refresh content='0; url=data:text/html,&lt;p>x'"


def test_a_meta_element_may_lead_to_a_document_within() -> None:
    assert meta_of(REFRESH) == ("", "", ("<p>x",))
    assert meta_of(REFRESH + " name=description") == ("description", "0; url=data:text/html,<p>x", ("<p>x",))
    for other in (
        " content='0; url=data:text/html,x'",
        " http-equiv=refresh content='0; url=/data'",
        " http-equiv=refresh content=5",
    ):
        assert meta_of(other) == ("", "", ())


def labels(*found: str) -> Special:
    return Special(labels=found)


def documents(*found: str) -> Special:
    return Special(documents=found)


SVG = base64.b64encode(b"<svg><text>xy").decode().rstrip("=")


@all_cases(
    ("name", "attributes", "found"),
    [
        ("template", "", Special(hides=True)), ("template", " shadowrootmode=Open", Special(shadow=True)),
        ("template", " shadowrootmode=closed", Special(shadow=True)), ("template", " shadowrootmode=x", Special(hides=True)),
        ("dialog", "", Special(hides=True)), ("dialog", " open", NOTHING), ("details", "", Special(hides=True)),
        ("details", " open=x", NOTHING),
        ("select", "", Special(hides=True)), ("select", " multiple", NOTHING), ("select", " size=2", NOTHING),
        ("select", " size=1", Special(hides=True)),
        ("select", " size=0", Special(hides=True)), ("select", " size=''", Special(hides=True)),
        ("select", " multiple size=1", NOTHING),
        ("option", "", Special(hides=True)), ("option", " selected", NOTHING),
        ("option", " label=' a  b '", Special(hides=True, labels=("a b",))),
        ("option", " selected label=a", labels("a")), ("optgroup", " label=a&amp;b", Special(hides=True, labels=("a&b",))),
        ("input", "", NOTHING), ("input", " value=a", labels("a")),
        ("input", " alt=a value=b placeholder=c", labels("a", "b", "c")),
        ("input", " type=Submit value=a", labels("a")), ("input", " value='  '", NOTHING),
        ("textarea", " placeholder=a value=b", labels("a")),
        *(("input", f" type={kind} value=a", NOTHING) for kind in ("hidden", "PASSWORD", "checkbox", "radio", "file", "range",
        "color")),
        ("iframe", " srcdoc='&lt;p>x'", documents("<p>x")), ("iframe", " srcdoc", NOTHING),
        ("iframe", " src=data:text/html,x", documents("x")),
        ("iframe", " srcdoc=a src=data:text/html,x", documents("a")),
        ("iframe", " srcdoc='<NOSCRIPT>a</noscript>'", documents("<NOSCRIPT>a</noscript>")),
        ("iframe", " sandbox srcdoc='<NOSCRIPT>a</noscript>'", documents("<x-NOSCRIPT>a</x-noscript>")),
        ("iframe", " sandbox=Allow-Scripts srcdoc='<noscript>a'", documents("<noscript>a")),
        ("object", " data=data:text/html,x", documents("x")), ("object", " src=data:text/html,x", NOTHING),
        ("embed", " src=data:text/html,x", documents("x")),
        ("embed", " data=data:text/html,x", NOTHING), ("frame", " src=/x", NOTHING),
        ("img", f" src=data:image/svg+xml;base64,{SVG}", documents("<svg><text>xy")),
        ("img", f" src='data:image/svg+xml;charset=utf-8;BASE64,{SVG}=='", documents("<svg><text>xy")),
        ("img", " src=data:image/svg+xml;base64,a", NOTHING),
        ("img", " src='DATA:text/plain,<p>'", documents("<plaintext><p>")),
        ("img", " src=data:,a%3Cb&gt;", documents("<plaintext>a<b>")),
        ("img", " src=data:text/html,%00", documents("\ufffd")), ("img", " src=data:text/html,%ff", documents("\ufffd")),
        ("img", " src=data:text/html,", NOTHING),
        ("img", " src=data:text/xml,x", documents("x")), ("img", " src='\ndata: application/xhtml+xml;a=b,x'", documents("x")),
        ("img", " src=data:image/png,x", NOTHING),
        ("meta", " content='0;URL = &quot;data:text/html,x'", documents("x")), ("meta", " content=x", NOTHING),
        ("meta", "", NOTHING),
    ],
)  # fmt: skip
def test_what_there_is_to_an_element(name: str, attributes: str, found: Special) -> None:
    assert special(name, attributes) == found


def test_documents_within_are_read_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "MAX_NESTED", 20)
    assert special("iframe", f" srcdoc='{'a' * 30}'") == documents("a" * 20)
    assert special("embed", f" src='data:text/html,{'a' * 30}'") == documents("a" * 5)
