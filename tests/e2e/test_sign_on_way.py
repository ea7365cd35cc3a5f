"""Single sign-on in a real browser, over a provider of another site and in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from gatewayfilter.model import Role
from gatewayfilter.store import Store
from gatewayfilter.use_cases.access.accounts import Accounts as AccountChanges
from tests.use_cases.sign_on.oidc_provider import CLIENT, SECRET
from tests.web.browser_checks import BINARY, chromium
from tests.web.web_fakes import Accounts, served

pytestmark = [pytest.mark.slow, pytest.mark.real, pytest.mark.skipif(BINARY is None, reason="no Chromium")]


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """The address of a provider at which everybody is in the group `parents`."""
    command = [sys.executable, "-m", "tests.use_cases.sign_on.oidc_provider", "parents"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize(
    ("locale", "button", "failed"),
    [("en-GB", "Log in with Home", "Home gives you no role"), ("zh-CN", "用 Home 登录", "Home 没有授予您任何角色")],
)
def test_a_parent_logs_in_at_the_provider(locale: str, button: str, failed: str, provider: str, tmp_path: Path) -> None:
    """The session's cookie is Strict: it has to come with the page after the provider's, which is on another site."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    store = Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")
    AccountChanges(store).add("ada", Role.ADMIN, "correct horse battery")
    store.close()
    oidc = {"issuer": provider, "client_id": CLIENT, "client_secret": SECRET, "name": "Home", "new_accounts": True}
    settings: dict[str, object] = {f"web__oidc__{key}": value for key, value in oidc.items()}
    with (
        served(state, Accounts(), **settings, web__oidc__approver_values=("parents",)) as address,
        chromium() as browser,
    ):
        base = address.replace("127.0.0.1", "localhost")  # another site than 127.0.0.1, where the provider is
        context = browser.new_context(base_url=base, locale=locale, viewport={"width": 1280, "height": 800})
        page = context.new_page()
        faults: list[str] = []
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.goto("/requests")
        page.wait_for_url("**/login?next=**")
        assert Axe().run(page).violations_count == 0
        page.get_by_role("link", name=button).click()
        page.wait_for_url(f"{base}/requests")
        expect(page.get_by_role("link", name="jane")).to_be_visible()
        page.goto("/account")
        assert Axe().run(page).violations_count == 0
        page.get_by_role("button", name="Sign out" if locale == "en-GB" else "退出").first.click()
        page.wait_for_url("**/login")
        assert faults == []
        context.clear_cookies()
        page.goto("/login/oidc/callback?state=x&code=y")
        expect(page.get_by_role("main")).to_contain_text("state")
        assert Axe().run(page).violations_count == 0
    with (
        served(state, Accounts(), **settings, web__oidc__approver_values=("others",)) as address,
        chromium() as browser,
    ):
        page = browser.new_context(base_url=address.replace("127.0.0.1", "localhost"), locale=locale).new_page()
        page.goto("/login/oidc")
        expect(page.get_by_role("main")).to_contain_text(failed)
