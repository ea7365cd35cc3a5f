"""Bytes put into a page so that it is read otherwise than browsers show it."""

import pytest

from gatewayfilter.classify import Lexicon, PageClassifier, WordFile
from gatewayfilter.documents.encoding.charset import decode
from gatewayfilter.interfaces import Page
from tests.case_tables import all_cases

CASINO = b"<html><title>Welcome</title><body>" + b"<p>the casino of the town</p>" * 30
DU = "<html><title>欢迎</title><body>" + "<p>在线赌场欢迎您的到来</p>" * 30


@pytest.fixture(scope="module")
def classifier() -> PageClassifier:
    return PageClassifier(Lexicon.of([WordFile("gambling", words={"casino": 30.0, "赌场": 30.0}, min_words=1, limit=20.0)]))


@pytest.mark.parametrize(
    "body",
    [
        CASINO.replace(b"casino", b"ca\0si\0no"),
        CASINO.replace(b"casino", b"\0casino\0"),
        b"<title>ca\0sino</title>",
        b"\0" * 40 + CASINO,
        b"a\0" * 40 + CASINO,
        b"\0a" * 40 + CASINO,
        b"<!--" + b"a\0" * 200 + b"-->" + CASINO,
        b"<!--" + b"<\0p\0" * 5000 + b"-->" + CASINO,
        CASINO.replace(b"<p>", b"<p>\0"),
        b"<!--" + b"a\0" * 200 + b"-->" + DU.encode(),
        b"<!--" + b"a\0" * 200 + b"-->" + DU.encode("gb18030"),
        DU.encode("gb18030").replace("赌场".encode("gb18030"), "赌\0场".encode("gb18030")),
    ],
    ids=range(12),
)
@pytest.mark.parametrize("content_type", ["text/html", "text/html; charset=utf-16"])
def test_zero_bytes_hide_no_word(classifier: PageClassifier, body: bytes, content_type: str) -> None:
    if "utf-16" in content_type and body.startswith((b"<!--", b"a\0", b"\0")):
        pytest.skip("a browser that is told so shows it as UTF-16 too")
    found = classifier.classify_page(Page("http://a.example/", "http://a.example/", 200, {"content-type": content_type}, body))
    assert found.category == "gambling"
    assert "\0" not in found.title


@all_cases(
    "body",
    [
        b"<scr\0ipt>" + CASINO,
        b"<p>a <\0script>" + CASINO,
        b"<p>a <!-\0-> b" + CASINO,
        b"<p>a <\0!-- b" + CASINO,
        b"<div style='display:n\0one'><p>the casino</p></div>" + b"<p>bread</p>" * 30,
        b'<div title=">" style="display:n\0one"><p>the casino</p></div>' + b"<p>bread</p>" * 30,
        b"<script>//<b a='</script>" + CASINO.replace(b"casino", b"ca\0sino"),
        b"<p>1 < 2" + CASINO.replace(b"casino", b"ca\0sino"),
        b"<title></ti\0tle><!--</title>" + CASINO,
        b"<textarea></textarea\0><!--</textarea>" + CASINO,
        b"<noscript></no\0script><!--</noscript>" + CASINO,
    ],
)
def test_zero_bytes_in_markup_hide_nothing_that_browsers_show(classifier: PageClassifier, body: bytes) -> None:
    page = b"<p>The best bread of the town</p>" + body
    found = classifier.classify_page(Page("http://a.example/", "http://a.example/", 200, {"content-type": "text/html"}, page))
    assert found.category == "gambling"


@all_cases("codec", ["utf-16-le", "utf-16-be", "utf-16"])
def test_pages_in_utf_16_are_read_as_before(classifier: PageClassifier, codec: str) -> None:
    for text in (CASINO.decode(), DU):
        body = text.encode(codec)
        assert decode(body).text == text
        found = classifier.classify_page(Page("http://a.example/", "http://a.example/", 200, {"content-type": "text/html"}, body))
        assert found.category == "gambling"
