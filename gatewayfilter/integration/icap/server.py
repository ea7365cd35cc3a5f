"""The ICAP server: connections, their bounds and deadlines."""

import asyncio
import logging
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Final

from gatewayfilter.addresses.served_networks import ServedNetworks
from gatewayfilter.integration.icap import answers
from gatewayfilter.integration.icap.messages import LONGEST_HEAD, IcapError, read_request
from gatewayfilter.integration.icap.service import IcapService
from gatewayfilter.telemetry import Counters

_log = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 256
IDLE_S: Final = 120.0
"""How long a connection may wait for its next request, with its head."""
EXCHANGE_S: Final = 300.0
"""How long a request may take: uploads and downloads pass within it."""
TAKEN_S: Final = 30.0
"""How long a client may take to read what is left of an answer."""


class IcapServer:
    """Serves connections of proxies.

    Args:
        service: answers requests.
        counters: `icap_malformed`, `icap_refused`, `hook_errors`.
        networks: of clients that are served, besides loopback.
    """

    def __init__(self, service: IcapService, counters: Counters, networks: Sequence[IPv4Network | IPv6Network] = ()) -> None:
        self._service = service
        self._counters = counters
        self._served = ServedNetworks(networks)
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self, host: str, port: int) -> asyncio.Server:
        """Begins to listen. Raises OSError."""
        return await asyncio.start_server(self.serve, host, port, limit=LONGEST_HEAD)

    def close(self) -> None:
        """Closes all connections."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves a connection until its end."""
        if len(self._writers) >= MOST_CONNECTIONS or not self._may_use(writer):
            self._counters.add("icap_refused")
            writer.transport.abort()
            return
        self._writers.add(writer)
        try:
            while await self._exchange(reader, writer):
                await _taken(writer)
            await _taken(writer)
        except (OSError, TimeoutError):
            writer.transport.abort()
        except Exception:  # noqa: BLE001  the outermost loop of a connection
            self._counters.add("hook_errors")
            _log.exception("an ICAP request failed")
            writer.write(answers.head(500, self._service.tag, "null-body=0", closes=True))
        finally:
            await _end(writer)
            self._writers.discard(writer)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serves one request. Returns whether another one may follow."""
        try:
            async with asyncio.timeout(IDLE_S):
                icap = await read_request(reader)
            if icap is None:
                return False
            async with asyncio.timeout(EXCHANGE_S):
                return await self._service.answer(icap, reader, writer) and icap.keeps_alive
        except IcapError as error:
            self._counters.add("icap_malformed")
            writer.write(answers.head(error.status, self._service.tag, "null-body=0", closes=True))
            return False

    def _may_use(self, writer: asyncio.StreamWriter) -> bool:
        peer = writer.get_extra_info("peername")
        return bool(peer) and self._served.admits(str(peer[0]))


async def _taken(writer: asyncio.StreamWriter) -> None:
    async with asyncio.timeout(TAKEN_S):
        await writer.drain()


async def _end(writer: asyncio.StreamWriter) -> None:
    """Closes a connection, which counts until its client has read the answer, or has taken too long."""
    try:
        async with asyncio.timeout(TAKEN_S):
            writer.close()
            await writer.wait_closed()
    except (OSError, TimeoutError):
        writer.transport.abort()
