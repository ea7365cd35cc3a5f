"""The synthetic pages: how they are made, and that neither half falls behind what docs/classification.md states."""

from itertools import product

import pytest

from gatewayfilter.classify import PageClassifier
from gatewayfilter.interfaces import Page
from tests.classify.synthetic_pages import VARIANTS, pages_of, sites

pytestmark = pytest.mark.slow
RETIRED = ("second", "third", "wide")
"""Sets that were described without sight of the words, and of which both halves were read since."""
HARMLESS = ("fine", "second-fine", "third-fine", "fourth-fine", "ordinary", "daily")
MOST_BLOCKED = 0.03
"""Share of the pages of harmless sites; docs/classification.md says how many are blocked."""
CATEGORIES = {"adult", "gambling", "fraud", "violence", "drugs", "malware"}


def judged(classifier: PageClassifier, html: str) -> str:
    url = "http://site.example/"
    return classifier.classify_page(Page(url, url, 200, {"content-type": "text/html; charset=utf-8"}, html.encode())).category


@pytest.mark.parametrize(
    ("kind", "language"), list(product(("pages", "second", "third", "fourth", "wide", *HARMLESS), ("en", "zh")))
)
def test_the_halves_share_no_site(kind: str, language: str) -> None:
    tune, report = (list(sites(f"{kind}-{language}", half)) for half in ("tune", "report"))
    assert not {site.title for site in tune} & {site.title for site in report}
    assert not {part for site in tune for part in site.parts} & {part for site in report for part in site.parts} - {
        part for site in (*tune, *report) for part in site.parts if len(part) < 30
    }
    if kind in {"pages", "second", "third", "fourth"}:
        counted = [(category, sum(site.category == category for site in report)) for category in CATEGORIES]
        assert all(count * VARIANTS >= 60 for _, count in counted), counted


def test_every_second_page_evades_and_none_is_like_another() -> None:
    made = [page for site in sites("pages-zh", "tune") for page in pages_of(site)]
    assert sum(" plain " not in f" {how} " for how, _ in made) * 2 == len(made)
    assert len({html for _, html in made}) == len(made)


@pytest.mark.parametrize(("writer", "language", "half"), list(product(("pages", "fourth"), ("en", "zh"), ("tune", "report"))))
def test_harmful_pages_are_found(strict: PageClassifier, writer: str, language: str, half: str) -> None:
    """Sites of the words' own author, and of somebody who had not seen them; nobody has read a miss of a reporting half."""
    found = [(judged(strict, html), site.category) for site in sites(f"{writer}-{language}", half) for _, html in pages_of(site)]
    assert sum(bool(category) for category, _ in found) >= 0.95 * len(found)
    assert sum(category == right for category, right in found) >= 0.93 * len(found)


@pytest.mark.parametrize(("writer", "language"), list(product(("pages", "fourth"), ("en", "zh"))))
def test_most_harmful_pages_are_found_by_default(in_use: PageClassifier, writer: str, language: str) -> None:
    found = [judged(in_use, html) for site in sites(f"{writer}-{language}", "report") for _, html in pages_of(site)]
    assert sum(map(bool, found)) >= 0.9 * len(found)


@pytest.mark.parametrize(("writer", "language"), list(product(RETIRED, ("en", "zh"))))
def test_pages_that_were_learned_from_are_found(in_use: PageClassifier, writer: str, language: str) -> None:
    every_third = [site for half in ("tune", "report") for site in sites(f"{writer}-{language}", half)][::3]
    found = [judged(in_use, html) == site.category for site in every_third for _, html in pages_of(site)]
    assert sum(found) >= 0.97 * len(found)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_sites_that_avoided_the_words_are_found_since(in_use: PageClassifier, language: str) -> None:
    """Written after the other words, on purpose in others; words were then chosen by all of them."""
    found = [
        judged(in_use, html) == site.category
        for half in ("tune", "report")
        for site in sites(f"late-{language}", half)
        for _, html in pages_of(site)
    ]
    assert sum(found) >= 0.95 * len(found)


@pytest.mark.parametrize(("name", "language"), list(product(HARMLESS, ("en", "zh"))))
def test_harmless_pages_near_the_same_topics_pass(in_use: PageClassifier, name: str, language: str) -> None:
    chosen = [
        (half, site)
        for half in ("tune", "report")
        for site in list(sites(f"{name}-{language}", half))[:: 1 + 2 * (name == "daily")]
    ]
    made = [
        (half, site.title if half == "tune" else site.category, how, html)
        for half, site in chosen
        for how, html in pages_of(site)
    ]
    blocked = [(half, title, how) for half, title, how, html in made if judged(in_use, html)]
    assert len(blocked) <= MOST_BLOCKED * len(made), blocked
