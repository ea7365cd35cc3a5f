"""First paint of pages in Chromium, and the live log in it: long tasks, rows of the document, memory of its scripts."""

import os
import statistics
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import httpx2
from dashboard_live import RATE, write_decisions
from playwright.sync_api import Page, sync_playwright

PLAIN: Final = "/healthz"
"""A word of plain text: what the browser itself takes."""
_ROUNDS: Final = 5
_LOOKS: Final = 2_000
"""At a page that shows nothing yet."""
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


def measure_browser(state: Path, web: Served, browser: httpx2.Client, pages: Sequence[str], seconds: float) -> None:
    """Prints the times of first paint of pages, the slowest first, and what the live log does to the browser."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        context = playwright.chromium.launch_persistent_context(
            folder, executable_path="/usr/bin/chromium", headless=True, args=list(_ARGUMENTS)
        )
        context.add_cookies([{"name": name, "value": value, "url": web.url} for name, value in browser.cookies.items()])
        page = context.new_page()
        print(f"\nload {os.getloadavg()[0]:.0f}")
        print("| page | first paint ms, median | worst | of it until the answer |\n|---|---|---|---|")
        found: dict[str, list[tuple[float, float]]] = {}
        for _ in range(_ROUNDS):
            for name, path in _turns(pages):  # what else the machine does meets all of them
                found.setdefault(name, []).append(_painted(page, web.url.rstrip("/") + path))
        for path, times in sorted(found.items(), key=lambda item: -_paint(item[1])):
            answers = statistics.median(answer for _, answer in times)
            print(f"| {path} | {_paint(times):.0f} | {max(paint for paint, _ in times):.0f} | {answers:.0f} |")
        if seconds:
            _live(page, state, web.url, seconds)
        context.close()


def _turns(pages: Sequence[str]) -> list[tuple[str, str]]:
    """Returns what a round opens: pairs of a name in the table and a path.

    Between plain text and a page, which keeps other sites out of its process, the browser starts a process: apart from the rest.
    No page is opened twice in a row: that would be a reload, for which the browser asks for all files again.
    """
    lead = pages[1]
    return [(f"{PLAIN}, new process", PLAIN), (PLAIN, PLAIN), (f"{lead}, new process", lead), *((path, path) for path in pages)]


def _paint(times: Sequence[tuple[float, float]]) -> float:
    return statistics.median(paint for paint, _ in times)


def _painted(page: Page, url: str) -> tuple[float, float]:
    page.goto(url)
    for _ in range(_LOOKS):  # the page's policy lets no script be made of text that waits for it
        if (paint := float(page.evaluate(_PAINT))) >= 0:
            return paint, float(page.evaluate(_ANSWER))
        page.wait_for_timeout(5)
    raise SystemExit(f"{url} shows nothing")


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
