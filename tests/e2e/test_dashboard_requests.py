"""A parent answers a request in a real browser: a tablet is blocked and asks, two clicks open the page for the tablet alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.e2e.e2e_gateway import GatewayProcess, Origin, until
from tests.e2e.test_request_way import BROTHER, TABLET, page_that_asks, prepare_family, visit
from tests.web.browser_checks import BINARY, chromium
from tests.web.web_fakes import APPROVER, served

pytestmark = [pytest.mark.slow, pytest.mark.real, pytest.mark.skipif(BINARY is None, reason="no Chromium")]

WORDS = {
    "en-GB": ("Requests", "1 hour", "Allowed", "Take it back", "It waits again"),
    "zh-CN": ("申请", "1 小时", "已放行", "撤回", "已恢复为待处理"),
}


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    state: Path = tmp_path_factory.mktemp("family") / "state"
    state.mkdir(mode=0o700)
    prepare_family(state)
    with GatewayProcess(state, proxy__workers="1", learn__enabled="false") as running:
        yield running


@pytest.fixture(scope="module", params=list(WORDS))
def parent(request: pytest.FixtureRequest, family: GatewayProcess) -> Iterator[tuple[Page, str]]:
    """A parent's phone on the dashboard, in a language."""
    with served(family.state, APPROVER) as base, chromium() as browser:
        context = browser.new_context(base_url=base, locale=request.param, viewport={"width": 360, "height": 740})
        yield context.new_page(), request.param


def test_two_clicks_open_a_page_for_the_tablet_alone(parent: tuple[Page, str], family: GatewayProcess, http_site: Origin) -> None:
    page, language = parent
    requests, hour, allowed, back, again = WORDS[language]
    url = f"{http_site.base}/garden/{11 + list(WORDS).index(language)}"
    blocked = until("block page with a way to ask", lambda: page_that_asks(family, TABLET, url))
    action = blocked.text.partition('action="')[2].partition('"')[0]
    assert visit(family, TABLET, f"{http_site.base}{action}", {"url": url, "comment": "vocabulary"}).status == 303
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto("/review")

    def waits() -> bool:
        page.locator(".bar").get_by_role("link", name=requests).click()
        page.wait_for_load_state()  # nothing can be counted while one page takes the place of another
        return page.get_by_text("vocabulary").count() > 0

    until("request on the page", waits)
    card = page.get_by_role("article").filter(has_text="vocabulary")
    card.get_by_role("button", name=hour, exact=True).click()
    card.get_by_text(allowed).wait_for()
    until("page for the tablet", lambda: visit(family, TABLET, url).status == 200, 5.0)
    assert visit(family, BROTHER, url).status == 403
    card.get_by_role("button", name=back).click()
    page.get_by_text(again).wait_for()
    until("page blocked again", lambda: visit(family, TABLET, url).status == 403, 5.0)
    card.locator("input[name=word]").fill("tomorrow")
    card.locator("button[value=no]").click()
    card.get_by_text("tomorrow").wait_for()
    assert errors == []
