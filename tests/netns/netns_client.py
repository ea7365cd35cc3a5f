"""Runs inside the client's namespace: reads requests as JSON lines, writes what came of each as JSON lines."""

import http.client
import json
import socket
import ssl
import sys


def fetch(address: str, host: str, path: str, ca: str) -> dict[str, object]:
    """Asks a site at an address, as a browser that has looked its name up; with a CA by HTTPS."""
    connection = http.client.HTTPConnection(host, timeout=5)
    plain = socket.create_connection((address, 443 if ca else 80), 5)
    connection.sock = ssl.create_default_context(cafile=ca).wrap_socket(plain, server_hostname=host) if ca else plain
    connection.request("GET", path, headers={"Accept": "text/html"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return {"status": answer.status, "filter": answer.getheader("x-gatewayfilter", ""), "text": text}


def quic(address: str) -> dict[str, object]:
    """Sends a datagram to the port of HTTP/3 and tells how it is refused."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.settimeout(3)
        sender.connect((address, 443))
        sender.send(b"\xc0" + bytes(1199))
        sender.recv(1)
    return {}


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            got = quic(asked["address"]) if asked["kind"] == "quic" else fetch(*asked["arguments"])
        except OSError as error:
            got = {"error": type(error).__name__}
        print(json.dumps(got), flush=True)  # noqa: T201  the test reads it


if __name__ == "__main__":
    main()
