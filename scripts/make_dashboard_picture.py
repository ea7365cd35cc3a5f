"""Makes the README's picture of the dashboard: `.venv/bin/python scripts/make_dashboard_picture.py`.

Runs the filter on an invented household (dashboard_household.py) in a folder that is removed. Needs Chromium. Run it again
when the overview changes.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Final

from dashboard_household import ZONE, fill_household
from playwright.sync_api import sync_playwright

ROOT: Final = Path(__file__).parents[1]
PICTURE: Final = ROOT / "docs" / "images" / "dashboard.png"
BROWSER: Final = os.environ.get("CHROMIUM", "/usr/bin/chromium")
PROGRAM: Final = Path(sys.executable).with_name("gatewayfilter")
_PASSWORD: Final = "an invented household"
_START_S: Final = 600.0


def main() -> None:
    """Writes docs/images/dashboard.png."""
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        fill_household(state)
        proxy, web = _free_port(), _free_port()
        subprocess.run(
            [PROGRAM, "user", "add", "ada", "--password-stdin", "--data-dir", state],
            input=f"{_PASSWORD}\n",
            text=True,
            check=True,
        )
        settings = {"GATEWAYFILTER_WEB__LISTEN": f"127.0.0.1:{web}", "GATEWAYFILTER_FILTER__TIMEZONE": ZONE}
        filter_process = subprocess.Popen(
            [PROGRAM, "run", "--listen", f"127.0.0.1:{proxy}", "--data-dir", state], env=os.environ | settings
        )
        try:
            _take(f"http://127.0.0.1:{web}")
        finally:
            filter_process.terminate()
            filter_process.wait(60)
    print(PICTURE.relative_to(ROOT))


def _take(origin: str) -> None:
    end = time.monotonic() + _START_S
    while not _is_ready(f"{origin}/readyz"):
        if time.monotonic() > end:
            raise SystemExit("the filter did not start")
        time.sleep(0.5)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 1040}, locale="en-GB", reduced_motion="reduce")
        page.set_default_timeout(_START_S * 1000)
        page.goto(f"{origin}/login")
        page.fill("[name=name]", "ada")
        page.fill("[name=password]", _PASSWORD)
        page.click("main button")
        page.wait_for_selector(".uplot canvas")
        page.screenshot(path=PICTURE)
        browser.close()


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


if __name__ == "__main__":
    main()
