"""Extraction rules: what a file may say, what is found on a page, and what a hostile page or file can do."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.classify import Lexicon, PageClassifier, RuleBook, RuleFolder, extract
from gatewayfilter.classify.lexicon.word_file import WordFile
from gatewayfilter.documents.sandbox import Sandbox, SandboxError
from gatewayfilter.errors import ClassifyError
from gatewayfilter.extraction.functions import extraction_function
from gatewayfilter.extraction.match_counts import MatchCounts
from gatewayfilter.extraction.rule_book import CHECK_EVERY_S, MOST_CHARACTERS, MOST_VALUES, RuleResult
from gatewayfilter.extraction.rule_folder import read_rule_file
from gatewayfilter.extraction.rules import MAX_FILE, Extracted, parse_rule
from gatewayfilter.interfaces import Page, RuleMatches
from tests.case_tables import all_cases

URL = "http://news.example/article/1"
HTML = """<html><head><title>Site</title><script type="application/ld+json">{"@graph": [{"articleBody": "From schema"}]}</script>
</head><body><h1 class="t">A  <b>bridge</b></h1><div id=body><p>One &amp; only</p><p>Two</p></div><span data-n="42">x</span>
<a class=next href="/article/2">next</a> <a href="/article/3?x=1">more</a> <a href="http://other.example/">off</a></body></html>"""
HEAD = "urls = 'http://news\\.example/.*'\n"


def rule_of(text: str, head: str = HEAD) -> str:
    return head + text


FIELDS = [
    ("css = 'h1.t'", ["A bridge"]),
    ("css = '#body p'", ["One & only"]),
    ("css = '#body p'\nmany = true", ["One & only", "Two"]),
    ("css = 'span'\nattribute = 'data-n'", ["42"]),
    ("css = 'span'\nattribute = 'none'", []),
    ("css = 'video'", []),
    ("xpath = '//h1'", ["A bridge"]),
    ("xpath = '//span/@data-n'", ["42"]),
    ("xpath = 'count(//p)'", ["2.0"]),
    ("xpath = '//p[2]/text()'", ["Two"]),
    ("regex = 'data-n=\"(\\d+)\"'", ["42"]),
    ("regex = '<p>.*?</p>'\nmany = true", ["One & only", "Two"]),
    ("regex = 'A +bridge'\ntext = true", ["A bridge"]),
    ("function = 'article_body'", ["From schema"]),
    ("function = 'main_text'", ["A bridge"]),
]


@all_cases(("field", "values"), FIELDS)
def test_fields(field: str, values: list[str]) -> None:
    found = parse_rule(rule_of(f"[fields.x]\n{field}\n"), "news").extract(HTML, URL)
    assert found.errors == {}
    assert found.fields == {"x": values}


LINKS = [
    ("css = 'a'", ["/article/2", "/article/3?x=1", "http://other.example/"]),
    ("css = 'a.next'", ["/article/2"]),
    ("css = 'a'\nlimit = 1", ["/article/2"]),
    ("xpath = '//a/@href'", ["/article/2", "/article/3?x=1", "http://other.example/"]),
    ("regex = 'href=\"(/article/[^\"]*)'", ["/article/2", "/article/3?x=1"]),
]


@all_cases(("table", "links"), LINKS)
def test_links(table: str, links: list[str]) -> None:
    found = parse_rule(rule_of(f"[[links]]\n{table}\n"), "news").extract(HTML, URL)
    assert [link for link, _ in found.links] == links


MATCHES = [
    (r"http://news\.example/.*", URL, True),
    (r"http://news\.example/", URL, False),
    (r"news", URL, False),
    (r"https?://news\.example/article/\d+", f"{URL}#part", True),
    (r"https?://[^/]*\.example/.*", "http://x.example/\ud800", False),
]


@all_cases(("urls", "url", "fits"), MATCHES)
def test_urls_match_whole(urls: str, url: str, fits: object) -> None:
    assert parse_rule(f"urls = '{urls}'\n[fields.x]\ncss = 'p'", "news").matches(url) is fits


BAD = [
    ("", "needs 'urls'"),
    ("urls = 5", "'urls' must be text"),
    ("urls = '('\n[fields.x]\ncss='p'", "urls: the regular expression is not valid"),
    ("urls = '(?=x)'\n[fields.x]\ncss='p'", "urls: not supported: look-around"),
    ("urls = 'x'", "neither fields nor links"),
    ("urls = 'x'\nfield = 1", "did you mean 'fields'?"),
    ("urls = 'x'\nfields = 1", "'fields' must be tables"),
    ("urls = 'x'\nlinks = 1", "'links' must be tables"),
    ("urls = 'x'\nname = 'Ü'\n[fields.x]\ncss='p'", "small letters"),
    ("urls = 'x'\n[fields.x]\n", "needs one of css"),
    ("urls = 'x'\n[fields.x]\ncss='p'\nxpath='//p'", "not several"),
    ("urls = 'x'\n[fields.x]\ncss='p[['", "not a CSS selector"),
    ("urls = 'x'\n[fields.x]\nxpath='//p['", "not an XPath expression"),
    ("urls = 'x'\n[fields.x]\nregex='(a)\\1'", "back-reference"),
    ("urls = 'x'\n[fields.x]\nfunction='os.system'", "no function 'os.system'; there are: article_body"),
    ("urls = 'x'\n[fields.x]\ncss='p'\nmany='yes'", "'many' is true or false"),
    ("urls = 'x'\n[fields.x]\nregex='p'\nattribute='a'", "goes with css only"),
    ("urls = 'x'\n[fields.x]\ncss='p'\ntext=true", "goes with regex only"),
    ("urls = 'x'\n[fields.x]\ncss='p'\nzone='footer'", "a zone is one of"),
    ("urls = 'x'\n[fields.x]\ncss='p'\nzone='main'\n[fields.y]\ncss='b'\nzone='main'", "the same zone"),
    ("urls = 'x'\n[[links]]\ncss='a'\nlimit=0", "'limit' is a whole number"),
    ("urls = 'x'\n[[links]]\ncss='a'\nurls='('", "table 1 of links: urls"),
    (f"urls = 'x'\n[fields.x]\ncss='{'p' * 1001}'", "1 to 1000 characters"),
    ("urls = ", "not valid TOML"),
    ("# " + "x" * MAX_FILE, "longer than"),
    ("urls = 'x'\n" + "".join(f"[fields.f{n}]\ncss='p'\n" for n in range(51)), "at most 50 fields"),
]


@all_cases(("text", "says"), BAD)
def test_a_bad_rule_is_named(text: str, says: str) -> None:
    with pytest.raises(ClassifyError) as caught:
        parse_rule(text, "news")
    assert says in str(caught.value)


def test_a_rule_of_the_greatest_length_is_read() -> None:
    rule = rule_of("[fields.x]\ncss='p'\n# ")
    parse_rule(rule + "x" * (MAX_FILE - len(rule)), "news")
    with pytest.raises(ClassifyError, match="longer than"):
        parse_rule(rule + "x" * (MAX_FILE - len(rule) + 1), "news")


@given(st.text(max_size=200))
def test_any_text_is_a_rule_or_a_clear_error(text: str) -> None:
    with pytest.raises(ClassifyError):
        parse_rule(text, "news")


@given(st.text(alphabet="<>/ap=\"'bx &;\n", max_size=200))
def test_any_page_is_read(html: str) -> None:
    rule = parse_rule(rule_of("[fields.a]\ncss='p b'\n[fields.b]\nxpath='//p/b'\n[fields.c]\nregex='<b>.*'\n"), "news")
    assert set(rule.extract(html, URL).fields) == {"a", "b", "c"}


def test_versions_are_kept_and_come_back(tmp_path: Path) -> None:
    folder = RuleFolder(tmp_path / "rules")
    first = folder.add(parse_rule(rule_of("[fields.x]\ncss='p'"), "news"))
    assert first.version == folder.add(parse_rule(first.source, "news")).version == 1  # nothing has changed
    second = folder.add(parse_rule(rule_of("[fields.x]\ncss='h1'"), "news"))
    assert (second.version, folder.rule("news").source) == (2, second.source)
    assert folder.rule("news", 1).source == first.source
    assert folder.remove("news")
    assert not folder.remove("news")
    assert [version.in_use for version in folder.history("news")] == [False, False]
    restored = folder.restore("news", 1)
    assert (restored.version, folder.rule("news").source) == (3, first.source)
    assert [version.in_use for version in folder.history("news")] == [False, False, True]
    assert folder.names() == ["news"]


@pytest.mark.parametrize("name", ["../x", "", "A", "x/y", "history/x"])
def test_names_do_not_leave_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ClassifyError):
        RuleFolder(tmp_path).rule(name)
    with pytest.raises(ClassifyError):
        RuleFolder(tmp_path).remove(name)


def test_a_bad_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "news.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ClassifyError, match=r"news\.toml is not text"):
        read_rule_file(tmp_path / "news.toml")
    with pytest.raises(ClassifyError, match="cannot read"):
        read_rule_file(tmp_path / "none.toml")


def page_of(html: str, url: str = URL) -> Page:
    return Page(url, url, 200, {"content-type": "text/html; charset=utf-8"}, html.encode())


@pytest.fixture
def confined() -> object:
    child = Sandbox("gatewayfilter.extraction.rule_book:extract_confined", 1.0)
    yield child
    child.close()


def test_a_page_that_takes_too_long_is_given_up(confined: Sandbox) -> None:
    slow = parse_rule(rule_of("[fields.x]\nxpath='count(//*[count(.//*[count(.//*) > 1]) > 1])'"), "news")
    with pytest.raises(SandboxError, match="longer than 1 s"):
        extract(slow, page_of("<div>" * 200 + "<b>x</b>" * 20_000), confined)
    calm = parse_rule(rule_of("[fields.x]\ncss='h1'"), "news")
    assert extract(calm, page_of(HTML), confined).extracted.fields == {"x": ["A bridge"]}  # a new child


def test_many_matches_and_attributes_are_read_in_time() -> None:
    """A loop over what a selector finds took 48 s for these, attributes beyond the limit 20 s."""
    rule = parse_rule(rule_of("[fields.x]\ncss='p'\nmany=true\n[fields.y]\ncss='#last'"), "news")
    attributes = " ".join(f"a{number}=1" for number in range(50_000))
    html = f"<div {attributes} id=none>{'<p>one' * 60_000}<i id=last title='{'x' * 9000}'>end</i>"
    child = Sandbox("gatewayfilter.extraction.rule_book:extract_confined", 15.0)
    found = extract(rule, page_of(html), child).extracted.fields
    child.close()
    assert found == {"x": ["one"] * 200, "y": ["end"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "timeout_s", "says"),
    [
        ("hangs_in_c", 1.0, "longer than 1 s"),
        ("eats_memory", 60.0, "MemoryError"),
        ("dies", 60.0, "longer than 60 s or too much memory"),
        ("raises", 60.0, "ValueError: as asked"),
        ("nowhere", 60.0, "too much memory"),
    ],
)
def test_whatever_the_work_does_the_parent_goes_on(job: str, timeout_s: float, says: str) -> None:
    child = Sandbox(f"tests.classify.confined_jobs:{job}", timeout_s)
    for _ in range(2):
        with pytest.raises(SandboxError, match=says):
            child.ask({}, b"")
    child.close()


def test_what_is_printed_does_not_break_answers() -> None:
    child = Sandbox("tests.classify.confined_jobs:prints", 5.0)
    assert child.ask("q", b"body") == ["q", 4]
    assert child.ask("r", b"") == ["r", 0]
    child.close()


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_book_follows_its_folder_and_leaves_bad_rules_out(tmp_path: Path) -> None:
    clock = _Clock()
    written: list[Mapping[str, RuleMatches]] = []
    matches = MatchCounts(written.append, lambda: 9.0)
    book = RuleBook(tmp_path, clock, matches)
    assert book.read(page_of(HTML)) is None
    assert book.version() == ""
    RuleFolder(tmp_path).add(parse_rule(rule_of("[fields.x]\ncss='h1'"), "news"))
    (tmp_path / "bad.toml").write_text("urls = ", encoding="utf-8")
    assert book.rule_for(URL) is None
    clock.now += CHECK_EVERY_S
    result = book.read(page := page_of(HTML))
    assert result is not None
    assert result.extracted.fields == {"x": ["A bridge"]}
    assert book.read(page) is result
    assert book.read(page_of(HTML, "http://elsewhere.example/")) is None
    assert book.read(page_of("<p>Nothing of it</p>")) is not None
    matches.flush()
    assert written == [{"news": RuleMatches(2, 1, 9.0)}]
    named = book.version()
    assert named == RuleBook(tmp_path).version() != ""
    RuleFolder(tmp_path).add(parse_rule(rule_of("[fields.x]\ncss='h2'"), "news"))
    clock.now += CHECK_EVERY_S
    assert book.version() not in {"", named}
    book.close()


def test_a_field_takes_the_place_of_a_zone_and_hides_nothing(tmp_path: Path) -> None:
    RuleFolder(tmp_path).add(
        parse_rule(rule_of("[fields.b]\ncss='#body p'\nmany=true\nzone='main'\n[fields.t]\ncss='h1'\nzone='title'"), "n")
    )
    book = RuleBook(tmp_path)
    explained = PageClassifier(Lexicon.of([WordFile("test", words={"bridge": 5.0})]), rules=book).explain(page_of(HTML))
    assert explained.zones["main"] == "one & only\ntwo"
    assert explained.classification.title == "A bridge"
    assert "next" in explained.zones["rest"]
    book.close()


def test_fields_are_kept_with_the_judgement_and_bounded(tmp_path: Path) -> None:
    fields = "[fields.head]\ncss='h1'\n[fields.all]\ncss='i'\nmany=true\n[fields.none]\ncss='video'"
    RuleFolder(tmp_path).add(parse_rule(rule_of(fields), "n"))
    book = RuleBook(tmp_path)
    judge = PageClassifier(Lexicon.of([WordFile("test", words={"bridge": 5.0})]), rules=book)
    page = page_of(f"<h1>A bridge</h1>{'<i>' + 'x' * 600 + '</i>'}{'<i>y</i>' * 30}")
    kept = {"head": ["A bridge"], "all": ["x" * MOST_CHARACTERS, *["y"] * (MOST_VALUES - 1)]}
    assert judge.classify_page(page).fields == kept
    assert judge.classify_with_parts(page)[0].fields == kept
    odd = RuleResult(parse_rule(rule_of(fields), "n"), Extracted({"head": ["a\0b\ud800"]}, [], {}))
    assert odd.kept() == {"head": ["ab?"]}
    assert judge.classify_page(page_of("<h1>A bridge</h1>", "http://elsewhere.example/")).fields == {}
    book.close()


def test_functions_of_packages_are_found_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClassifyError, match="no function 'shout'"):
        extraction_function("shout")
    monkeypatch.setattr("gatewayfilter.extraction.functions.entry_points", lambda **_: _Entries([_Entry()]))
    assert list(extraction_function("shout")("a", "")) == ["A"]


class _Entry:
    value = "tests:shout"

    def load(self) -> object:
        return lambda html, url: [html.upper()]


class _Entries(list[_Entry]):
    names = frozenset({"shout"})


def test_a_book_that_is_closed_ends_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book, closed = RuleBook(tmp_path), list[bool]()
    monkeypatch.setattr(book._confined, "close", lambda: closed.append(True))
    book.close()
    assert closed == [True]


def test_a_folder_is_made_for_its_first_rule_and_kept_private(tmp_path: Path) -> None:
    path = tmp_path / "state" / "rules"
    with RuleFolder(path).changing():
        assert path.stat().st_mode & 0o777 == 0o700
    with RuleFolder(path).changing():
        pass
    path.joinpath("in-the-way").touch()
    with pytest.raises(ClassifyError, match="cannot write"), RuleFolder(path / "in-the-way").changing():
        pass
