"""The fast path of HTTP/2 and the layers of h2 and mitmproxy, side by side."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.config import CrawlSettings, ProxySettings, Settings
from gatewayfilter.proxy.master import LeanMaster
from gatewayfilter.proxy.mitm.fastpath import tls_path
from gatewayfilter.proxy.mitm.fastpath.http2 import exchange
from gatewayfilter.proxy.mitm.fastpath.http2.exchange import Taken
from tests.proxy.layer_drivers import Watcher
from tests.proxy.mitm.fastpath.http2.frame_script import BothWays, Http2Driver, Script, walk
from tests.proxy.mitm.fastpath.test_fastpath_fuzz import DEEDS
from tests.proxy.proxy_fakes import Gateway


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(scope="module")
def masters(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> list[LeanMaster]:
    """One with and one without the fast path."""

    async def make(folder: Path, *, fast_path: bool) -> LeanMaster:
        chosen = ProxySettings.model_validate({"listen": "127.0.0.1:0", "fast_path": fast_path})
        whole = Settings(data_dir=folder, proxy=chosen, crawl=CrawlSettings())
        return LeanMaster(whole, Gateway().addon(chosen, whole))

    folder = tmp_path_factory.mktemp("http2")
    return [runner.run(make(folder, fast_path=fast_path)) for fast_path in (True, False)]


@pytest.fixture
def both_ways(
    masters: list[LeanMaster], runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> BothWays:
    """Returns what runs a script both ways, compares, and returns what was seen last and how much was left to h2."""
    caplog.set_level(logging.CRITICAL)
    counted = {"short": 0}

    def counting(take: Callable[..., Taken | None]) -> Callable[..., Taken | None]:
        def count(*arguments: Any) -> Taken | None:
            found = take(*arguments)
            counted["short"] += found is not None and found.slow is None and not found.rest
            return found

        return count

    monkeypatch.setattr(tls_path, "take_from_client", counting(exchange.take_from_client))
    monkeypatch.setattr(tls_path, "take_from_origin", counting(exchange.take_from_origin))

    async def seen(master: LeanMaster, steps: list[tuple[Any, ...]]) -> list[Any]:
        watcher = Watcher(DEEDS)
        master.addons.add(watcher)
        try:
            return walk(Http2Driver(master), watcher, steps)
        finally:
            master.addons.remove(watcher)

    def run(script: Script) -> tuple[list[Any], int]:
        counted["short"] = 0
        ours, theirs = [runner.run(seen(master, script.steps)) for master in masters]
        for place, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            assert mine == other, f"after step {place}"
        return ours[-1], counted["short"]

    return run
