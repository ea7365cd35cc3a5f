"""References come out as browsers read them (WHATWG URL §4.4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayfilter.crawl.fetch.url_resolution import resolve
from gatewayfilter.errors import UrlError
from gatewayfilter.urls import parse_url

BASE = "http://a.test/b/c/d;p?q"


@pytest.mark.parametrize(
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
        ("http://user:secret@g/", "http://g/"),
        (":g", "http://a.test/b/c/:g"),
        ("1x:g", "http://a.test/b/c/1x:g"),
        ("g:80/x:y", None),
        ("赌", "http://a.test/b/c/%E8%B5%8C"),
    ],
)
def test_references(reference: str, url: str | None) -> None:
    if url is None:
        with pytest.raises(UrlError):
            resolve(parse_url(BASE), reference)
    else:
        assert resolve(parse_url(BASE), reference).text == url


@pytest.mark.parametrize(
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
