"""First paint of pages in Chromium, and the live log in it: long tasks, rows of the document, memory of its scripts."""

import statistics
import tempfile
import threading
from pathlib import Path
from typing import Any, Final, Protocol

import httpx2
from dashboard_live import RATE, write_decisions
from playwright.sync_api import Page, sync_playwright

PATHS: Final = ("/healthz", "/login", "/", "/log", "/clients", "/lists")
"""The first one is a word of plain text: what the browser itself takes."""
_ROUNDS: Final = 5
_ARGUMENTS: Final = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--enable-precise-memory-info",
)  # fmt: skip
_PAINT: Final = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"
_ANSWER: Final = "performance.getEntriesByType('navigation')[0].responseStart"
_WATCH: Final = """() => { window.longTasks = [];
new PerformanceObserver(list => { for (const one of list.getEntries()) window.longTasks.push(one.duration); })
.observe({type: 'longtask', buffered: true}); }"""
_STATE: Final = """() => ({tasks: window.longTasks, rows: document.querySelectorAll('#log-rows tr').length,
nodes: document.getElementsByTagName('*').length, heap: performance.memory.usedJSHeapSize})"""


class Served(Protocol):
    """The web process."""

    url: str


def measure_browser(state: Path, web: Served, browser: httpx2.Client, seconds: float) -> None:
    """Prints the times of first paint, and what the live log does to the browser."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        context = playwright.chromium.launch_persistent_context(
            folder, executable_path="/usr/bin/chromium", headless=True, args=list(_ARGUMENTS)
        )
        context.add_cookies([{"name": name, "value": value, "url": web.url} for name, value in browser.cookies.items()])
        page = context.new_page()
        print("\n| page | first paint ms, median | worst | of it until the answer |\n|---|---|---|---|")
        for path in PATHS:
            found = [_painted(page, web.url.rstrip("/") + path) for _ in range(_ROUNDS)]
            paints = [paint for paint, _ in found]
            answers = statistics.median(answer for _, answer in found)
            print(f"| {path} | {statistics.median(paints):.0f} | {max(paints):.0f} | {answers:.0f} |")
        _live(page, state, web.url, seconds)
        context.close()


def _painted(page: Page, url: str) -> tuple[float, float]:
    page.goto(url)
    while (paint := float(page.evaluate(_PAINT))) < 0:  # the page's policy lets no script be made of text that waits for it
        page.wait_for_timeout(5)
    return paint, float(page.evaluate(_ANSWER))


def _live(page: Page, state: Path, url: str, seconds: float) -> None:
    writer = threading.Thread(target=write_decisions, args=(state, seconds + 5))
    writer.start()
    page.goto(f"{url.rstrip('/')}/log?live=1")
    page.evaluate(_WATCH)
    seen: list[dict[str, Any]] = []
    for _ in range(4):
        page.wait_for_timeout(seconds / 4 * 1000)
        seen.append(page.evaluate(_STATE))
    writer.join()
    print(f"\nLive log, {RATE:.0f} decisions a second, {seconds:.0f} s, in quarters:")
    for one in seen:
        tasks = one["tasks"]
        longest = f"{max(tasks):.0f} ms" if tasks else "none"
        print(
            f"{len(tasks)} long tasks, longest {longest}; {one['rows']} rows, {one['nodes']} elements, {one['heap'] / 1e6:.1f} MB"
        )
