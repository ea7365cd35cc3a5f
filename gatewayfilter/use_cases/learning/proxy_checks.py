"""The check of the crawler's outbound proxies, by `gatewayfilter queue proxies`."""

import asyncio
from dataclasses import replace

from gatewayfilter.config import Settings
from gatewayfilter.crawl.net.outbound_proxies import collect_proxies
from gatewayfilter.crawl.net.proxy_check import ProxyChecker, without_password
from gatewayfilter.crawl.net.proxy_pool import PooledProxy, ProxyPool


def check_proxies(settings: Settings) -> list[PooledProxy]:
    """Collects the crawler's outbound proxies and checks each now. Returns them, the best first, without passwords.

    Without a page to check with (`crawl.proxy_check_url`) they are only collected.

    Raises:
        ConfigError: an address in `crawl.proxies` is none.
    """

    async def check() -> list[PooledProxy]:
        pool = ProxyPool(settings.crawl.proxies, anonymous_only=settings.crawl.proxies_anonymous)
        await collect_proxies(pool, settings.crawl.proxies_from)
        if settings.crawl.proxy_check_url:
            await ProxyChecker(pool, settings.crawl.proxy_check_url).check_due()
        return pool.proxies()

    return [replace(proxy, address=without_password(proxy.address)) for proxy in asyncio.run(check())]
