"""The outline of a page in its parts, its bounds at their edges, and which selectors are proposed for an element."""

from typing import Any

import pytest

from gatewayfilter.extraction import page_outline, selector_proposals
from gatewayfilter.extraction.page_outline import PageOutline, clean, read_outline
from gatewayfilter.extraction.selector_proposals import PickedElement, SelectorFinder
from gatewayfilter.extraction.selectors import RulePage
from tests.case_tables import all_cases


def outline_of(html: str) -> tuple[PageOutline, SelectorFinder]:
    page = RulePage(html, "")
    outline = read_outline(page)
    return outline, SelectorFinder(page, outline)


def body(html: str) -> list[Any]:
    """Returns the pieces within the body of a page."""
    return [*outline_of(f"<body>{html}")[0].pieces]


def test_elements_of_a_page() -> None:
    outline, _ = outline_of(
        "<title>T <b></title><meta name=description content='About  us'><meta property=og:x>"
        "<body id=b><div class='a b c d'>one<p>two"
    )
    found = [(each.number, each.tag, each.label, each.text, each.parent, each.shown) for each in outline.elements]
    assert found == [
        (0, "html", "", "", -1, False), (1, "head", "", "", 0, False), (2, "title", "", "T <b>", 1, False),
        (3, "meta", "[description]", "About us", 1, False), (4, "meta", "[og:x]", "", 1, False), (5, "body", "#b", "", 0, False),
        (6, "div", ".a.b.c", "one", 5, True), (7, "p", "", "two", 6, True),
    ]  # fmt: skip
    assert outline.pieces == [
        ("open", 6, "block", "div"),
        ("text", "one"),
        ("open", 7, "paragraph", "p"),
        ("text", "two"),
        ("close",),
        ("close",),
    ]
    assert [each.tag for each in outline.path(7)] == ["html", "body", "div"]
    assert outline.path(0) == []
    assert outline.is_whole
    assert outline.allows_positions


@all_cases(
    ("html", "kind", "text"),
    [
        ("<img alt='a  b' src=x>", "image", "a b"), ("<img src='/a/b.png?c=d/e'>", "image", "b.png"),
        ("<img src=b.png>", "image", "b.png"),
        ("<img>", "image", "img"), ("<img alt='' src=''>", "image", "img"),
        ("<input value=v placeholder=p type=t>", "control", "v"),
        ("<input placeholder=p type=t>", "control", "p"), ("<input type=t>", "control", "t"), ("<input>", "control", "input"),
        ("<h1>a</h1>", "heading", "a"), ("<pre>a\n  b</pre>", "preformatted", "a\n  b"), ("<p>a\n  b</p>", "paragraph", "a b"),
        ("<x-y>a</x-y>", "inline", "a"),
        ("<b>a\x07b</b>", "strong", "ab"), ("<a>x</a>", "link", "x"), ("<li>x</li>", "item", "x"),
        (f"<img alt={'a' * 200}>", "image", "a" * 160),
        (f"<input value={'a' * 200}>", "control", "a" * 160),
    ],
)  # fmt: skip
def test_what_is_shown_of_an_element(html: str, kind: str, text: str) -> None:
    pieces = body(html)
    assert [piece for piece in pieces if piece[0] == "text"] == [("text", text)]
    assert pieces[0][2] == kind


@all_cases(
    "html",
    [
        "<script>x</script>",
        "<svg><text>x</text></svg>",
        "<template>x</template>",
        "<iframe>x</iframe>",
        "<a:b>x</a:b>",
        "<!-- x -->",
    ],
)
def test_what_is_left_out(html: str) -> None:
    assert body(f"a{html}b") == [("text", "a"), ("text", "b")]
    assert outline_of(html)[0].is_whole


@all_cases(
    ("attributes", "label"),
    [
        ("", ""), (" id=a", "#a"), (" class='a b'", ".a.b"), (" id=a class='b c d e'", "#a.b.c.d"), (" name=n", "[n]"),
        (" property=p name=n", "[p]"),
        (" id=a name=n", "#a"), (f" id={'a' * 100}", "#" + "a" * 79), (f" class='{'a ' * 499}bc d'", ".a.a.a"),
        (" class=' '", ""),
    ],
)  # fmt: skip
def test_labels_of_elements(attributes: str, label: str) -> None:
    outline, _ = outline_of(f"<p{attributes}>x")
    assert outline.elements[-1].label == label


def test_own_text_is_the_beginning() -> None:
    outline, _ = outline_of(f"<p>{'a' * 100}<b>x</b>{'b' * 100}<i>y</i>c")
    assert next(each.text for each in outline.elements if each.tag == "p") == "a" * 100 + " " + "b" * 59


@pytest.mark.parametrize(
    ("bound", "html", "enough"),
    [
        ("MOST_ELEMENTS", "<p>a</p><p>b</p>", 5), ("MOST_DEPTH", "<p><b><i>a", 5), ("MOST_TEXT", "<p>ab</p><p>cd</p>", 5),
        ("MOST_NODES", "<p>a</p><p>b</p>", 7),
    ],
)  # fmt: skip
def test_an_outline_is_whole_up_to_its_bounds(monkeypatch: pytest.MonkeyPatch, bound: str, html: str, enough: int) -> None:
    monkeypatch.setattr(page_outline, bound, enough)
    whole = outline_of(html)[0]
    assert whole.is_whole
    monkeypatch.setattr(page_outline, bound, enough - 1)
    cut = outline_of(html)[0]
    assert not cut.is_whole
    assert not cut.allows_positions
    assert cut.pieces == whole.pieces[: len(cut.pieces)] or bound == "MOST_DEPTH" or cut.pieces[-1] == ("close",)


def test_text_is_cut_off_where_its_bound_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_outline, "MOST_TEXT", 3)
    assert [piece[1] for piece in body("<p>ab</p><p>cd</p><p>ef</p>") if piece[0] == "text"] == ["ab", "c"]


def test_positions_cost_the_squares_of_the_siblings(monkeypatch: pytest.MonkeyPatch) -> None:
    outline, _ = outline_of("<p>a</p><p>b</p>c<p><b>x</b><i>y</i></p>")
    cost = 1 + 2**2 + 3**2 + 2**2
    assert outline._positions == cost
    for most, allowed in ((cost, True), (cost - 1, False)):
        monkeypatch.setattr(page_outline, "_MOST_POSITIONS", most)
        assert outline.allows_positions is allowed


def test_cleaned_text() -> None:
    assert clean(" a\n\t b\x00\x85c ") == " a bc "
    assert clean("a\n  b\x07", keep_lines=True) == "a\n  b"


def picked(html: str, tag: str, *, last: bool = False) -> PickedElement:
    outline, finder = outline_of(html)
    numbers = [each.number for each in outline.elements if each.tag == tag]
    found = finder.picked(numbers[-1 if last else 0])
    assert found is not None
    return found


def test_a_picked_element() -> None:
    found = picked("<body><div id=d><p class='k l' itemprop=Author data-x='1  2' style=x>Some  text</p><p>b</p></div>", "p")
    assert (found.number, found.tag, found.label, found.text) == (4, "p", ".k.l", "Some text")
    assert found.path == ((0, "html", ""), (2, "body", ""), (3, "div", "#d"))
    assert found.attributes == (("itemprop", "Author"), ("data-x", "1 2"))
    assert (found.name, found.attribute) == ("author", "")
    assert [(each.way, each.expression, each.count) for each in found.fields] == [
        ("css", 'p[itemprop="Author"]', 1), ("css", "p", 2), ("xpath", '//p[@itemprop="Author"]', 1), ("xpath", "//p", 2),
    ]  # fmt: skip
    assert found.links == ()


@all_cases(
    ("html", "tag", "name", "attribute", "text"),
    [
        ("<meta property=og:title content='A  b'>", "meta", "title", "content", "A b"),
        ("<meta name=':' content=x>", "meta", "meta", "content", "x"),
        ("<img src=x>", "img", "image", "src", ""), ("<time datetime=2026>", "time", "date", "datetime", ""),
        ("<time datetime=2026>now", "time", "date", "", "now"),
        ("<a href=x>y</a>", "a", "link", "", "y"), ("<a href=x> </a>", "a", "link", "href", " "),
        ("<h1>x</h1>", "h1", "title", "", "x"),
        ("<p>x</p>", "p", "text", "", "x"), ("<p>", "p", "text", "", ""),
        ("<p itemprop=a property=b name=c>x", "p", "a", "", "x"), ("<p property=b name=c>x", "p", "b", "", "x"),
        ("<p name=C-1>x", "p", "c-1", "", "x"), ("<p name='a b'>x", "p", "text", "", "x"),
        (f"<p name={'n' * 50}>x", "p", "n" * 40, "", "x"),
        (f"<p>{'a' * 600}", "p", "text", "", "a" * 500),
    ],
)  # fmt: skip
def test_what_a_field_for_an_element_is_called(html: str, tag: str, name: str, attribute: str, text: str) -> None:
    found = picked(html, tag)
    assert (found.name, found.attribute, found.text) == (name, attribute, text)


@all_cases(
    ("html", "tag", "css"),
    [
        ("<p id=i>x", "p", [("#i", 1)]), ("<p id='1'>x", "p", [("p", 1)]), ("<p class=k>x</p><p>y", "p", [("p.k", 1), ("p", 2)]),
        ("<p class='k l'>x</p><p class=k>y</p><p class=l>z</p><p>", "p", [("p.k.l", 1), ("p.k", 2), ("p", 4)]),
        ("<p rel='a b'>x", "p", [("p", 1)]), ("<p role=r>x</p><p>", "p", [('p[role="r"]', 1), ("p", 2)]),
        ("<div class=k><p>x</p></div><p>", "p", [("div.k > p", 1), ("p", 2)]),
        ("<div id=d><i><p>x</p></i></div><p>", "p", [("#d p", 1), ("p", 2)]),
        ("<article><i><b>x</b></i></article><b>", "b", [("article b", 1), ("b", 2)]),
        ("<p>x</p><p>y</p>", "p", [("body > p:nth-of-type(1)", 1), ("p", 2)]),
        ("<i>a</i><p>x</p><p>y</p>", "p", [("body > p:nth-of-type(1)", 1), ("p", 2)]),
        ("<div><p>x</p></div><div><p>y</p></div>", "p", [("body > div:nth-of-type(1) > p", 1), ("p", 2)]),
        ("<main><div><p>x</p></div><div><p>y</p></div></main>", "p", [("main > div:nth-of-type(1) > p", 1), ("main p", 2)]),
        ("<ul class=k><li>x</li><li>y</li></ul>", "li", [("ul.k > li:nth-of-type(1)", 1), ("ul.k > li", 2)]),
        ("<div class='k'><div class='l'><div class=m><div class=n><p>x</p></div></div></div></div><p>", "p", [("div.n > p", 1),
        ("p", 2)]),
    ],
)  # fmt: skip
def test_selectors_from_the_most_specific_on(html: str, tag: str, css: list[tuple[str, int]]) -> None:
    found = picked(html, tag)
    assert [(each.expression, each.count) for each in found.fields if each.way == "css"] == css


def test_several_classes_together() -> None:
    html = "".join(f"<p class='{classes}'>x</p>" for classes in ("a b c d", "a b c", "a", "b", "c", "d", "d", "d", "d"))
    css = [(each.expression, each.count) for each in picked(html, "p").fields if each.way == "css"]
    assert css == [("body > p:nth-of-type(1)", 1), ("p.a.b.c", 2), ("p.a", 3), ("p.d", 5), ("p", 9)]


@all_cases(
    ("around", "below"),
    [
        ("<i class=a><i class=b><i class=c><i class=d>", ["i.d > u", "i.c u", "i.b u"]),
        ("<nav><i class=a><main>", ["main > u", "i.a u", "nav u"]),
        ("<i class=a>" + "<b>" * 19, ["i.a u"]), ("<i class=a>" + "<b>" * 20, []),
        ("<i class=a><i id=b><i class=c>", ["i.c > u", "#b u"]), ("<i id=a>", ["#a > u"]),
        ("<i class=a><nav><nav><nav>", ["nav > u", "nav u", "nav u"]),
    ],
)  # fmt: skip
def test_selectors_by_what_is_around(around: str, below: list[str]) -> None:
    outline, _ = outline_of(f"{around}<u>x")
    node = next(node for node, each in zip(outline.nodes, outline.elements, strict=True) if each.tag == "u")
    assert list(selector_proposals._below(node, "u")) == below


@all_cases(
    ("html", "alone"),
    [
        ("<div id=a>", "#a"), ("<div id=a><p id=a>", ""), ("<div class='a b'><p class=a>", "div.a"),
        ("<div class='a b'></div><div class=a>", "div.b"),
        ("<div class='a b c'></div><div class='a b'>", ""), ("<div class=a></div><div class=a>", ""), ("<div>", ""),
        ("<nav>", ""), ("<div id=1 class=a>", "div.a"),
    ],
)  # fmt: skip
def test_what_singles_an_element_out(html: str, alone: str) -> None:
    outline, finder = outline_of(html)
    assert finder._alone(next(node for node in outline.nodes if node.tag in {"div", "nav"})) == (
        alone or ("nav" if html == "<nav>" else "")
    )


def test_attributes_with_odd_names_are_passed_over() -> None:
    found = picked("<p " + " ".join(f"{number}" for number in range(99)) + " y=1 z=2>x", "p")
    assert found.attributes == (("y", "1"),)


def test_a_place_among_others() -> None:
    html = "<p>a</p><i>b</i><p>c</p><p>d</p>"
    assert picked(html, "p", last=True).fields[0].expression == "body > p:nth-of-type(3)"
    assert picked("<p>a</p><p>b</p>", "p", last=True).fields[0].expression == "body > p:nth-of-type(2)"
    assert picked(html, "i").fields[0].expression == "i"


@all_cases(
    ("html", "tag", "xpath"),
    [
        ("<p id=i>x", "p", [('//*[@id="i"]', 1)]), ("<p class='k l'>x</p><p class=k>y</p><p>", "p", [("k", 2), ("l", 1),
        ("//p", 3)]),
        ("<meta name=n content='A  b'>", "meta", [('//meta[@name="n"]/@content', 1)]), ("<p>x</p><p>y", "p", [("//p", 2)]),
        ("<meta id=i content=a>", "meta", [('//*[@id="i"]/@content', 1)]),
    ],
)  # fmt: skip
def test_xpath_by_which_the_same_is_found(html: str, tag: str, xpath: list[tuple[str, int]]) -> None:
    of_class = f'//{tag}[contains(concat(" ", normalize-space(@class), " "), " %s ")]'
    wanted = sorted([(name if name[0] == "/" else of_class % name, count) for name, count in xpath], key=lambda each: each[1])
    assert [(each.expression, each.count) for each in picked(html, tag).fields if each.way == "xpath"] == wanted


@all_cases(
    ("html", "tag", "links"),
    [
        ("<a href=x class=k>y</a><a href=z>", "a", [("a.k", 1), ("a", 2)]),
        ("<ul class=k><li><a href=x>y</a></ul><ul>", "ul", [("ul.k a", 1)]),
        ("<p><a name=x>y</a></p>", "p", []), ("<p>x", "p", []),
        ("<div class=k><a href=x></a></div><div><a href=y></a></div>", "div", [("div.k a", 1), ("div a", 2)]),
    ],
)  # fmt: skip
def test_selectors_of_links(html: str, tag: str, links: list[tuple[str, int]]) -> None:
    assert [(each.expression, each.count) for each in picked(html, tag).links] == links


def test_what_there_is_not() -> None:
    outline, finder = outline_of("<p>x")
    last = len(outline.elements) - 1
    assert finder.picked(last) is not None
    assert finder.picked(0) is not None
    assert finder.picked(last + 1) is None
    assert finder.picked(-1) is None


def test_marked_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    _, finder = outline_of("<p>a</p><p>b<svg><p></svg></p><b>c</b>")
    assert finder.marked("b") == [6]
    assert finder.marked("p[") == []
    assert finder.marked("u") == []
    monkeypatch.setattr(selector_proposals, "_MOST_MARKED", 2)
    _, finder = outline_of("<p>a</p><p>b</p><b>c</b>")
    assert finder.marked("p") == [3, 4]
    assert finder.marked("p, b") == []


def test_proposals_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    html = "".join(f"<p class='{' '.join('abcdefgh'[:count])}' x{count}=1>t</p>" for count in range(8, 0, -1))
    assert len([each for each in picked(html, "p").fields if each.way == "css"]) == 7
    assert len([each for each in picked(html, "p").fields if each.way == "xpath"]) == 2
    monkeypatch.setattr(selector_proposals, "_MOST_CANDIDATES", 2)
    assert [each.expression for each in picked(html, "p").fields if each.way == "css"] == [
        "body > p:nth-of-type(1)",
        "p.b",
        "p.a",
    ]
    many = picked("<p " + " ".join(f"a{number}={'v' * 200}" for number in range(20)) + ">x", "p")
    assert [(name, len(value)) for name, value in many.attributes] == [(f"a{number}", 160) for number in range(10)]
