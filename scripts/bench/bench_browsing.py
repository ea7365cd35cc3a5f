"""Browsing: pages in headless Chromium, directly and through GatewayFilter, mitmdump and squid with ssl-bump, in turns.

    python scripts/bench/bench_browsing.py [--requests FOLDER] [--rounds N] [--pages N] [--only NAME ...] [--lists FILE ...]
        [--against CHECKOUT]

A local web of 120 HTTPS hosts and 200 pages (browsing_web.py), drawn from `requests.jsonl` in FOLDER where that is given, else
generated. In each round every contestant loads the same pages, each of them for the first time, in a browser context without
cache and connections for every five pages. Prints the CPU of the proxy a page (all its processes), the times until the load
event, and the requests that failed. Included are handshakes, certificates, decisions and log. Everything is in a network
namespace with nothing but loopback; that and its hosts file need root or user namespaces. Needs nginx and Chromium; squid where
it is installed (`apt-get install nginx-light squid-openssl chromium`).
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final

import psutil
import trustme
from bench_proxy import DATA, SPAWN, free_port, publish_lists, wait_for, wait_until_serving, worker_parts
from browsing_web import Page as WebPage
from browsing_web import Web, make_graph, read_graph
from playwright.sync_api import Browser, Error, Page, Request, Response, sync_playwright
from playwright.sync_api import ProxySettings as BrowserProxy
from proxy_peers import cpu_seconds, squid

from gatewayfilter.config import Http2Clients, ProxySettings, Settings
from gatewayfilter.proxy.worker import run_worker

DIRECT, OURS, OURS_H2 = "direct", "GatewayFilter", "GatewayFilter, http2_clients = offered"
STOCK, SQUID, OTHER = "mitmdump -q", "squid, ssl-bump", "GatewayFilter, the other checkout"
_OTHER_WORKER: Final = """
import sys
from pathlib import Path
checkout, folder, port, authority, *lists = sys.argv[1:]
sys.path[:0] = [checkout, checkout + "/scripts/bench"]
from bench_proxy import publish_lists, worker_parts
from gatewayfilter.config import ProxySettings, Settings
from gatewayfilter.processes.supervision.gc_tuning import freeze_startup
from gatewayfilter.proxy.worker import run_worker
def parts(settings):  # a checkout whose own does not tune the collector as `gatewayfilter run` does
    found = worker_parts(settings)
    freeze_startup()
    return found
publish_lists(folder, lists)
proxy = ProxySettings(listen="127.0.0.1:" + port, upstream_ca=Path(authority))
run_worker(0, Settings(data_dir=Path(folder), proxy=proxy), parts)
"""
_SESSION: Final = 5
"""Pages that share a browser context."""
_MOST_S: Final = 60
_SETTLE_S: Final = 0.5
_LOADED: Final = "() => performance.getEntriesByType('navigation')[0].loadEventEnd"
_FETCHED: Final = "() => window.fetched.then(all => all.filter(one => one.status === 'rejected').length)"


@dataclass
class Road:
    """A way to the web.

    Attributes:
        name: what it is.
        port: of the proxy, 0 without one.
        pids: its processes.
        cpu: CPU seconds, of each session a page.
        loads: milliseconds until the load event of each page.
        failed: requests that failed.
    """

    name: str
    port: int = 0
    pids: tuple[int, ...] = ()
    cpu: list[float] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    failed: int = 0

    def cpu_s(self) -> float:
        """User and system time so far, of helpers too."""
        total = 0.0
        for pid in self.pids:
            main = psutil.Process(pid)
            total += sum(cpu_seconds(process.pid) for process in (main, *main.children(recursive=True)))
        return total


@contextlib.contextmanager
def roads(
    folder: Path, authority: Path, lists: Sequence[str], only: Sequence[str], against: Path | None = None
) -> Iterator[list[Road]]:
    """Runs the contestants."""
    allowed = folder / "allowed.txt"
    allowed.write_text("@@||test^\n@@||test^$document\n")  # rules for paths would block a few: less work than for the others
    publisher = SPAWN.Process(target=publish_lists, args=(str(folder), [*lists, str(allowed)]))
    publisher.start()
    publisher.join()
    with contextlib.ExitStack() as stack:
        found = [Road(DIRECT)]
        found.append(_worker(stack, folder, authority, 0, Http2Clients.NEEDED))
        if against is not None:
            found.append(_other(stack, folder / "other", authority, [*lists, str(allowed)], against.resolve()))
        if not only or OURS_H2 in only:
            found.append(_worker(stack, folder, authority, 1, Http2Clients.OFFERED))
        if not only or STOCK in only:
            found.append(_mitmdump(stack, folder, authority))
        if not only or SQUID in only:
            made = trustme.CA()
            for pem in (made.private_key_pem, made.cert_pem):
                pem.write_to_path(str(folder / "peer-ca.pem"), append=True)
            port = free_port()
            pid = stack.enter_context(squid(folder / "squid", port, folder / "peer-ca.pem", authority))
            if pid is not None:
                found.append(Road(SQUID, port, (pid,)))
        for road in found[1:]:
            wait_for(road.port)
        yield found


def _worker(stack: contextlib.ExitStack, folder: Path, authority: Path, index: int, http2: Http2Clients) -> Road:
    port = free_port()
    proxy = ProxySettings(listen=f"127.0.0.1:{port}", upstream_ca=authority, http2_clients=http2)
    worker = SPAWN.Process(target=run_worker, args=(index, Settings(data_dir=folder, proxy=proxy), worker_parts))
    worker.start()
    stack.callback(worker.join, 10)
    stack.callback(worker.terminate)
    assert worker.pid is not None
    wait_until_serving(folder / "run" / f"proxy-{index}.json")
    return Road(OURS if http2 is Http2Clients.NEEDED else OURS_H2, port, (worker.pid,))


def _other(stack: contextlib.ExitStack, folder: Path, authority: Path, lists: Sequence[str], checkout: Path) -> Road:
    """Runs a worker of another checkout, by its own environment where it has one."""
    folder.mkdir(mode=0o755)
    own = checkout / ".venv" / "bin" / "python"
    port = free_port()
    command = [str(own) if own.exists() else sys.executable, "-c", _OTHER_WORKER, str(checkout), str(folder), str(port)]
    process = subprocess.Popen([*command, str(authority), *lists])
    stack.callback(process.wait, 10)
    stack.callback(process.terminate)
    wait_until_serving(folder / "run" / "proxy-0.json", 300)
    return Road(OTHER, port, (process.pid,))


def _mitmdump(stack: contextlib.ExitStack, folder: Path, authority: Path) -> Road:
    port = free_port()
    command = [str(Path(sys.executable).parent / "mitmdump"), "-q", "--listen-host", "127.0.0.1", "-p", str(port)]
    command += ["--set", f"confdir={folder / 'stock'}", "--set", f"ssl_verify_upstream_trusted_ca={authority}"]
    process = subprocess.Popen(command)
    stack.callback(process.wait, 10)
    stack.callback(process.terminate)
    return Road(STOCK, port, (process.pid,))


def browse(browser: Browser, road: Road, pages: Sequence[WebPage]) -> None:
    """Loads pages through a road."""
    before = road.cpu_s()
    proxy = BrowserProxy(server=f"http://127.0.0.1:{road.port}") if road.port else None
    context = browser.new_context(proxy=proxy)
    for page in pages:
        tab = context.new_page()
        failures: list[str] = []
        tab.on("requestfailed", partial(_note_failure, failures))
        tab.on("response", partial(_note_status, failures))
        _load(tab, page, road, failures)
        road.failed += len(failures)
        for one in failures[:3]:
            print(f"{road.name}: {one}", file=sys.stderr)
        tab.close()
    context.close()
    time.sleep(_SETTLE_S)  # connections end
    road.cpu.append((road.cpu_s() - before) / len(pages))


def _note_failure(failures: list[str], request: Request) -> None:
    failures.append(f"{request.failure} {request.url}")


def _note_status(failures: list[str], response: Response) -> None:
    if response.status >= HTTPStatus.BAD_REQUEST:
        failures.append(f"{response.status} {response.url}")


def _load(tab: Page, page: WebPage, road: Road, failures: list[str]) -> None:
    try:
        tab.goto(page.url, wait_until="load", timeout=_MOST_S * 1000)
        tab.evaluate(_FETCHED)
        road.loads.append(float(tab.evaluate(_LOADED)))
    except Error as error:
        failures.append(f"{page.url}: {str(error).partition(chr(10))[0]}")
        road.loads.append(_MOST_S * 1000)


def print_table(found: Sequence[Road], pages: Sequence[WebPage]) -> None:
    """Prints the figures of all roads."""
    requests, hosts = (statistics.mean(getattr(page, name) for page in pages) for name in ("requests", "hosts"))
    direct = next(road for road in found if road.name == DIRECT)
    squids = next((statistics.mean(road.cpu) for road in found if road.name == SQUID), None)
    print(f"{len(direct.loads)} pages each, {requests:.0f} requests to {hosts:.0f} hosts a page\n")
    print("| road | CPU of the proxy a page, ms | to squid | page load p50, ms | p95, ms | p50 to direct | failed requests |")
    print("|---|---|---|---|---|---|---|")
    for road in found:
        cpu = statistics.mean(road.cpu)
        costs = (
            f"{cpu * 1000:.0f} | {cpu / squids:.2f}" if road.port and squids else f"{cpu * 1000:.0f} | " if road.port else " | "
        )
        p50, p95 = statistics.median(road.loads), statistics.quantiles(road.loads, n=20)[-1]
        ratio = p50 / statistics.median(direct.loads)
        print(f"| {road.name} | {costs} | {p50:.0f} | {p95:.0f} | {ratio:.2f} | {road.failed} |")


def measure(options: argparse.Namespace, folder: Path) -> None:
    """Runs the rounds."""
    graph = read_graph(options.requests / "requests.jsonl") if options.requests else make_graph()
    web = Web(folder / "web", graph)
    hosts = folder / "hosts"
    hosts.write_text(web.addresses())
    subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)
    pages = web.pages[: options.rounds * options.pages]
    sessions = [pages[start : start + _SESSION] for start in range(0, len(pages), _SESSION)]
    with (
        web.serving(),
        roads(folder, web.authority, options.lists or [], options.only, options.against) as found,
        sync_playwright() as playwright,
    ):
        arguments = [
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-quic",
        ]
        arguments.append("--ignore-certificate-errors")
        browser = playwright.chromium.launch(executable_path=options.chromium, headless=True, args=arguments)
        for road in found:  # warm-up, with pages that come again in no round
            browse(browser, road, web.pages[-2:])
            road.cpu.clear()
            road.loads.clear()
            road.failed = 0
        for number, session in enumerate(sessions):
            turn = number % len(found)
            for road in (*found[turn:], *found[:turn]):
                browse(browser, road, session)
        browser.close()
        print_table(found, pages)


def main() -> None:
    """Reads the options and measures, in a network namespace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=Path, help="folder with requests.jsonl; by default a generated graph")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--pages", type=int, default=20, help="a round")
    parser.add_argument("--only", nargs="*", default=[], help=f"beside direct and ours: {OURS_H2!r}, {STOCK!r}, {SQUID!r}")
    parser.add_argument("--against", type=Path, help="another checkout, whose worker takes part")
    parser.add_argument(
        "--lists", nargs="*", help="Adblock lists; by default EasyList and EasyPrivacy of the test data, if there"
    )
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        command = ["unshare", "--net", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
        sys.exit(subprocess.run([*command, sys.executable, *sys.argv, "--inside"], check=False).returncode)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    if options.lists is None:
        options.lists = [
            str(path) for name in ("easylist.txt", "easyprivacy.txt") for path in sorted(DATA.glob(f"**/{name}"))[:1]
        ]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        measure(options, Path(folder))


if __name__ == "__main__":
    main()
