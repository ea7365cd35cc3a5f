"""The server of the zone: SOA, AXFR and IXFR over TCP, SOA over UDP, and NOTIFY to resolvers."""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, suppress
from ipaddress import IPv4Network, IPv6Network
from typing import Final

from gatewayfilter.addresses.served_networks import ServedNetworks
from gatewayfilter.integration.rpz import messages as dns
from gatewayfilter.integration.rpz.messages import MessageError, Query
from gatewayfilter.integration.rpz.tsig import TsigKey
from gatewayfilter.integration.rpz.zone import Record, Step, Zone, ZoneHistory
from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 32
MOST_TRANSFERS: Final = 4
"""Whole zones at once; a resolver that comes later is refused, and tries again."""
IDLE_S: Final = 30.0
STALLED_S: Final = 60.0
"""How long a resolver may take for a message of a transfer."""
TRANSFER_S: Final = 900.0
"""How long a whole transfer may take, so that few slow readers do not keep out all others."""
_FULL: Final = 16_000
"""Bytes of a message of a transfer."""
_LONGEST_QUERY: Final = 2_048
_NOTIFY_AFTER_S: Final = (0.0, 1.0, 3.0, 10.0)
_FORMERR: Final = dns.HEAD.pack(0, 0x8001, 0, 0, 0, 0)


class RpzServer:
    """Serves one zone to resolvers of this machine and of some networks.

    Args:
        name: of the zone.
        history: the zone in force.
        counters: `rpz_transfers`, `rpz_increments`, `rpz_refused`, `rpz_notified`, `rpz_notify_failed`.
        networks: of resolvers that are served besides this machine.
        key: must have signed a transfer's query; `None` to go by addresses alone.

    Raises:
        MessageError: the name is no name of a zone.
    """

    def __init__(
        self,
        name: str,
        history: ZoneHistory,
        counters: Counters,
        networks: Sequence[IPv4Network | IPv6Network] = (),
        key: TsigKey | None = None,
    ) -> None:
        self._zone_name = dns.wire_name(name.lower())
        self._history = history
        self._counters = counters
        self._served = ServedNetworks(networks)
        self._key = key
        self._connections: set[asyncio.StreamWriter] = set()
        self._transfers = 0

    async def start(self, host: str, port: int) -> tuple[asyncio.Server, asyncio.DatagramTransport]:
        """Begins to listen on TCP and UDP. Raises OSError."""
        server = await asyncio.start_server(self.serve, host, port, limit=4_096)
        port = server.sockets[0].getsockname()[1]
        try:
            udp, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: _Udp(self), (host, port))
        except OSError:
            server.close()
            raise
        return server, udp

    def close(self) -> None:
        """Closes all connections."""
        for writer in list(self._connections):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves a connection until its end."""
        peer = writer.get_extra_info("peername") or ("",)
        if len(self._connections) >= MOST_CONNECTIONS or not self._served.admits(str(peer[0])):
            self._counters.add("rpz_refused")
            writer.transport.abort()
            return
        self._connections.add(writer)
        try:
            while True:
                async with asyncio.timeout(IDLE_S):
                    length = int.from_bytes(await reader.readexactly(2), "big")
                    if length > _LONGEST_QUERY:
                        return
                    data = await reader.readexactly(length)
                async with asyncio.timeout(TRANSFER_S), aclosing(self._answers(data)) as messages:
                    async for message in messages:
                        writer.write(len(message).to_bytes(2, "big") + message)
                        async with asyncio.timeout(STALLED_S):
                            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            writer.transport.abort()
        finally:
            self._connections.discard(writer)
            with suppress(OSError):
                writer.close()

    def answer_datagram(self, data: bytes, address: str) -> bytes | None:
        """Returns the answer to a query over UDP: the SOA alone, which tells a resolver to come by TCP; `None` for none."""
        if not self._served.admits(address):
            self._counters.add("rpz_refused")
            return None
        try:
            query = dns.read_query(data)
        except MessageError:
            return None if len(data) < dns.HEAD.size or data[2] & 0x80 else data[:2] + _FORMERR[2:]
        mac, refusal = self._check(query, data)
        return refusal or self._soa(query, mac)

    async def notify(self, host: str, port: int) -> bool:
        """Tells a resolver that the zone has changed. Returns whether it answered."""
        number = secrets.randbelow(65_536)
        for wait_s in _NOTIFY_AFTER_S:
            await asyncio.sleep(wait_s)
            message = dns.notification(number, self._zone_name, self._history.zone.serial)
            if self._key is not None:
                message, _ = self._key.sign(message, b"")
            if await _asked(host, port, message):
                self._counters.add("rpz_notified")
                return True
        self._counters.add("rpz_notify_failed")
        return False

    def _check(self, query: Query, data: bytes) -> tuple[bytes, bytes | None]:
        """Returns the MAC of a query, and the refusal of one that is not answered."""
        if query.opcode != dns.QUERY:
            return b"", dns.answer_head(query, 0, dns.NOT_IMPLEMENTED)
        if query.zone != self._zone_name or query.qtype not in {dns.SOA, dns.AXFR, dns.IXFR}:
            self._counters.add("rpz_refused")
            return b"", dns.answer_head(query, 0, dns.REFUSED)
        if self._key is None:
            return b"", None
        mac = self._key.verify(data, query.tsig_at) if query.tsig_at is not None else None
        if mac is None:
            self._counters.add("rpz_refused")
            return b"", dns.answer_head(query, 0, dns.REFUSED)
        return mac, None

    def _soa(self, query: Query, mac: bytes) -> bytes:
        message = dns.answer_head(query, 1) + dns.soa(self._history.zone.serial)
        return self._key.sign(message, mac)[0] if self._key is not None else message

    async def _answers(self, data: bytes) -> AsyncGenerator[bytes]:
        try:
            query = dns.read_query(data)
        except MessageError:
            raise ConnectionResetError("a malformed query") from None
        mac, refusal = self._check(query, data)
        if refusal is not None:
            yield refusal
            return
        zone, steps = self._history.since(query.serial if query.qtype == dns.IXFR else None)
        if query.qtype == dns.SOA or (query.qtype == dns.IXFR and query.serial == zone.serial):
            yield self._soa(query, mac)
            return
        if steps is None and self._transfers >= MOST_TRANSFERS:
            self._counters.add("rpz_refused")
            yield self._signed(dns.answer_head(query, 0, dns.REFUSED), mac, first=True)[0]
            return
        self._counters.add("rpz_transfers" if steps is None else "rpz_increments")
        self._transfers += 1
        try:
            records = _whole(zone, len(self._zone_name)) if steps is None else _increment(zone, steps, len(self._zone_name))
            async with aclosing(self._packed(query, records, mac)) as messages:
                async for message in messages:
                    yield message
        finally:
            self._transfers -= 1

    async def _packed(self, query: Query, records: Iterator[bytes], mac: bytes) -> AsyncGenerator[bytes]:
        first, count, size = True, 0, 0
        waiting: list[bytes] = []
        for record in records:
            waiting.append(record)
            count, size = count + 1, size + len(record)
            if size >= _FULL:
                message, mac = self._signed(dns.answer_head(query, count) + b"".join(waiting), mac, first=first)
                yield message
                first, waiting, count, size = False, [], 0, 0
                await asyncio.sleep(0)  # other work of this process has its turn
        if waiting:
            yield self._signed(dns.answer_head(query, count) + b"".join(waiting), mac, first=first)[0]

    def _signed(self, message: bytes, mac: bytes, *, first: bool) -> tuple[bytes, bytes]:
        return self._key.sign(message, mac, first=first) if self._key is not None else (message, b"")


def _whole(zone: Zone, zone_length: int) -> Iterator[bytes]:
    soa = dns.soa(zone.serial)
    yield soa
    yield dns.ns()
    for record in zone.records():
        if wire := dns.policy(record, zone_length):
            yield wire
    yield soa


def _increment(zone: Zone, steps: Sequence[Step], zone_length: int) -> Iterator[bytes]:
    yield dns.soa(zone.serial)
    for step in steps:
        yield dns.soa(step.before)
        yield from _policies(step.removed, zone_length)
        yield dns.soa(step.after)
        yield from _policies(step.added, zone_length)
    yield dns.soa(zone.serial)


def _policies(records: Sequence[Record], zone_length: int) -> Iterator[bytes]:
    return (wire for record in records if (wire := dns.policy(record, zone_length)))


class _Udp(asyncio.DatagramProtocol):
    def __init__(self, server: RpzServer) -> None:
        self._server = server
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.DatagramTransport)
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        answer = self._server.answer_datagram(data, addr[0])
        if answer is not None and self._transport is not None:
            self._transport.sendto(answer, addr)


class _Reply(asyncio.DatagramProtocol):
    def __init__(self, number: bytes, replied: asyncio.Future[bool]) -> None:
        self._number = number
        self._replied = replied

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:  # noqa: ARG002  the interface
        if data[:2] == self._number and len(data) >= dns.HEAD.size and data[2] & 0x80 and not self._replied.done():
            self._replied.set_result(True)


async def _asked(host: str, port: int, message: bytes) -> bool:
    loop = asyncio.get_running_loop()
    replied: asyncio.Future[bool] = loop.create_future()
    try:
        transport, _ = await loop.create_datagram_endpoint(lambda: _Reply(message[:2], replied), remote_addr=(host, port))
    except OSError:
        return False
    try:
        transport.sendto(message)
        async with asyncio.timeout(1.0):
            return await replied
    except TimeoutError:
        return False
    finally:
        transport.close()
