"""Runs inside the origin's namespace: one site by HTTP and HTTPS, over both families. Arguments: the certificate's PEM file."""

import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6, IPPROTO_IPV6, IPV6_V6ONLY, socket
from typing import Any


class Handler(BaseHTTPRequestHandler):
    """Says where it is and whom it hears."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = f"site {self.path} for {self.headers['Host']}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Site(ThreadingHTTPServer):
    """Listens on both families."""

    address_family = AF_INET6
    daemon_threads = True

    def server_bind(self) -> None:
        self.socket.setsockopt(IPPROTO_IPV6, IPV6_V6ONLY, 0)
        super().server_bind()


class TlsSite(Site):
    """The same with TLS; the handshake is left to the connection's thread."""

    context: ssl.SSLContext

    def get_request(self) -> tuple[socket, Any]:
        connection, address = super().get_request()
        return self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address


def main() -> None:
    secure = TlsSite(("::", 443), Handler)
    secure.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secure.context.load_cert_chain(sys.argv[1])
    threading.Thread(target=secure.serve_forever, daemon=True).start()
    plain = Site(("::", 80), Handler)
    print("ready", flush=True)  # noqa: T201  the test waits for it
    plain.serve_forever()


if __name__ == "__main__":
    main()
