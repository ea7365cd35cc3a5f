"""The parts of a page, and PDF files: those that can be read, and those made to do harm."""

import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.classify import Lexicon, PageClassifier, is_pdf, parts_of
from gatewayfilter.classify.lexicon.word_file import WordFile
from gatewayfilter.documents.html.markup import read_html, read_references
from gatewayfilter.documents.html.references import MAX_IMAGES, MAX_LINKS, MAX_TEXT, PageImage, PageLink
from gatewayfilter.documents.page_parts import read_parts
from gatewayfilter.documents.pdf_text import MAX_PAGES, pdf_text
from gatewayfilter.interfaces import Page
from tests.case_tables import all_cases

twice = pytest.mark.usefixtures("each_reading")
"""Compiled and in Python."""
HTML = """<html><head><title>A &amp; B</title><base href="/b/"><meta name=description content="About"><meta name=keywords
content="one, two"><link rel="alternate" type="application/rss+xml" href="/feed"></head><body><p>Some text</p>
<a href="/1" rel="NoFollow">first <b>link</b></a><a href='2'><img src="i.png" alt="a picture"></a><img src=j.png>
<map><area href=3 alt="corner"></map><a name=x>none</a></body></html>"""


@twice
def test_parts() -> None:
    parts = read_parts(HTML)
    assert (parts.title, parts.description, parts.keywords, parts.base) == ("A & B", "About", "one, two", "/b/")
    assert parts.links == (
        PageLink("/feed", "", "alternate", "application/rss+xml", on_page=False),
        PageLink("/1", "first link", "nofollow"),
        PageLink("2", "a picture"),
        PageLink("3", "corner"),
    )
    assert parts.images == (PageImage("i.png", "a picture"), PageImage("j.png"))
    assert "Some text" in parts.main + parts.rest


@twice
@pytest.mark.parametrize(
    ("html", "texts"),
    [
        ("<a href=1>one<a href=2>two", ["one", "two"]),
        ("<a href=1>one</a>after", ["one"]),
        ("<a href=1><script>var a</script>one</a>", ["one"]),
        ("<a href=1>&lt;b&gt;  x\n y</a>", ["<b> x y"]),
        ("<a href=1></a>", [""]),
        ("<a href=1", [""]),
        (f"<a href=1>{'x' * 5000}</a>", ["x" * MAX_TEXT]),
    ],
)
def test_texts_of_links(html: str, texts: list[str]) -> None:
    assert [link.text for link in read_references(html)[1]] == texts


@twice
def test_bounds() -> None:
    _, links, images = read_references("<a href=1>x</a><img src=y>" * 10_000)
    assert (len(links), len(images)) == (MAX_LINKS, MAX_IMAGES)


@twice
@pytest.mark.parametrize(
    ("attributes", "image"),
    [
        ("src=a alt=b", PageImage("a", "b")),
        ("SRC=a\nALT = 'b'", PageImage("a", "b")),
        ('src="a"alt="b"', PageImage("a", "b")),
        ("""src="'a'" alt='"b"'""", PageImage("'a'", '"b"')),
        ("src=a src=b alt alt=c", PageImage("a")),
        ("/src=a/b/ alt=c/", PageImage("a/b/", "c/")),
        ("src=a alt='&amp;lt;'", PageImage("a", "&lt;")),
        ("src=a ='alt=x'", PageImage("a")),
        ("src=a alt", PageImage("a")),
        (f"x='{'y' * 20_000}' src=a", None),
    ],
)
def test_attributes_as_they_may_be_written(attributes: str, image: PageImage | None) -> None:
    assert read_references(f"<img {attributes}>").images == ((image,) if image else ())
    assert read_html(f"<img {attributes}>").labels == ([image.alt] if image and image.alt else [])


@twice
@given(st.text(alphabet="<>/abhrefimgsrclt= \"'&;#", max_size=300))
def test_any_markup(html: str) -> None:
    read_parts(html)


@twice
@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html", HTML.encode()),
        ("text/html; charset=gb18030", HTML.replace("Some text", "一些文字和赌场").encode("gb18030")),
        ("", b"<A HREF=1>casino<IMG SRC=a ALT=b></A><AREA HREF=2>"),
        ("text/plain", b"casino\nbonus"),
        ("image/png", b"\x89PNG"),
        ("text/html", b"no tag at all: casino"),
    ],
)
def test_judged_and_taken_apart_in_one_reading(content_type: str, body: bytes) -> None:
    page = Page("http://site.example/", "http://site.example/", 200, {"content-type": content_type}, body)
    classifier = PageClassifier(Lexicon.of([WordFile("test", words={"casino": 30.0, "赌场": 30.0}, min_words=1)]))
    assert classifier.classify_with_parts(page) == (classifier.classify_page(page), parts_of(page))


def pdf(*texts: str, title: str = "", extra: bytes = b"") -> bytes:
    """A PDF file of these pages, written by hand."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Title (%b) >>" % title.encode(),
    ]
    kids = []
    for text in texts:
        stream = b"BT /F1 12 Tf 72 720 Td (%b) Tj ET" % text.encode()
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
            % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%b] >>" % (len(kids), b" ".join(kids))
    return _file(objects) + extra


def _file(objects: list[bytes]) -> bytes:
    out = b"%PDF-1.4\n"
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start)


def pdf_page(body: bytes, content_type: str = "application/pdf") -> Page:
    return Page("http://x.example/f", "http://x.example/f", 200, {"content-type": content_type}, body)


def test_a_pdf_file_is_judged_by_its_text() -> None:
    body = pdf("casino", "second page", title="Paper")
    assert pdf_text(body) == ("Paper", "casino\nsecond page")
    classifier = PageClassifier(Lexicon.of([WordFile("gambling", words={"casino": 30.0}, limit=20.0, min_words=1)]))
    found = classifier.classify_page(pdf_page(body))
    assert (found.category, found.title) == ("gambling", "Paper")
    assert classifier.classify_page(pdf_page(body, "image/png")).category == ""
    assert parts_of(pdf_page(body)).main == ("casino", "second page")


def test_only_the_first_pages_of_a_pdf_file_are_read() -> None:
    text = pdf_text(pdf(*(f"number {n} end" for n in range(MAX_PAGES + 5))))[1]
    assert f"number {MAX_PAGES - 1} end" in text
    assert f"number {MAX_PAGES} end" not in text


def flate(data: bytes) -> bytes:
    packed = zlib.compress(data, 9)
    return b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream" % (len(packed), packed)


CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"
ONE_PAGE = b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>"
PAGE = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>"
HOSTILE: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"%PDF-",
    "noise": lambda: b"%PDF-1.4\n" + b"\xff" * 100_000,
    "200 MB of content": lambda: _file([CATALOG, ONE_PAGE, PAGE, flate(b"(a) Tj " * 30_000_000)]),
    "open brackets": lambda: _file([CATALOG, ONE_PAGE, PAGE, flate(b"[" * 3_000_000)]),
    "a circle": lambda: _file([CATALOG, b"<< /Type /Pages /Count 9 /Kids [2 0 R 2 0 R] >>", b"null", b"null"]),
    "many pages": lambda: _file([CATALOG, b"<< /Type /Pages /Count 999999999 /Kids [3 0 R] >>", PAGE, flate(b"BT (x) Tj ET")]),
    "many objects": lambda: b"%PDF-1.4\n" + b"1 0 obj\n" * 200_000,
    "no table": lambda: pdf("x").replace(b"startxref\n", b"startxref\n9999999"),
}
"""Made by the test that needs it: every process that collects tests would make them."""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pdf_file_holds_nobody(name: str) -> None:
    """The test's timeout is the bound: each is given up after 5 s."""
    pdf_text(HOSTILE[name]())
    assert pdf_text(pdf("still works"))[1] == "still works"


@all_cases(
    ("content_type", "body", "expected"),
    [
        ("application/pdf", b"%PDF-1.4", True),
        ("application/x-pdf", b"\n\n%PDF-1.4", True),
        ("application/pdf", b"<html>", False),
        ("text/html", b"%PDF-1.4", False),
        ("", b"%PDF-1.4", False),
    ],
)
def test_what_is_pdf(content_type: str, body: bytes, expected: object) -> None:
    assert is_pdf(content_type, body) is expected
