"""A parent sets a bedtime for one tablet in a real browser: four clicks at most, and the tablet is blocked."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page

from gatewayfilter.model import Client, Group, parse_matcher
from gatewayfilter.store import Store
from gatewayfilter.use_cases.policies import PolicyEditor
from tests.e2e.e2e_gateway import GatewayProcess, Origin, until
from tests.e2e.test_request_way import BROTHER, TABLET, visit
from tests.web.browser_checks import BINARY, chromium
from tests.web.web_fakes import ADMIN, served

pytestmark = [pytest.mark.slow, pytest.mark.real, pytest.mark.skipif(BINARY is None, reason="no Chromium")]

WORDS = {
    "en-GB": ("People", "Set a bedtime", "Set this bedtime", "Bedtime is set", "No bedtime", "Bedtime is off"),
    "zh-CN": ("成员", "设置就寝时间", "就用这个时间", "设置就寝时间。", "取消就寝时间", "的就寝时间。"),
}
NIGHT_HOUR = 23
"""In both bedtimes of the preset, before school days and before free ones."""


def zone_where_it_is_night() -> str:
    """A time zone in which it is some minutes after 23 o'clock."""
    ahead = (NIGHT_HOUR - time.gmtime().tm_hour) % 24
    return f"Etc/GMT-{ahead}" if ahead <= 14 else f"Etc/GMT+{24 - ahead}"


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    state: Path = tmp_path_factory.mktemp("family") / "state"
    state.mkdir(mode=0o700)
    store = Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")
    editor = PolicyEditor(store.policies)
    editor.add_group(Group("kids"))
    for name, address in (("tablet", TABLET), ("brother", BROTHER)):
        editor.add_client(Client(name, (parse_matcher(address),), "kids"))
    store.close()
    with GatewayProcess(state, proxy__workers="1", learn__enabled="false") as running:
        yield running


@pytest.fixture(scope="module", params=list(WORDS))
def parent(request: pytest.FixtureRequest, family: GatewayProcess) -> Iterator[tuple[Page, str]]:
    """A parent's phone on the dashboard, in a language."""
    with (
        served(family.state, ADMIN, filter__timezone=zone_where_it_is_night()) as base,
        chromium() as browser,
    ):
        context = browser.new_context(base_url=base, locale=request.param, viewport={"width": 360, "height": 740})
        yield context.new_page(), request.param


class Clicks:
    """Counts clicks."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, target: Locator) -> None:
        self.number += 1
        target.click()


def test_bedtime_for_one_tablet_takes_four_clicks(parent: tuple[Page, str], family: GatewayProcess, http_site: Origin) -> None:
    page, language = parent
    people, open_form, set_it, done, no_bedtime, off = WORDS[language]
    url = f"{http_site.base}/garden/{11 + list(WORDS).index(language)}"
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    until("page for the tablet", lambda: visit(family, TABLET, url).status == 200)
    page.goto("/")
    click = Clicks()
    click(page.locator(".bar").get_by_role("link", name=people))
    click(page.locator("main").get_by_role("link", name="tablet").first)
    click(page.locator("summary").filter(has_text=open_form))
    click(page.get_by_role("button", name=set_it))
    page.locator("#toasts").get_by_text(done).wait_for()
    assert click.number <= 4
    until("blocked tablet", lambda: visit(family, TABLET, url).status == 403, 5.0)
    assert "schedule" in visit(family, TABLET, url).reason
    assert visit(family, BROTHER, url).status == 200
    assert Axe().run(page).response["violations"] == []
    page.get_by_role("button", name=no_bedtime).click()
    page.locator("#toasts").get_by_text(off).wait_for()
    until("page for the tablet again", lambda: visit(family, TABLET, url).status == 200, 5.0)
    assert errors == []
