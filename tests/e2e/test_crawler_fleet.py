"""The running filter's crawlers: several share the queue, one is killed, all are killed, and their number is changed."""

import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import psutil
import pytest

from gatewayfilter.crawl import Backlog, WarcArchive
from gatewayfilter.crawl.ring import HashRing
from gatewayfilter.interfaces import Page, QueueState
from gatewayfilter.store import Store
from gatewayfilter.store.frontier import site_slot
from tests.e2e.conftest import CASINO, GARDEN
from tests.e2e.e2e_gateway import GatewayProcess, SiteServer, until

pytestmark = pytest.mark.slow

SITES = 12
PAGES_A_SITE = 4
FLEET = 3


def fair_hosts(state: Path) -> list[str]:
    """Returns addresses on loopback, as many for each crawler of the fleet: the ring is another one for each state folder."""
    members = [f"{socket.gethostname()}:{state}:{index}" for index in range(FLEET)]
    ring = HashRing(members)
    chosen: list[str] = []
    for member in members:
        hosts = (f"127.0.0.{number}" for number in range(2, 255))
        owned = [host for host in hosts if ring.owner(str(site_slot(f"http://{host}/"))) == member]
        chosen += owned[: SITES // FLEET]
    return chosen


class Sites:
    """Sites at addresses of their own on loopback; they answer when they are let, and count who asked for what.

    Of a fleet of `FLEET` over this state folder each crawler has as many of them as any other.
    """

    def __init__(self, state: Path) -> None:
        self.fetches: Counter[str] = Counter()
        self.go = threading.Event()
        self.go.set()
        self._counting = threading.Lock()
        sites = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = f"http://{self.headers['host']}{self.path}"
                body = (CASINO if "casino" in self.path else GARDEN).encode() if self.path != "/robots.txt" else b""
                with sites._counting:
                    sites.fetches[url] += 1
                if body:
                    sites.go.wait(60)
                with suppress(OSError):
                    self.send_response(200 if body else 404)
                    self.send_header("Content-Type", "text/html; charset=utf-8")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        hosts = fair_hosts(state)
        self._servers = [SiteServer((host, 0), Handler) for host in hosts]
        for server in self._servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        self.urls = [
            f"http://{host}:{server.server_port}/{'casino' if page == 0 else 'garden'}/{page}"
            for page in range(PAGES_A_SITE)
            for host, server in zip(hosts, self._servers, strict=True)
        ]

    def pages(self) -> Counter[str]:
        """How often each page was asked for."""
        with self._counting:
            return Counter({url: count for url, count in self.fetches.items() if not url.endswith("/robots.txt")})

    def close(self) -> None:
        """Ends the sites."""
        self.go.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()


@pytest.fixture
def sites(state: Path) -> Iterator[Sites]:
    opened = Sites(state)
    yield opened
    opened.close()


def fleet(state: Path, workers: int) -> GatewayProcess:
    return GatewayProcess(state, crawl__workers=str(workers), crawl__timeout_s="30", crawl__follow_links="0")


def share_the_queue(gateway: GatewayProcess, workers: int) -> None:
    """Waits until each crawler knows of all."""
    until("one fleet", lambda: gateway.log.read_text().count(f"{workers} crawlers share the queue") >= workers, 40.0)


def judged(state: Path, urls: list[str]) -> set[str]:
    with closing(Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")) as store:
        return {url for url in urls if store.verdicts.find(url) is not None}


def states(state: Path) -> Counter[str]:
    with closing(Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")) as store:
        return Counter(row.state.value for row in store.frontier.show(1000))


def leased(state: Path) -> dict[str, str]:
    with closing(Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")) as store:
        return {row.url: row.state.value for row in store.frontier.show(1000, QueueState.LEASED)}


def queue(gateway: GatewayProcess, urls: list[str]) -> None:
    done = gateway.cli("queue", "add", *urls)
    assert done.returncode == 0, done.stderr


def test_crawlers_share_the_sites_and_one_that_is_killed_loses_nothing(state: Path, sites: Sites) -> None:
    with fleet(state, FLEET) as gateway:
        share_the_queue(gateway, FLEET)
        queue(gateway, sites.urls)
        until("all judged", lambda: judged(state, sites.urls) == set(sites.urls), 40.0)
        assert set(sites.pages().values()) == {1}  # each page once, by whomever
        names = ("learner", "crawler-1", "crawler-2")
        until(
            "all counted",
            lambda: sum(gateway.status(name)["counters"].get("pages_fetched", 0) for name in names) == len(sites.urls),
            10.0,
        )
        fetched = {name: gateway.status(name)["counters"].get("pages_fetched", 0) for name in names}
        assert fetched == dict.fromkeys(names, len(sites.urls) // FLEET)  # each its own sites, no others
        assert gateway.get(sites.urls[0]).reason == "learned"

        sites.go.clear()
        more = [f"{url}?again" for url in sites.urls]
        queue(gateway, more)
        until("pages in work", lambda: len(leased(state)) >= len(more) // 2, 20.0)
        victim = gateway.child("crawler-1")
        victim.send_signal(signal.SIGKILL)
        until("a new crawler", lambda: gateway.status("crawler-1").get("pid", victim.pid) != victim.pid, 20.0)
        sites.go.set()
        until("all judged", lambda: judged(state, more) == set(more), 60.0)
        assert set(sites.pages().values()) <= {1, 2}
        until("leases returned", lambda: gateway.status("crawler-1")["counters"].get("leases_returned", 0) > 0, 10.0)


def test_when_everything_is_killed_nothing_is_lost_and_what_was_settled_is_not_done_again(state: Path, sites: Sites) -> None:
    first, second = sites.urls[: len(sites.urls) // 2], sites.urls[len(sites.urls) // 2 :]
    gateway = fleet(state, 2).start()
    share_the_queue(gateway, 2)
    queue(gateway, first)
    until("the first half settled", lambda: states(state)["resting"] == len(first), 40.0)
    sites.go.clear()
    queue(gateway, second)
    until("pages in work", lambda: len(leased(state)) >= len(second) // 2, 20.0)
    assert gateway.process is not None
    family = [psutil.Process(gateway.process.pid), *psutil.Process(gateway.process.pid).children(recursive=True)]
    for member in family:
        with suppress(psutil.NoSuchProcess):
            member.send_signal(signal.SIGKILL)
    gateway.process.wait(20)
    psutil.wait_procs(family, 20)
    assert gateway.process.stdout is not None
    gateway.process.stdout.close()
    assert leased(state)
    sites.go.set()
    with fleet(state, 2):
        until("all judged", lambda: judged(state, sites.urls) == set(sites.urls), 60.0)  # long before the leases end
    pages = sites.pages()
    assert {pages[url] for url in first} == {1}
    assert {pages[url] for url in second} <= {1, 2}


def test_pages_that_wait_with_a_crawler_that_is_no_more_are_judged(state: Path, sites: Sites) -> None:
    url = sites.urls[0]
    with fleet(state, 1):
        pass  # makes the state folder
    folder = state / "archive"
    page = Page(url, url, 200, {"content-type": "text/html; charset=utf-8"}, CASINO.encode())
    reference = WarcArchive(folder, 10_000_000).keep(page, time.time())
    Backlog(folder / "backlog-2.log").put(reference)
    with fleet(state, 1) as gateway:
        until("block", lambda: gateway.get(url).reason == "learned", 20.0)
    assert not (folder / "backlog-2.log").exists()
