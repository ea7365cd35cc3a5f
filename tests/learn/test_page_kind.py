import pytest
from hypothesis import given
from hypothesis import strategies as st
from mitmproxy import http

from gatewayfilter.interfaces import Page
from gatewayfilter.learn import is_readable
from gatewayfilter.proxy.response.page_capture import is_html

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
HTML = b"<!DOCTYPE html><title>x</title>"


def page(content_type: str | None, body: bytes, status: int = 200) -> Page:
    headers = {} if content_type is None else {"content-type": content_type}
    return Page("http://a.example/", "http://a.example/", status, headers, body)


@pytest.mark.parametrize(
    ("content_type", "body", "readable"),
    [
        ("text/html", HTML, True),
        ("Text/HTML; charset=gb2312", b"\xb2\xc6", True),
        ("application/xhtml+xml", b"<?xml version='1.0'?><html/>", True),
        ("text/html", b"\x00" + HTML, True),
        ("text/html", PNG, True),
        ("text/plain", b"just words\n", True),
        ("text/plain", "赌博".encode("gb18030"), True),
        ("text/plain", b"\x1b$B", True),
        ("text/plain", b"words\x00\x01", False),
        ("text/plain", "words".encode("utf-16"), True),
        ("text/plain", b"\xef\xbb\xbfwords\x00", True),
        (None, HTML, True),
        (None, b"just words", True),
        (None, b" \r\n\t<body >\x00", True),
        (None, b"<!-- x -->\x00", True),
        (None, PNG, False),
        (None, b"%PDF-1.7\n\x00\x01", False),
        ("", b"<p>x", True),
        ("unknown/unknown", b"<a href=x>\x00", True),
        ("*/*", PNG, False),
        ("image/png", HTML, True),
        ("application/octet-stream", b"\xef\xbb\xbf\n<html lang=en>", True),
        ("application/octet-stream", b"just words", False),
        ("application/json", b'{"html": "<html>"}', False),
        ("text/css", b"<!-- body { color: red } -->", False),
        ("application/javascript", b"var x = 1", False),
        ("image/svg+xml", b"<svg><p>x</p></svg>", False),
        ("image/png", PNG, False),
        ("application/pdf", b"%PDF-1.7", True),
        ("application/pdf", b"no PDF", False),
        ("image/png", b"%PDF-1.7", False),
        ("text/html", b"", False),
        (None, b"", False),
    ],
)
def test_which_pages_are_read(content_type: str | None, body: bytes, readable: bool) -> None:  # noqa: FBT001  a column of the table
    assert is_readable(page(content_type, body)) is readable


@pytest.mark.parametrize(
    ("status", "readable"),
    [(199, False), (200, True), (203, True), (299, True), (300, False), (100, False), (304, False), (404, False), (500, False)],
)
def test_only_a_success_is_read(status: int, readable: bool) -> None:  # noqa: FBT001  a column of the table
    assert is_readable(page("text/html", HTML, status)) is readable


@given(body=st.binary(min_size=1, max_size=3000))
def test_whatever_is_called_html_is_read(body: bytes) -> None:
    assert is_readable(page("text/html", body))


@given(content_type=st.text(max_size=30), body=st.binary(max_size=200))
def test_nothing_makes_it_fail(content_type: str, body: bytes) -> None:
    assert is_readable(page(content_type, body)) in {True, False}


@pytest.mark.parametrize(
    ("content_type", "kind"),
    [
        ("text/html, text/html", "text/html"),
        ("text/html,text/plain", "text/html"),
        ("x, text/html;charset=utf-8", "text/html"),
        ("TEXT/HTML x", "text/html"),
        ("text/html(x)", "text/html"),
        ('text/html;charset="a,b/c"', "text/html"),
        ("text/plain, image/png", "image/png"),
        ("*/*", "*/*"),
        ("html", ""),
        (" ", ""),
    ],
)
def test_a_type_is_read_as_browsers_read_it(content_type: str, kind: str) -> None:
    assert page(content_type, HTML).content_type == kind
    assert is_html(http.Headers(content_type=content_type)) == (kind == "text/html")
