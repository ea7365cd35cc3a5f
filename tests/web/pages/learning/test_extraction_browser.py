"""The editor of extraction rules in a browser: a title is picked by click, links by keys, and the command reads with the rule."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.web.browser_checks import BINARY, chromium, patient
from tests.web.learning_site import site
from tests.web.web_fakes import served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.real,
    pytest.mark.timeout(600),
    pytest.mark.skipif(BINARY is None, reason="no Chromium"),
]

WORDS = {
    "en-GB": ("Fetch it", "Field", "Links", "Save and use it", "It is saved.", "Undo"),
    "zh-CN": ("抓取", "字段", "链接", "保存并启用", "已保存。", "撤销"),
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as launched:
        yield launched


def opened(browser: Browser, base: str, locale: str, width: int = 1280, scheme: str = "light") -> tuple[Page, list[str]]:
    context = browser.new_context(
        base_url=base,
        locale=locale,
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page, troubles = patient(context).new_page(), list[str]()
    page.on("console", lambda message: troubles.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: troubles.append(request.url) if not request.url.startswith((base, "data:")) else None)
    return page, troubles


def read_by_command(data_dir: Path, url: str) -> dict[str, object]:
    settings = data_dir / "config.toml"
    settings.write_text('[crawl]\nallow_networks = ["127.0.0.0/8"]\n', encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "gatewayfilter.cli",
        "crawl",
        "--data-dir",
        str(data_dir),
        "--rule",
        "harbour",
        url,
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[0])
    return found


@pytest.mark.parametrize("locale", list(WORDS))
def test_a_rule_is_made_by_clicks_and_read_by_the_command(browser: Browser, tmp_path: Path, locale: str) -> None:
    fetch, field, links, save, is_saved, undo = WORDS[locale]
    with site() as news, served(tmp_path, crawl__allow_networks=["127.0.0.0/8"]) as base:
        page, troubles = opened(browser, base, locale)
        page.goto("/crawler")
        page.locator('.toolbar a[href="/crawler/rules"]').click()
        page.locator('.toolbar a[href="/crawler/rules/new"]').click()
        page.fill("#f-address", f"{news}/story/1")
        page.get_by_role("button", name=fetch, exact=True).click()
        page.locator("#stage .el", has_text="A bridge for the harbour").last.wait_for()
        page.locator("#stage .el--heading", has_text="A bridge for the harbour").click()
        page.locator(".extract-proposals li", has_text="h1.headline").first.get_by_role("button", name=field).click()
        page.locator("#results dd", has_text="A bridge for the harbour").wait_for()
        expect(page.locator("#stage .el--hit")).to_have_text("A bridge for the harbour")
        page.fill("#f-f0-name", "headline")
        page.locator("#results dt", has_text="headline").wait_for()
        page.locator("#stage .el--link", has_text="Market moves").click()
        page.locator(".extract-proposals li", has_text="ul.more a").last.get_by_role("button", name=links).click()
        page.locator("#results li", has_text=f"{news}/story/3").wait_for()
        expect(page.locator("#stage .el--hit")).to_have_count(4)
        page.fill("#f-name", "harbour")
        page.get_by_role("button", name=save, exact=True).click()
        page.wait_for_url("**/crawler/rules/harbour?saved=*")
        page.get_by_text(is_saved).wait_for()
        found = read_by_command(tmp_path, f"{news}/story/9")
        assert found["fields"] == {"headline": ["A bridge for the harbour"]}
        expect(page.locator("#stage .el--hit")).to_have_count(4)  # the page is still there
        assert found["links"] == [f"{news}/story/{number}" for number in (2, 3, 4)]
        page.locator("main .notice").get_by_role("button", name=undo).click()
        page.locator("#toasts .toast").wait_for()
        page.goto("/crawler/rules")
        assert page.locator("tbody tr").count() == 0
        assert troubles == []


def test_an_element_is_picked_by_keys(browser: Browser, tmp_path: Path) -> None:
    with site() as news, served(tmp_path, crawl__allow_networks=["127.0.0.0/8"]) as base:
        page, troubles = opened(browser, base, "en-GB")
        page.goto("/crawler/rules/new")
        page.fill("#f-address", f"{news}/story/1")
        page.press("#f-address", "Tab")
        page.keyboard.press("Enter")
        page.locator("#stage").focus()
        for key in ("ArrowDown", "End", "ArrowUp", "Home", "ArrowRight", "ArrowLeft"):
            page.keyboard.press(key)
        assert page.locator("#stage-at").inner_text().startswith("header")
        while (
            "headline" not in page.evaluate("document.querySelector('.el--at').outerHTML")
            and page.locator(".el--heading.el--at").count() == 0
        ):
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.locator("#picked-title", has_text="h1.headline").wait_for()
        assert troubles == []


@pytest.mark.parametrize(("locale", "scheme"), [("en-GB", "light"), ("zh-CN", "dark")])
def test_the_editor_fits_and_is_accessible(browser: Browser, tmp_path: Path, locale: str, scheme: str) -> None:
    with site() as news, served(tmp_path, crawl__allow_networks=["127.0.0.0/8"]) as base:
        for width in (360, 768, 1280, 1920):
            page, troubles = opened(browser, base, locale, width, scheme)
            page.goto("/crawler/rules/new")
            page.fill("#f-address", f"{news}/story/1")
            page.get_by_role("button", name=WORDS[locale][0], exact=True).click()
            page.locator("#stage .el--heading").first.click()
            page.locator('.extract-proposals button[value="field:0"]').click()
            page.locator("#results dd").wait_for()
            over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert over <= 0, width
            if width in {360, 1280}:
                found = Axe().run(page).response["violations"]
                assert [(item["id"], item["nodes"][0]["html"]) for item in found] == []
            assert troubles == []
            page.context.close()


def test_on_a_phone_the_answer_to_a_tap_comes_into_sight(browser: Browser, tmp_path: Path) -> None:
    with site() as news, served(tmp_path, crawl__allow_networks=["127.0.0.0/8"]) as base:
        page, troubles = opened(browser, base, "zh-CN", 360, "dark")
        page.goto("/crawler/rules/new")
        page.fill("#f-address", f"{news}/story/1")
        page.get_by_role("button", name=WORDS["zh-CN"][0], exact=True).click()
        page.locator("#stage .el--heading", has_text="A bridge for the harbour").click()
        expect(page.locator('.extract-proposals button[value="field:0"]')).to_be_in_viewport()
        page.fill("#f-address", "http://127.0.0.1:1/")
        page.get_by_role("button", name=WORDS["zh-CN"][0], exact=True).click()
        expect(page.locator("#rule-panel > .notice")).to_be_in_viewport(ratio=1)
        assert troubles == []
