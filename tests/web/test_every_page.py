"""Every page in a real browser, with hostile and with no data: silent, within its window, and accessible, in both languages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import Browser

from gatewayfilter.web.access.identity import Identity, Role
from tests.web.browser_checks import BINARY, Scheme, Watched, chromium, watched
from tests.web.hostile_state import IMAGE, NAME, SCRIPT, TEXTS, WIDE, fill_hostile
from tests.web.page_addresses import example_paths, fields_of, page_routes
from tests.web.web_fakes import CSRF, served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.real,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(BINARY is None, reason="no Chromium"),
]

ADMIN: Final = Identity("W" * 60, Role.ADMIN, CSRF, account_id=1)
NAMES: Final = (quote(NAME), quote(WIDE))
EXAMPLES: Final = {
    "/requests/{number}": ("/requests/1", "/requests/3", "/requests/5"),
    "/log/{number}/why": ("/log/5/why", "/log/7/why", f"/log/3/why?client={quote(NAME)}&at=2030-01-01T22:00"),
    "/clients/{name}": tuple(f"/clients/{name}" for name in NAMES),
    "/policies/{name}": (
        f"/policies/{NAMES[0]}?tab=services&q=tiktok",
        f"/policies/{NAMES[1]}?tab=categories",
        f"/policies/{NAMES[0]}?tab=more",
    ),
    "/policies/{name}/times": (f"/policies/{NAMES[0]}/times?edit={NAMES[0]}", f"/policies/{NAMES[1]}/times"),
    "/rules/{number}": ("/rules/5",),
    "/lists/{name}": (f"/lists/{'w' * 40}", "/lists/gone"),
    "/review/{number}": tuple(f"/review/{number}" for number in (1, 2, 5)),
    "/crawler/rules/{name}": (f"/crawler/rules/{'w' * 40}",),
    "/words/{category}": ("/words/gambling", "/words/gambling?own=1"),
    "/log": ("/log?view=all",),
    "/": ("/?span=month",),
    "/check": (f"/check?url={quote('http://r1.example/' + SCRIPT)}&client={quote(NAME)}", "/check?url=r4.example&type=script"),
    "/crawler": ("/crawler?part=failures", "/crawler?part=hosts", "/crawler?part=counters"),
    "/setup/lists": ("/setup/lists?for=home",),
    "/settings": ("/settings?q=proxy",),
}
FORMS: Final[tuple[tuple[str, dict[str, str], str], ...]] = (
    ("/login", {"name": IMAGE, "password": "x"}, ""),
    ("/rules", {"rules": "\n".join(text.replace("\n", "") for text in TEXTS[:6]), "comment": SCRIPT}, ""),
    ("/rules/import", {"text": "\n".join(TEXTS)}, "file"),
    ("/lists/add?preview=yes", {"address": f"http://127.0.0.1:9/{SCRIPT}"}, ""),
    ("/words/test", {"content": f"casino bonus {' '.join(TEXTS)}", "html": "text", "url": f"http://a.example/{IMAGE}"}, ""),
    ("/backup/restore", {"step": "preview"}, "file"),
    ("/users", {"name": SCRIPT, "password": "short"}, ""),
    ("/account/second-factor", {"current": SCRIPT}, ""),
    ("/account/tokens", {"name": IMAGE, "scope": "read", "days": "30"}, ""),
    ("/clients", {"name": IMAGE, "addresses": "nonsense"}, ""),
    ("/crawler/fetch", {"url": f"http://127.0.0.1:9/{SCRIPT}"}, ""),
    ("/requests/links", {"url": f"http://l.example/{IMAGE}", "whom": f"client:{NAME}", "lasts": "1h"}, ""),
)
"""Forms whose answer is a page: path, fields, and the field of a file."""
LOOKS: Final[tuple[tuple[str, Scheme], ...]] = (("en-GB", "light"), ("zh-CN", "dark"))
_SUBMIT: Final = """([action, fields, file, name]) => {
  const form = document.createElement("form");
  Object.assign(form, {method: "post", action});
  for (const [key, value] of Object.entries(fields)) {
    const area = document.createElement("textarea");
    Object.assign(area, {name: key, value});
    form.append(area);
  }
  if (file) {
    form.enctype = "multipart/form-data";
    const input = Object.assign(document.createElement("input"), {type: "file", name: file});
    const files = new DataTransfer();
    files.items.add(new File([name + "\\n"], name));
    input.files = files.files;
    form.append(input);
  }
  document.body.append(form);
  form.submit();
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A dashboard full of hostile texts."""
    state: Path = tmp_path_factory.mktemp("hostile") / "state"
    fill_hostile(state)
    with served(state, ADMIN) as origin:
        yield origin


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A dashboard without anything."""
    with served(tmp_path_factory.mktemp("empty") / "state") as origin:
        yield origin


def questions() -> list[str]:
    """Addresses of pages whose parameters are hostile."""
    found = []
    for text in (SCRIPT, TEXTS[4][:150]):
        for route in page_routes():
            if "{" not in route.path:
                found += [f"{route.path}?{urlencode({field: text})}" for field in fields_of(route)]
    return found


def checked(tab: Watched, name: str, scheme: Scheme) -> list[str]:
    """Returns what is wrong with the page that a tab shows."""
    found = [*tab.overflows(), *tab.violations(1280 if scheme == "light" else 360), *tab.troubles]
    tab.troubles.clear()
    return [f"{name}: {one}" for one in found]


@pytest.mark.parametrize(("locale", "scheme"), LOOKS)
def test_pages_full_of_hostile_texts(browser: Browser, site: str, locale: str, scheme: Scheme) -> None:
    tab, faults = watched(browser, site, locale, scheme=scheme), list[str]()
    for path in example_paths(EXAMPLES):
        status = tab.go(path).status
        faults += [] if status == 200 else [f"{path}: {status}"]
        faults += checked(tab, path, scheme)
    for path, fields, file in FORMS:
        tab.go("/device")
        with tab.page.expect_navigation():
            tab.page.evaluate(_SUBMIT, [path, fields | {"csrf": CSRF}, file, SCRIPT.replace("/", "")])
        assert tab.page.title(), path
        faults += checked(tab, f"POST {path}", scheme)
    tab.page.context.close()
    assert faults == [], "\n".join(faults)


def test_hostile_parameters_stay_in_the_page(browser: Browser, site: str) -> None:
    tab, faults = watched(browser, site, width=360), list[str]()
    for path in questions():
        status = tab.go(path).status
        faults += [f"{path[:80]}: {status}"] if status >= 500 else []
        faults += [f"{path[:80]}: {one}" for one in (*tab.overflows(), *tab.troubles)]
        tab.troubles.clear()
    tab.page.context.close()
    assert faults == [], "\n".join(faults)


@pytest.mark.parametrize(("locale", "scheme"), LOOKS)
def test_pages_without_data(browser: Browser, empty: str, locale: str, scheme: Scheme) -> None:
    tab, faults = watched(browser, empty, locale, scheme=scheme), list[str]()
    for path in [path for path in example_paths(dict.fromkeys(EXAMPLES, ())) if path != "/account"]:
        status = tab.go(path).status
        faults += [] if status == 200 else [f"{path}: {status}"]
        faults += checked(tab, path, scheme)
    tab.page.context.close()
    assert faults == [], "\n".join(faults)
