"""Draws the icons of the installable dashboard from `static/icons/app.svg`: `.venv/bin/python scripts/make_web_icons.py`.

Needs Chromium. The PNG files are committed; run it again when the SVG changes.
"""

import os
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

ICONS: Final = Path(__file__).parents[1] / "gatewayfilter" / "web" / "static" / "icons"
SIZES: Final = (192, 512)
BROWSER: Final = os.environ.get("CHROMIUM", "/usr/bin/chromium")


def main() -> None:
    """Writes app-192.png and app-512.png."""
    drawing = (ICONS / "app.svg").read_text(encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        for size in SIZES:
            page = browser.new_page(viewport={"width": size, "height": size})
            page.set_content(
                f"<style>body {{ margin: 0 }} svg {{ display: block; width: {size}px; height: {size}px }}</style>{drawing}"
            )
            page.screenshot(path=ICONS / f"app-{size}.png")
            print(f"app-{size}.png")
        browser.close()


if __name__ == "__main__":
    main()
