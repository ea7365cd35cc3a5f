"""The live log under load: 500 decisions a second, and 50 readers of server-sent events on loopback."""

import asyncio
import json
import statistics
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Final, Protocol

import httpx2
from dashboard_state import append_decisions

from gatewayfilter.store import Store

RATE: Final = 500.0
READERS: Final = 50


class Measured(Protocol):
    """The web process."""

    url: str

    def cpu_s(self) -> float:
        """Returns the CPU that it and its child processes have used."""
        ...

    def rss_mb(self) -> float:
        """Returns its resident memory in MB."""
        ...


def write_decisions(state: Path, seconds: float) -> None:
    """Writes decisions of now into the database of a state folder."""
    with closing(Store.open(f"sqlite:///{state}/gatewayfilter.sqlite3")) as store:
        for _ in append_decisions(store, RATE, seconds):
            pass


def measure_live(state: Path, web: Measured, browser: httpx2.Client, seconds: float) -> None:
    """Prints what the readers cost, and how late decisions reach them."""
    cookies = dict(browser.cookies)
    writer = threading.Thread(target=write_decisions, args=(state, seconds + 5))
    writer.start()
    time.sleep(1.0)
    cpu, begun = web.cpu_s(), time.monotonic()
    lags, counts = asyncio.run(_read_all(web.url, cookies, seconds))
    passed = time.monotonic() - begun
    cpu = web.cpu_s() - cpu
    memory = web.rss_mb()
    writer.join()
    lags.sort()
    each = f"{min(counts) / passed:.0f} to {max(counts) / passed:.0f}"
    print(f"\n{READERS} readers, {RATE:.0f} decisions a second, {passed:.0f} s, each read {each} a second:")
    print(f"{cpu / passed * 100:.0f} % of a CPU, {memory:.0f} MB; lag of a batch: median {statistics.median(lags):.2f} s,")
    print(f"99 % {lags[int(len(lags) * 0.99)]:.2f} s, worst {lags[-1]:.2f} s")


async def _read_all(url: str, cookies: dict[str, str], seconds: float) -> tuple[list[float], list[int]]:
    limits = httpx2.Limits(max_connections=READERS)
    async with httpx2.AsyncClient(base_url=url, cookies=cookies, limits=limits, timeout=60.0) as client:
        found = await asyncio.gather(*(_read(client, seconds) for _ in range(READERS)))
    return [lag for lags, _ in found for lag in lags], [count for _, count in found]


async def _read(client: httpx2.AsyncClient, seconds: float) -> tuple[list[float], int]:
    """Returns the age of the newest decision of each batch when it came, and the number of decisions."""
    lags: list[float] = []
    count = 0
    deadline = time.monotonic() + seconds
    async with client.stream("GET", "/api/v1/events") as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: {") and '"items"' in line[:20]:
                batch = json.loads(line.removeprefix("data: "))
                count += len(batch["items"]) + batch["skipped"]
                if batch["items"]:
                    lags.append(time.time() - batch["items"][-1]["at"])
            if time.monotonic() > deadline:
                return lags, count
    return lags, count
