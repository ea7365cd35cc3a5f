"""The synthetic pages: how they are made, and that neither half falls behind what docs/classification.md states."""

from itertools import product

import pytest

from gatewayfilter.classify import PageClassifier
from gatewayfilter.interfaces import Page
from tests.classify.synthetic_pages import VARIANTS, pages_of, sites

OTHERS = {"second": (("tune", 0.97), ("report", 0.91)), "third": (("tune", 0.97), ("report", 0.79))}
"""What is found of the sites of writers who had not seen the words: just under what docs/classification.md states."""
CATEGORIES = {"adult", "gambling", "fraud", "violence", "drugs", "malware"}


def judged(classifier: PageClassifier, html: str) -> str:
    url = "http://site.example/"
    return classifier.classify_page(Page(url, url, 200, {"content-type": "text/html; charset=utf-8"}, html.encode())).category


@pytest.mark.parametrize(
    ("kind", "language"), list(product(("pages", "fine", "second", "second-fine", "third", "third-fine"), ("en", "zh")))
)
def test_the_halves_share_no_site(kind: str, language: str) -> None:
    tune, report = (list(sites(f"{kind}-{language}", half)) for half in ("tune", "report"))
    assert not {site.title for site in tune} & {site.title for site in report}
    assert not {part for site in tune for part in site.parts} & {part for site in report for part in site.parts} - {
        part for site in (*tune, *report) for part in site.parts if len(part) < 30
    }
    if kind in {"pages", "second", "third"}:
        counted = [(category, sum(site.category == category for site in report)) for category in CATEGORIES]
        assert all(count * VARIANTS >= 60 for _, count in counted), counted


def test_every_second_page_evades_and_none_is_like_another() -> None:
    made = [page for site in sites("pages-zh", "tune") for page in pages_of(site)]
    assert sum(" plain " not in f" {how} " for how, _ in made) * 2 == len(made)
    assert len({html for _, html in made}) == len(made)


@pytest.mark.parametrize(("language", "half"), list(product(("en", "zh"), ("tune", "report"))))
def test_harmful_pages_are_found(classifier: PageClassifier, language: str, half: str) -> None:
    found = [judged(classifier, html) == site.category for site in sites(f"pages-{language}", half) for _, html in pages_of(site)]
    assert sum(found) >= 0.95 * len(found)


@pytest.mark.parametrize(
    ("writer", "language", "half", "share"),
    [(writer, language, *half) for writer, halves in OTHERS.items() for language in ("en", "zh") for half in halves],
)
def test_other_writers_pages_are_found(classifier: PageClassifier, writer: str, language: str, half: str, share: float) -> None:
    """Written by somebody who had not seen the words; since then words were chosen, but not by the reporting half's misses."""
    found = [
        judged(classifier, html) == site.category for site in sites(f"{writer}-{language}", half) for _, html in pages_of(site)
    ]
    assert sum(found) >= share * len(found)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_sites_that_avoided_the_words_are_found_since(classifier: PageClassifier, language: str) -> None:
    """Written after the other words, on purpose in others; words were then chosen by all of them."""
    found = [
        judged(classifier, html) == site.category
        for half in ("tune", "report")
        for site in sites(f"late-{language}", half)
        for _, html in pages_of(site)
    ]
    assert sum(found) >= 0.95 * len(found)


@pytest.mark.parametrize(("name", "language"), list(product(("fine", "second-fine", "third-fine"), ("en", "zh"))))
def test_harmless_pages_about_the_same_topics_pass(classifier: PageClassifier, name: str, language: str) -> None:
    blocked = [
        (half, site.title if half == "tune" else site.category, how)
        for half in ("tune", "report")
        for site in sites(f"{name}-{language}", half)
        for how, html in pages_of(site)
        if judged(classifier, html)
    ]
    assert len(blocked) <= 0.05 * 240, blocked
