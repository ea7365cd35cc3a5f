"""Connects to origins for connections that pass through unread: both address families in a race, or through a parent proxy."""

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import aiohappyeyeballs

from gatewayfilter.proxy.resolver import AddressInfo, addresses_of

CONNECT_S: Final = 30.0
"""Longest time for looking a name up and connecting; the kernel alone would try for more than two minutes."""
RACE_AFTER_S: Final = 0.25
"""How long the first address may try before the next one tries beside it (RFC 8305 §5)."""
_MOST_HEAD_BYTES: Final = 65_536


class ParentRefusedError(OSError):
    """The parent proxy does not connect us."""


@dataclass(frozen=True, slots=True)
class Way:
    """A connection to an origin.

    Attributes:
        first: what the origin already said.
    """

    socket: socket.socket
    first: bytes = b""


class Dialer:
    """Makes connections to origins.

    Args:
        loop: the event loop.
        parent: host and port of the parent proxy, `None` without one.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, parent: tuple[str, int] | None = None) -> None:
        self._loop = loop
        self._parent = parent

    async def dial(self, host: str, port: int, prefer: str = "") -> Way:
        """Connects to a host, given by name or address.

        Args:
            host: an IPv6 literal may stand in brackets.
            port: TCP port.
            prefer: the address that the client itself had chosen: it goes first when the name really has it.

        Raises:
            TimeoutError: it took longer than `CONNECT_S`.
            OSError: no address of it can be connected to, or the parent refuses.
        """
        try:
            async with asyncio.timeout(CONNECT_S):
                if self._parent is not None:
                    return await self._through_parent(self._parent, host, port)
                return Way(await self._connect(_ordered(await addresses_of(self._loop, host, port), prefer)))
        except TimeoutError as error:
            raise TimeoutError(str(error) or f"timed out after {CONNECT_S:.0f} seconds") from error

    async def _connect(self, found: Sequence[AddressInfo]) -> socket.socket:
        connected = await connect_to_any(self._loop, found)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connected

    async def _through_parent(self, parent: tuple[str, int], host: str, port: int) -> Way:
        made = await self._connect(await addresses_of(self._loop, *parent))
        try:
            return Way(made, await self._ask_parent(made, f"{host}:{port}".encode("ascii")))
        except BaseException:
            made.close()
            raise

    async def _ask_parent(self, made: socket.socket, target: bytes) -> bytes:
        await self._loop.sock_sendall(made, b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (target, target))
        answer = b""
        while b"\r\n\r\n" not in answer:
            more = await self._loop.sock_recv(made, 4096)
            if not more or len(answer) > _MOST_HEAD_BYTES:
                raise ParentRefusedError("upstream proxy gave no answer")
            answer += more
        head, _, rest = answer.partition(b"\r\n\r\n")
        status = head.split(b" ", 2)[1:2]
        if not head.startswith(b"HTTP/1.") or not status or not status[0].startswith(b"2"):
            said = head.partition(b"\r\n")[0].decode("latin-1")[:100]
            raise ParentRefusedError(f"upstream proxy refused: {said}")
        return rest


async def connect_to_any(loop: asyncio.AbstractEventLoop, found: Sequence[AddressInfo]) -> socket.socket:
    """Returns a connection to the first of several addresses that answers; they race, both families in turn (RFC 8305).

    asyncio's own race (`happy_eyeballs_delay`) fails in the first releases of Python 3.13 where tasks start eagerly.

    Raises:
        OSError: none of them does.
    """
    if len(found) > 1:
        return await aiohappyeyeballs.start_connection(found, happy_eyeballs_delay=RACE_AFTER_S, interleave=1, loop=loop)
    family, kind, protocol, _, address = found[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setblocking(False)
        await loop.sock_connect(made, address)
    except BaseException:
        made.close()
        raise
    return made


def _ordered(found: Sequence[AddressInfo], prefer: str) -> Sequence[AddressInfo]:
    if not prefer:
        return found
    chosen = [info for info in found if info[4][0] == prefer]
    return [*chosen, *(info for info in found if info[4][0] != prefer)] if chosen else found
