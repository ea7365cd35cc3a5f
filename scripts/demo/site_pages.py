"""A small web site on loopback for the demo: harmless, harmful, ad-carrying and unknown pages, over http and https."""

import ssl
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Self

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509 import IPAddress
from mitmproxy.certs import CertStore

_SPACE = "<p>" + "The wind turned in the evening and the path along the hedge dried slowly. " * 3 + "</p>"

_GARDEN = (
    "<h1>A garden in May</h1><p>Sow beans when the soil is warm. Water tomatoes in the morning, tie them to a stake, and take "
    "away the lowest leaves.</p>" + _SPACE
)
_CASINO = (
    "<h1>Lucky Palace online casino</h1><p>Claim your 200% welcome bonus and 50 free spins. Play online slots, roulette, "
    "blackjack and baccarat for real money. Place your bets in our sportsbook, win the jackpot and withdraw your winnings "
    "at once. No deposit bonus for new players: register and start betting today.</p>" + _SPACE
)
_CASINO_ZH = (
    "<h1>皇冠娱乐城官方网站</h1><p>在线赌场,真人百家乐、老虎机、轮盘赌、体育投注,首存送彩金,注册即送,提款秒到账。"
    "澳门赌场真人荷官在线发牌,时时彩、六合彩高赔率投注平台。</p>"
)
_NEWS = (
    '<h1>Local news</h1><p>The library opens on Sundays from next month on.</p><script src="/ads/banner.js"></script>' + _SPACE
)

PAGES = {
    "/garden": ("A garden in May", _GARDEN),
    "/lucky-palace": ("Lucky Palace - online casino with 200% welcome bonus", _CASINO),
    "/zh-casino": ("皇冠娱乐城 - 在线赌场 真人百家乐", _CASINO_ZH),
    "/news": ("Local news", _NEWS),
}
"""Path → title and body. The harmful ones read as such pages do; nobody runs them."""


class DemoSite:
    """The site on two ports, http and https, with an authority of its own.

    Attributes:
        http, https: base addresses.
        authority: PEM file of the authority that signed the https certificate.
        fetches: (path, user agent's first word) → how often it was asked for.
    """

    def __init__(self, folder: Path) -> None:
        self.fetches: Counter[tuple[str, str]] = Counter()
        store = CertStore.from_store(folder, "demo-site", 2048)
        self.authority = folder / "demo-site-ca-cert.pem"
        entry = store.get_cert(None, [IPAddress(ip_address("127.0.0.1"))])
        key = entry.privatekey.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        chain = folder / "site.pem"
        chain.touch(0o600)
        chain.write_bytes(key + entry.cert.to_pem())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        self._servers = [self._serve(None), self._serve(context)]
        self.http = f"http://127.0.0.1:{self._servers[0].server_port}"
        self.https = f"https://127.0.0.1:{self._servers[1].server_port}"

    def _serve(self, context: ssl.SSLContext | None) -> ThreadingHTTPServer:
        fetches = self.fetches

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                fetches[path, self.headers.get("user-agent", "").partition("/")[0]] += 1
                if path.startswith("/ads/"):
                    self._answer(200, "text/javascript", b"document.title = 'an advertisement'")
                elif path in PAGES:
                    title, body = PAGES[path]
                    page = (
                        f"<!doctype html><html><head><meta charset=utf-8><title>{title}</title></head><body>{body}</body></html>"
                    )
                    self._answer(200, "text/html; charset=utf-8", page.encode())
                else:
                    self._answer(404, "text/plain", b"not here")

            def _answer(self, status: int, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()
