"""In a real browser: why was this blocked, and undo it, in at most four clicks; the live log holds still under the pointer."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from gatewayfilter import wiring
from gatewayfilter.web.access.event_stream import EVERY_S
from tests.e2e.e2e_gateway import until
from tests.web.browser_checks import BINARY, PATIENCE_MS, chromium, watched
from tests.web.traffic_log import decision, fill, publish, usual
from tests.web.web_fakes import loaded_for, served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.real,
    pytest.mark.timeout(600),
    pytest.mark.skipif(BINARY is None, reason="no Chromium"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    fill(tmp_path, usual(time.time()))
    publish(tmp_path)
    with served(tmp_path) as found:
        yield found


@pytest.mark.parametrize(("locale", "log", "allow"), [("en-GB", "Log", "Allow"), ("zh-CN", "日志", "放行")])
@pytest.mark.parametrize("width", [360, 1280])
def test_why_was_this_blocked_and_undo_it(browser: Browser, url: str, locale: str, log: str, allow: str, width: int) -> None:
    tab = watched(browser, url, locale, width)
    page = tab.page
    page.goto(url)
    page.locator(".bar__link:visible, .rail__link:visible").filter(has_text=log).first.click()
    page.locator("tr.log-row", has_text="poki.example").locator(".actions a").click()
    page.locator("#drawer .steps").wait_for()
    page.locator("#drawer form.why-act button", has_text=allow).click()
    toast = page.locator("#toasts .toast")
    toast.wait_for()
    assert "poki.example" in toast.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert tab.troubles == []


def test_live_log_holds_still_under_the_pointer(browser: Browser, tmp_path: Path) -> None:
    fill(tmp_path, usual(time.time()))
    with served(tmp_path) as url, closing(wiring.open_store(loaded_for(tmp_path).settings)) as store:
        tab = watched(browser, url)
        page = tab.page
        page.goto(f"{url}/log?live=1")

        def is_live() -> bool:  # what is written before the browser watches is not shown
            store.log.write([decision(time.time(), "https://first.example/")])
            page.wait_for_timeout(int(2000 * EVERY_S))
            return page.locator("tr.log-row", has_text="first.example").count() > 0

        until("live row", is_live, PATIENCE_MS / 1000)
        page.locator("tr.log-row").first.hover()
        for _ in range(4):
            store.log.write([decision(time.time(), f"https://s{at}.example/") for at in range(250)])
            page.wait_for_timeout(int(1000 * EVERY_S))
        page.locator("[data-live-go]:visible").wait_for()
        assert page.locator("tr.log-row").first.inner_text().count("first.example") == 1
        page.mouse.move(5, 5)
        page.locator("tr.log-row", has_text="s249.example").first.wait_for()
        assert page.locator("tr.log-row").count() <= 200
        assert tab.troubles == []
