"""Log-in in a browser, in both languages: the choice of the language, one-time codes, the wait after guesses."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from gatewayfilter.model import Role
from gatewayfilter.store import Store
from gatewayfilter.use_cases.access.accounts import Accounts as AccountChanges
from gatewayfilter.use_cases.access.second_factor import STEP_S, code_at
from tests.web.account_fakes import GOOD
from tests.web.browser_checks import BINARY, Watched, chromium, watched
from tests.web.web_fakes import Accounts, served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.real,
    pytest.mark.timeout(600),
    pytest.mark.skipif(BINARY is None, reason="no Chromium"),
]

WORDS = {
    "en-GB": ("English", "Log in", "This code is wrong or was used already.", "Too many attempts."),
    "zh-CN": ("简体中文", "登录", "验证码不正确或已经使用过。", "尝试次数过多"),
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    store = Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")
    AccountChanges(store).add("ada", Role.ADMIN, GOOD)
    store.close()
    with served(state, Accounts()) as found:
        yield found


def log_in(page: Page, password: str = GOOD) -> None:
    page.fill("[name=name]", "ada")
    page.fill("[name=password]", password)
    with page.expect_navigation():
        page.locator('form[action="/login"] button').click()


def keep(tab: Watched, name: str) -> None:
    """Checks a page, and keeps its picture where one is wanted."""
    assert [*tab.overflows(), *tab.violations(360), *tab.troubles] == []
    if folder := os.environ.get("GATEWAYFILTER_TEST_SCREENSHOTS"):
        tab.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.mark.parametrize("locale", list(WORDS))
def test_one_time_codes(browser: Browser, address: str, locale: str) -> None:
    language, button, wrong, _ = WORDS[locale]
    other = next(one for one in WORDS if one != locale)
    tab = watched(browser, address, other, 360)
    page = tab.page
    tab.go("/account")
    page.get_by_role("button", name=language).click()
    expect(page.locator('form[action="/login"] button')).to_have_text(button)
    keep(tab, f"log-in-{locale}")
    log_in(page)
    page.wait_for_url("**/account")
    form = page.locator('form[action="/account/second-factor"]')
    form.locator("[name=current]").fill(GOOD)
    form.locator("button").click()
    secret = page.locator("code.secret").inner_text()
    keep(tab, f"second-factor-{locale}")
    page.fill("[name=code]", code_at(secret, int(time.time() // STEP_S)))
    page.fill("[name=current]", GOOD)
    page.locator('form[action="/account/second-factor/enrol"] button').click()
    recovery = page.locator(".codes code").first.inner_text()
    keep(tab, f"recovery-codes-{locale}")
    page.set_viewport_size({"width": 1280, "height": 800})  # on a phone it is in the menu
    tab.go("/account")
    page.locator('form[action="/logout"] button').first.click()
    page.wait_for_url("**/login")
    log_in(page)
    page.fill("[name=code]", "abc")
    page.locator('form[action="/login/code"] button').click()
    expect(page.get_by_role("alert")).to_have_text(wrong)
    tab.troubles.clear()  # an answer of 401
    keep(tab, f"code-{locale}")
    page.fill("[name=code]", recovery)
    page.locator('form[action="/login/code"] button').click()
    page.wait_for_url(f"{address}/")
    page.context.close()


@pytest.mark.parametrize("locale", list(WORDS))
def test_who_guesses_waits(browser: Browser, address: str, locale: str) -> None:
    tab = watched(browser, address, locale, 360, "dark")
    page = tab.page
    tab.go("/login")
    for _ in range(15):  # on a slow machine the first waits are over before the next guess; they double
        log_in(page, "a guess")
        if WORDS[locale][3] in page.locator("main").inner_text():
            break
    expect(page.locator("main")).to_contain_text(WORDS[locale][3])
    tab.troubles.clear()  # answers of 401 and 429
    keep(tab, f"wait-{locale}")
    for _ in range(60):  # the wait grows with each attempt
        log_in(page)
        if page.url == f"{address}/":
            break
        page.wait_for_timeout(500)
    assert page.url == f"{address}/"
    page.context.close()
