"""A running filter with all its processes: values of a policy that act on requests, set by commands, seen at the origins.

The origins are behind a parent proxy on loopback, which stands for every site: names need not be resolved.
"""

import json
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import IncompleteRead
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.e2e.e2e_gateway import GatewayProcess, SiteServer, until

pytestmark = pytest.mark.slow

SITES = ("www.google.com", "www.bing.com", "www.youtube.com", "files.invalid")


@dataclass
class Parent:
    """A parent proxy that answers as every site, inside tunnels with a certificate for it; keeps what came last."""

    authority: trustme.CA
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        seen = self.seen
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert(*SITES).configure_cert(tls)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_CONNECT(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.connection = tls.wrap_socket(self.connection, server_side=True)
                self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", buffering=0)
                self.close_connection = False

            def do_GET(self) -> None:
                seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                body = b"MZ" + bytes(2000) if self.path.endswith("cat.jpg") else b"site"
                self.send_response(200)
                self.send_header("Content-Type", "image/jpeg" if body[0:2] == b"MZ" else "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = SiteServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()


@pytest.fixture
def parent(authority: trustme.CA) -> Iterator[Parent]:
    found = Parent(authority)
    yield found
    found.server.shutdown()
    found.server.server_close()


def test_values_of_a_policy(state: Path, parent: Parent, trusting: dict[str, str]) -> None:
    settings: dict[str, Any] = {
        "proxy__mode": f"upstream:http://127.0.0.1:{parent.server.server_port}",
        "proxy__workers": "2",
        "learn__enabled": "false",
    }
    with GatewayProcess(state, **trusting, **settings) as gateway:
        for scheme in ("http", "https"):
            assert gateway.get(f"{scheme}://www.google.com/search?q=cats&safe=off").text == "site"
            assert parent.seen[-1][0].endswith("?q=cats&safe=off")

        values = ("safesearch=on", "youtube=strict", "search-terms=casino", "file-types=programs")
        assert gateway.cli("policy", "set", "default", *values).returncode == 0

        def enforced() -> bool:
            answers = [gateway.get("http://www.google.com/search?q=cats&safe=off") for _ in range(16)]  # of both
            return all(path.endswith("?q=cats&safe=active&ssui=on") for path, _ in parent.seen[-len(answers) :])

        until("SafeSearch in all workers", enforced)
        assert gateway.get("https://www.bing.com/images/search?q=cats&%61dlt=off").text == "site"
        path, headers = parent.seen[-1]
        assert path.endswith("?q=cats&adlt=strict")
        assert headers["cookie"] == "SRCHHPGUSR=ADLT=STRICT"
        assert gateway.get("https://www.youtube.com/", {"YouTube-Restrict": "no"}).text == "site"
        assert parent.seen[-1][1]["youtube-restrict"] == "Strict"

        assert gateway.get("https://www.google.com/search?q=c%61sino").reason == "search-term"
        assert gateway.get("http://files.invalid/setup.exe").reason == "file-type"
        with pytest.raises(IncompleteRead):
            gateway.get("https://files.invalid/cat.jpg")
        log = until("the log", lambda: _reasons(gateway) >= {"search-term", "file-type"})
        assert log

        told = gateway.json("check", "https://www.google.com/search?q=cats")
        assert {answer["decider"] for answer in told["answers"]} >= {"safesearch", "search-terms", "downloads"}

        assert gateway.cli("pause", "10min").returncode == 0
        until("the pause", lambda: gateway.get("http://www.google.com/search?q=casino").text == "site")
        assert parent.seen[-1][0].endswith("?q=casino")


def _reasons(gateway: GatewayProcess) -> set[str]:
    done = gateway.cli("log", "tail", "--json")
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")] or json.loads(done.stdout or "[]")
    return {record["reason"] for record in found}
