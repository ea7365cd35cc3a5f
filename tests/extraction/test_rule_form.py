"""Rules as rows of a form: to TOML and back, hosts and suggested expressions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.errors import ClassifyError
from gatewayfilter.extraction.rule_form import FieldRow, LinkRow, RuleForm, form_of, host_of, url_expressions
from gatewayfilter.extraction.rules import parse_rule
from tests.case_tables import all_cases

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def test_a_form_and_its_rule_are_the_same() -> None:
    form = RuleForm(
        r"https?://news\.example/.*",
        'a "note"\n\x7f',
        (
            FieldRow("head line", "css", "h1", "title", zone="title"),
            FieldRow("b", "xpath", '//meta[@name="x"]/@content'),
            FieldRow("c", "regex", r"\d+", text=True, many=True),
        ),
        (LinkRow("css", "a", "data-x", urls=".*", limit=5), LinkRow("regex", "href=(.*)")),
    )
    assert form_of(parse_rule(form.source(), "news")) == form
    with pytest.raises(ClassifyError, match="two fields are called"):
        RuleForm("x", "", (FieldRow("a"), FieldRow("a"))).source()


@given(TEXT, TEXT)
def test_any_text_is_kept(name: str, note: str) -> None:
    form = RuleForm(".*", note, (FieldRow(name, "css", "p"),))
    assert form_of(parse_rule(form.source(), "news")) == form


@all_cases(
    ("urls", "host"),
    [
        (r"https?://news\.example\.com/.*", "news.example.com"),
        (r"http://a-b\.example:8080/x", "a-b.example"),
        (r"https?://(?:[^/]+\.)?news\.example/.*", "*.news.example"),
        (r"https?://[^/]*\.example/.*", "*.example"),
        (r".*/index", ""),
        (r"https?://(?:a|b)\.example/", ""),
        ("", ""),
    ],
)
def test_the_host_of_an_expression(urls: str, host: str) -> None:
    assert host_of(urls) == host


def test_expressions_for_an_address() -> None:
    url = "https://www.news.example:8443/a-b/story?id=1+2"
    site, folder, page = url_expressions(url)
    assert site == r"https?://www\.news\.example:8443/.*"
    assert folder == r"https?://www\.news\.example:8443/a-b/.*"
    for expression in (site, folder, page):
        assert parse_rule(f"urls = '{expression}'\n[fields.x]\ncss='p'", "news").matches(url)
    assert not parse_rule(f"urls = '{page}'\n[fields.x]\ncss='p'", "news").matches(url + "3")
    assert url_expressions("http://news.example/") == (r"https?://news\.example/.*", r"https?://news\.example/")
