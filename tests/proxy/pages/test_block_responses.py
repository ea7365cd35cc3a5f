import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from mitmproxy import http

from gatewayfilter.model import Action, Reason, Request, ResourceType, Verdict
from gatewayfilter.proxy.pages.block_page import BlockPages
from gatewayfilter.proxy.pages.translations import CHINESE, ENGLISH, choose_texts
from gatewayfilter.urls import parse_url
from tests.case_tables import all_cases
from tests.proxy.proxy_fakes import BLOCK

NASTY = '"><script>alert(1)</script>&<img src=x onerror=alert(1)>'


def answer(
    kind: ResourceType = ResourceType.DOCUMENT,
    verdict: Verdict = BLOCK,
    *,
    method: str = "GET",
    url: str = "http://b.example/p?q",
) -> http.Response:
    pages = BlockPages(title_of=lambda name, language: f"{name}/{language}")
    return pages.block(Request(parse_url(url), None, kind, method), verdict, "en")


@pytest.mark.parametrize(
    ("kind", "status", "content_type", "content"),
    [
        (ResourceType.IMAGE, 200, "image/gif", b"GIF89a"),
        (ResourceType.SCRIPT, 200, "text/javascript; charset=utf-8", b""),
        (ResourceType.STYLESHEET, 403, "text/plain; charset=utf-8", b""),
        (ResourceType.XMLHTTPREQUEST, 403, "text/plain; charset=utf-8", b""),
        (ResourceType.WEBSOCKET, 403, "text/plain; charset=utf-8", b""),
        (ResourceType.OTHER, 403, "text/plain; charset=utf-8", b""),
        (ResourceType.DOCUMENT, 403, "text/html; charset=utf-8", b"<!DOCTYPE html>"),
        (ResourceType.SUBDOCUMENT, 403, "text/html; charset=utf-8", b"<!DOCTYPE html>"),
    ],
)
def test_answers_by_type(kind: ResourceType, status: int, content_type: str, content: bytes) -> None:
    response = answer(kind)
    assert response.status_code == status
    assert response.headers["content-type"] == content_type
    assert response.raw_content is not None
    assert response.raw_content.startswith(content)
    assert bool(response.raw_content) == bool(content)
    assert response.headers["content-length"] == str(len(response.raw_content))
    assert response.headers["cache-control"] == "no-store"
    # What says something is for who asked for it; what says nothing, every page may read.
    says = content_type.startswith("text/html")
    assert response.headers.get("access-control-allow-origin", "") == ("" if says else "*")
    assert response.headers.get("cross-origin-resource-policy", "") == ("same-origin" if says else "")
    assert response.headers["x-gatewayfilter"] == "block; reason=blacklist"
    assert response.headers["content-security-policy"].startswith("default-src 'none'")


def test_head_has_no_body() -> None:
    assert answer(method="HEAD").raw_content == b""


def test_the_page_names_everything() -> None:
    text = answer().text
    assert text is not None
    for part in ("b.example", "http://b.example/p?q", "gambling/en", "test", "blocked.example", "score 9"):
        assert part in text
    assert "gatewayfilter list add --allow &#39;http://b.example/p?q&#39;" in text


def test_everything_is_escaped_and_bounded() -> None:
    verdict = Verdict(
        Action.BLOCK, Reason.LEARNED, source_list=NASTY, rule=NASTY + "r" * 5000, category=NASTY, detail=NASTY + "d" * 5000
    )
    response = answer(verdict=verdict, url="http://b.example/" + "x" * 20_000)
    text = response.text
    assert text is not None
    assert len(text) < 12_000

    class Tags(HTMLParser):
        seen: set[str] = set()  # noqa: RUF012  one page only

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.seen.add(tag)
            assert not any(name.startswith("on") or name in {"src", "href"} for name, _ in attrs)

    tags = Tags()
    tags.feed(text)
    assert not tags.seen & {"script", "img", "iframe", "link", "form", "a"}


def test_the_style_has_the_hash_that_the_policy_allows() -> None:
    response = answer()
    text = response.text
    assert text is not None
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    digest = b64encode(sha256(style[1].encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in response.headers["content-security-policy"]


def test_each_language_has_every_sentence() -> None:
    assert set(ENGLISH.why) == set(CHINESE.why)
    assert set(ENGLISH.titles) == set(CHINESE.titles)
    assert set(ENGLISH.labels) == set(CHINESE.labels)
    never_blocked = {Reason.MANUAL_ALLOW, Reason.WHITELIST, Reason.ADBLOCK_EXCEPTION}
    never_blocked |= {Reason.MANUAL_SPLICE, Reason.SPLICELIST, Reason.PINNED_APP, Reason.PAUSE, Reason.POLICY_REVIEW}
    assert set(Reason) - never_blocked == set(ENGLISH.why)


@all_cases(
    ("header", "language"),
    [
        ("", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh-Hans"),
        ("en-GB,en;q=0.9,zh;q=0.8", "en"),
        ("en;q=0.1, zh-TW", "zh-Hans"),
        ("de, fr;q=0.5", "en"),
        ("zh;q=nonsense", "en"),
        ("zh;q=0", "en"),
        (",;,;q=;=", "en"),
    ],
)
def test_language(header: str, language: str) -> None:
    assert choose_texts(header).language == language


def test_bad_request_and_failure() -> None:
    bad = BlockPages().bad_request("GET", "zh")
    assert bad.status_code == 400
    assert "无法理解" in (bad.text or "")
    failure = BlockPages().failure("GET", "en")
    assert failure.status_code == 503
    assert "could not check" in (failure.text or "")
    assert BlockPages().failure("HEAD", "").raw_content == b""


@pytest.mark.parametrize(("language", "shown"), [("en", ", likely (97 %): casino"), ("zh-CN", "，很可能（97%）: casino")])  # noqa: RUF001
def test_the_evidence_states_the_certainty_in_the_language_of_the_page(language: str, shown: str) -> None:
    verdict = Verdict(Action.BLOCK, Reason.LEARNED, detail="score 42.0 (limit 20.0), likely (97 %): casino")
    request = Request(parse_url("http://b.example/"), None, ResourceType.DOCUMENT, "GET")
    content = BlockPages().block(request, verdict, language).content or b""
    assert f"score 42.0 (limit 20.0){shown}" in content.decode()
