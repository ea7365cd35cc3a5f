"""Sites on loopback that a fleet of crawlers shares evenly."""

import socket
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

from gatewayfilter.crawl.frontier.hash_ring import HashRing
from gatewayfilter.store.repositories.crawling.frontier_holds import site_slot
from tests.e2e.conftest import CASINO, GARDEN
from tests.e2e.e2e_gateway import SiteServer

SITES = 12
PAGES_A_SITE = 4


def ring_name(state: Path, index: int = 0) -> str:
    """Returns the name on the ring of a filter's crawler."""
    return f"{socket.gethostname()}:{state}:{index}"


def fair_hosts(members: Sequence[str]) -> dict[str, str]:
    """Returns addresses on loopback and their crawlers, as many for each: the ring is another one for each state folder."""
    ring = HashRing(members)
    chosen: dict[str, str] = {}
    for name in members:
        hosts = (f"127.0.0.{number}" for number in range(2, 255))
        owned = [host for host in hosts if ring.owner(str(site_slot(f"http://{host}/"))) == name]
        chosen |= dict.fromkeys(owned[: SITES // len(members)], name)
    return chosen


class Sites:
    """Sites at addresses of their own on loopback; they answer when they are let, and count who asked for what.

    Each of these crawlers has as many of them as any other.
    """

    def __init__(self, members: Sequence[str]) -> None:
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

        self._owners = hosts = fair_hosts(members)
        self._servers = [SiteServer((host, 0), Handler) for host in hosts]
        for server in self._servers:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        self.urls = [
            f"http://{host}:{server.server_port}/{'casino' if page == 0 else 'garden'}/{page}"
            for page in range(PAGES_A_SITE)
            for host, server in zip(hosts, self._servers, strict=True)
        ]

    def urls_of(self, member: str) -> list[str]:
        """The pages of a crawler's sites."""
        return [url for url in self.urls if self._owners[str(urlsplit(url).hostname)] == member]

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
