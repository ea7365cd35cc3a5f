"""Where a person's verdict on content holds: everywhere, but for approved log-in pages."""

from dataclasses import replace

import pytest

from gatewayfilter.interfaces import Page
from gatewayfilter.learn.verdicts.content_id import image_identity
from gatewayfilter.learn.verdicts.manual_verdicts import asks_for_credentials, holds_here, is_login_clone
from gatewayfilter.model import Classification, Evidence, Fingerprint

HARMLESS = Classification("", 1.0, 20.0)
HARMFUL = Classification("fraud", 42.0, 20.0)
CLONE = replace(HARMFUL, evidence=(Evidence("a log-in page of bank.example", "fraud", 42.0, "rest", -1),))
LOG_IN = b"<form><input name=user><input type=password name=pass></form>"
URL = "http://www.shop.example/a"


def page(url: str, body: bytes = b"<p>x", kind: str = "text/html") -> Page:
    return Page(url, url, 200, {"content-type": kind}, body)


def known(classification: Classification, judge: str = "ada") -> Fingerprint:
    return Fingerprint(image_identity(b"d" * 16), classification, judge, "words", URL, 0.0, 1e12)


@pytest.mark.parametrize(
    ("hit", "clone"),
    [
        (Evidence("x", "fraud", 1.0, "rest", -1), True),
        (Evidence("x", "fraud", 1.0, "rest", 0), False),
        (Evidence("x", "fraud", 1.0, "main", -1), False),
    ],
)
def test_what_a_clone_of_a_log_in_page_is(hit: Evidence, *, clone: bool) -> None:
    assert is_login_clone(replace(HARMFUL, evidence=(hit,))) is clone


def test_pages_that_ask_for_credentials() -> None:
    assert asks_for_credentials(page(URL, LOG_IN)) is True
    assert asks_for_credentials(page(URL)) is False
    assert asks_for_credentials(page(URL, LOG_IN, "text/plain")) is False


def test_where_a_verdict_holds() -> None:
    judged: list[Page] = []

    def clone_elsewhere(met: Page) -> Classification:
        judged.append(met)
        return CLONE

    other = page("http://other.example/", LOG_IN)
    assert holds_here(known(HARMFUL), other, clone_elsewhere) is True
    assert holds_here(known(HARMLESS), page("http://shop.example/b", LOG_IN), clone_elsewhere) is True
    assert holds_here(known(HARMLESS), page("http://other.example/"), clone_elsewhere) is True
    assert judged == []
    assert holds_here(known(HARMLESS), other, clone_elsewhere) is False
    assert judged == [other]
    assert holds_here(known(HARMLESS), other, lambda _: HARMFUL) is True
    assert holds_here(known(HARMLESS), other, lambda _: None) is True
    assert holds_here(known(HARMLESS, ""), page(URL), clone_elsewhere) is False
    assert holds_here(replace(known(HARMLESS), url=""), other, clone_elsewhere) is False
