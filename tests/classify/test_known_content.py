"""Content that was judged before is not read again at another URL, and no judgement changes by that."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.classify import Lexicon, PageClassifier, RuleBook, WordFile
from gatewayfilter.classify.known_content import KnownContent, content_key
from gatewayfilter.interfaces import Page
from gatewayfilter.model import Classification
from tests.classify.bundled_classifiers import remembering as made_to_remember
from tests.classify.honest_login_pages import CLONES, HONEST, Case
from tests.classify.synthetic_pages import pages_of, sites

HTML = "text/html; charset=utf-8"
URLS = (
    "http://a.example/",
    "http://b.example/x/1",
    "http://b.example/x/1?session=kjdhfkj",
    "http://best-online-casino.example/free-spins/jackpot",
    "http://c.example/poker?bonus=200%25",
    "http://xn--2scrj9c.example/%E5%9C%A8%E7%BA%BF%E8%B5%8C%E5%9C%BA",
    "http://c4s1n0.example/f-r-e-e-s-p-i-n-s",
    "http://192.0.2.7:8080/login",
    "https://www.paypal.com/signin",
    "http://a.example/" + "a" * 3_000 + "casino",
)
WORDS = WordFile("gambling", words={"casino": 12.0, "roulette": 12.0, "slots": 12.0}, min_words=2, limit=20.0)


def page(body: str | bytes, url: str = URLS[0], content_type: str = HTML) -> Page:
    return Page(url, url, 200, {"content-type": content_type}, body if isinstance(body, bytes) else body.encode())


@pytest.fixture(scope="module")
def remembering() -> PageClassifier:
    return made_to_remember(4_096)


@pytest.fixture
def few() -> PageClassifier:
    return PageClassifier(Lexicon.of([WORDS]), remembers=2)


def _bodies() -> list[tuple[str | bytes, str]]:
    found = [site for name in ("pages-en", "fine-en", "pages-zh", "fine-zh") for site in [*sites(name, "tune")][:3]]
    made: list[tuple[str | bytes, str]] = [(html, HTML) for site in found for _, html in [*pages_of(site)][:1]]
    logins = [(case.html, HTML) for case in [*HONEST, *CLONES][::3]]
    odd: list[tuple[str | bytes, str]] = [
        ("", HTML),
        ("online casino with roulette", "text/plain"),
        ("<html><p>online casino with roulette", "image/png"),
        ("<html><p>在线赌场 老虎机 百家乐 存款".encode("gb18030"), "text/html; charset=gbk"),
        ("<html><p>在线赌场 老虎机 百家乐 存款".encode("gb18030"), "text/html; charset=windows-1252"),
        (b"\x89PNG\r\n\0\0casino", "image/png"),
        ("<p>The library lends books and maps.</p>" * 200 + "<p>casino roulette jackpot slots bonus</p>", HTML),
    ]
    return [*made, *logins, *odd]


@pytest.mark.parametrize("seed", [1, 2])
def test_each_judgement_is_that_without_a_memory(remembering: PageClassifier, in_use: PageClassifier, seed: int) -> None:
    chosen = random.Random(seed)
    asked = [page(body, url, kind) for body, kind in _bodies() for url in chosen.sample(URLS, 4)]
    chosen.shuffle(asked)
    different = [one.url for one in asked if remembering.classify_page(one) != in_use.classify_page(one)]
    assert different == []


def test_known_content_is_not_read_again(few: PageClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    first = few.classify_page(page("<p>casino and roulette"))
    read: list[str] = []
    plain = PageClassifier(Lexicon.of([WORDS]))

    def judged(asked: Page) -> Any:
        read.append(asked.url)
        return plain._judged(asked)

    monkeypatch.setattr(few, "_judged", judged)
    assert few.classify_page(page("<p>casino and roulette", URLS[1])) is first
    assert read == []
    others = [
        page("<p>casino and roulette", "http://slots.example/"),  # a word in the URL
        page("<p>casino and roulette.", URLS[2]),
        page("<p>casino and roulette", URLS[2], "text/plain"),
        page("<p>casino and roulette", URLS[2], "text/html; charset=big5"),
        replace(page("<p>casino and roulette", URLS[2]), ignored="casino"),
    ]
    for other in others:
        few.classify_page(other)
    assert read == [other.url for other in others]


def test_a_page_with_words_in_its_url_is_not_kept(few: PageClassifier) -> None:
    assert few.classify_page(page("<p>roulette", "http://casino.example/")).harmful
    assert not few.classify_page(page("<p>roulette")).harmful
    assert few.classify_page(page("<p>roulette", "http://casino.example/")).harmful


@pytest.mark.parametrize("case", CLONES[:4], ids=lambda case: case.name)
def test_a_login_page_of_the_owner_excuses_no_clone(remembering: PageClassifier, in_use: PageClassifier, case: Case) -> None:
    for url in (URLS[8], case.url, URLS[8], URLS[7]):
        assert remembering.classify_page(page(case.html, url)) == in_use.classify_page(page(case.html, url))


def test_a_page_that_a_rule_reads_is_read_each_time(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        "urls = 'http://b\\\\.example/.*'\n[fields.main]\ncss = 'b'\nzone = 'main'\n", encoding="utf-8"
    )
    rules = RuleBook(tmp_path)
    ruled = PageClassifier(Lexicon.of([WORDS]), rules=rules, remembers=4)
    plain = PageClassifier(Lexicon.of([WORDS]), rules=rules)
    for url in (URLS[0], URLS[1], URLS[0]):
        body = "<html><p>casino</p><b>roulette</b></html>"
        assert ruled.classify_page(page(body, url)) == plain.classify_page(page(body, url))
    rules.close()


def test_a_pdf_file_is_read_each_time(few: PageClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = iter(["", "casino and roulette"])
    monkeypatch.setattr("gatewayfilter.classify.classifier.pdf_text", lambda _: ("", next(texts)))
    monkeypatch.setattr("gatewayfilter.classify.classifier.is_pdf", lambda *_: True)
    assert [few.classify_page(page(b"%PDF-1.7", url, "application/pdf")).harmful for url in URLS[:2]] == [False, True]


def test_keys_are_short_and_part_content_type_and_body() -> None:
    """An origin chooses both, and 4,096 keys are kept: a Content-Type of 64 KB would take 256 MB."""
    kinds = ["", "text/html", "text/html; charset=gbk", "text/html; x=" + "y" * 65_536, "text/html; x=\udcff"]
    parts = [(kind, body) for kind in kinds for body in (b"", b"a", b"text/html", b"=gbka")]
    keys = {
        content_key(page(body, URLS[0], kind)) for kind, body in [*parts, ("text/html; charset", b"=gbka"), ("text", b"/html")]
    }
    assert len(keys) == len(parts) + 2
    assert all(isinstance(key, bytes) and len(key) == 32 for key in keys)


def test_what_was_used_last_is_kept() -> None:
    known = KnownContent(2)
    keys = [content_key(page(body)) for body in "abc"]
    made = [Classification("", float(number), 20.0, {}, ()) for number in range(3)]
    known.put(keys[0], made[0])
    known.put(keys[1], made[1])
    assert known.get(keys[0]) is made[0]
    known.put(keys[2], made[2])
    assert [known.get(key) for key in keys] == [made[0], None, made[2]]
    known.put(keys[0], made[1])  # by two threads at once
    known.put(keys[1], made[1])
    assert [known.get(key) for key in keys] == [made[1], made[1], None]
