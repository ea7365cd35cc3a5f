"""What the editor of extraction rules shows of a page: its pieces, what each row takes, links, and proposals."""

from typing import Any, cast

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import ClassifyError, FetchError
from gatewayfilter.extraction.rule_form import FieldRow, LinkRow
from gatewayfilter.interfaces import Page
from gatewayfilter.store import Store
from gatewayfilter.urls import Url
from gatewayfilter.use_cases.learning import extraction_preview
from gatewayfilter.use_cases.learning.extraction_work import ExtractionWork
from tests.use_cases.learning.own_process import OwnProcess

HTML = """<html><head><title>Harbour News</title><meta name="author" content="Kim Lee"><meta name="empty" content="">
</head><body><h1 class="headline">A bridge</h1><p>one</p><p>two</p>
<a href="/a">a</a> <a href="/b">b</a> <a href="/a">again</a> <a href="http://10.0.0.1/">inside</a></body></html>"""
URL = "http://news.example/story"


@pytest.fixture
def work(settings: Settings) -> ExtractionWork:
    """Without a database, of which nothing is read here."""
    return ExtractionWork(OwnProcess(), OwnProcess(), settings, cast("Store", None), lambda: 0.0)


def form(*fields: FieldRow, links: tuple[LinkRow, ...] = (), urls: str = r"http://news\.example/.*") -> dict[str, Any]:
    def plain(row: FieldRow | LinkRow) -> dict[str, Any]:
        return {name: getattr(row, name) for name in row.__slots__}

    return {"urls": urls, "comment": "", "fields": [plain(row) for row in fields], "links": [plain(row) for row in links]}


def test_a_page_is_shown_in_pieces(work: ExtractionWork) -> None:
    found = work.outline(HTML)
    assert found["is_whole"] is True
    assert "A bridge" in str(found["pieces"])
    assert [(row["tag"], row["text"]) for row in found["hidden"]] == [("title", "Harbour News"), ("meta", "Kim Lee")]


def test_a_row_takes_one_value_or_all(work: ExtractionWork) -> None:
    rows = (FieldRow("lead", expression="p"), FieldRow("all", expression="p", many=True), FieldRow("none", expression="video"))
    lead, every, none = work.preview(HTML, URL, form(*rows), -1)["fields"]
    assert (lead["values"], lead["count"], len(lead["marked"]), lead["error"]) == (["one"], 2, 1, "")
    assert (every["values"], every["count"], len(every["marked"])) == (["one", "two"], 2, 2)
    assert lead["marked"] == every["marked"][:1]
    assert (none["values"], none["count"], none["marked"], none["error"]) == ([], 0, [], "")


def test_a_row_that_cannot_be_used_says_why_and_the_others_are_read(work: ExtractionWork) -> None:
    rows = (FieldRow("bad", expression="p["), FieldRow("odd", way="regex", expression="("), FieldRow("good", expression="h1"))
    found = work.preview(HTML, URL, form(*rows, links=(LinkRow(expression="a["),)), -1)
    bad, odd, good = found["fields"]
    assert bad["error"]
    assert odd["error"]
    assert "the field ''" not in bad["error"]
    assert (bad["values"], bad["count"], good["values"]) == ([], 0, ["A bridge"])
    (links,) = found["links"]
    assert links["error"]
    for row in (bad, odd, links):
        assert {name: row[name] for name in ("values", "count", "marked")} == {"values": [], "count": 0, "marked": []}
    assert found["problem"]
    assert found["matches"] is None


def test_a_rule_as_a_whole_is_for_an_address_or_not(work: ExtractionWork) -> None:
    rows = form(FieldRow("lead", expression="p"))
    assert work.preview(HTML, URL, rows, -1) | {"fields": 0} == {
        "fields": 0,
        "links": [],
        "problem": "",
        "matches": True,
        "picked": None,
    }
    assert work.preview(HTML, "elsewhere.example", rows, -1)["matches"] is False
    assert work.preview(HTML, "", rows, -1)["matches"] is None
    assert work.preview(HTML, URL, form(), -1)["problem"]


def test_links_are_those_that_would_be_crawled(work: ExtractionWork) -> None:
    rows = (LinkRow(expression="a"), LinkRow(expression="a", limit=1), LinkRow(expression="a", urls=r"http://news\.example/b"))
    every, one, some = work.preview(HTML, URL, form(links=rows), -1)["links"]
    assert (every["values"], every["count"]) == (["http://news.example/a", "http://news.example/b"], 3)
    assert len(every["marked"]) == 4
    assert (one["values"], one["count"]) == (["http://news.example/a"], 3)
    assert some["values"] == ["http://news.example/b"]
    without_address = work.preview(HTML, "", form(links=rows[:1]), -1)["links"][0]["values"]
    assert without_address == ["http://page.invalid/a", "http://page.invalid/b"]


def test_what_is_shown_is_bounded(work: ExtractionWork) -> None:
    html = "<body>" + f"<p>{'x' * 600}</p>" * 60 + "".join(f"<a href='/{number}'>x</a>" for number in range(60)) + "</body>"
    rows = form(FieldRow("all", expression="p", many=True), links=(LinkRow(expression="a", limit=100),))
    found = work.preview(html, URL, rows, -1)
    values = found["fields"][0]["values"]
    assert (len(values), {len(value) for value in values}, found["fields"][0]["count"]) == (50, {500}, 60)
    assert (len(found["links"][0]["values"]), found["links"][0]["count"]) == (50, 60)


def test_selectors_are_proposed_for_an_element(work: ExtractionWork) -> None:
    marked = work.preview(HTML, URL, form(FieldRow("x", expression="h1")), -1)["fields"][0]["marked"]
    picked = work.preview(HTML, URL, form(), marked[0])["picked"]
    assert "headline" in str(picked)


def test_a_page_is_read_by_a_rule(work: ExtractionWork) -> None:
    source = "urls = 'http://news\\.example/.*'\n[fields.headline]\ncss = 'h1'\n[[links]]\ncss = 'a'\n"
    found = work.read_page(HTML, URL, source)
    assert [(field["name"], field["values"]) for field in found["fields"]] == [("headline", ["A bridge"])]
    assert (found["links"][0]["count"], found["matches"]) == (3, True)
    with pytest.raises(ClassifyError):
        work.read_page(HTML, URL, "urls = ")


def test_a_page_is_fetched_for_the_editor(work: ExtractionWork, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def fetched(content_type: str, body: bytes) -> None:
        def fetch(_: Settings, url: Url) -> Page:
            asked.append(url.text)
            return Page(url.text, "http://final.example/", 200, {"content-type": content_type}, body)

        monkeypatch.setattr(extraction_preview, "fetch_now", fetch)

    fetched("text/html; charset=gbk", "<p>新闻</p>".encode("gbk"))
    assert work.fetch("news.example") == {"html": "<p>新闻</p>", "url": "http://final.example/"}
    assert asked == ["http://news.example/"]
    fetched("text/html", b"x" * 700_000)
    assert len(work.fetch("news.example")["html"]) == 600_000
    fetched("image/png", b"x")
    with pytest.raises(ClassifyError, match="no HTML: image/png"):
        work.fetch("news.example")
    fetched(f"text/{'x' * 90}", b"x")
    with pytest.raises(ClassifyError, match=f"no HTML: text/{'x' * 75}$"):
        work.fetch("news.example")


def test_a_page_inside_the_network_is_not_fetched(work: ExtractionWork) -> None:
    with pytest.raises(FetchError, match="not a public address"):
        work.fetch("http://127.0.0.1:9/")
