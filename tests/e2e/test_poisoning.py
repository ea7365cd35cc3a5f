"""Clients and sites that try to have others blocked, against the processes that users run."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, quote_plus, urlsplit

import pytest

from gatewayfilter.model import LearnedEntry, ListAction
from gatewayfilter.store import Store
from tests.e2e.conftest import CASINO, FILLER, GARDEN
from tests.e2e.e2e_gateway import ANSWER_S, GatewayProcess, SiteServer, until

pytestmark = pytest.mark.slow

WORDS = "online casino free spins no deposit bonus slots roulette blackjack poker sports betting jackpot real money"
SETTINGS = {"crawl__allow_networks": "127.0.0.0/8,::1/128", "learn__domains": "block"}


@contextmanager
def site(body: str, *, address: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """Serves a page at every path, with what it is asked in place of `{asked}`. Yields the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = parse_qs(urlsplit(self.path).query).get("s", [""])[0]
            page = f"{body.replace('{asked}', asked)}<!-- {self.path} -->".encode()
            self.send_response(404 if self.path == "/robots.txt" else 200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            pass

    server = SiteServer((address, port), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def forged(gateway: GatewayProcess, target: str, host: str, path: str) -> None:
    """Asks the server at the end of a tunnel for a page of another site."""
    proxy, _, port = gateway.address.rpartition(":")
    with socket.create_connection((proxy, int(port)), ANSWER_S) as client:
        client.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        assert b" 200 " in client.recv(4096)
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/html\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while chunk := client.recv(65_536):
            answer += chunk
        assert b"casino" in answer


def learned(state: Path, host: str) -> dict[str, LearnedEntry]:
    """Returns what was learned of a host and its subdomains, by key."""
    with closing(Store.open(f"sqlite:///{state / 'gatewayfilter.sqlite3'}")) as store:
        return {entry.key: entry for entry in store.lists.learned() if host in entry.key}


def settle(gateway: GatewayProcess, port: int) -> None:
    """Waits until a page that is seen now is learned: what passed before it was judged before it."""
    url = f"http://127.0.0.9:{port}/last"
    gateway.get(url)
    until("last page", lambda: gateway.get(url).reason == "learned", 60.0)


def test_a_forged_host_changes_nothing_for_that_host(state: Path) -> None:
    with site(GARDEN) as port, site(CASINO, address="127.0.0.9", port=port), GatewayProcess(state, **SETTINGS) as gateway:
        host = f"localhost:{port}"
        for number in range(8):
            forged(gateway, f"127.0.0.9:{port}", host, f"/{number}")
        settle(gateway, port)
        until("crawl", lambda: gateway.json("check", f"http://{host}/7")["verdict"]["reason"] == "whitelist", 60.0)
        assert gateway.get(f"http://{host}/1").status == 200
        assert gateway.get(f"http://{host}/never-seen").status == 200
        gateway.stop()
        found = learned(state, "localhost")
        assert {entry.action for entry in found.values()} == {ListAction.ALLOW}  # by the crawler, as that host really serves it


def test_a_site_is_not_what_it_is_asked_and_frames_of_others_are_not_its_visitors(state: Path) -> None:
    search = (
        "<html><head><title>You searched for {asked}</title></head><body><h1>Results for {asked}</h1><p>Nothing matched "
        f"{{asked}}.</p>{FILLER}</body></html>"
    )
    with (
        site(search) as port,
        site(CASINO, address="127.0.0.9", port=port),
        site(CASINO, address="127.0.0.8", port=port),
        GatewayProcess(state, **SETTINGS) as gateway,
    ):
        frame = {"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Mode": "navigate"}
        for number in range(7):
            url = f"http://localhost:{port}/?s={quote_plus(f'{WORDS} {number}')}"
            assert gateway.get(url).status == 200
            elsewhere = {**frame, "Sec-Fetch-Site": "cross-site", "Referer": "http://elsewhere.test/"}
            gateway.get(f"{url}+more", elsewhere)
            gateway.get(f"http://127.0.0.8:{port}/{number}", {**frame, "Referer": "http://elsewhere.test/"})
        settle(gateway, port)
        assert gateway.get(f"http://localhost:{port}/opening-hours").status == 200
        gateway.stop()
        assert [key for key, entry in learned(state, "localhost").items() if entry.action is ListAction.BLOCK] == []
        assert learned(state, "127.0.0.8") == {}
