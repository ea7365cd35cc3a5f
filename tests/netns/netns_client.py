"""Runs inside the client's namespace: reads requests as JSON lines, writes what came of each as JSON lines."""

import asyncio
import http.client
import json
import socket
import ssl
import sys
import time
from collections.abc import Callable
from typing import Any

import aiohttp
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded

TIMEOUT_S = 20
"""For an answer that must come, on a machine that is busy with other things."""


def _tls(plain: socket.socket, host: str, ca: str, protocols: tuple[str, ...] = ()) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=ca)
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context.wrap_socket(plain, server_hostname=host)


def fetch(address: str, host: str, path: str, ca: str, port: int = 0, timeout_s: float = TIMEOUT_S) -> dict[str, object]:
    """Asks a site at an address, as a browser that has looked its name up; with a CA by HTTPS."""
    connection = http.client.HTTPConnection(host, timeout=timeout_s)
    plain = socket.create_connection((address, port or (443 if ca else 80)), timeout_s)
    connection.sock = _tls(plain, host.strip("[]"), ca) if ca else plain
    connection.request("GET", path, headers={"Accept": "text/html"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return {"status": answer.status, "filter": answer.getheader("x-gatewayfilter", ""), "text": text}


def pieces(address: str, host: str, path: str, cut: int, lead: str) -> dict[str, object]:
    """Asks for a path by plain HTTP, the first bytes in a segment of their own, behind some line ends."""
    with socket.create_connection((address, 80), TIMEOUT_S) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        asked = f"{lead}GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        for part in (asked[:cut], asked[cut:]):
            plain.sendall(part)
            time.sleep(0.05)
        answer = http.client.HTTPResponse(plain)
        answer.begin()
        return {"status": answer.status, "filter": answer.getheader("x-gatewayfilter", "")}


_kept: list[http.client.HTTPConnection] = []


def keep(address: str, host: str) -> dict[str, object]:
    """Opens a connection, asks once, and keeps it open for `ask_kept`."""
    connection = http.client.HTTPConnection(host, timeout=TIMEOUT_S)
    connection.sock = socket.create_connection((address, 80), TIMEOUT_S)
    _kept.append(connection)
    return _ask_again(connection)


def ask_kept() -> dict[str, object]:
    """Asks once more over the connection that was kept longest, without making another, and closes it."""
    connection = _kept.pop(0)
    try:
        return _ask_again(connection)
    finally:
        connection.close()


def _ask_again(connection: http.client.HTTPConnection) -> dict[str, object]:
    connection.auto_open = 0
    connection.request("GET", "/", headers={"Accept": "text/html"})
    answer = connection.getresponse()
    answer.read()
    return {"status": answer.status}


def reached(address: str, port: int, host: str, target: str) -> dict[str, object]:
    """Asks a proxy, and tells its status only: bodies may be binary."""
    connection = http.client.HTTPConnection(address, port, timeout=TIMEOUT_S)
    connection.request("GET", target, headers={"Host": host})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return {"status": answer.status}


def tunnel(address: str, port: int, target: str, first: str) -> dict[str, object]:
    """Asks a proxy for a tunnel and says something in it; tells the answer to CONNECT and what came out of the tunnel."""
    with socket.create_connection((address, port), TIMEOUT_S) as line:
        line.settimeout(TIMEOUT_S)
        line.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        got = line.recv(65_536)
        if got.startswith(b"HTTP/1.1 200"):
            line.sendall(first.encode())
        text = b""
        while chunk := line.recv(65_536):
            text += chunk
        return {"answer": got.decode("latin-1"), "text": text.decode("latin-1")}


def issuer(address: str, host: str, *cas: str) -> dict[str, object]:
    """Tells by which of some authorities a site's certificate was signed."""
    for ca in cas:
        try:
            with _tls(socket.create_connection((address, 443), TIMEOUT_S), host, ca):
                return {"issuer": ca}
        except ssl.SSLCertVerificationError:
            continue
    return {"issuer": ""}


def distrust(address: str, host: str) -> dict[str, object]:
    """Opens TLS as an app that trusts no authority but its own, and goes away when it sees another one's certificate."""
    context = ssl.create_default_context(cafile=None, capath=None, cadata=None)
    with context.wrap_socket(socket.create_connection((address, 443), TIMEOUT_S), server_hostname=host):
        return {}


def http2(address: str, host: str, path: str, ca: str) -> dict[str, object]:
    """Asks by HTTP/2."""
    with _tls(socket.create_connection((address, 443), TIMEOUT_S), host, ca, ("h2",)) as tls:
        connection = H2Connection(H2Configuration(header_encoding="utf-8"))
        connection.initiate_connection()
        headers = [(":method", "GET"), (":scheme", "https"), (":authority", host), (":path", path), ("accept", "text/html")]
        connection.send_headers(1, headers, end_stream=True)
        tls.sendall(connection.data_to_send())
        got: dict[str, Any] = {"protocol": tls.selected_alpn_protocol(), "text": ""}
        while data := tls.recv(65536):
            for event in connection.receive_data(data):
                if isinstance(event, ResponseReceived):
                    got["status"] = int(dict(event.headers)[":status"])  # type: ignore[index]
                if isinstance(event, DataReceived):
                    got["text"] += event.data.decode()
                if isinstance(event, StreamEnded):
                    return got
            tls.sendall(connection.data_to_send())
        return got


def websocket(address: str, host: str, ca: str) -> dict[str, object]:
    """Sends two messages through a WebSocket."""

    async def talk() -> list[str]:
        shown = f"[{address}]" if ":" in address else address
        context = ssl.create_default_context(cafile=ca) if ca else None
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(
                f"{'wss' if ca else 'ws'}://{shown}/ws",
                headers={"Host": host},
                ssl=context or True,
                server_hostname=host if ca else None,
            ) as line,
        ):
            got = []
            for word in ("one", "two"):
                await line.send_str(word)
                got.append(await line.receive_str(timeout=TIMEOUT_S))
            return got

    return {"messages": asyncio.run(talk())}


def events(address: str, host: str, ca: str) -> dict[str, object]:
    """Reads server-sent events: the second comes only after the first has been read."""
    connection = http.client.HTTPConnection(host, timeout=TIMEOUT_S)
    plain = socket.create_connection((address, 443 if ca else 80), TIMEOUT_S)
    connection.sock = _tls(plain, host, ca) if ca else plain
    connection.request("GET", "/events", headers={"Accept": "text/event-stream"})
    answer = connection.getresponse()
    first = answer.readline().decode().strip()
    fetch(address, host, "/release", ca)
    answer.readline()
    second = answer.readline().decode().strip()
    connection.close()
    return {"events": [first, second]}


def quic(address: str) -> dict[str, object]:
    """Sends a datagram to the port of HTTP/3 and tells how it is refused."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.settimeout(TIMEOUT_S)
        sender.connect((address, 443))
        sender.send(b"\xc0" + bytes(1199))
        return {"answer": len(sender.recv(100))}


def reach(address: str, port: int, timeout_s: float = TIMEOUT_S) -> dict[str, object]:
    """Opens a TCP connection and reads what the other side says of itself, if anything."""
    with socket.create_connection((address, port), timeout_s) as line:
        try:
            return {"says": line.recv(100).decode()}
        except TimeoutError:
            return {"says": ""}


KINDS: dict[str, Callable[..., dict[str, object]]] = {
    "fetch": fetch,
    "pieces": pieces,
    "keep": keep,
    "ask_kept": ask_kept,
    "reached": reached,
    "tunnel": tunnel,
    "issuer": issuer,
    "distrust": distrust,
    "http2": http2,
    "websocket": websocket,
    "events": events,
    "quic": quic,
    "reach": reach,
}


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            got = KINDS[asked["kind"]](*asked["arguments"])
        except (OSError, http.client.HTTPException, aiohttp.ClientError, TypeError) as error:
            got = {"error": type(error).__name__, "words": str(error)}
        print(json.dumps(got), flush=True)  # noqa: T201  the test reads it


if __name__ == "__main__":
    main()
