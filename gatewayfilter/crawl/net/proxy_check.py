"""The check of outbound proxies: whether they answer, how fast, and whether they reveal their client."""

import asyncio
import logging
import time

import aiohttp

from gatewayfilter.crawl.net.proxy_pool import ProxyPool

_log = logging.getLogger(__name__)

CHECK_TIMEOUT_S = 10.0
CHECKS_AT_ONCE = 16
_MOST_READ = 64_000
_TELLING = ("x-forwarded-for", "forwarded", "x-real-ip", "client-ip", "via")


class ProxyChecker:
    """Requests a known page through each proxy that is due.

    Args:
        pool: the proxies to check.
        check_url: a page that answers 2xx; one that repeats the request's headers in its body shows whether a proxy is
            anonymous, any other one cannot tell.
        timeout_s: longest wait for an answer.
    """

    def __init__(self, pool: ProxyPool, check_url: str, timeout_s: float = CHECK_TIMEOUT_S) -> None:
        self._pool = pool
        self._check_url = check_url
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._turns = asyncio.Semaphore(CHECKS_AT_ONCE)

    async def check_due(self) -> int:
        """Checks the proxies that are due. Returns how many answered."""
        due = self._pool.due()
        if not due:
            return 0
        # A session of its own: with a pooled connection the time to connect could not be measured.
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), timeout=self._timeout) as session:
            results = await asyncio.gather(*(self._check(session, address) for address in due))
        return sum(results)

    async def _check(self, session: aiohttp.ClientSession, address: str) -> bool:
        async with self._turns:
            started = time.monotonic()
            try:
                async with session.get(self._check_url, proxy=address, allow_redirects=False) as response:
                    body = await response.content.read(_MOST_READ)
                    good = 200 <= response.status < 300
            except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
                _log.info("the outbound proxy %s failed its check: %s", without_password(address), type(error).__name__)
                good = False
            if not good:
                self._pool.failed(address)
                return False
            elapsed_ms = (time.monotonic() - started) * 1000
            self._pool.succeeded(address, elapsed_ms, anonymous=is_anonymous(body))
            return True


def is_anonymous(body: bytes) -> bool | None:
    """Returns whether a proxy hides its client, by a page that repeats the headers of its request.

    `None` when the page repeats nothing and cannot tell.
    """
    text = body.lower()
    if b"user-agent" not in text:
        return None
    return not any(name.encode() in text for name in _TELLING)


def without_password(address: str) -> str:
    """Returns the address of a proxy as it may be shown."""
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
