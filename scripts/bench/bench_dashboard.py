"""The dashboard at size: server time of every page and answer, memory, first paint, and the live log under load.

    python scripts/bench/bench_dashboard.py [--decisions 200000] [--entries 100000] [--folder FOLDER] [--rounds 5]
                                            [--live SECONDS] [--browser SECONDS] [--paint]

The state folder has 500 clients in 20 groups with policies, so many decisions of 30 days and entries of a list, and is kept in
FOLDER where one is given: 10 million decisions and 5 million entries take some 8 minutes of CPU. `run` is started on it, an
account signs in, and each page and each answer of the API is asked for in rounds: first with the database out of the system's
cache, where it is allowed, then warm; of a file to download until its first piece. CPU is that of the web process and of its
child processes. `--live` writes 500 decisions a second for so long while 50 readers watch; `--browser` measures first paint in
Chromium, then shows the live log for so long; `--paint` measures first paint of every page.
"""

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx2
import psutil
from bench_log import drop_cache
from dashboard_browser import measure_browser
from dashboard_live import measure_live
from dashboard_state import build_state, facts
from filter_process import Filter

from gatewayfilter.web import pages

BOUND_MS: Final = 300.0
PASSWORD: Final = "correct horse battery staple"
SETTINGS: Final = {
    "GATEWAYFILTER_WEB__LISTEN": "127.0.0.1:0",
    "GATEWAYFILTER_PROXY__WORKERS": "1",
    "GATEWAYFILTER_LEARN__ENABLED": "false",
    "GATEWAYFILTER_LOG__RETENTION_MB": "100000",
    "GATEWAYFILTER_LOG__RETENTION_DAYS": "60",
}
NAMES: Final = {
    "name": "pupil 3",
    "service_id": "youtube",
    "category": "adult",
    "subject": "audit",
    "list_name": "domains",
}
FIRST: Final = ("/login", "/", "/log", "/clients", "/lists")
"""The pages that are opened first."""
NEEDED: Final = {"url": "https://casino7.example/play", "text": "casino", "words": "casino", "decision_id": "1000"}
MORE: Final = (
    "/?span=week",
    "/?span=month",
    "/log?view=all",
    "/log?q=casino",
    "/log?q=nowhere-in-it",
    "/log?since=30d&client=pupil%203",
    "/log?since=30d&group=class%203&outcome=blocked",
    "/log?site=casino7.example",
    "/reports?period=week",
    "/check?url=https%3A%2F%2Fcasino7.example%2F",
    "/rules?q=rule7",
    "/policies/class%203",
    "/api/v1/overview?span=month",
    "/api/v1/log?q=casino",
    "/api/v1/log?q=ex",
    "/api/v1/clients?limit=500",
)


@dataclass(slots=True)
class Timed:
    """The requests for a path: their status, milliseconds of wall and of CPU in each round."""

    path: str
    status: int = 0
    wall_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)


class WebProcess:
    """The web process of a running filter.

    Args:
        state: its state folder.
    """

    def __init__(self, state: Path) -> None:
        facts_of = self._facts(state / "run" / "web.json")
        self.url: str = facts_of["url"]
        self.process = psutil.Process(facts_of["pid"])

    @staticmethod
    def _facts(path: Path) -> dict[str, Any]:
        for _ in range(600):
            if path.exists():
                found: dict[str, Any] = json.loads(path.read_text())
                return found
            time.sleep(0.1)
        raise SystemExit("the dashboard did not start")

    def cpu_s(self) -> float:
        """Returns the CPU that it and its child processes have used."""
        return sum(_cpu_s(one.pid) for one in (self.process, *self.process.children(recursive=True)))

    def rss_mb(self) -> float:
        """Returns its resident memory in MB (10^6 bytes), shared libraries included, child processes apart."""
        return float(self.process.memory_info().rss) / 1e6

    def share_mb(self) -> float:
        """Returns its memory with its share of what other processes map, too, in MB (10^6 bytes)."""
        return float(self.process.memory_full_info().pss) / 1e6


def _cpu_s(pid: int) -> float:
    """Returns the CPU of a process to the microsecond. Source: clock_getcpuclockid(3)."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def sign_in(browser: httpx2.Client) -> None:
    """Signs in; creates the account where there is none."""
    sent = {"name": "bench", "password": PASSWORD, "repeated": PASSWORD}
    first = browser.get("/setup", follow_redirects=False).status_code == 200
    answer = browser.post("/setup" if first else "/login", data=sent, follow_redirects=False)
    if answer.status_code != 303:
        raise SystemExit(f"signing in gave {answer.status_code}")


def paths(browser: httpx2.Client, *, api: bool = True) -> Iterator[str]:
    """Yields every page, every answer of the API if wanted, and some that are searched or filtered."""
    for router in pages.routers():
        for route in router.routes:
            if "GET" in getattr(route, "methods", ()):
                yield _filled(getattr(route, "path", "/"))
    document = browser.get("/api/v1/openapi.json").json() if api else {"paths": {}}
    for path, methods in document["paths"].items():
        if "get" in methods:
            needed = [one["name"] for one in methods["get"].get("parameters", ()) if one["in"] == "query" and one.get("required")]
            query = "&".join(f"{name}={quote(NEEDED.get(name, '1'), safe='')}" for name in needed)
            yield f"{_filled(path)}?{query}" if query else _filled(path)
    yield from (path for path in MORE if api or not path.startswith("/api/"))


def _filled(path: str) -> str:
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: quote(NAMES.get(found[1], "1")), path)


def _is_page(browser: httpx2.Client, path: str) -> bool:
    """Returns whether a path is a page that a browser shows; not a part of one, which may be empty."""
    with browser.stream("GET", path) as answer:
        if answer.status_code != 200 or not answer.headers.get("content-type", "").startswith("text/html"):
            return False
        return next(answer.iter_text(), "").startswith("<!DOCTYPE")


def visit(browser: httpx2.Client, web: WebProcess, timed: Timed) -> None:
    """Requests a path, and adds what it took."""
    cpu, begun = web.cpu_s(), time.perf_counter()
    with browser.stream("GET", timed.path) as answer:
        file = "attachment" in answer.headers.get("content-disposition", "")
        if file or answer.headers.get("content-type", "").startswith("text/event-stream"):  # it has no end, or is the whole log
            next(answer.iter_raw())
        else:
            answer.read()
        timed.status = answer.status_code
    timed.wall_ms.append((time.perf_counter() - begun) * 1000)
    timed.cpu_ms.append((web.cpu_s() - cpu) * 1000)


def measure_pages(browser: httpx2.Client, web: WebProcess, state: Path, rounds: int) -> None:
    """Prints a table of all paths, the slowest first."""
    found = [Timed(path) for path in dict.fromkeys(paths(browser))]
    for number in range(rounds):
        if number == 0:
            drop_cache(state / "gatewayfilter.sqlite3")
        for one in found:
            visit(browser, web, one)
    found = [one for one in found if one.status < 400]
    print(f"{len(found)} paths; load {os.getloadavg()[0]:.0f}\n")
    print("| path | first ms | warm median | warm worst | CPU ms, first | warm median |\n|---|---|---|---|---|---|")
    for one in sorted(found, key=lambda one: -statistics.median(one.wall_ms)):
        mark = " **above**" if statistics.median(one.wall_ms) > BOUND_MS else ""
        warm, cpu = one.wall_ms[1:] or one.wall_ms, one.cpu_ms[1:] or one.cpu_ms
        print(
            f"| {one.path}{mark} | {one.wall_ms[0]:.0f} | {statistics.median(warm):.0f} | {max(warm):.0f} "
            f"| {one.cpu_ms[0]:.0f} | {statistics.median(cpu):.0f} |"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=200_000)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--live", type=float, default=0.0)
    parser.add_argument("--browser", type=float, default=0.0)
    parser.add_argument("--paint", action="store_true")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        state = (options.folder or Path(name)) / "state"
        if not state.exists():
            build_state(state, options.decisions, options.entries)
        print(", ".join(f"{value:,} {name}" for name, value in facts(state).items()))
        filter_ = Filter(state, settings=SETTINGS)
        filter_.start()
        try:
            measure(state, options)
        finally:
            filter_.stop()
    return 0


def measure(state: Path, options: argparse.Namespace) -> None:
    """Measures the filter that runs on a state folder."""
    web = WebProcess(state)
    print(f"{_cpu_s(web.process.pid):.2f} s of CPU until it serves, {web.rss_mb():.0f} MB")
    with httpx2.Client(base_url=web.url, follow_redirects=True, timeout=120.0) as browser:
        sign_in(browser)
        if options.rounds:
            measure_pages(browser, web, state, options.rounds)
            print(f"\n{web.rss_mb():.1f} MB after all of them", end="")
            time.sleep(35)
            print(f", {web.rss_mb():.1f} MB half a minute later, {web.share_mb():.1f} MB with its share of libraries (PSS)")
        if options.live:
            measure_live(state, web, browser, options.live)
        if options.browser or options.paint:
            shown = (
                [path for path in dict.fromkeys(paths(browser, api=False)) if _is_page(browser, path)] if options.paint else FIRST
            )
            measure_browser(state, web, browser, shown, options.browser)


if __name__ == "__main__":
    sys.exit(main())
