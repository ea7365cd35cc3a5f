# ruff: noqa: RUF001  the texts are Chinese, and look-alikes are what is tested
"""Traps that must pass and synthetic pages that must be found (docs/classification.md says how they were made)."""

import gzip
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from gatewayfilter.classify import PageClassifier
from gatewayfilter.interfaces import Page
from gatewayfilter.model import Classification
from tests.case_tables import all_cases

SAMPLES = Path(__file__).parent / "samples"
LEET = str.maketrans("aeio", "4310")
FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
TRADITIONAL = str.maketrans("赌场开户线网视频级片无码账贷卖枪杀药货发", "賭場開戶線網視頻級片無碼賬貸賣槍殺藥貨發")


def traps() -> list[str]:
    lines = [line for name in ("traps-en.txt", "traps-zh.txt") for line in (SAMPLES / name).read_text("utf-8").splitlines()]
    return [line for line in lines if not line.startswith("#")]


def samples(name: str) -> Iterator[tuple[str, str, list[str]]]:
    category = ""
    for line in (SAMPLES / f"{name}.txt").read_text("utf-8").splitlines():
        if line.startswith("# "):
            category = line[2:]
        else:
            title, body = line.split(" | ", 1)
            yield category, title, body.split(" / ")


def page(html: str, url: str = "http://site.example/") -> Page:
    return Page(url, url, 200, {"content-type": "text/html; charset=utf-8"}, html.encode())


def article(title: str, parts: list[str]) -> str:
    paragraphs = "".join(f"<p>{part}</p>" for part in parts)
    return f"<!doctype html><title>{title}</title><nav><a href=/>Home</a> <a href=/c>Contact</a></nav><main>{paragraphs}</main>"


def landing(title: str, parts: list[str]) -> str:
    captions = "".join(f"<div class=card><h3>{part}</h3></div>" for part in parts)
    description = parts[0].replace("'", "")
    return f"<html><head><meta name=description content='{description}'></head><body><h1>{title}</h1>{captions}</body>"


def captions(title: str, parts: list[str]) -> str:
    images = "".join(f'<td><img src=x.jpg alt="{title}"><br>{part}</td>' for part in parts)
    return f"<TITLE>{title}</TITLE><TABLE><TR>{images}</TR></TABLE>"


def spread(text: str) -> str:
    """Puts a zero-width space between any two characters."""
    return "\u200b".join(text)


def dressed(index: int, title: str, parts: list[str]) -> str:
    """One of three layouts; every second page evades: invisible characters, full width, leet, traditional characters, dots."""
    match index % 10:
        case 0:
            parts = [spread(part) for part in parts]
        case 2:
            parts = [part.translate(FULL_WIDTH) for part in parts]
        case 4:
            parts = [part.translate(TRADITIONAL) for part in parts]
        case 6:
            parts = [part.replace("博", "·博").replace("e", "е") for part in parts]  # a Cyrillic look-alike
        case 8:
            parts = [part.translate(LEET) for part in parts]
        case _:
            pass
    return (article, landing, captions)[index % 3](title, parts)


def describe(found: Classification) -> str:
    return f"{found.category or 'harmless'} {found.scores} {[(hit.word, hit.weight) for hit in found.evidence]}"


def test_there_are_at_least_two_hundred_traps() -> None:
    assert len(set(traps())) >= 200


@all_cases("trap", traps())
def test_innocent_sentences_pass(classifier: PageClassifier, in_use: PageClassifier, trap: str) -> None:
    for judge in (classifier, in_use):
        found = judge.classify_text(trap)
        assert not found.harmful, describe(found)
        found = judge.classify_page(page(article("Notes", [trap])))
        assert not found.harmful, describe(found)


@pytest.mark.parametrize("name", ["en", "zh", "report-en", "report-zh"])
def test_synthetic_pages_are_found(classifier: PageClassifier, name: str) -> None:
    missed = []
    total = 0
    for index, (category, title, parts) in enumerate(samples(name)):
        total += 1
        found = classifier.classify_page(page(dressed(index, title, parts)))
        if found.category != category:
            missed.append((category, title, describe(found)))
    assert total >= 60
    assert len(missed) <= total * 0.05, missed


@pytest.mark.parametrize(
    ("name", "share"), [("site-tune-en", 0.95), ("site-tune-zh", 0.95), ("site-report-en", 0.4), ("site-report-zh", 0.65)]
)
def test_pages_written_without_the_lexicon(classifier: PageClassifier, name: str, share: float) -> None:
    """Very short pages in other words than the lexicon's; the reporting halves say what is found of unseen ones."""
    pages = [
        (category, (article, landing, captions)[index % 3](title, parts))
        for index, (category, title, parts) in enumerate(samples(name))
    ]
    found = sum(classifier.classify_page(page(html)).category == category for category, html in pages)
    assert found >= len(pages) * share


def test_news_of_gambling_is_not_gambling(classifier: PageClassifier) -> None:
    body = [
        "The gambling commission fined two online casino operators yesterday, according to a spokesman.",
        "Regulators found that free bets were offered to customers who had asked to be shut out; lawmakers want new legislation.",
        "Researchers at the university say problem gambling costs the economy billions; treatment places are rare.",
    ]
    found = classifier.classify_page(page(article("Regulator fines casino operators over problem gambling", body)))
    assert not found.harmful, describe(found)
    zh = [
        "记者从财政部获悉，博彩税收入下降。特区政府表示将加强对赌场的监管，研究立法。",
        "专家认为，打击网络赌博需要警方与银行合作。",
    ]
    found = classifier.classify_page(page(article("特区政府讨论博彩税与赌场监管", zh)))
    assert not found.harmful, describe(found)


@pytest.mark.slow
def test_real_pages_are_not_blocked(classifier: PageClassifier, in_use: PageClassifier, data_folder: Path) -> None:
    files = sorted((data_folder / "pages" / "html").glob("*.gz"))
    if not files:
        pytest.skip("no real pages in the data folder")
    blocked = []
    for judge, file in product((classifier, in_use), files):
        found = judge.classify_page(Page("http://x.example/", "http://x.example/", 200, {}, gzip.decompress(file.read_bytes())))
        if found.harmful:
            blocked.append((found.title, describe(found)))
    assert not blocked
