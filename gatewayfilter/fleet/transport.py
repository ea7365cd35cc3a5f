"""The transport of a follower: HTTP requests to its publisher, bounded in size and in time, without redirects.

Bodies are taken as they are: a publisher that compresses them is refused, so that no answer grows when it is read. A watchdog
ends a connection whose answer takes longer than allowed, however slowly it drips.
"""

import http.client
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from gatewayfilter import __version__
from gatewayfilter.errors import FleetError

CONNECT_S: Final = 10.0
ANSWER_S: Final = 30.0
"""For head and body of an answer, beside the time that its bytes take at the slowest rate."""
SLOWEST_BYTES_S: Final = 16_384.0
_CHUNK: Final = 65_536
_LONGEST_REASON: Final = 200
_LONGEST_ETAG: Final = 200


class TransportError(FleetError):
    """The publisher cannot be reached, or its answer is none that can be used.

    Attributes:
        status: of the answer, 0 for none.
    """

    def __init__(self, sentence: str, status: int = 0) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, entity tag and body of an answer."""

    status: int
    etag: str
    body: bytes


class Transport:
    """Requests to one publisher, over one connection at a time.

    Args:
        address: of the publisher, http(s).
        token: of this follower, `""` for a web server that needs none.
        ca_file: certificates that the publisher's is checked with; `None` for those of the system.
        answer_s: the longest time for an answer, beside that for its bytes.

    Raises:
        FleetError: the certificates cannot be read.
    """

    def __init__(self, address: str, token: str, ca_file: Path | None = None, answer_s: float = ANSWER_S) -> None:
        parts = urlsplit(address)
        self._host, self._port = parts.hostname or "", parts.port
        self._path = parts.path.rstrip("/")
        self._headers = {"User-Agent": f"GatewayFilter/{__version__}", "Accept-Encoding": "identity"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._answer_s = answer_s
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            try:
                self._tls = ssl.create_default_context(cafile=ca_file)
            except (OSError, ssl.SSLError) as error:
                raise FleetError(f"cannot read the certificates in {ca_file} (fleet.ca_file): {error}") from error
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def manifest(self, etag: str, most: int) -> Answer:
        """Returns the manifest, with status 304 and no body where it has this entity tag.

        Raises:
            TransportError: there is no such answer.
        """
        return self._get("/manifest", {"If-None-Match": etag} if etag else {}, most, {200, 304} if etag else {200})

    def blob(self, name: str, most: int) -> bytes:
        """Returns a whole file.

        Raises:
            TransportError: there is no such answer.
        """
        return self._get(f"/blobs/{name}", {}, most, {200}).body

    def span(self, name: str, begin: int, length: int) -> Iterator[bytes]:
        """Yields a part of a file in pieces as they arrive; it may end too soon, and the caller checks what came.

        Raises:
            TransportError: there is no such answer, or it ended too soon.
        """
        end = begin + length
        with self._answering(length) as connection:
            self._ask(connection, f"/blobs/{name}", {"Range": f"bytes={begin}-{end - 1}"})
            response = self._response(connection, {200, 206})
            if response.status == 206 and not response.headers.get("Content-Range", "").startswith(f"bytes {begin}-{end - 1}/"):
                raise TransportError("the publisher sent another part of the file than was requested", 206)
            if response.status == 200 and begin:
                raise TransportError("the publisher's server sends whole files alone: it needs byte ranges", 200)
            got = 0
            while got < length and (piece := response.read(min(_CHUNK, length - got))):
                got += len(piece)
                yield piece
            if got < length:
                raise TransportError(f"the transfer was cut off after {got:,} of {length:,} bytes")
            if response.status == 200 and not response.isclosed():
                self.close()  # the rest of the file is not needed

    def report(self, body: bytes) -> int:
        """Sends a health report. Returns the status.

        Raises:
            TransportError: there is no answer.
        """
        with self._answering(len(body)) as connection:
            self._ask(connection, "/health", {"Content-Type": "application/json"}, body)
            response = connection.getresponse()
            response.read(_CHUNK)
            if not response.isclosed():
                self.close()
            return response.status

    def _get(self, path: str, headers: dict[str, str], most: int, expected: set[int]) -> Answer:
        with self._answering(most) as connection:
            self._ask(connection, path, headers)
            response = self._response(connection, expected)
            body = bytearray()
            while piece := response.read(_CHUNK):
                body += piece
                if len(body) > most:
                    raise TransportError(f"the publisher's answer is longer than {most:,} bytes", response.status)
            announced = response.headers.get("Content-Length", "")
            if announced.isdigit() and response.status == 200 and len(body) != int(announced):
                raise TransportError("the publisher's answer was cut off")
            return Answer(response.status, _usable_etag(response.headers.get("ETag", "")), bytes(body))

    def _ask(self, connection: http.client.HTTPConnection, path: str, headers: dict[str, str], body: bytes | None = None) -> None:
        connection.request("GET" if body is None else "POST", self._path + path, body, {**self._headers, **headers})

    def _response(self, connection: http.client.HTTPConnection, expected: set[int]) -> http.client.HTTPResponse:
        response = connection.getresponse()
        if response.status not in expected:
            what = (
                "a redirect, which is not followed"
                if 300 <= response.status < 400 and response.status != 304
                else "no answer of a publisher"
            )
            raise TransportError(f"the publisher answers with status {response.status}: {what}", response.status)
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise TransportError(
                "the publisher's server compresses its answers: followers take files as they are", response.status
            )
        return response

    @contextmanager
    def _answering(self, size: int) -> Iterator[http.client.HTTPConnection]:
        """Yields a connection that is ended when an answer of so many bytes takes too long; closes it after a failure."""
        try:
            connection = self._connected()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise TransportError(f"cannot reach the publisher: {_reason(error)}") from error
        late = threading.Event()
        watchdog = threading.Timer(self._answer_s + size / SLOWEST_BYTES_S, _shut, (connection.sock, late))
        watchdog.daemon = True
        watchdog.start()
        try:
            yield connection
            _refuse_late(late)
        except TransportError:
            self.close()
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            why = "it took too long" if late.is_set() else _reason(error)
            raise TransportError(f"the publisher's answer cannot be used: {why}") from error
        except BaseException:
            self.close()
            raise
        finally:
            watchdog.cancel()

    def _connected(self) -> http.client.HTTPConnection:
        connection = self._connection
        if connection is not None and connection.sock is not None:
            return connection
        if self._tls is not None:
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=CONNECT_S, context=self._tls)
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=CONNECT_S)
        self._connection = connection
        connection.connect()
        connection.sock.settimeout(self._answer_s)
        return connection


def _refuse_late(late: threading.Event) -> None:
    """Refuses an answer that was ended: one whose head was cut looks empty to the library."""
    if late.is_set():
        raise TransportError("the publisher's answer cannot be used: it took too long")


def _shut(sock: socket.socket | None, late: threading.Event) -> None:
    """Ends a connection from another thread: what waits for it fails, and finds `late` set."""
    late.set()
    if sock is not None:
        with suppress(OSError):
            socket.socket.shutdown(sock, socket.SHUT_RDWR)  # not that of a TLS socket, which other threads may be reading


def _reason(error: Exception) -> str:
    """Returns why, in one short line: the library repeats what the server sent."""
    text = str(getattr(error, "strerror", None) or error)[:_LONGEST_REASON]
    return "".join(mark if mark.isprintable() else " " for mark in text).strip() or type(error).__name__


def _usable_etag(text: str) -> str:
    """Returns an entity tag that can be sent back, `""` for any other: a server would fail each later request with it."""
    return text if len(text) <= _LONGEST_ETAG and text.isascii() and text.isprintable() else ""
