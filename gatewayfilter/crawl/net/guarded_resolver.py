"""The crawler's resolver: threads of its own, so that names which take long to fail delay nothing else."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

from aiohttp.abc import AbstractResolver, ResolveResult

THREADS = 16


class PooledResolver(AbstractResolver):
    """The system's resolver. Its answers are not trusted: the guard checks each address again."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "crawl-dns")

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:
        """Returns the addresses of a name.

        Raises:
            OSError: it has none.
        """
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, socket.getaddrinfo, host, port, family, socket.SOCK_STREAM)
        return [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=int(address[1]),
                family=found_family,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for found_family, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        """Ends the threads; lookups under way are not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)
