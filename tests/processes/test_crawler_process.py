"""A crawler's process: what it tells, when it writes its counts, its part of the queue, and whose pages it takes over."""

import asyncio
import itertools
import json
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gatewayfilter.config import Settings
from gatewayfilter.errors import StoreError
from gatewayfilter.processes import crawler
from gatewayfilter.processes.crawler import adopt_backlogs, run_crawl_worker
from gatewayfilter.telemetry import Counters


class Leases:
    """Stands in for this crawler's part of the queue."""

    made: list["Leases"]

    def __init__(self, frontier: object, crawlers: object, name: str, *, counters: Counters) -> None:
        self.facts = frontier, crawlers, name
        self.log = list[str]()
        self.made.append(self)

    async def keep_alive(self, _: asyncio.Event) -> None:
        try:
            await asyncio.sleep(3_600)
        finally:
            self.log.append("no more heartbeats")

    def leave(self) -> None:
        self.log.append("leave")


@pytest.fixture
def leases(monkeypatch: pytest.MonkeyPatch) -> list[Leases]:
    monkeypatch.setattr(Leases, "made", [], raising=False)
    monkeypatch.setattr(crawler, "FleetLeases", Leases)
    monkeypatch.setattr("gatewayfilter.processes.crawler.socket.gethostname", lambda: "filter")
    return Leases.made


STORE: Any = SimpleNamespace(frontier="frontier", crawlers="crawlers")


@pytest.mark.parametrize(
    ("index", "chosen", "crawlers", "backlog"),
    [
        (0, {}, None, "backlog"),
        (0, {"crawl": {"workers": 2}}, "crawlers", "backlog"),
        (1, {"crawl": {"workers": 2}}, "crawlers", "backlog-1"),
        (0, {"queue": {"url": "redis://127.0.0.1:6379"}}, "crawlers", "backlog"),
        (0, {"store": {"url": "postgresql://filter@127.0.0.1/filter"}}, "crawlers", "backlog"),
    ],
)
def test_it_has_heartbeats_where_others_crawl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leases: list[Leases], index: int, chosen: dict[str, Any],
    crawlers: str | None, backlog: str,
) -> None:  # fmt: skip
    settings = Settings.model_validate({"data_dir": tmp_path, **chosen})
    stop, ran, adopted = asyncio.Event(), list[object](), list[object]()

    def worker(*_: object, backlog: str, leases: object) -> Any:
        ran.append((backlog, leases))

        async def run(given: asyncio.Event) -> None:
            await asyncio.sleep(0)
            ran.append(given)

        return SimpleNamespace(run=run)

    monkeypatch.setattr(crawler, "crawl_worker", worker)
    monkeypatch.setattr(crawler, "adopt_backlogs", adopted.append)
    asyncio.run(run_crawl_worker(settings, STORE, Counters(), index, stop))
    (lease,) = leases
    assert lease.facts == ("frontier", crawlers, f"filter:{tmp_path}:{index}")
    assert lease.log == ["no more heartbeats", "leave"]
    assert ran == [(backlog, lease), stop]
    assert adopted == ([] if index else [settings]), "the first one alone takes over what others left"


def test_its_leases_are_kept_where_it_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leases: list[Leases]) -> None:
    async def fail(_: asyncio.Event) -> None:
        await asyncio.sleep(0)
        raise StoreError("refused")

    monkeypatch.setattr(crawler, "crawl_worker", lambda *_, **__: SimpleNamespace(run=fail))
    with pytest.raises(StoreError):
        asyncio.run(run_crawl_worker(Settings(data_dir=tmp_path), STORE, Counters(), 1, asyncio.Event()))
    assert leases[0].log == ["no more heartbeats"]


def test_what_waits_in_journals_of_crawlers_that_are_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    archive = tmp_path / "archive"
    archive.mkdir()
    for name in ("backlog.log", "backlog-1.log", "backlog-2.log", "backlog-3.log", "backlog-old.log", "other-9.log"):
        (archive / name).touch()
    adopted = list[str]()

    class Backlog:
        fails = False

        def __init__(self, path: Path) -> None:
            assert path == archive / "backlog.log"

        def adopt(self, path: Path) -> int:
            if self.fails:
                raise OSError(5, "Input/output error")
            adopted.append(path.name)
            return 4

    monkeypatch.setattr(crawler, "Backlog", Backlog)
    settings = Settings.model_validate({"data_dir": tmp_path, "crawl": {"workers": 2}})
    assert adopt_backlogs(settings) == 8
    assert adopted == ["backlog-2.log", "backlog-3.log"]
    monkeypatch.setattr(Backlog, "fails", True)
    assert adopt_backlogs(settings) == 0
    assert "Input/output error" in caplog.text
    assert adopt_backlogs(Settings(data_dir=tmp_path / "none")) == 0


@pytest.mark.timeout(30)
def test_it_tells_of_itself_and_writes_its_counts_every_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(data_dir=tmp_path)
    now, log = [1_000.0], list[str]()
    fails: list[Exception] = [MemoryError(), StoreError("locked")]
    status = tmp_path / "run" / "crawler-2.json"

    def flush() -> None:
        log.append(f"flush at {now[0]:.0f}")
        if fails:
            raise fails.pop()

    async def work(*found: Any) -> None:
        assert found[:2] == (settings, store)
        assert found[3] == 2
        while len(log) < 3:
            await asyncio.sleep(0)
            now[0] += 1.0
        await asyncio.sleep(0)
        facts = json.loads(status.read_text())
        assert (facts["state"], facts["counters"]) == ("learning", {})
        signal.raise_signal(signal.SIGTERM)
        await asyncio.wait_for(found[4].wait(), 10)

    store = SimpleNamespace(flush=flush, close=lambda: log.append("close"))
    monkeypatch.setattr(crawler, "open_store", lambda *_, **__: store)
    monkeypatch.setattr(crawler, "run_crawl_worker", work)
    monkeypatch.setattr(crawler, "time", SimpleNamespace(monotonic=lambda: now[0], time=time.time))
    monkeypatch.setattr(crawler, "TICK_S", 0.0005)
    before = signal.getsignal(signal.SIGTERM)
    try:
        asyncio.run(crawler._run(2, settings))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert log[-1] == "close"
    times = [int(entry.rpartition(" ")[2]) for entry in log[:-1]]
    assert times[0] >= 1_000 + crawler.FLUSH_EVERY_S
    assert all(later - earlier >= crawler.FLUSH_EVERY_S for earlier, later in itertools.pairwise(times))
    assert [record.getMessage() for record in caplog.records if "counts" in record.getMessage()] == [
        "counts in memory cannot be kept: locked", "counts in memory cannot be kept: MemoryError",
    ]  # fmt: skip
    assert not status.exists()


def test_an_error_of_its_own_ends_it_with_a_sentence(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    async def fail(*_: object) -> None:
        raise StoreError("no database")

    begun = list[object]()
    monkeypatch.setattr(crawler, "begin_child", begun.append)
    monkeypatch.setattr(crawler, "_run", fail)
    settings = cast("Settings", object())
    with pytest.raises(SystemExit) as ended:
        crawler.run_crawler(1, settings)
    assert (ended.value.code, begun) == (2, [settings])
    assert "no database" in caplog.text
