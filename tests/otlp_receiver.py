"""A receiver of OTLP over HTTP, on loopback."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATHS = ("/v1/metrics", "/v1/traces")


class Receiver(ThreadingHTTPServer):
    """Takes documents of the JSON form on its paths.

    Attributes:
        taken: documents, the oldest first.
        status: of the next answers.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.taken: list[dict[str, Any]] = []
        self.status = 200

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """Answers posts."""

    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.status
        if self.path not in PATHS or self.headers["Content-Type"] != "application/json":
            status = 404
        elif status == 200:
            self.server.taken.append(json.loads(body))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Runs a receiver."""
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()
