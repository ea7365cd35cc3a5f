"""Outbound proxies of the crawler: collected, checked now and then; requests go through the best.

Source: [cloud-crawler, middleware] collector, checker and ring of outbound proxies.

The address guard stays in force: a name is resolved and judged here, and the proxy gets the judged address, never the name.
So neither a proxy inside the network nor a name that changes its answer leads inside. The proxies' own addresses are set by
the operator.
"""

import asyncio
import ipaddress
import logging
import ssl
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Self

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.net.address_guard import AddressGuard
from gatewayfilter.crawl.net.byte_limit import MeteredConnector
from gatewayfilter.crawl.net.fetch_errors import UnreachableError
from gatewayfilter.crawl.net.proxy_check import ProxyChecker
from gatewayfilter.crawl.net.proxy_pool import ProxyPool, read_proxies
from gatewayfilter.errors import ForbiddenAddressError
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import Url

_log = logging.getLogger(__name__)

COLLECT_S = 600.0
"""How often lists of proxies are read again."""
CHECK_S = 30.0
"""Between two searches for proxies that are due for a check."""
MAX_HEADER_LINE = 32_768
"""Content security policies of 10 KB and more are seen in the wild; aiohttp's own bound on the number of lines adds to it."""
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_MOST_LIST_BYTES = 1_000_000
_COLLECT_TIMEOUT_S = 20.0


class OutboundProxies:
    """Sends requests through outbound proxies. An asynchronous context manager; use it from one event loop.

    Counts `proxies_failed`.

    Args:
        settings: which proxies.
        guard: which addresses may be connected to.
        resolver: resolves names; the caller closes it.
        tls: for origins.
        headers: of each request.
        counters: where failures are counted.

    Raises:
        ConfigError: an address in `crawl.proxies` is none.
    """

    def __init__(
        self,
        settings: CrawlSettings,
        guard: AddressGuard,
        resolver: AbstractResolver,
        tls: ssl.SSLContext,
        headers: Mapping[str, str],
        counters: Counters,
    ) -> None:
        self._settings = settings
        self._guard = guard
        self._resolver = resolver
        self._tls = tls
        self._headers = headers
        self._counters = counters
        self.pool = ProxyPool(settings.proxies, anonymous_only=settings.proxies_anonymous)
        self._checker = ProxyChecker(self.pool, settings.proxy_check_url) if settings.proxy_check_url else None
        self._ready = asyncio.Event()
        self._upkeep: asyncio.Task[None] | None = None
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            # Without kept connections: those through a proxy are known by the address, which several names may share.
            connector=MeteredConnector(limit=0, ssl=self._tls, force_close=True),
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            max_line_size=MAX_HEADER_LINE,
            max_field_size=MAX_HEADER_LINE,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            headers=self._headers,
        )
        self._upkeep = asyncio.create_task(self._keep_up())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._upkeep is not None:
            self._upkeep.cancel()
            await asyncio.gather(self._upkeep, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def get(self, url: Url, headers: Mapping[str, str] = NO_HEADERS) -> aiohttp.ClientResponse:
        """Requests a URL through the next proxy.

        Args:
            url: the URL to request.
            headers: beside those of each request.

        Raises:
            ForbiddenAddressError: the host has an address that must not be connected to.
            UnreachableError: no proxy is usable, or this one did not do its work.
            aiohttp.ClientError: the origin's fault.
        """
        assert self._session is not None, "the proxies are not open"
        await self._ready.wait()
        address = await self._judged(url)
        proxy = self.pool.choose(url.host)
        if not proxy:
            raise UnreachableError("no outbound proxy is usable")
        target = URL(url.text, encoded=True)
        started = time.monotonic()
        try:
            response = await self._session.get(
                target.with_host(address),
                proxy=proxy,
                headers={"Host": url.netloc, **headers},
                server_hostname=url.host if url.text.startswith("https:") else None,
                allow_redirects=False,
            )
        except (aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError, aiohttp.ServerDisconnectedError) as error:
            self._failed(proxy)
            raise UnreachableError("the outbound proxy did not get through") from error
        except asyncio.CancelledError:  # its time was up: the proxy's fault or the origin's, it counts a little
            self._failed(proxy)
            raise
        if response.status == 407:
            response.close()
            self._failed(proxy)
            raise UnreachableError("the outbound proxy requires other credentials")
        self.pool.succeeded(proxy, (time.monotonic() - started) * 1000)
        return response

    async def check(self) -> int:
        """Checks the proxies that are due. Returns how many answered; without a check page none is checked."""
        return await self._checker.check_due() if self._checker is not None else 0

    async def _keep_up(self) -> None:
        collect_at = 0.0
        while True:
            try:
                if time.monotonic() >= collect_at:
                    collect_at = time.monotonic() + COLLECT_S
                    await collect_proxies(self.pool, self._settings.proxies_from)
                await self.check()
            except Exception:  # noqa: BLE001  the outermost boundary: the proxies known so far are used on
                _log.exception("the maintenance of outbound proxies failed")
            self._ready.set()
            await asyncio.sleep(CHECK_S)

    async def _judged(self, url: Url) -> str:
        """Returns an address of the host that may be connected to; all that it has must be such."""
        target = URL(url.text, encoded=True)
        port = target.port or 80
        try:
            addresses = [str(ipaddress.ip_address(url.host.strip("[]")))]
        except ValueError:
            try:
                addresses = [found["host"] for found in await self._resolver.resolve(url.host, port)]
            except OSError as error:
                raise UnreachableError("the host name cannot be resolved") from error
        for address in addresses:
            if refusal := self._guard.refusal(address, port):
                raise ForbiddenAddressError(refusal)
        if not addresses:
            raise UnreachableError("the host name cannot be resolved")
        return addresses[0]

    def _failed(self, proxy: str) -> None:
        self._counters.add("proxies_failed")
        self.pool.failed(proxy)


async def collect_proxies(pool: ProxyPool, sources: Sequence[str]) -> int:
    """Adds the proxies in files and at addresses to a pool. Returns how many were new; what cannot be read is logged."""
    found = 0
    for source in sources:
        try:
            text = await (_download(source) if "://" in source else asyncio.to_thread(_read, Path(source)))
        except (OSError, aiohttp.ClientError, TimeoutError, ValueError) as error:
            _log.warning("cannot read the list of proxies %s: %s", source, type(error).__name__)
            continue
        addresses, bad = read_proxies(text)
        if bad:
            _log.warning("%s: %d lines are no proxies, the first is line %d", source, len(bad), bad[0])
        found += pool.add(addresses)
    return found


def _read(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(_MOST_LIST_BYTES)


async def _download(address: str) -> str:
    timeout = aiohttp.ClientTimeout(total=_COLLECT_TIMEOUT_S)
    async with (
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), timeout=timeout) as session,
        session.get(address) as response,
    ):
        response.raise_for_status()
        return (await response.content.read(_MOST_LIST_BYTES)).decode(errors="replace")
