"""The outline of pages that were made to break it, and proposals of selectors."""

import time
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.extraction.page_outline import MOST_DEPTH, MOST_ELEMENTS, MOST_TEXT, PageOutline, read_outline
from gatewayfilter.extraction.selector_proposals import SelectorFinder
from gatewayfilter.extraction.selectors import RulePage
from tests.web.learning_site import ARTICLE

CPU_S = 2.0


def outline_of(html: str) -> tuple[PageOutline, SelectorFinder]:
    page = RulePage(html, "")
    outline = read_outline(page)
    return outline, SelectorFinder(page, outline)


def text_of(outline: PageOutline) -> str:
    return "".join(piece[1] for piece in outline.pieces if piece[0] == "text")


def number_of(outline: PageOutline, tag: str) -> int:
    return next(element.number for element in outline.elements if element.tag == tag)


HOSTILE = [
    ("nested", "<div>" * 50_000 + "x"),
    ("siblings", "<p>hello</p>" * 60_000),
    ("unclosed", "<p class=a>x" * 60_000),
    ("formatting", "<b>x" * 20_000),
    ("adoption", "<a href=x><b><i><u>" * 5_000 + "<p>" * 5_000),
    ("tables", "<table><tr><td>" * 20_000),
    ("attributes", "<div " + " ".join(f"a{number}=1" for number in range(200_000)) + ">x"),
    ("long attribute", f"<div title='{'x' * 1_900_000}'>x"),
    ("classes", f"<div class='{'k ' * 900_000}'>x"),
    ("scripts", "<script>1</script>" * 40_000),
    ("text", "x " * 1_000_000),
    ("hidden siblings", "<i></i>" * 29_000),
    ("controls", "\0<p>\0x\u202ey\x07" * 5_000),
    ("svg", "<svg><g>" * 20_000 + "<text>x"),
    ("templates", "<template><p>" * 20_000),
    ("nothing", ""),
]


@pytest.mark.parametrize(("name", "html"), HOSTILE)
def test_a_hostile_page_is_bounded(name: str, html: str) -> None:
    start = time.process_time()
    outline, finder = outline_of(html)
    for number in (0, 3, len(outline.elements) - 1):
        finder.picked(number)
    finder.marked("p")
    assert time.process_time() - start < CPU_S, name
    opened = list(chain([0], (1 if piece[0] == "open" else -1 if piece[0] == "close" else 0 for piece in outline.pieces)))
    depths = [sum(opened[: at + 1]) for at in range(0, len(opened), max(1, len(opened) // 50))]
    assert sum(opened) == 0
    assert max(depths) <= MOST_DEPTH
    assert len(outline.elements) <= MOST_ELEMENTS
    assert len(text_of(outline)) <= MOST_TEXT
    assert not any(mark in text_of(outline) for mark in "\0\x07")


def test_nothing_of_the_markup_is_in_the_pieces() -> None:
    html = (
        "<base href='http://evil.example/'><meta http-equiv=refresh content='0;url=http://evil.example/'><body onload=a()>"
        "<svg onload=a()><text>svg</text></svg><iframe src=x>frame</iframe><style>p{}</style><script>script()</script>"
        "<a href='javascript:a()'>go</a><x-y:z onclick=a()>odd</x-y:z><img src=x onerror=a() alt='<b>alt'><p>&lt;i&gt;"
    )
    outline, _ = outline_of(html)
    kinds = {piece[2] for piece in outline.pieces if piece[0] == "open"}
    assert kinds <= {"link", "image", "paragraph", "inline"}
    assert {piece[3] for piece in outline.pieces if piece[0] == "open"} <= {"a", "img", "p"}
    assert text_of(outline).replace(" ", "") == "go<b>alt<i>"


@settings(max_examples=30)
@given(st.text(alphabet="<>/ap=\"'bx &;\n!-tr", max_size=200))
def test_any_page_has_an_outline(html: str) -> None:
    outline, finder = outline_of(html)
    for number in range(len(outline.elements)):
        picked = finder.picked(number)
        assert picked is not None
        assert all(proposal.count > 0 for proposal in picked.fields)
    assert finder.picked(len(outline.elements)) is None
    assert finder.marked("p[[") == []


def test_elements_without_a_name_are_found_by_their_place_from_the_nearest_that_has_one() -> None:
    outline, finder = outline_of(
        "<body><main><p>one<p>two</main><div><span>k</span><p>three</p></div><div><p>four</p></div>"
        "<footer><div>a</div><i>b</i><div>c</div></footer>"
    )
    found = {}
    for element in outline.elements:
        picked = finder.picked(element.number)
        assert picked is not None
        found[element.text or element.tag] = picked.fields[0].expression
    assert {text: found[text] for text in ("one", "two", "three", "four", "k", "a", "c")} == {
        "one": "main > p:nth-of-type(1)",
        "two": "main > p:nth-of-type(2)",
        "three": "body > div:nth-of-type(1) > p",
        "four": "body > div:nth-of-type(2) > p",
        "k": "span",
        "a": "footer > div:nth-of-type(1)",
        "c": "footer > div:nth-of-type(2)",
    }


def test_proposals_go_from_the_specific_to_the_general() -> None:
    outline, finder = outline_of(ARTICLE)
    title = finder.picked(number_of(outline, "h1"))
    assert title is not None
    assert [(found.way, found.count) for found in title.fields] == [("css", 1), ("xpath", 1)]
    assert (title.fields[0].expression, title.name, title.attribute, title.links) == ("h1.headline", "title", "", ())
    story = next(element.number for element in outline.elements if element.text == "Library opens on Sundays")
    link = finder.picked(story)
    assert link is not None
    counts = [found.count for found in link.links]
    assert counts == sorted(counts)
    assert ("ul.more a", 3) in [(found.expression, found.count) for found in link.links]
    assert len(finder.marked("ul.more a")) == 3
    assert [tag for _, tag, _ in link.path] == ["html", "body", "main", "aside", "ul", "li"]
    author = finder.picked(next(element.number for element in outline.elements if element.text == "Kim Lee"))
    assert author is not None
    assert (author.fields[0].expression, author.name, author.attribute) == ('meta[name="author"]', "author", "content")
    assert author.fields[-1].expression == '//meta[@name="author"]/@content'
    more = finder.picked(number_of(outline, "ul"))
    assert more is not None
    assert ("ul.more a", 3) in [(found.expression, found.count) for found in more.links]


def test_a_page_is_whole_as_long_as_its_text_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(length: int) -> tuple[bool, str]:
        outline, _ = outline_of(f"<body><p>{'x' * length}</p></body>")
        return outline.is_whole, "".join(piece[1] for piece in outline.pieces if piece[0] == "text")

    monkeypatch.setattr("gatewayfilter.extraction.page_outline.MOST_TEXT", 10)
    assert [read(length) for length in (9, 11)] == [(True, "x" * 9), (False, "x" * 10)]
