"""The crawler's modules over a real Kafka with 1, 2 and 4 fetchers.

Needs `make services`. An origin on loopback answers after a delay, as the internet does, so that a fetcher is bounded by its
places and not by the cores of this machine. One scheduler, one parser and one storage. Figures are from the first tenth of the
pages that are stored to the last; CPU is that of each module over the same time. The broker's is left out; it shares the machine.

    python scripts/bench/bench_crawl_modules.py [--pages 400] [--delay 0.4] [--places 8] [--fetchers 1 2 4]
"""

import argparse
import asyncio
import multiprocessing
import os
import subprocess
import sys
import time
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))

import psutil
from bench_crawl import bodies

from gatewayfilter.config import Settings
from gatewayfilter.interfaces import CrawlRequest
from gatewayfilter.wiring import open_store
from tests.scaleout.stream.kafka_broker import KafkaBroker, services_folder

SITES = 48
LIMIT_S = 120.0
COMMAND = [sys.executable, "-m", "gatewayfilter.cli"]


def serve(ready: Connection, delay_s: float) -> None:
    """Serves pages on `SITES` loopback addresses, each after a delay. Runs until it is ended."""
    answers = [
        f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nContent-Type: text/html\r\n\r\n".encode() + body for body in bodies()
    ]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1][1:]
                await asyncio.sleep(delay_s)
                writer.write(answers[int(path) % len(answers)])
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            writer.close()

    async def run() -> None:
        first = await asyncio.start_server(answer, "127.0.0.2", 0)
        port = first.sockets[0].getsockname()[1]
        for number in range(3, 2 + SITES):
            await asyncio.start_server(answer, f"127.0.0.{number}", port)
        ready.send(port)
        await first.serve_forever()

    asyncio.run(run())


def crawl(folder: Path, port: int, commands: list[list[str]], pages: int, places: int) -> dict[str, float]:
    """Crawls, and returns pages a second and the CPU milliseconds a page of each command's first two words."""
    settings = {"ALLOW_NETWORKS": "127.0.0.0/8", "ROBOTS": "never", "PER_HOST_DELAY_S": "0", "PER_HOST_DELAY_MAX_S": "0"}
    settings |= {"CONCURRENCY": str(places), "PER_HOST_CONCURRENCY": "100", "FOLLOW_LINKS": "0", "ARCHIVE_MB": "0"}
    environment = {**os.environ, **{f"GATEWAYFILTER_CRAWL__{name}": value for name, value in settings.items()}}
    environment |= {"GATEWAYFILTER_DATA_DIR": str(folder), "GATEWAYFILTER_LOG__LEVEL": "warning"}
    running: list[tuple[str, psutil.Popen]] = []
    with closing(open_store(Settings(data_dir=folder))) as store, (folder / "log").open("ab") as log:
        for command in commands:
            process = psutil.Popen([*COMMAND, *command], stdout=log, stderr=subprocess.STDOUT, env=environment)
            running.append((" ".join(command[:2]), process))
        try:
            time.sleep(12)  # groups have formed
            urls = [f"http://127.0.0.{2 + number % SITES}:{port}/{number}" for number in range(pages)]
            store.frontier.add([CrawlRequest(url, 100) for url in urls], time.time())
            done = began = 0
            at = cpu_at = None
            limit = time.monotonic() + LIMIT_S
            while done < pages and time.monotonic() < limit:
                time.sleep(0.1)
                done = store.frontier.stats(0.0)["done"]
                if at is None and done >= pages // 10:
                    at, began, cpu_at = time.monotonic(), done, [_cpu(process) for _, process in running]
            if at is None or cpu_at is None or done < pages:
                raise SystemExit(f"{done} of {pages} pages: {(folder / 'log').read_text()[-2000:]}")
            spent_s = time.monotonic() - at
            found = {"pages/s": (done - began) / spent_s}
            for (name, process), before in zip(running, cpu_at, strict=True):
                found[name] = found.get(name, 0.0) + (_cpu(process) - before) / (done - began) * 1000
        finally:
            for _, process in running:
                process.terminate()
            psutil.wait_procs([process for _, process in running], 30)
    return found


def _cpu(process: psutil.Popen) -> float:
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def main() -> None:
    """Measures and prints a row for each number of fetchers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, default=400)
    parser.add_argument("--delay", type=float, default=0.4)
    parser.add_argument("--places", type=int, default=8)
    parser.add_argument("--fetchers", type=int, nargs="*", default=[1, 2, 4])
    options = parser.parse_args()
    services_folder()
    receiver, sender = multiprocessing.Pipe(duplex=False)
    origin = multiprocessing.Process(target=serve, args=(sender, options.delay), daemon=True)
    origin.start()
    port = receiver.recv()
    roles = ("schedule", "fetch", "parse", "store")
    print(f"load average {os.getloadavg()[0]:.1f}; {options.places} places a fetcher, answers after {options.delay:g} s\n")
    print("| fetchers | pages/s | CPU ms a page: " + " | ".join(roles) + " |\n|---|---|" + "---|" * len(roles))
    with TemporaryDirectory() as folder:
        (kafka := Path(folder) / "kafka").mkdir()
        broker = KafkaBroker(kafka)
        broker.start()
        for count in options.fetchers:
            (state := Path(folder) / f"state-{count}").mkdir()
            ends = ["--brokers", broker.address, "--prefix", f"bench-{count}"]
            names = ["schedule", *["fetch"] * count, "parse", "store"]
            found = crawl(state, port, [["crawler", name, *ends] for name in names], options.pages, options.places)
            cells = " | ".join(f"{found[f'crawler {role}']:.1f}" for role in roles)
            print(f"| {count} | {found['pages/s']:.1f} | {cells} |", flush=True)
        broker.kill()
    origin.terminate()
    print(f"\nload average {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
