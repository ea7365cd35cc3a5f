"""A headless Chromium for tests of pages, and what must hold of every page in it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import axe_playwright_python
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Response, expect, sync_playwright

BINARY: Final = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SWITCHES: Final = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
WIDTHS: Final = (360, 768, 1280, 1920)
PATIENCE_MS: Final = 120_000
"""How long a page may take on a machine that is busy with other things."""
expect.set_options(timeout=PATIENCE_MS)
type Scheme = Literal["light", "dark"]
_LASTING: Final = """{
  const begin = window.setTimeout;
  window.setTimeout = (work, ms, ...more) => begin.call(window, work, ms >= 10000 ? 30 * ms : ms, ...more);
}"""
"""Toasts go after 10 or 20 s: on such a machine before they are pressed."""
_AXE: Final = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
_CHECK: Final = """async (rules) => {
  const options = rules ? {runOnly: {type: "rule", values: rules}} : {};
  const found = await axe.run(document, {...options, resultTypes: ["violations"], preload: false, iframes: false});
  return found.violations.map((one) => `${one.id}: ${one.nodes.length} of ${one.nodes[0].html.slice(0, 300)}`);
}"""
_OVERFLOW: Final = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return "";
  const wide = [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > width + 1);
  const inner = wide.filter((one) => ![...one.children].some((child) => wide.includes(child)));
  return inner.slice(0, 3).map((one) => one.outerHTML.slice(0, 200)).join(" | ") || "something that is not an element";
}"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Starts a browser."""
    assert BINARY is not None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BINARY, args=SWITCHES)
        yield browser
        browser.close()


@dataclass(slots=True)
class Watched:
    """A tab whose page is watched.

    Attributes:
        page: the tab.
        origin: whence everything must come, as `http://127.0.0.1:41234`.
        troubles: errors on the console, exceptions, dialogs, and requests to other places, since the tab was opened.
    """

    page: Page
    origin: str
    troubles: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda message: self._console(message))  # noqa: PLW0108  playwright marks what it is given
        self.page.on("pageerror", lambda error: self.troubles.append(f"exception: {error}"))
        self.page.on("dialog", lambda dialog: self._asks(dialog))  # noqa: PLW0108
        self.page.on("request", lambda request: self._asked(request.url))

    def _console(self, message: ConsoleMessage) -> None:
        refused = message.text.startswith("Failed to load resource") and message.location["url"].split("#")[0] == self.page.url
        if message.type in {"error", "warning"} and not refused:  # a page may be an answer with 404 or 422
            self.troubles.append(f"{message.type}: {message.text}")

    def _asks(self, dialog: Dialog) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _asked(self, url: str) -> None:
        if not url.startswith((f"{self.origin}/", "data:")):
            self.troubles.append(f"request: {url[:200]}")

    def go(self, path: str) -> Response:
        """Opens a page, and waits until it is loaded."""
        answer = self.page.goto(f"{self.origin}{path}")
        assert answer is not None
        return answer

    def overflows(self) -> list[str]:
        """Returns the widths at which the page is wider than the window, with what is too wide."""
        self.page.wait_for_load_state()  # until its style sheets are there
        found = []
        for width in WIDTHS:
            self.page.set_viewport_size({"width": width, "height": 800})
            if wide := self.page.evaluate(_OVERFLOW):
                found.append(f"overflow at {width}: {wide}")
        return found

    def violations(self, width: int, *rules: str) -> list[str]:
        """Returns the rules of accessibility that the page violates at a width.

        Args:
            width: of the window.
            rules: only these, all by default.
        """
        self.page.wait_for_load_state()
        self.page.set_viewport_size({"width": width, "height": 800})
        if not self.page.evaluate("() => Boolean(window.axe)"):
            self.page.evaluate(_AXE)
        found: list[str] = self.page.evaluate(_CHECK, list(rules) or None)
        return [f"axe at {width}: {one}" for one in found]


def patient(context: BrowserContext) -> BrowserContext:
    """Has the pages of a context wait for a machine that is busy with other things."""
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(_LASTING)
    return context


def watched(browser: Browser, origin: str, locale: str = "en-GB", width: int = 1280, scheme: Scheme = "light") -> Watched:
    """Opens a tab of its own context."""
    context = browser.new_context(
        locale=locale, viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
    )
    return Watched(patient(context).new_page(), origin)
