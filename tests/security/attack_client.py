"""A client that sends exactly the bytes of a case, and keeps all that comes back."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.security.attack_case import Case, Flight, Handshake
from tests.security.lenient_origin import END, MARKER

_GAP_S = 0.015
"""Between two segments: the proxy reads each by itself."""
_QUIET_S = 0.35
_AFTER_S = 0.02
_CONNECT_S, _HANDSHAKE_S = 3.0, 2.0
_SETTLED_S = 30.0
"""How long at most is waited, where a case says what must come of it."""
_MOST_BYTES = 400_000


@dataclass
class Outcome:
    """What a client got.

    Attributes:
        answers: what came back after each flight, the answer to CONNECT first.
        certificates: DER of the certificates that it saw, outermost first.
        ended: how the connection ended, where it did.
    """

    answers: list[bytes] = field(default_factory=list)
    certificates: list[bytes] = field(default_factory=list)
    ended: str = ""

    @property
    def received(self) -> bytes:
        """All bytes that came back."""
        return b"".join(self.answers)


class _Layer:
    """A connection, with as many layers of TLS as were asked for."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._tls: list[tuple[ssl.SSLObject, ssl.MemoryBIO, ssl.MemoryBIO]] = []

    async def read(self, wait_s: float, level: int = -1) -> bytes | None:
        """Returns what came, in the clear; `b""` at the end, `None` when nothing came in time."""
        level = len(self._tls) if level < 0 else level
        if level == 0:
            try:
                return await asyncio.wait_for(self._reader.read(65536), wait_s)
            except TimeoutError:
                return None
        connection, incoming, _ = self._tls[level - 1]
        while True:
            try:
                return connection.read(65536)
            except ssl.SSLWantReadError:
                data = await self.read(wait_s, level - 1)
                if not data:
                    return data
                incoming.write(data)
            except ssl.SSLError:
                return b""

    async def send(self, data: bytes, level: int = -1) -> None:
        """Sends bytes through all layers."""
        level = len(self._tls) if level < 0 else level
        if level == 0:
            self._writer.write(data)
            await self._writer.drain()
            return
        connection, _, outgoing = self._tls[level - 1]
        connection.write(data)
        await self.send(outgoing.read(), level - 1)

    async def send_in_pieces(self, flight: Flight, level: int = -1) -> None:
        """Sends a flight with a pause at each cut."""
        pieces = flight.pieces()
        for index, piece in enumerate(pieces):
            if index:
                await asyncio.sleep(_GAP_S)
            await self.send(piece, level)

    async def handshake(self, shake: Handshake, wait_s: float) -> bytes:
        """Adds a layer of TLS. Returns the certificate that the other side showed.

        Args:
            shake: how.
            wait_s: for each answer of the other side.

        Raises:
            ssl.SSLError: it failed.
            ConnectionError: the other side went.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if shake.alpn:
            context.set_alpn_protocols(list(shake.alpn))
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        connection = context.wrap_bio(incoming, outgoing, server_hostname=shake.sni or None)
        level, first = len(self._tls), True
        while True:
            try:
                connection.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                done = False
            data = outgoing.read()
            if first:
                await self.send_in_pieces(Flight(_records(data, shake.record_size), shake.cuts), level)
                first = False
            elif data:
                await self.send(data, level)
            if done:
                break
            got = await self.read(wait_s, level)
            if not got:
                raise ConnectionError("no handshake")
            incoming.write(got)
        self._tls.append((connection, incoming, outgoing))
        return connection.getpeercert(binary_form=True) or b""


def _records(hello: bytes, size: int) -> bytes:
    """Returns a ClientHello in records of some bytes each (RFC 8446 §5.1 lets it be so)."""
    if not size:
        return hello
    body = hello[5:]
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(hello[:3] + len(part).to_bytes(2) + part for part in parts)


async def run_case(case: Case, address: tuple[str, int], settled: Callable[[bytes], bool] | None = None) -> Outcome:
    """Sends a case to an address and returns what came of it. Never raises for what the other side does.

    Args:
        case: the case.
        address: where to.
        settled: tells by the answer to a flight whether it came to what it must come to; until then quiet is no end of it.
    """
    outcome = Outcome()
    try:
        reader, writer = await asyncio.open_connection(*address, limit=1 << 20)
    except OSError as error:
        outcome.ended = f"no connection: {error}"
        return outcome
    line = _Layer(reader, writer)
    try:
        if case.connect.data:
            await line.send_in_pieces(case.connect)
            answer = await _until(line, b"\r\n\r\n", _CONNECT_S if settled is None else _SETTLED_S)
            outcome.answers.append(answer)
            if b" 200" not in answer[:14]:
                return outcome
        for shake in case.handshakes:
            outcome.certificates.append(await line.handshake(shake, _HANDSHAKE_S if settled is None else _SETTLED_S))
        for flight in case.flights:
            await line.send_in_pieces(flight)
            outcome.answers.append(await _listen(line, settled))
    except (OSError, ssl.SSLError) as error:
        outcome.ended = type(error).__name__
        with contextlib.suppress(OSError, ssl.SSLError):
            outcome.answers.append(await line.read(_AFTER_S, 0) or b"")
    finally:
        writer.transport.abort()
    return outcome


async def _until(line: _Layer, end: bytes, wait_s: float) -> bytes:
    got = b""
    while end not in got:
        data = await line.read(wait_s)
        if not data:
            break
        got += data
    return got


async def _listen(line: _Layer, settled: Callable[[bytes], bool] | None) -> bytes:
    """Reads until it has been quiet: a shorter while after an answer."""
    got = b""
    ends = time.monotonic() + _SETTLED_S
    while len(got) < _MOST_BYTES:
        answered = END in got or b"</html>" in got or MARKER in got
        data = await line.read(_AFTER_S if answered else _QUIET_S)
        if data:
            got += data
        elif data == b"" or settled is None or settled(got) or time.monotonic() > ends:
            break
    return got
