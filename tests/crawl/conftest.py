from collections.abc import AsyncIterator

import pytest

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.fetcher import Fetcher
from gatewayfilter.crawl.politeness import Politeness
from tests.crawl.crawl_origin import Origin, loopback_settings, serving


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    async with serving() as site:
        yield site


@pytest.fixture
def settings() -> CrawlSettings:
    return loopback_settings()


@pytest.fixture
async def fetcher(settings: CrawlSettings) -> AsyncIterator[Fetcher]:
    async with Fetcher(settings, Politeness(settings)) as opened:
        yield opened
