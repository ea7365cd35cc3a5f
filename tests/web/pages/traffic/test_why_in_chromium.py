"""The parent's question in a real browser: why was this blocked, and undo it."""

import time
from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter import wiring
from tests.e2e.e2e_gateway import until
from tests.web.browser_checks import BINARY, chromium, watched
from tests.web.traffic_log import fill, publish, usual
from tests.web.web_fakes import loaded_for, served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.real,
    pytest.mark.timeout(600),
    pytest.mark.skipif(BINARY is None, reason="no Chromium"),
]


@pytest.mark.parametrize(("locale", "width", "undo"), [("en-GB", 390, "Undo"), ("zh-CN", 1280, "撤销")])
def test_what_is_done_in_the_drawer_is_undone_in_it(tmp_path: Path, locale: str, width: int, undo: str) -> None:
    fill(tmp_path, usual(time.time()))
    publish(tmp_path)
    with closing(wiring.open_store(loaded_for(tmp_path).settings)) as store, served(tmp_path) as url, chromium() as browser:
        tab = watched(browser, url, locale, width)
        page = tab.page
        page.goto(f"{url}/")
        page.locator('a.stat[href*="outcome=blocked"]').first.click()
        page.locator('.log-actions a[href*="/why"]').first.click()
        page.locator('.why-act [value="allow"]').click()
        page.locator("#drawer .toast form button", has_text=undo).click()  # nothing outside of the drawer can be pressed
        page.wait_for_function("() => !document.querySelector('#drawer .toast form')")
        assert [one for one in store.audit.page() if one.action == "rule.allowed"]
        until("undo", lambda: store.lists.rules() == [])  # the form goes when it is sent
        page.keyboard.press("Escape")
        page.wait_for_function("() => document.getElementById('toasts').parentElement === document.body")
        assert tab.troubles == []
