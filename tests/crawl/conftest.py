from collections.abc import AsyncIterator

import pytest
from aiohttp.client_proto import ResponseHandler

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl.fetch.fetcher import Fetcher
from gatewayfilter.crawl.fetch.politeness import Politeness
from tests.crawl.crawl_origin import Origin, loopback_settings, serving
from tests.crawl.crawl_proxy import Proxy, proxying
from tests.crawl.floods import Wire


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


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with proxying() as made:
        yield made


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    counted = Wire()
    take = ResponseHandler.data_received

    def data_received(self: ResponseHandler, data: bytes) -> None:
        counted.read += len(data)
        take(self, data)

    monkeypatch.setattr(ResponseHandler, "data_received", data_received)
    return counted
