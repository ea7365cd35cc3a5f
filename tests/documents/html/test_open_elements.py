"""Which elements are open after some tags, what is counted of them, and what the two readings make of their structure."""

import pytest

from gatewayfilter.documents.html import html_text, open_elements
from gatewayfilter.documents.html.markup import PURE, compiled_reading
from gatewayfilter.documents.html.open_elements import ANY, LINK, NONE, RULES, SPECIAL, OpenElements, P, breaks_out
from gatewayfilter.documents.html.tags import FOREIGN, NO_SCRIPT, is_closed, tokens_of
from tests.case_tables import all_cases
from tests.documents.html.structured_pages import structured_pages

_reading = compiled_reading()


@pytest.mark.skipif(_reading is None, reason="the compiled reading was not built")
@pytest.mark.parametrize("seed", range(3))
def test_both_readings_of_involved_structure(seed: int) -> None:
    assert _reading is not None
    for html in structured_pages(seed, 600):
        assert PURE.markup(html) == _reading.markup(html), html


def names(elements: OpenElements) -> list[str]:
    return [name for name, _, _ in elements._stack]


def counts(elements: OpenElements) -> tuple[int, int]:
    """Returns how many open elements are paragraphs and links."""
    found = [bits for _, bits, _ in elements._stack]
    return sum(bool(bits & P) for bits in found), sum(bool(bits & LINK) for bits in found)


def taken(html: str) -> OpenElements:
    """Returns the open elements after the tags of a page, taken one by one."""
    elements = OpenElements()
    for kind, name, attributes, _ in tokens_of(html):
        if name.startswith("/"):
            elements.end(name[1:].lower())
        elif name and kind != NO_SCRIPT:
            elements.start(name.lower(), attributes, foreign=kind == FOREIGN, closed=is_closed(attributes))
        assert (elements._paragraphs, elements._links) == counts(elements), html
    return elements


def test_paragraphs_and_links_are_counted() -> None:
    for html in structured_pages(7, 400):
        taken(html)


@all_cases(
    ("html", "simple", "left"),
    [
        ("<div><b><i>x</i></b></div><p>", 7, ["p"]), ("<p><a><br></p><img></a>", 3, ["p", "a"]), ("<p>a<p>", 1, ["p"]),
        ("<p><div>", 1, ["p"]),
        ("<p><b><div>", 2, ["p", "b"]), ("<p></p><div></div>", 4, []), ("<p></P>", 1, ["p"]), ("<b></i>", 1, ["b"]),
        ("</b>", 0, []), ("</br></img><b>", 3, ["b"]),
        ("<ul><li>a<li>", 2, ["ul", "li"]), ("<ul><li></li><li>", 4, ["ul", "li"]), ("<li><li>", 1, ["li"]),
        ("<ul><b><li>", 2, ["ul", "b"]),
        ("<a><a>", 1, ["a"]), ("<a></a><a>", 3, ["a"]), ("<a><b><a>", 2, ["a", "b"]), ("<table>", 0, []), ("<form>", 0, []),
        ("<svg>", 0, []), ("<math>", 0, []),
        ("<tr><td>", 1, ["tr"]), ("<tbody><b></b>", 3, ["tbody"]), ("<b><x-y>", 1, ["b"]),
        ("<kbd></kbd>a<!-- --><b>", 4, ["b"]), ("<B>", 0, []),
        ("<noscript><b></noscript>", 0, []), ("<script><b></script><title>x</title><b>", 5, ["b"]),
        ("<textarea>x</textarea><i>", 3, ["i"]),
        ("<p><a></a></p><p><a></a></p>", 8, []), ("<a></a><div><a></a></div><a>", 7, ["a"]),
        ("<select><option><option>", 2, ["select", "option"]),
    ],
)  # fmt: skip
def test_simple_tags_are_followed_at_once(html: str, simple: int, left: list[str]) -> None:
    elements = OpenElements()
    tokens = tokens_of(html)
    assert elements.follow(tokens, 0, len(tokens)) == simple
    assert names(elements) == left
    assert (elements._paragraphs, elements._links) == counts(elements)


def test_tags_are_followed_from_and_to_a_place() -> None:
    tokens = tokens_of("<b><i><u><s>")
    elements = OpenElements()
    assert elements.follow(tokens, 1, 3) == 3
    assert names(elements) == ["i", "u"]
    elements.start("svg", "", foreign=False, closed=False)
    assert elements.follow(tokens, 0, 4) == 0, "in foreign content nothing is simple"


def test_followed_or_taken_one_by_one_is_the_same() -> None:
    for html in structured_pages(9, 300):
        tokens = tokens_of(html)
        elements = OpenElements()
        stop = elements.follow(tokens, 0, len(tokens))
        one_by_one = OpenElements()
        for _, name, attributes, _ in tokens[:stop]:
            if name.startswith("/"):
                one_by_one.end(name[1:])
            elif name:
                one_by_one.start(name, attributes, foreign=False, closed=is_closed(attributes))
        assert elements._stack == one_by_one._stack, html
        assert (elements._paragraphs, elements._links) == counts(elements), html


@all_cases(
    ("before", "name", "attributes", "foreign", "is_open"),
    [
        ("", "div", "", False, True), ("", "br", "", False, False), ("", "div", " /", False, True),
        ("", "svg", " /", False, False),
        ("", "svg", "", False, True), ("<svg>", "g", "", True, True), ("<svg>", "g", " /", True, False),
        ("<svg>", "p", "", True, True),
        ("<svg>", "br", "", True, False), ("<form>", "form", "", False, False), ("<form></form>", "form", "", False, True),
        ("", "title", "", False, False),
    ],
)  # fmt: skip
def test_whether_an_element_is_open_after_its_tag(
    before: str, name: str, attributes: str, is_open: object, *, foreign: bool
) -> None:
    elements = taken(before)
    assert elements.start(name, attributes, foreign=foreign, closed=attributes.endswith("/")) is is_open
    assert (names(elements) == [*names(taken(before)), name]) is (is_open and name != "p")


@all_cases(
    ("html", "left"),
    [
        ("<p><div>", ["div"]), ("<p><button><div>", ["p", "button", "div"]), ("<ul><li><div><li>", ["ul", "li"]),
        ("<ul><li><ul><li>", ["ul", "li", "ul", "li"]),
        ("<dl><dd>a<dt>", ["dl", "dt"]), ("<h1><h2>", ["h2"]), ("<h1></h2>", []), ("<h1><b></h2>", []), ("<h1><div></h2>", []),
        ("<table><tr><td><tr>", ["table", "tr"]), ("<table><tr><td><tbody>", ["table", "tbody"]), ("<table><table>", ["table"]),
        ("<table><tr><td><table>", ["table", "tr", "td", "table"]), ("<table><tr><td></table>", []),
        ("<select><option><optgroup>", ["select", "optgroup"]),
        ("<select><optgroup><option><option>", ["select", "optgroup", "option"]), ("<a><div><a>", ["div", "a"]),
        ("<a><b><a>", ["a"]),
        ("<nobr><div><nobr>", ["div", "nobr"]), ("<button><b><button>", ["button"]), ("<ruby><rt><rp>", ["ruby", "rp"]),
        ("<b><p></b>", ["p"]),
        ("<b><i></b>", []), ("<div><span></div>", []), ("<div><x-a></b></x-a>", ["div"]), ("<form><p></form>", []),
        ("<form><div></form>", ["div"]),
        ("<form><div></form></div>", []), ("<svg><g></svg>", []), ("<svg><g><p>", ["p"]),
        ("<svg><title><p>", ["svg", "title", "p"]),
        ("<math><mi><b></mi>", ["math", "mi", "b"]), ("<svg><g></p>", []), ("<svg><g></br>", []), ("<div><svg><g></div>", []),
        ("<template><div></template>", []),
        ("<p></div>", ["p"]), ("<td><b></td>", []), ("<svg><font>", ["svg", "font"]), ("<svg><font size=1>", ["font"]),
        ("</p>", []), ("<button><p></button>", []),
        ("<object><p></object>", []), ("<ul><li></ul>", []), ("<li><ul></li>", ["li", "ul"]), ("<marquee><b></marquee>", []),
        ("<i><td></i>", ["i", "td"]),
    ],
)  # fmt: skip
def test_what_is_open(html: str, left: list[str]) -> None:
    assert names(taken(html)) == left


def test_elements_are_looked_for_among_the_innermost_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_elements, "MAX_SEARCH", 3)
    assert names(taken("<div><i><i></div>")) == []
    assert names(taken("<div><i><i><i></div>")) == ["div", "i", "i", "i"]
    assert names(taken("<form><i><i><form>")) == ["form", "i", "i"]
    assert names(taken("<form><i><i><i><form>")) == ["form", "i", "i", "i", "form"]
    assert names(taken("<a><i><i><a>")) == ["a"]
    assert names(taken("<a><i><i><i><a>")) == ["a", "i", "i", "i", "a"]


def test_places_of_what_hides_and_is_shown_again() -> None:
    for html, ended, hidden, shown in (
        ("<div><b><i>", "i", 0, 1), ("<div><b><i>", "b", 0, NONE), ("<div><b><i>", "div", NONE, NONE),
        ("<b><div><i>", "b", NONE, 0),
    ):  # fmt: skip
        elements = taken(html)
        elements.hidden, elements.shown = 0, 1
        elements.end(ended)
        assert (elements.hidden, elements.shown) == (hidden, shown), (html, ended)
    for html, hides, ended, hidden, shown in (
        ("<b><p><i>", 1, "b", 0, 1), ("<div><b><p><i>", 0, "b", 0, NONE), ("<form><div><b>", 1, "form", 0, 1),
        ("<div><form><b>", 0, "form", 0, 1),
    ):  # fmt: skip
        elements = taken(html)
        elements.hidden, elements.shown = hides, hides + 1
        elements.end(ended)
        assert (elements.hidden, elements.shown) == (hidden, shown), (html, ended)


@all_cases(
    ("html", "hidden", "shown"),
    [
        ("<div><noscript></div></noscript><p hidden>a</div>b", ["a"], ["b"]),
        ("<noscript><div hidden>a</noscript>b", ["a"], ["b"]),
        ("<ul><noscript><li></NoScript ><li hidden>a<li>b", ["a"], ["b"]),
        ("<b><noscript></b></noscript><i hidden>a</b>b", ["a"], ["b"]),
        ("<noscript></noscript><div><i hidden>a</div>b", ["a"], ["b"]), ("<form><div hidden>a</form>b</div>c", ["a", "b"], ["c"]),
    ],
)  # fmt: skip
def test_what_hides_ends_with_its_element(html: str, hidden: list[str], shown: list[str]) -> None:
    for reading in (PURE, _reading or PURE):
        page = reading.html(html)
        assert (page.hidden, [block.text for block in page.blocks]) == (hidden, shown)


def test_elements_of_which_more_is_asked_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_text, "MAX_SPECIAL", 2)
    assert PURE.html("<input value=a><input value=b><input value=c>").labels == ["a", "b"]
    assert PURE.html("<input><input><input><input value=a>").labels == ["a"]


@pytest.mark.parametrize(
    "tag", ["<img src='data:image/svg+xml,x'>", "<meta http-equiv=refresh content='0;url=data:text/html,x'>"]
)
def test_documents_within_a_page_are_bounded(monkeypatch: pytest.MonkeyPatch, tag: str) -> None:
    monkeypatch.setattr(html_text, "MAX_DOCUMENTS", 2)
    for count, kept in ((1, 1), (2, 2), (3, 2)):
        assert PURE.html(tag * count).documents == ["x"] * kept


def test_rules_of_elements() -> None:
    """An element without a place in the lists stops nothing and ends nothing."""
    assert RULES["em"].bits & ANY
    assert (RULES["em"].closes, RULES["em"].stops) == (0, 0)
    assert RULES["ruby"].end_stops == SPECIAL
    assert RULES["li"].bits & SPECIAL


@all_cases(
    ("name", "attributes", "breaks"),
    [
        ("p", "", True),
        ("g", " color=x", False),
        ("font", "", False),
        ("font", " COLOR=x", True),
        ("font", " face", True),
        ("font", " size=1", True),
    ],
)
def test_what_breaks_out_of_foreign_content(name: str, attributes: str, *, breaks: bool) -> None:
    assert breaks_out(name, RULES[name].bits if name in RULES else 0, attributes) is breaks
