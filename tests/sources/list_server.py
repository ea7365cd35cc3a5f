"""A server of lists on loopback, and what it serves."""

import gzip
import tarfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from pathlib import Path

from tests.e2e.e2e_gateway import SiteServer

BUNDLED = Path(__file__).parents[2] / "lists"


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class ListServer:
    """Serves what `answers` says on a loopback port: path → function that gets the handler."""

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                outer.answers[self.path](self)

            def log_message(self, *args: object) -> None:
                pass

        self._server = SiteServer(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def serve(self, path: str, body: bytes, *, status: int = 200, **headers: str) -> str:
        """Answers `path` with this body. Returns the address."""
        self.answers[path] = lambda handler: answer(handler, body, status, headers=headers)
        return self.base + path


def answer(
    handler: BaseHTTPRequestHandler,
    body: bytes,
    status: int = 200,
    *,
    length: int | None = None,
    headers: dict[str, str] | None = None,
) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    for name, value in (headers or {}).items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def ut1_archive(**categories: dict[str, str]) -> bytes:
    """A tar.gz as UT1 publishes it."""
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for category, parts in categories.items():
            for part, text in parts.items():
                member = tarfile.TarInfo(f"blacklists/{category}/{part}")
                member.size = len(text)
                archive.addfile(member, BytesIO(text.encode()))
    return packed.getvalue()


def gzip_bomb(megabytes: int) -> bytes:
    return gzip.compress(b"a.example\n" * (megabytes * 100_000))
