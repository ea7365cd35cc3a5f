"""References come out as browsers read them (WHATWG URL §4.4)."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gatewayfilter.compiled import load
from gatewayfilter.crawl.fetch.url_resolution import resolve, resolve_any
from gatewayfilter.errors import UrlError
from gatewayfilter.urls import Url, parse_url
from tests.case_tables import all_cases

COMPILED: Any = load("gatewayfilter._urls")
BASE = "http://a.test/b/c/d;p?q"


@all_cases(
    ("reference", "url"),
    [
        ("g", "http://a.test/b/c/g"),
        ("./g", "http://a.test/b/c/g"),
        ("g/", "http://a.test/b/c/g/"),
        ("/g", "http://a.test/g"),
        ("//g", "http://g/"),
        ("?y", "http://a.test/b/c/d;p?y"),
        ("?", "http://a.test/b/c/d;p?"),
        ("g?y", "http://a.test/b/c/g?y"),
        ("g?y/../x", "http://a.test/b/c/g?y/../x"),
        ("#s", BASE),
        ("", BASE),
        (" \t\n", BASE),
        ("g#s", "http://a.test/b/c/g"),
        (";x", "http://a.test/b/c/;x"),
        (".", "http://a.test/b/c/"),
        ("..", "http://a.test/b/"),
        ("../g", "http://a.test/b/g"),
        ("../../../g", "http://a.test/g"),
        ("%2e%2E/g", "http://a.test/b/g"),
        (" g\n/h ", "http://a.test/b/c/g/h"),
        ("\\g", "http://a.test/g"),
        ("\\\\g\\h", "http://g/h"),
        ("g?y\\z", "http://a.test/b/c/g?y\\z"),
        ("https://g/h", "https://g/h"),
        ("HTTPS:g", "https://g/"),
        ("http:g", "http://a.test/b/c/g"),
        ("http:/g", "http://a.test/g"),
        ("http:?y", "http://a.test/b/c/d;p?y"),
        ("http:", BASE),
        ("HTTP://g", "http://g/"),
        ("a\\b\tc", "http://a.test/b/c/a/bc"),
        ("http://user:secret@g/", "http://g/"),
        (":g", "http://a.test/b/c/:g"),
        ("1x:g", "http://a.test/b/c/1x:g"),
        ("g:80/x:y", None),
        ("赌", "http://a.test/b/c/%E8%B5%8C"),
    ],
)
def test_references(reference: str, url: str | None) -> None:
    for resolved in (resolve, resolve_any):
        if url is None:
            with pytest.raises(UrlError):
                resolved(parse_url(BASE), reference)
        else:
            assert resolved(parse_url(BASE), reference).text == url


@all_cases(
    "reference", ["javascript:x", "java\nscript:x", "mailto:a@b", "data:,x", "//", "http://", "/\\", "ftp://g/", "\ud800://g"]
)
def test_what_is_no_web_address_is_refused(reference: str) -> None:
    with pytest.raises(UrlError):
        resolve(parse_url(BASE), reference)


_PATHS = st.text("abc./%2e?;:@", max_size=20)


@given(path=_PATHS, base=_PATHS)
def test_what_is_absolute_needs_no_base(path: str, base: str) -> None:
    whole = parse_url(f"http://x.test/{path}")
    assert resolve(parse_url(f"https://y.test/{base}"), f"http://x.test/{path}") == whole
    if not whole.path.startswith("//"):  # that would begin with a host
        assert resolve(parse_url(f"http://x.test/{base}"), whole.path + whole.query) == whole


_pieces = st.sampled_from(
    [
        *"abz09-._~:/?#[]@!$&'()*+,;=%^|{}`\\\"<> \t\n\0é例",
        "http:",
        "https://",
        "//",
        "/.",
        "..",
        "./",
        "%2e",
        "%41",
        ":80",
        "g.test",
        "/x",
    ]
)
_bases = st.sampled_from(
    [BASE, "https://a.test:8443/", "http://127.0.0.1/x/y", "ws://a.test/b/c", "https://a.test/?", "https://a.test/b%20/c?d/e"]
)


@pytest.mark.skipif(COMPILED is None, reason="the module is not built")
@given(_bases, st.lists(_pieces, max_size=8).map("".join))
@settings(max_examples=30)
@example(BASE, "/" + "a" * 65_000)
@example(BASE, "/" + "a" * 65_536)
@example(BASE, "a" * 65_516)
@example(BASE, "a" * 65_517)
@example(BASE, "/g?#s")
@example(BASE, "//a.test:80/x?y#s")
@example(BASE, "https://a.test/x#s")
def test_compiled_links_are_those_of_python(base: str, reference: str) -> None:
    page = parse_url(base)
    link = COMPILED.plain_link(Url, page, reference)
    try:
        expected = resolve_any(page, reference)
    except UrlError:
        assert link is None
        return
    assert link is None or _outcome(link) == _outcome(expected)
    assert _outcome(resolve(page, reference)) == _outcome(expected)


@pytest.mark.skipif(COMPILED is None, reason="the module is not built")
def test_most_links_are_resolved_by_compiled_code() -> None:
    page = parse_url(BASE)
    for reference in ("/x/y?z=1", "x.html", "x/y#s", "https://b.test/x", "//b.test/x"):
        assert COMPILED.plain_link(Url, page, reference) is not None, reference
    assert COMPILED.plain_link(Url, page, b"/x") is None
    assert COMPILED.plain_link(Url, page, "") is None


def _outcome(url: Url) -> list[object]:
    return [url.scheme, url.host, url.netloc, url.port, url.path, url.query, url.text, url.key, url.digest]
