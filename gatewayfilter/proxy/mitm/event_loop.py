"""How a worker's event loop connects to origins: cached names, both address families at once, bounded times.

mitmproxy connects by the running loop's `create_connection`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from gatewayfilter.proxy.mitm.upstream import set_on
from gatewayfilter.proxy.tunnel.dialer import CONNECT_S
from gatewayfilter.proxy.tunnel.happy_eyeballs import connect_to_any
from gatewayfilter.proxy.tunnel.resolver import AddressInfo, Resolver, addresses_of


def use_resolver(loop: asyncio.AbstractEventLoop, resolver: Resolver) -> None:
    """Replaces the name resolution of an event loop."""
    set_on(loop, "getaddrinfo", resolver.getaddrinfo)


type TakeIdle = Callable[[Sequence[AddressInfo]], Awaitable[asyncio.Transport | None]]


async def _take_none(_: Sequence[AddressInfo]) -> None:
    return None


def limit_connecting(
    loop: asyncio.AbstractEventLoop,
    admitted: Callable[[str, Sequence[AddressInfo]], Sequence[AddressInfo]],
    led_to: Callable[[str], str] = str,
    idle: TakeIdle = _take_none,
) -> None:
    """Lets both address families race on a loop, bounds the time of each attempt, turns impossible names into an `OSError`.

    Args:
        loop: on which mitmproxy connects to origins.
        admitted: returns the addresses of a host that may be connected to; raises an `OSError` when none may.
        led_to: returns the host whose addresses are connected to for a host.
        idle: returns an open connection to one of the addresses that is used instead of a new one (shared_origins.py).
    """
    set_on(loop, "create_connection", _Connector(loop, admitted, led_to, idle).create_connection)


class _Connector:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        admitted: Callable[[str, Sequence[AddressInfo]], Sequence[AddressInfo]],
        led_to: Callable[[str], str],
        idle: TakeIdle,
    ) -> None:
        self._loop = loop
        self._connect: Any = loop.create_connection
        self._admitted = admitted
        self._led_to = led_to
        self._idle = idle

    async def create_connection(self, factory: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
        """Stands in for the loop's `create_connection`.

        Raises:
            OSError: there is no connection.
        """
        try:
            async with asyncio.timeout(CONNECT_S):
                if host is None:
                    return await self._connect(factory, host, port, **options)
                if any(options.values()):  # mitmproxy passes nothing but host and port
                    raise OSError(f"connections to origins are made without {', '.join(options)}")
                found = self._admitted(host, await addresses_of(self._loop, self._led_to(host), port))
                if (transport := await self._idle(found)) is not None:
                    protocol = factory()
                    transport.set_protocol(protocol)
                    protocol.connection_made(transport)
                    return transport, protocol
                return await self._connect(factory, sock=await connect_to_any(self._loop, found))
        except TimeoutError as error:
            raise TimeoutError(str(error) or f"timed out after {CONNECT_S:.0f} seconds") from error
        except UnicodeError as error:  # mitmproxy expects no other errors than the system's: the request would hang
            raise OSError(f"not a name: {error}") from error
