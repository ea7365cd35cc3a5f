import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayfilter.crawl.fetch.url_resolution import resolve
from gatewayfilter.crawl.links import page_links
from gatewayfilter.crawl.links.page_links import LinkBudget, out_links
from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import Page
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases
from tests.crawl.crawl_origin import loopback_settings


def page(body: str, url: str = "http://www.bad.test/dir/page", content_type: str = "text/html", charset: str = "utf-8") -> Page:
    return Page(url, url, 200, {"content-type": content_type}, body.encode(charset))


def links_of(body: str, limit: int = 20) -> list[str]:
    return [link.text for link in out_links(page(body), "", loopback_settings(follow_links=limit))]


CASES = [
    ('<a href="a">x</a>', ["http://www.bad.test/dir/a"]),
    ("<A HREF='/b?q=1#part'>", ["http://www.bad.test/b?q=1"]),
    ('<a href="https://other.bad.test/">', ["https://other.bad.test/"]),
    ('<a href="//bad.test/">', ["http://bad.test/"]),
    ('<a href="http://elsewhere.test/">', []),
    ('<a href="http://notbad.test/">', []),
    ('<a href="a"><a href="a#2"><a href=" a ">', ["http://www.bad.test/dir/a"]),
    ('<a href="https://www.bad.test/dir/page">', []),
    ('<a href="">', []),
    ('<a name="x">', []),
    ('<a href="mailto:a@bad.test"><a href="javascript:x()"><a href="http://[">', []),
    ('<a href="/logout"><a href="/?token=1">', []),
    ('<base href="/base/"><a href="a">', ["http://www.bad.test/base/a"]),
    ('<base href="http://["><a href="a">', ["http://www.bad.test/dir/a"]),
    (r'<a href="\x\y">', ["http://www.bad.test/x/y"]),
    ('<a href="/&amp;x=1">', ["http://www.bad.test/&x=1"]),
    ("", []),
]


@all_cases(("body", "found"), CASES)
def test_links(body: str, found: list[str]) -> None:
    assert links_of(body) == found


def test_the_number_is_bounded() -> None:
    body = "".join(f'<a href="/{number}">' for number in range(100))
    assert len(links_of(body, 7)) == 7
    assert links_of(body, 0) == []


def test_markup_that_is_made_to_last_ends() -> None:
    size = 2_000_000
    many = "<a " + " ".join(f"a{number}=1" for number in range(size // 10)) + ">"
    for body in (many, "<div>" * (size // 5), "<a href=/x>" * (size // 11), "<!--" * (size // 4), '<a href="' + "x" * size):
        assert len(links_of(body)) <= 1


def test_links_in_comments_and_scripts_are_none() -> None:
    assert links_of('<!-- <a href="/a"> --><script>"<a href=/b>"</script><a data-x="<a href=/c>" href="/d">') == [
        "http://www.bad.test/d"
    ]


def test_other_types_have_none() -> None:
    assert out_links(page('<a href="a">', content_type="text/plain"), "", loopback_settings()) == []


@all_cases("charset", ["gb18030", "no-such-charset", ""])
def test_charsets(charset: str) -> None:
    found = out_links(page('<a href="/赌场">', charset="gb18030"), charset, loopback_settings())
    assert len(found) == 1
    assert charset != "gb18030" or found[0].path == "/%E8%B5%8C%E5%9C%BA"


@settings(max_examples=30)
@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    links_of(f'<a href="{text}">{text}')


@settings(max_examples=30)
@given(st.text(max_size=100))
def test_any_reference_resolves_or_is_refused(text: str) -> None:
    with contextlib.suppress(UrlError):
        assert resolve(parse_url("http://a.test/b/c"), text).scheme in {"http", "https", "ws", "wss"}


def test_the_budget_of_a_site(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_links, "SITE_LINKS_A_DAY", 3)
    monkeypatch.setattr(page_links, "MAX_SITES", 2)
    now = [0.0]
    budget = LinkBudget(lambda: now[0])
    assert [budget.take(host) for host in ("a.bad.test", "b.bad.test", "bad.test", "c.bad.test")] == [True, True, True, False]
    assert budget.take("other.test")
    now[0] += 86_400
    assert budget.take("bad.test")
    assert budget.take("third.test")
    assert list(budget._sites) == ["bad.test", "third.test"], "the site that was met longest ago is forgotten"
    assert [budget.take("bad.test") for _ in range(3)] == [True, True, False]
    now[0] += 86_399
    assert not budget.take("bad.test")
