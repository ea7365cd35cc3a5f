"""Results that come again: dropped while the first one is stored, and stored where that failed."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter.crawl.modules.store_module import StoreModule
from gatewayfilter.errors import StoreError
from gatewayfilter.telemetry import Counters


class Storage:
    """The module over doubles: results are `URL TOKEN`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counters, self.held, self.stored = Counters(), True, list[str]()
        self.failures: list[Exception] = []
        self.gate = asyncio.Event()
        self.gate.set()
        frontier = SimpleNamespace(still_held=lambda leases: bool(leases) and self.held)
        context: Any = SimpleNamespace(counters=self.counters, frontier=frontier)
        self_: Any = self
        nothing: Any = None
        self.module = StoreModule(context, nothing, nothing, nothing, self_, self_)

        async def completion(message: Any) -> str:
            return str(message.lease.url)

        monkeypatch.setattr(self.module, "_completion", completion)

    def read(self, _: object, value: bytes) -> Any:
        url, token = value.decode().split()
        return SimpleNamespace(lease=SimpleNamespace(url=url, token=token))

    async def call(self, work: Callable[[], bool]) -> bool:
        await self.gate.wait()
        return work()

    async def complete(self, completion: str) -> None:
        if self.failures:
            raise self.failures.pop()
        self.stored.append(completion)


async def test_a_result_is_stored_again_where_the_database_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage(monkeypatch)
    storage.failures = [StoreError("locked")]
    with pytest.raises(StoreError):
        await storage.module.handle(b"http://a.example/ one")
    assert await storage.module.handle(b"http://a.example/ one") == []
    assert (storage.stored, storage.counters["results_stale"]) == (["http://a.example/"], 0)


async def test_what_comes_while_it_is_stored_and_what_is_no_longer_leased_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage(monkeypatch)
    storage.gate.clear()
    first = asyncio.create_task(storage.module.handle(b"http://a.example/ one"))
    await asyncio.sleep(0)
    assert await storage.module.handle(b"http://a.example/ one") == []
    assert storage.counters["results_stale"] == 1
    storage.gate.set()
    other = await asyncio.gather(first, storage.module.handle(b"http://a.example/ two"))
    assert [*other] == [[], []]
    assert storage.stored == ["http://a.example/"] * 2
    storage.held = False
    assert await storage.module.handle(b"http://a.example/ three") == []
    assert (len(storage.stored), storage.counters["results_stale"]) == (2, 2)
    assert storage.module.given_up(b"", "no reason") == []
