"""A rule that is added in a real browser blocks the next request that the filter decides."""

from contextlib import closing
from pathlib import Path

import pytest

from gatewayfilter import wiring
from gatewayfilter.model import Request
from gatewayfilter.urls import parse_url
from tests.web.browser_checks import BINARY, chromium, watched
from tests.web.web_fakes import loaded_for, served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.real,
    pytest.mark.timeout(600),
    pytest.mark.skipif(BINARY is None, reason="no Chromium"),
]


@pytest.mark.parametrize(("locale", "add"), [("en-GB", "Add"), ("zh-CN", "添加")])
def test_a_rule_is_explained_added_and_in_force(tmp_path: Path, locale: str, add: str) -> None:
    loaded = loaded_for(tmp_path)
    wiring.prepare_data_dir(loaded.settings)
    with closing(wiring.open_store(loaded.settings)) as store:
        engine = wiring.open_engine(loaded.settings, store)
        request = Request(parse_url("https://www.shop.example/x"))
        assert not engine.decide(request).blocked
        with served(tmp_path) as url, chromium() as browser:
            tab = watched(browser, url, locale, 360)
            page = tab.page
            page.goto(f"{url}/rules")
            page.fill("#f-rules", "shop.example")
            page.wait_for_selector(".explained__line--rule")
            page.get_by_role("button", name=add, exact=True).click()
            page.wait_for_selector("text=shop.example >> nth=0")
            page.wait_for_selector("tr .rules__what")
            page.wait_for_load_state()
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
            engine.apply(store.feed.read(engine.feed_seq))
            assert engine.decide(request).blocked
            page.locator("tr [role=switch]").click()
            page.wait_for_selector("tr [role=switch][aria-checked=false]")
            engine.apply(store.feed.read(engine.feed_seq))
            assert not engine.decide(request).blocked
            assert tab.troubles == []
