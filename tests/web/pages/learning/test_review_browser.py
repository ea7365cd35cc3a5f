"""The review in a browser: keys, widths, no violation of accessibility rules, no error on the console."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from gatewayfilter import wiring
from gatewayfilter.model import ReviewState
from gatewayfilter.store import Store
from tests.e2e.chromium import BINARY
from tests.web.learning_fakes import HOSTILE, add_task, ask, with_tablet
from tests.web.web_fakes import loaded_for, served

pytestmark = [pytest.mark.slow, pytest.mark.real, pytest.mark.skipif(BINARY is None, reason="no Chromium")]

ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
PATHS = ("/requests", "/requests/1", "/requests/links", "/review", "/review/1", "/review/4", "/words/test")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(wiring.open_store(loaded_for(tmp_path).settings)) as opened:
        with_tablet(opened)
        for index in range(3):
            add_task(opened, f"http://s{index}.example/")
        add_task(opened, "http://a.example/" + "x" * 1900, title=HOSTILE, text=HOSTILE + "y" * 2000)
        ask(opened, "http://a.example/" + "x" * 1900, comment=HOSTILE + "z" * 200)
        yield opened


@pytest.fixture
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=BINARY, args=ARGUMENTS)
        yield launched
        launched.close()


def _page(browser: Browser, base: str, width: int, locale: str, scheme: str) -> tuple[Page, list[str]]:
    context = browser.new_context(
        base_url=base,
        locale=locale,
        viewport={"width": width, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page, errors = context.new_page(), list[str]()
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    return page, errors


def test_tasks_are_decided_by_keys(browser: Browser, store: Store, tmp_path: Path) -> None:
    def state(number: int) -> ReviewState:
        task = store.reviews.get(number)
        assert task is not None
        return task.state

    with served(tmp_path) as base:
        page, errors = _page(browser, base, 1280, "en-GB", "light")
        page.goto("/review/1")
        page.keyboard.press("j")
        page.wait_for_url("**/review/2*")
        page.keyboard.press("k")
        page.wait_for_url("**/review/1*")
        page.keyboard.press("a")
        page.wait_for_url("**/review/2?decided=1")
        assert state(1) is ReviewState.APPROVED
        page.keyboard.press("r")
        page.wait_for_url("**/review/3?decided=2")
        assert state(2) is ReviewState.REJECTED
        page.get_by_text("Allowed: s1.example/").wait_for()
        page.locator("#toasts").get_by_role("button", name="Undo").click()
        page.wait_for_url("**/review/2")
        assert state(2) is ReviewState.OPEN
        page.keyboard.press("c")
        assert page.evaluate("document.activeElement.name") == "category"
        assert errors == []


@pytest.mark.parametrize(
    ("locale", "scheme", "widths"), [("en-GB", "light", (360, 768, 1280, 1920)), ("zh-CN", "dark", (360, 768, 1280, 1920))]
)
@pytest.mark.usefixtures("store")
def test_pages_fit_and_are_accessible(
    browser: Browser, tmp_path: Path, locale: str, scheme: str, widths: tuple[int, ...]
) -> None:
    with served(tmp_path) as base:
        for width in widths:
            page, errors = _page(browser, base, width, locale, scheme)
            for path in PATHS:
                page.goto(path)
                over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                assert over <= 0, (path, width)
                if width in {360, 1280}:
                    found = Axe().run(page).response["violations"]
                    assert [(item["id"], item["nodes"][0]["html"]) for item in found] == [], path
            assert errors == []
            page.context.close()
