"""The client of the benchmark of loads: connections through a proxy by HTTP/1.1 or HTTP/2, one request at a time on each."""

import contextlib
import functools
import http.client
import itertools
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import h2.connection
import h2.errors
import h2.events
import h2.exceptions

_TIMEOUT_S: Final = 30
_CHUNK: Final = 1 << 18
_WINDOW: Final = 1 << 24
H1: Final = "http/1.1"
H2: Final = "h2"

ERRORS: Final = (OSError, EOFError, http.client.HTTPException, h2.exceptions.ProtocolError)
"""What a request that failed raises."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is requested.

    Attributes:
        host: of the URL.
        path: with its query.
        bodies: of the response, as the origin sends it and unpacked, as e2guardian may send it on.
    """

    host: str
    path: str
    bodies: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """How the requests of a load reach a proxy.

    Attributes:
        headers: of each request, without Host.
        offered: the protocols that the client names inside TLS; none for plain HTTP.
    """

    headers: Mapping[str, str]
    offered: tuple[str, ...] = ()


class Http1:
    """A connection by HTTP/1.1."""

    protocol = "HTTP/1.1"

    def __init__(self, made: socket.socket, *, absolute: bool) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1")
        self._connection.sock = made
        self._connection.auto_open = 0
        self._absolute = absolute

    def get(self, target: Target, headers: Mapping[str, str]) -> bytes:
        """Returns the body of the response to a GET."""
        url = f"http://{target.host}{target.path}" if self._absolute else target.path
        self._connection.request("GET", url, headers={"Host": target.host, **headers})
        response = self._connection.getresponse()
        body = b"".join(iter(lambda: response.read(_CHUNK), b""))
        if response.status != HTTPStatus.OK:
            raise http.client.HTTPException(f"{response.status} {response.reason}")
        return body

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


class Http2:
    """A connection by HTTP/2."""

    protocol = "HTTP/2"

    def __init__(self, made: socket.socket) -> None:
        self._socket = made
        self._connection = h2.connection.H2Connection()
        self._connection.initiate_connection()
        self._connection.increment_flow_control_window(_WINDOW)
        self._send()

    def get(self, target: Target, headers: Mapping[str, str]) -> bytes:
        """Returns the body of the response to a GET."""
        stream = self._connection.get_next_available_stream_id()
        pseudo = {":method": "GET", ":scheme": "https", ":authority": target.host, ":path": target.path}
        fields = [*pseudo.items(), *((name.lower(), value) for name, value in headers.items())]
        self._connection.send_headers(stream, fields, end_stream=True)
        self._send()
        parts: list[bytes] = []
        while True:
            data = self._socket.recv(_CHUNK)
            if not data:
                raise EOFError("closed before the response was complete")
            for event in self._connection.receive_data(data):
                match event:
                    case h2.events.ResponseReceived() if dict(event.headers)[b":status"] != b"200":
                        raise http.client.HTTPException(str(event.headers))
                    case h2.events.DataReceived():
                        parts.append(event.data)
                        self._connection.acknowledge_received_data(event.flow_controlled_length, stream)
                    case h2.events.StreamReset() | h2.events.ConnectionTerminated():
                        raise EOFError(str(event))
                    case h2.events.StreamEnded():
                        self._send()
                        return b"".join(parts)
            self._send()

    def _send(self) -> None:
        if data := self._connection.data_to_send():
            self._socket.sendall(data)

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()


def connect(port: int, host: str, way: Way) -> Http1 | Http2:
    """Opens a connection to a proxy, with CONNECT and TLS to the host where the way offers protocols."""
    made = socket.create_connection(("127.0.0.1", port), _TIMEOUT_S)
    try:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not way.offered:
            return Http1(made, absolute=True)
        made.sendall(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += made.recv(1) or _closed(answer)
        if b" 200 " not in answer.partition(b"\r\n")[0]:
            _closed(answer)
        made = _context(way.offered).wrap_socket(made, server_hostname=host)
        return Http2(made) if made.selected_alpn_protocol() == H2 else Http1(made, absolute=False)
    except BaseException:
        made.close()
        raise


@functools.cache
def _context(offered: tuple[str, ...]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(list(offered))
    return context


def _closed(answer: bytes) -> bytes:
    raise EOFError(f"the proxy answered {answer[:200]!r}")


class Client:
    """Connections to a proxy, one request at a time on each.

    Args:
        port: of the proxy.
        way: how requests reach it.
        hosts: of each connection; by plain HTTP a connection takes requests for all hosts.

    Attributes:
        failed: why requests failed.
        protocols: what has been spoken.
    """

    def __init__(self, port: int, way: Way, hosts: Sequence[str]) -> None:
        self._port = port
        self._way = way
        self._hosts = hosts
        self.failed: list[str] = []
        self.protocols: set[str] = set()
        self._pool = ThreadPoolExecutor(len(hosts))
        self._open = list(self._pool.map(self._connected, hosts))

    def _connected(self, host: str) -> Http1 | Http2 | None:
        with contextlib.suppress(*ERRORS):
            made = connect(self._port, host, self._way)
            self.protocols.add(made.protocol)
            return made
        return None

    def send(self, queues: Sequence[Sequence[Target]]) -> None:
        """Sends the requests of each connection and compares each body with what the origin sent."""
        list(self._pool.map(self._send, range(len(queues)), queues))

    def _send(self, place: int, queue: Sequence[Target]) -> None:
        used = False
        for target in queue:
            try:
                self._get(place, target)
            except ERRORS as error:
                self._drop(place)
                if not used:
                    self.failed.append(repr(error))
                    continue
                try:  # a proxy may end a connection after so many requests, as it may after this time
                    self._get(place, target)
                except ERRORS as again:
                    self._drop(place)
                    self.failed.append(repr(again))
            used = self._open[place] is not None

    def _get(self, place: int, target: Target) -> None:
        connection = self._open[place]
        if connection is None:
            connection = connect(self._port, self._hosts[place], self._way)
            self._open[place] = connection
            self.protocols.add(connection.protocol)
        body = connection.get(target, self._way.headers)
        if body not in target.bodies:
            self.failed.append(f"{target.path}: {len(body)} bytes in place of {len(target.bodies[0])}")

    def _drop(self, place: int) -> None:
        if (connection := self._open[place]) is not None:
            connection.close()
        self._open[place] = None

    def close(self) -> None:
        """Closes all connections."""
        for place in range(len(self._open)):
            self._drop(place)
        self._pool.shutdown()


def dealt(targets: Sequence[Target], connections: int) -> Iterator[Sequence[Target]]:
    """Yields what each connection requests."""
    return itertools.islice((targets[place::connections] for place in itertools.count()), connections)
