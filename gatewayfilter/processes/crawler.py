"""A crawler process beside the learner's, and the crawler that both run."""

import asyncio
import logging
import socket
import time

from gatewayfilter.config import Settings
from gatewayfilter.crawl import Backlog, FleetLeases
from gatewayfilter.errors import EXHAUSTED, StoreError
from gatewayfilter.processes.supervision.child_setup import begin_child, ending_with_a_sentence
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters, StatusFile
from gatewayfilter.termination import calls_on_sigterm
from gatewayfilter.wiring import crawl_worker, open_store

_log = logging.getLogger(__name__)

TICK_S = 1.0
FLUSH_EVERY_S = 60.0
"""What is lost of counts in memory, at most, when this process is killed."""


def run_crawler(index: int, settings: Settings) -> None:
    """Runs a crawler until SIGTERM. The entry of its process; exits with 2 when it cannot start.

    Args:
        index: from 1; the learner's own is 0.
        settings: the settings.
    """
    begin_child(settings)
    with ending_with_a_sentence():
        asyncio.run(_run(index, settings))


async def _run(index: int, settings: Settings) -> None:
    stop = asyncio.Event()
    counters = Counters()
    status = StatusFile(settings.data_dir / "run", f"crawler-{index}")
    store = await asyncio.to_thread(open_store, settings, counters=counters)

    async def tell() -> None:
        flush_at = time.monotonic() + FLUSH_EVERY_S
        while not stop.is_set():
            status.write(state="learning", counters=counters.as_dict())
            if time.monotonic() >= flush_at:
                try:
                    await asyncio.to_thread(store.flush)
                except (StoreError, *EXHAUSTED) as error:
                    _log.warning("counts in memory cannot be kept: %s", str(error) or type(error).__name__)
                flush_at = time.monotonic() + FLUSH_EVERY_S
            try:
                await asyncio.wait_for(stop.wait(), TICK_S)
            except TimeoutError:
                continue

    try:
        with calls_on_sigterm(stop.set):
            async with asyncio.TaskGroup() as group:
                group.create_task(tell())
                await run_crawl_worker(settings, store, counters, index, stop)
    finally:
        store.close()
        status.remove()


async def run_crawl_worker(settings: Settings, store: Store, counters: Counters, index: int, stop: asyncio.Event) -> None:
    """Runs one of the crawlers that share the queue until `stop` is set.

    Raises:
        ConfigError: `crawl.upstream_ca` cannot be read.
        StoreError: the database refuses, at the end.
    """
    backlog = f"backlog-{index}" if index else "backlog"
    if not index:
        await asyncio.to_thread(adopt_backlogs, settings)
    shared = bool(settings.queue.url.get_secret_value()) or not settings.store_url.startswith("sqlite")
    alone = settings.crawl.workers == 1 and not shared  # the only crawler: no heartbeats
    name = f"{socket.gethostname()}:{settings.data_dir}:{index}"
    fleet = FleetLeases(store.frontier, None if alone else store.crawlers, name, counters=counters)
    alive = asyncio.create_task(fleet.keep_alive(stop))
    try:
        await crawl_worker(settings, store, counters, backlog=backlog, leases=fleet).run(stop)
    finally:
        alive.cancel()
        await asyncio.gather(alive, return_exceptions=True)
    await asyncio.to_thread(fleet.leave)


def adopt_backlogs(settings: Settings) -> int:
    """Gives the first crawler what waits in journals of crawlers beyond `crawl.workers`. Returns how many pages."""
    folder = settings.data_dir / "archive"
    numbers = {path: path.stem.removeprefix("backlog-") for path in sorted(folder.glob("backlog-*.log"))}
    left = [path for path, number in numbers.items() if number.isdigit() and int(number) >= settings.crawl.workers]
    try:
        return sum(Backlog(folder / "backlog.log").adopt(path) for path in left)
    except OSError as error:
        _log.warning("cannot take over pages that wait to be judged: %s", error)
        return 0
