"""The crawler's modules over Kafka: what each opens, in which order it ends, and what the scheduler does while Kafka is away."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import GatewayFilterError
from gatewayfilter.interfaces import Channel
from gatewayfilter.telemetry import Counters

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytest.importorskip("confluent_kafka")
pytestmark = pytest.mark.services

from gatewayfilter.processes.sharing import crawl_modules  # noqa: E402  needs the library
from gatewayfilter.processes.sharing.crawl_modules import ModuleOptions, Role  # noqa: E402


class Run:
    """What was opened and closed; the module ends itself."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log = list[Any]()
        self.settings = Settings.model_validate({"data_dir": folder, "crawl": {"concurrency": 5}})
        self.topics = SimpleNamespace(brokers="kafka:9092", properties={"a": "b"}, prefix="crawl", make=self.make)
        self.options = ModuleOptions(cast("Any", self.topics), partitions=3, on_the_way=17)
        self.counters = Counters()
        self.steps = list[bool | Exception]()
        self.making = list[Exception]()
        self.pauses = list[float]()
        monkeypatch.setattr(crawl_modules, "open_store", self.open)
        monkeypatch.setattr(crawl_modules, "KafkaSender", self.sender)
        monkeypatch.setattr(crawl_modules, "JobSender", lambda sender, topics: ("sends", sender, topics.prefix))
        monkeypatch.setattr(crawl_modules, "FleetLeases", self.leases)
        monkeypatch.setattr(crawl_modules, "ModuleRunner", self.runner)
        parts = {name: self.module(name) for name in ("fetch_module", "parse_module", "store_module")}
        monkeypatch.setattr(crawl_modules, "crawl_modules", SimpleNamespace(scheduler=self.scheduler, **parts))

    def open(self, _settings: Settings, counters: Counters) -> Any:
        assert counters is self.counters
        self.log.append("open")
        return SimpleNamespace(
            frontier="frontier",
            crawlers="crawlers",
            flush=lambda: self.log.append("flush"),
            close=lambda: self.log.append("close"),
        )

    def sender(self, brokers: str, properties: dict[str, str]) -> Any:
        self.log.append((brokers, properties))
        return SimpleNamespace(close=lambda: self.log.append("close the sender"))

    def leases(self, *found: object, counters: Counters) -> Any:
        assert counters is self.counters
        self.log.append(found)

        async def keep_alive(stop: asyncio.Event) -> None:
            try:
                await asyncio.sleep(3_600)
            finally:
                self.log.append("no more heartbeats")

        return SimpleNamespace(keep_alive=keep_alive, leave=lambda: self.log.append("leave"))

    def scheduler(self, _settings: Settings, *found: Any, on_the_way: int) -> Any:
        self.log.append((found[3][0], found[3][2], on_the_way))
        return SimpleNamespace(step=self.step)

    def make(self, partitions: int) -> None:
        if self.making:
            raise self.making.pop(0)
        self.log.append(("make", partitions))

    def step(self) -> bool:
        found = self.steps.pop(0)
        if not self.steps:
            self.stop.set()
        if isinstance(found, Exception):
            raise found
        return found

    def module(self, name: str) -> Any:
        @asynccontextmanager
        async def opened(*_: object) -> AsyncIterator[str]:
            self.log.append(name)
            yield name
            self.log.append(f"{name} ends")

        return opened

    def runner(self, options: Any, module: str, counters: Counters) -> Any:
        assert counters is self.counters
        self.log.append((options.channel, options.group, options.window, module))

        async def run(stop: object) -> None:
            await asyncio.sleep(0)
            self.log.append(("runs until", stop))

        return SimpleNamespace(run=run)

    async def schedule(self) -> None:
        self.stop = asyncio.Event()
        await crawl_modules._schedule(self.settings, self.options, self.counters, self.stop)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(tmp_path, monkeypatch)


def test_the_scheduler_opens_all_and_closes_it_in_turn(run: Run) -> None:
    run.steps = [True, True, False]
    asyncio.run(run.schedule())
    assert run.log == [
        "open", ("kafka:9092", {"a": "b"}), ("frontier", "crawlers", "kafka:crawl"), ("sends", "crawl", 17), ("make", 3),
        "no more heartbeats", "leave", "close the sender", "close",
    ]  # fmt: skip
    assert run.counters.as_dict() == {}


def test_the_scheduler_goes_on_when_kafka_is_back(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def wait_for(work: Any, pause_s: float) -> None:
        run.pauses.append(pause_s)
        await asyncio.sleep(0)
        work.close()

    monkeypatch.setattr(crawl_modules, "asyncio", SimpleNamespace(**{**vars(asyncio), "wait_for": wait_for}))
    run.making = [GatewayFilterError("no topics"), GatewayFilterError("still none")]
    run.steps = [True, GatewayFilterError("away"), False, True]
    asyncio.run(run.schedule())
    assert run.pauses == [crawl_modules.PAUSE_S] * 2 + [0.001, crawl_modules.PAUSE_S, crawl_modules.IDLE_S, 0.001]
    assert run.counters.as_dict() == {"crawl_kafka_away": 2}
    assert [record.getMessage() for record in caplog.records] == [
        f"no pages are sent to fetchers ({reason}); they wait in the queue, and it is tried again"
        for reason in ("no topics", "away")
    ]
    assert run.log.count(("make", 3)) == 1


@pytest.mark.parametrize(("role", "channel", "window"), [
    (Role.FETCH, Channel.JOBS, 5), (Role.PARSE, Channel.PAGES, 8), (Role.STORE, Channel.RESULTS, crawl_modules.STORE_WINDOW),
])  # fmt: skip
def test_the_other_modules_take_from_their_channel(run: Run, role: Role, channel: Channel, window: int) -> None:
    asyncio.run(crawl_modules._serve(role, run.settings, run.options, run.counters, cast("Any", "stop")))
    name = f"{role}_module"
    served = [name, (channel, f"crawl.{role}", window, name), ("runs until", "stop"), f"{name} ends"]
    assert run.log == (["open", *served, "close"] if role is Role.STORE else served)


def test_counts_in_memory_are_written_while_the_storage_runs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawl_modules, "TICK_S", 0.0001)
    fails = [True, False]

    async def flushing() -> None:
        done = asyncio.Event()
        loop = asyncio.get_running_loop()

        def flush() -> None:
            if fails.pop(0):
                raise GatewayFilterError("locked")
            loop.call_soon_threadsafe(done.set)

        task = asyncio.create_task(crawl_modules._flush(flush))
        async with asyncio.timeout(10):
            await done.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(flushing())
    assert fails == []


def test_the_storage_ends_with_its_last_page_and_leaves_no_task(run: Run) -> None:
    async def storing() -> int:
        async with crawl_modules._opened(Role.STORE, run.settings, run.counters):
            assert len(asyncio.all_tasks()) == 2
        return len(asyncio.all_tasks())

    assert asyncio.run(storing()) == 1


def test_a_module_runs_until_a_signal_and_tells_of_itself(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = tmp_path / "run" / f"crawl-fetch-{os.getpid()}.json"
    ran = list[object]()

    async def serve(role: Role, *found: Any) -> None:
        ran.append(role)
        await asyncio.sleep(0)
        facts = json.loads(status.read_text())
        assert (facts["state"], facts["counters"]) == ("crawling", {})
        os.kill(os.getpid(), signal.SIGINT if len(ran) == 1 else signal.SIGTERM)
        await asyncio.wait_for(found[-1].wait(), 10)

    async def schedule(*_: object) -> None:
        ran.append("schedule")

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(crawl_modules, "_serve", serve)
    monkeypatch.setattr(crawl_modules, "_schedule", schedule)
    monkeypatch.setattr(crawl_modules, "set_up_logging", lambda *asked: ran.append(asked))
    try:
        for role in (Role.FETCH, Role.FETCH, Role.SCHEDULE):
            asyncio.run(crawl_modules._run(role, run.settings, run.options))
            assert not status.exists()
        monkeypatch.setattr(crawl_modules, "_run", serve_none := SimpleNamespace(calls=0))
        monkeypatch.setattr(
            "gatewayfilter.processes.sharing.crawl_modules.asyncio.run", lambda _: setattr(serve_none, "calls", 1)
        )
        monkeypatch.setattr(crawl_modules, "_run", lambda *_: None)
        crawl_modules.run_module(Role.FETCH, run.settings, run.options)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ran == [Role.FETCH, Role.FETCH, "schedule", (run.settings.log.level, run.settings.log.format)]
    assert serve_none.calls == 1
