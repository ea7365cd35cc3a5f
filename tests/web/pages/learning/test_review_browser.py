"""The keys of the review in a browser."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from gatewayfilter import wiring
from gatewayfilter.model import ReviewState
from gatewayfilter.store import Store
from tests.web.browser_checks import BINARY, chromium, watched
from tests.web.learning_fakes import HOSTILE, add_task, ask, with_tablet
from tests.web.web_fakes import loaded_for, served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.real,
    pytest.mark.timeout(600),
    pytest.mark.skipif(BINARY is None, reason="no Chromium"),
]


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
    with chromium() as launched:
        yield launched


def test_tasks_are_decided_by_keys(browser: Browser, store: Store, tmp_path: Path) -> None:
    def state(number: int) -> ReviewState:
        task = store.reviews.get(number)
        assert task is not None
        return task.state

    with served(tmp_path) as base:
        tab = watched(browser, base)
        page = tab.page
        tab.go("/review/1")
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
        assert tab.troubles == []
