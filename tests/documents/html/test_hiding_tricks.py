"""Text that people see is read, text that nobody sees is not, whatever the markup does about it."""

import time

import pytest

from gatewayfilter.crawl.render.renderer import can_render
from gatewayfilter.documents.html.markup import read_html
from tests.case_tables import all_cases
from tests.documents.html.hiding_tricks import (
    FURTHER_NEED_RENDERING,
    FURTHER_PLANTS,
    FURTHER_STILL_PLANTED,
    FURTHER_TRICKS,
    NEEDS_RENDERING,
    PLANTS,
    STILL_PLANTED,
    TRICKS,
    page_of,
)

SECRET = "casino bonus roulette jackpot"
GARDEN = "<!doctype html><title>Garden</title><p>Tomatoes like a sunny bed and a mild spring, and water in the morning.</p>"
ALL_TRICKS = TRICKS | FURTHER_TRICKS
ALL_PLANTS = PLANTS | FURTHER_PLANTS


def reads(html: str) -> bool:
    page = read_html(html)
    text = "\n".join([*(block.text for block in page.blocks), *page.labels, *page.descriptions])
    return all(word in text for word in SECRET.split(" "))


@pytest.mark.usefixtures("each_reading")
@all_cases("name", ALL_TRICKS)
def test_text_that_people_see_is_read(name: str) -> None:
    assert reads(GARDEN + page_of(ALL_TRICKS[name], SECRET)) is (name not in NEEDS_RENDERING | FURTHER_NEED_RENDERING)


@pytest.mark.usefixtures("each_reading")
@all_cases("name", ALL_PLANTS)
def test_text_that_nobody_sees_is_not_read(name: str) -> None:
    assert reads(GARDEN + page_of(ALL_PLANTS[name], SECRET)) is (name in STILL_PLANTED | FURTHER_STILL_PLANTED)


def test_most_tricks_are_seen_through() -> None:
    assert len(NEEDS_RENDERING) <= 12
    assert len(STILL_PLANTED) <= 4
    assert len(FURTHER_NEED_RENDERING) <= 9
    assert len(FURTHER_STILL_PLANTED) <= 4


@pytest.mark.real
@pytest.mark.timeout(900)  # 240 pages are loaded and pictured
def test_the_browser_shows_each_trick_and_no_plant() -> None:
    """A page whose picture is another one without its text shows it."""
    sync_api = pytest.importorskip("playwright.sync_api")
    if missing := can_render():
        pytest.skip(missing)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 700})
        page.set_default_timeout(120_000)

        def is_shown(trick: str) -> bool:
            pictures: list[bytes] = []
            for text in (SECRET, "x"):
                page.goto("about:blank")
                page.set_content(page_of(trick, text), wait_until="load")
                pictures.append(page.screenshot())
            return pictures[0] != pictures[1]

        unseen = [name for name, trick in ALL_TRICKS.items() if not is_shown(("" if name == "frameset" else GARDEN) + trick)]
        seen = [name for name, trick in ALL_PLANTS.items() if is_shown(GARDEN + trick)]
        browser.close()
    assert (unseen, seen) == ([], ["alt"])  # the picture of that one is broken


@pytest.mark.usefixtures("each_reading")
def test_a_style_of_blanks_takes_no_time() -> None:
    start = time.process_time()
    read_html("".join(f'<p style="clip:rect(0{" " * 18_000}x{number}">a</p>' for number in range(20)))
    assert time.process_time() - start < 2.0
