"""What Chromium shows of an encoded body that is damaged is judged."""

import gzip
import random
import zlib
from collections.abc import Callable, Iterator
from functools import partial, reduce
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import brotli
import pytest
import zstandard

from gatewayfilter.content_encoding import decode_up_to
from gatewayfilter.crawl.render.renderer import can_render

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

LETTERS = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=100_000)).encode()
ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": partial(brotli.compress, quality=5),
    "zstd": zstandard.ZstdCompressor().compress,
}
MOST = 10_000_000


def damaged(wire: bytes) -> bytes:
    at = len(wire) * 3 // 4
    return wire[:at] + b"\xff" * 1_000 + wire[at + 1_000 :]


BODIES = {
    f"{name}, {what}": (name, wire, least)
    for name, encode in ENCODERS.items()
    for what, wire, least in (
        ("bytes behind the end", encode(LETTERS) + b"x", len(LETTERS)),
        ("another one behind the end", encode(LETTERS) + encode(b"more"), len(LETTERS)),
        ("damage", damaged(encode(LETTERS)), 1),
        ("blanks without end", encode(LETTERS + b" " * 5_000_000), len(LETTERS)),
    )
} | {
    "several encodings": ("gzip, br, zstd", ENCODERS["zstd"](ENCODERS["br"](ENCODERS["gzip"](LETTERS))), len(LETTERS)),
    "as many as it takes": (
        ", ".join(["gzip"] * 10),
        reduce(lambda body, _: gzip.compress(body), range(10), LETTERS),
        len(LETTERS),
    ),
}


class _Site(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if not self.path.strip("/").isdecimal():
            self.send_error(404)
            return
        name, wire, _ = list(BODIES.values())[int(self.path[1:])]
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Encoding", name)
        self.send_header("Content-Length", str(len(wire)))
        self.end_headers()
        self.wfile.write(wire)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def origin() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_what_the_browser_shows_of_a_damaged_body_is_judged(origin: str) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    if missing := can_render():
        pytest.skip(missing)
    unlike: list[tuple[str, int, int]] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for number, (name, (encoding, wire, least)) in enumerate(BODIES.items()):
            page = browser.new_page()
            page.set_default_timeout(120_000)
            page.goto(f"{origin}/{number}", wait_until="commit")
            page.wait_for_function("least => (document.body?.innerText ?? '').trim().length >= least", arg=least)
            shown = page.evaluate("document.body.innerText").strip().encode()
            judged, _ = decode_up_to(wire, encoding, MOST)
            if not judged.strip().startswith(shown):
                unlike.append((name, len(shown), len(judged)))
            page.close()
        browser.close()
    assert unlike == []
