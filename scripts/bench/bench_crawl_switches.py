"""DNS cache, de-duplication and keep-alive switched off in turn, as in [cloud-crawler, figure 7].

    python scripts/bench/bench_crawl_switches.py [--sites 120] [--pages 25] [--rounds 3] [--plot FILE.svg]

The real crawler with its queue in SQLite follows all links of so many sites on loopback, from one page each; every page has 20
links to its own site, so that 19 of 20 links were seen already. Judging is left out (each page is harmful at once, which is why
its links are followed). The network is made as slow as a near one: names are asked for over UDP at a server that answers after
20 ms, an origin answers after 20 ms, and after another 20 ms on a new connection, which stand for its handshake. Each turn runs
in a process of its own; medians. Prints a Markdown table:

- pages a second of wall time, and CPU milliseconds a page;
- questions to the DNS server, connections, and links that the database was asked to queue.

Without de-duplication each link goes to the queue in SQL, which knows it by its unique key.
"""

import argparse
import asyncio
import json
import multiprocessing
import random
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp.abc import ResolveResult
from bench_crawl import until

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl import CrawlContext, CrawlWorker, SeenFilter
from gatewayfilter.crawl.fetch import fetcher
from gatewayfilter.crawl.net.address_guard import AddressGuard
from gatewayfilter.crawl.net.guarded_resolver import PooledResolver
from gatewayfilter.interfaces import CrawlRequest, Page
from gatewayfilter.model import Classification
from gatewayfilter.settings import RobotsRule
from gatewayfilter.store import Store
from gatewayfilter.telemetry import Counters

DELAY_S = 0.02
LINKS = 20
CONCURRENCY = 100
TURNS = {
    "all on": (),
    "DNS cache off": ("dns",),
    "de-duplication off": ("seen",),
    "keep-alive off": ("keep-alive",),
    "keep-alive and DNS cache off": ("keep-alive", "dns"),
    "all off": ("dns", "seen", "keep-alive"),
}
"""What is timed, and what of the crawler is off then."""


class Names(asyncio.DatagramProtocol):
    """A DNS server that knows every name: 127.0.0.2, after a delay."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the way out."""
        assert isinstance(transport, asyncio.DatagramTransport)
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answers a question for an A record."""
        head = data[:2] + struct.pack("!HHHHH", 0x8180, 1, 1, 0, 0)
        record = struct.pack("!HHHIH", 0xC00C, 1, 1, 300, 4) + socket.inet_aton("127.0.0.2")
        asyncio.get_running_loop().call_later(DELAY_S, self._transport.sendto, head + data[12:] + record, addr)


def serve(ready: Connection, pages: int) -> None:
    """Serves names over UDP and sites over HTTP, on loopback. Runs until it is ended."""
    chance = random.Random(7)
    text = "<p>The council met on Tuesday and spoke of the new bridge, of schools and of the library.</p>" * 60
    answers = []
    for number in range(pages):
        targets = [(number + 1) % pages, *(chance.randrange(pages) for _ in range(LINKS - 1))]
        body = (text + "".join(f"<a href='/{target}'>page {target}</a> " for target in targets)).encode()
        answers.append(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nContent-Type: text/html\r\n\r\n".encode() + body)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        delay_s = 2 * DELAY_S
        try:
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1][1:]
                await asyncio.sleep(delay_s)
                delay_s = DELAY_S
                writer.write(answers[int(path)])
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run() -> None:
        names, _ = await asyncio.get_running_loop().create_datagram_endpoint(Names, local_addr=("127.0.0.1", 0))
        server = await asyncio.start_server(answer, "127.0.0.2", 0, backlog=1000)
        ready.send((names.get_extra_info("sockname")[1], server.sockets[0].getsockname()[1]))
        await server.serve_forever()

    asyncio.run(run())


class AskingResolver(PooledResolver):
    """Asks the server of this script, in the crawler's own threads; counts its questions."""

    port = 0
    asked = 0

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC) -> list[ResolveResult]:
        """Returns the address of a name."""
        del family
        AskingResolver.asked += 1
        address = await asyncio.get_running_loop().run_in_executor(self._threads, self._ask, host)
        return [ResolveResult(hostname=host, host=address, port=port, family=socket.AF_INET, proto=6, flags=0)]

    def _ask(self, host: str) -> str:
        name = b"".join(bytes([len(label)]) + label.encode() for label in host.split(".")) + b"\0"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
            way.settimeout(5.0)
            way.sendto(
                random.randbytes(2) + struct.pack("!HHHHH", 0x0100, 1, 0, 0, 0) + name + b"\0\1\0\1", ("127.0.0.1", self.port)
            )
            return socket.inet_ntoa(way.recv(512)[-4:])


class NothingSeen(SeenFilter):
    """De-duplication switched off."""

    def __contains__(self, digest: bytes) -> bool:
        return False


class Harmful:
    """A sink that takes each page for harmful at once."""

    pages = 0

    def page(self, page: Page) -> Classification:
        """Counts a page."""
        del page
        self.pages += 1
        return Classification("gambling", 42.0, 20.0, charset="utf-8")


class CountingQueue:
    """The queue, and how many links it was offered."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self.offered = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def add(self, offers: Iterable[CrawlRequest], now: float) -> int:
        """Queues links."""
        many = list(offers)
        self.offered += len(many)
        return int(self._queue.add(many, now))


def turn(off: Sequence[str], names: int, port: int, sites: int, pages: int) -> dict[str, float]:
    """Crawls all sites once in this process. Returns what it took."""
    AskingResolver.port = names
    fetcher.PooledResolver = AskingResolver  # type: ignore[attr-defined]
    if "keep-alive" in off:
        fetcher.aiohttp.TCPConnector = partial(aiohttp.TCPConnector, force_close=True)  # type: ignore[attr-defined]
    sockets = 0
    make = AddressGuard.socket_factory

    def counted(guard: AddressGuard, info: Any) -> socket.socket:
        nonlocal sockets
        sockets += 1
        return make(guard, info)

    setattr(AddressGuard, "socket_factory", counted)  # noqa: B010  no type fits a method that is replaced
    settings = CrawlSettings(
        allow_networks=("127.0.0.0/8",),
        per_host_delay_s=0.0,
        per_host_concurrency=4,
        concurrency=CONCURRENCY,
        robots=RobotsRule.NEVER,
        follow_links=LINKS,
        dns_ttl_s=0.0 if "dns" in off else 300.0,
    )
    sink = Harmful()
    seen = NothingSeen() if "seen" in off else SeenFilter()
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(f"sqlite:///{folder}/bench.sqlite3")
        queue = CountingQueue(store.frontier)
        worker = CrawlWorker(CrawlContext(queue, sink, settings, Counters(), seen=seen, together=store.settling))

        async def crawl() -> tuple[float, float]:
            stop = asyncio.Event()
            running = asyncio.create_task(worker.run(stop))
            await asyncio.sleep(0.2)
            begun, begun_cpu = time.perf_counter(), time.process_time()
            store.frontier.add([CrawlRequest(f"http://s{site}.example:{port}/0") for site in range(sites)], time.time())
            await until(lambda: sink.pages >= sites * pages, 120)
            spent = time.perf_counter() - begun, time.process_time() - begun_cpu
            stop.set()
            await running
            return spent

        wall_s, cpu_s = asyncio.run(crawl())
        store.close()
    total = sites * pages
    return {
        "pages a second": total / wall_s,
        "CPU ms a page": cpu_s / total * 1000,
        "DNS questions": AskingResolver.asked,
        "connections": sockets,
        "links to the queue": queue.offered,
    }


def plot(found: dict[str, dict[str, float]], path: Path) -> None:
    """Draws pages a second and CPU milliseconds a page."""
    import matplotlib as mpl  # noqa: PLC0415  slow to import

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "bench_crawl_switches"  # the same figures make the same file
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, all_axes = plt.subplots(1, 2, figsize=(10, 3), sharey=True)
    for axes, column in zip(all_axes, ("pages a second", "CPU ms a page"), strict=True):
        bars = axes.barh(list(found), [values[column] for values in found.values()])
        axes.bar_label(bars, fmt="%.2f" if column.startswith("CPU") else "%.0f", padding=3)
        axes.set_title(column)
        axes.margins(x=0.15)
        axes.invert_yaxis()
    all_axes[1].invert_yaxis()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, default=120)
    parser.add_argument(
        "--pages", type=int, default=25, help="a site; more than 25 go beyond the links a day that a site may have"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--turn", nargs=3, metavar=("WHAT", "NAMES", "PORT"), help="one round, for this script itself")
    options = parser.parse_args(argv)
    if options.turn:
        what, names, port = options.turn
        print(json.dumps(turn(TURNS[what], int(names), int(port), options.sites, options.pages)))
        return 0
    ours, theirs = multiprocessing.Pipe()
    origin = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs, options.pages), daemon=True)
    origin.start()
    rounds: dict[str, list[dict[str, float]]] = {what: [] for what in TURNS}
    try:
        names, port = ours.recv()
        for _ in range(options.rounds):
            for what, results in rounds.items():
                sizes = ["--sites", str(options.sites), "--pages", str(options.pages)]
                command = [sys.executable, __file__, *sizes, "--turn", what, str(names), str(port)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                results.append(json.loads(done.stdout.splitlines()[-1]))
    finally:
        origin.terminate()
        origin.join()
    found = {what: {name: statistics.median(one[name] for one in many) for name in many[0]} for what, many in rounds.items()}
    print(f"{options.sites} sites of {options.pages} pages\n")
    head = ("crawler", "pages a second", "CPU ms a page", "DNS questions", "connections", "links to the queue")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for what, values in found.items():
        speed, cpu_ms, *counts = values.values()
        print(f"| {what} | {speed:.0f} | {cpu_ms:.2f} | {' | '.join(f'{count:,.0f}' for count in counts)} |")
    if options.plot:
        plot(found, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
