"""The dashboard on a phone: installed as an app, a request answered from its message, and a filter that does not answer."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from gatewayfilter import wiring
from tests.web.browser_checks import BINARY, chromium, patient
from tests.web.learning_fakes import ask, with_tablet
from tests.web.web_fakes import APPROVER, loaded_for, served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.real,
    pytest.mark.timeout(600),
    pytest.mark.skipif(BINARY is None, reason="no Chromium"),
]

HEIGHT = 740
THUMB = 44
"""Pixels that a finger needs."""
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": HEIGHT}, "has_touch": True, "is_mobile": True}
_MEASURE = """() => [...document.querySelectorAll("article button[name=answer]")]
  .filter((one) => one.checkVisibility()).map((one) => one.getBoundingClientRect().toJSON())"""

_CONTROLLED = """language => new Promise((done) => {
  const look = () => navigator.serviceWorker.controller?.scriptURL.endsWith(language) ? done(true) : setTimeout(look, 50);
  look(); })"""

_AS_APP = """const asked = window.matchMedia;
window.matchMedia = (query) => query === "(display-mode: browser)" ? { matches: false } : asked.call(window, query);"""
"""Headless Chromium installs no apps, and its tools do not set how a page is displayed."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(params=["en-GB", "zh-CN"])
def page(request: pytest.FixtureRequest, browser: Browser, tmp_path: Path) -> Iterator[Page]:
    with closing(wiring.open_store(loaded_for(tmp_path).settings)) as store:
        with_tablet(store)
        ask(store)
    with served(tmp_path, APPROVER) as url:
        context = browser.new_context(base_url=url, locale=request.param, **PHONE)
        yield patient(context).new_page()
        context.close()


def test_it_can_be_installed(page: Page) -> None:
    page.goto("/requests/1")
    session = page.context.new_cdp_session(page)
    manifest = session.send("Page.getAppManifest")
    assert manifest["errors"] == []
    is_chinese = page.locator("html").get_attribute("lang") == "zh-Hans-CN"
    assert manifest["url"].endswith("/manifest.zh.webmanifest" if is_chinese else "/manifest.webmanifest")
    names = [one["name"] for one in json.loads(manifest["data"])["shortcuts"]]
    assert names == (["申请", "日志"] if is_chinese else ["Requests", "Log"])
    errors = [one["errorId"] for one in session.send("Page.getInstallabilityErrors")["installabilityErrors"]]
    assert errors in ([], ["in-incognito"])  # as every context of a test is
    for path in ("/", "/requests", "/log"):  # where it starts, and its shortcuts
        answer = page.goto(path)
        assert answer is not None
        assert answer.ok


def test_a_request_is_answered_from_its_message(page: Page) -> None:
    page.goto("/requests/1")
    sizes = page.evaluate(_MEASURE)
    assert len(sizes) == 4
    assert all(one["height"] >= THUMB and one["width"] >= THUMB for one in sizes)
    bar = page.locator(".bar").bounding_box()
    assert bar is not None
    assert max(one["bottom"] for one in sizes) < bar["y"], "all buttons are in reach without scrolling"
    page.locator("article button[value='1h']").tap()
    page.locator("article .outcome--allowed").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]


def test_a_filter_that_does_not_answer_is_told(page: Page) -> None:
    """In the language that was chosen, which is not the browser's here."""
    page.goto("/requests/1")
    is_chinese = page.locator("html").get_attribute("lang") == "zh-Hans-CN"
    address = page.url.partition("/requests")[0]
    page.context.add_cookies([{"name": "language", "value": "en" if is_chinese else "zh", "url": address}])
    page.add_init_script(_AS_APP)
    page.reload()
    page.evaluate(_CONTROLLED, "en" if is_chinese else "zh")
    page.context.set_offline(True)
    answer = page.goto("/requests")
    assert answer is not None
    assert answer.status == 503
    assert page.locator("h1").inner_text() == ("The filter does not answer" if is_chinese else "过滤器没有应答")
    page.context.set_offline(False)
    page.locator("a").click()
    page.locator("article").wait_for()


def test_a_tab_has_no_service_worker(page: Page) -> None:
    """It would make every page show later."""
    page.goto("/requests/1")
    page.locator("[data-do=theme]:not([hidden])").wait_for(state="attached")  # shown by the script that would register one
    page.goto("/requests/1")
    assert page.evaluate("navigator.serviceWorker.getRegistrations().then((found) => found.length)") == 0
