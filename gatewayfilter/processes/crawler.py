"""A further crawler process: looks at the pages of its own sites, beside the learner's crawler."""

import asyncio
import signal

from gatewayfilter.config import Settings
from gatewayfilter.processes.supervision.child_setup import begin_child, ending_with_a_sentence
from gatewayfilter.telemetry import Counters, StatusFile
from gatewayfilter.wiring import open_store, run_crawl_worker

TICK_S = 1.0


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
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    counters = Counters()
    status = StatusFile(settings.data_dir / "run", f"crawler-{index}")
    store = await asyncio.to_thread(open_store, settings)

    async def tell() -> None:
        while not stop.is_set():
            status.write(state="learning", counters=counters.as_dict())
            try:
                await asyncio.wait_for(stop.wait(), TICK_S)
            except TimeoutError:
                continue

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(tell())
            await run_crawl_worker(settings, store, counters, index, stop)
    finally:
        store.close()
        status.remove()
