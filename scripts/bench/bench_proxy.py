"""Proxy CPU a request: `mitmdump -q`, one and two GatewayFilter workers, squid, privoxy and e2guardian in turns, on loopback.

    python scripts/bench/bench_proxy.py [--rounds N] [--requests N] [--lists FILE ...]

Prints Markdown tables. CPU time is that of the proxy's processes alone (user and system), so that it hardly depends on what else
runs on the machine; requests/s do depend on it, and with two workers on how many cores are left to them. The second table has
what client and origin take, and which gain is possible with the cores that there are; in the third everything, client and origin
too, shares one core with one worker, and two cores with two workers. The origin answers 1 KB from memory; the
client keeps its connections alive (proxy_load.py). A worker has EasyList and EasyPrivacy, a blacklist of a million hosts, its
SQLite log and its frontier.
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.context import SpawnProcess
from pathlib import Path

import psutil
import trustme
from proxy_load import Origin as Site
from proxy_load import drive, origin
from proxy_peers import e2guardian, privoxy, squid

from gatewayfilter.config import ProxySettings, Settings
from gatewayfilter.engine.filter_engine import FilterEngine
from gatewayfilter.engine.snapshot.folder import SnapshotFolder
from gatewayfilter.engine.snapshot.reader import SnapshotBuilder
from gatewayfilter.model import Source
from gatewayfilter.processes.supervision.gc_tuning import freeze_startup, trim_regularly
from gatewayfilter.proxy.components import WorkerComponents
from gatewayfilter.proxy.worker import run_worker
from gatewayfilter.store import Store
from gatewayfilter.wiring.proxy import assemble_components

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("GATEWAYFILTER_TEST_DATA", ROOT.parent / "shared" / "data"))
BODY = b"x" * 1024
PATHS = [f"/page/{number}/article.html" for number in range(50)]
BLACKLIST_HOSTS = 1_000_000
STOCK, ONE, TWO = "mitmdump -q", "GatewayFilter, 1 worker", "GatewayFilter, 2 workers"
SPAWN = multiprocessing.get_context("spawn")


class Origin(asyncio.Protocol):
    """Answers every request head with the same kilobyte."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answers each complete request head."""
        assert self._transport is not None
        self._pending += data
        while b"\r\n\r\n" in self._pending:
            _, _, self._pending = self._pending.partition(b"\r\n\r\n")
            head = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n" % len(BODY)
            self._transport.write(head + BODY)


def run_origin(ports: Sequence[int], certificate: str) -> None:
    """Serves HTTP on the first port and HTTPS on the second."""

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate)
        await loop.create_server(Origin, "127.0.0.1", ports[0])
        await loop.create_server(Origin, "127.0.0.1", ports[1], ssl=tls)
        await asyncio.Event().wait()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())


def publish_lists(folder: str, lists: Sequence[str]) -> None:
    """Builds the snapshot, in a process of its own as the learner does, so that its memory is not the worker's."""
    builder = SnapshotBuilder()
    builder.add_keys(builder.add_source(Source("hosts")), (f".host{number}.example" for number in range(BLACKLIST_HOSTS)))
    for name in lists:
        with Path(name).open(encoding="utf-8") as lines:
            builder.add_adblock_list(builder.add_source(Source(Path(name).stem)), lines)
    SnapshotFolder(Path(folder) / "snapshots").publish(builder.build())


def worker_parts(settings: Settings) -> WorkerComponents:
    """Returns what the worker runs: all filters, the log and the frontier. Garbage is collected as in `gatewayfilter run`."""
    snapshots = SnapshotFolder(settings.data_dir / "snapshots")
    engine = FilterEngine(snapshots.open_newest()[0])
    parts = assemble_components(settings, engine, snapshots, Store.open(settings.store_url))
    freeze_startup()
    trim_regularly()
    return parts


@dataclass
class Contestant:
    """A proxy under test."""

    name: str
    port: int
    pids: tuple[int, ...]
    ca: Path | None

    def cpu_s(self) -> float:
        """User and system time so far, of helpers too."""
        mains = [psutil.Process(pid) for pid in self.pids]
        times = [process.cpu_times() for main in mains for process in (main, *main.children())]
        return sum(time.user + time.system for time in times)

    def memory(self) -> str:
        """What it holds in memory, and how much of that no other process shares, for its first process."""
        found = psutil.Process(self.pids[0]).memory_full_info()
        return f"{self.name} {found.rss / 1e6:.0f} MB, of it {found.uss / 1e6:.0f} MB its own"


def free_port() -> int:
    """Returns a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, timeout_s: float = 120.0) -> None:
    """Waits until the port accepts connections."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise SystemExit(f"nothing listens on port {port}")


@contextlib.contextmanager
def on_one_core(*processes: psutil.Process) -> Iterator[None]:
    """Keeps processes, their children and all their threads, and this process, on one core meanwhile."""
    every = [one for process in processes for one in (process, *process.children(recursive=True))]
    tasks = [0, *(thread.id for process in every for thread in process.threads())]
    before = os.sched_getaffinity(0)
    try:
        for task in tasks:
            os.sched_setaffinity(task, {min(before)})
        yield
    finally:
        for task in tasks:
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(task, before)


@contextlib.contextmanager
def contestants(folder: Path, lists: Sequence[str]) -> Iterator[list[Contestant]]:
    """Runs mitmdump, one worker, and two workers on one port."""
    stock_port = free_port()
    stock_dir = folder / "stock"
    command = [str(Path(sys.executable).parent / "mitmdump"), "-q", "--listen-host", "127.0.0.1", "-p", str(stock_port)]
    command += ["--set", f"confdir={stock_dir}", "--set", f"ssl_verify_upstream_trusted_ca={folder / 'origin-ca.pem'}"]
    publisher = SPAWN.Process(target=publish_lists, args=(str(folder), lists))
    publisher.start()
    publisher.join()
    stock = subprocess.Popen(command)
    ca = folder / "ca" / "mitmproxy-ca-cert.pem"
    found = [Contestant(STOCK, stock_port, (stock.pid,), stock_dir / "mitmproxy-ca-cert.pem")]
    workers: list[SpawnProcess] = []
    for name, indexes in ((ONE, (0,)), (TWO, (1, 2))):
        proxy = ProxySettings(listen=f"127.0.0.1:{free_port()}", upstream_ca=folder / "origin-ca.pem")
        settings = Settings(data_dir=folder, proxy=proxy)
        started = [SPAWN.Process(target=run_worker, args=(index, settings, worker_parts)) for index in indexes]
        for worker in started:
            worker.start()
        workers += started
        port = int(proxy.listen.rpartition(":")[2])
        found.append(Contestant(name, port, tuple(worker.pid for worker in started if worker.pid is not None), ca))
    try:
        for contestant in found:
            wait_for(contestant.port)
        for index in range(len(workers)):  # both of two that share a port
            wait_until_serving(folder / "run" / f"proxy-{index}.json")
        with peers(folder) as others:
            yield [*found, *others]
    finally:
        stock.terminate()
        for worker in workers:
            worker.terminate()
        stock.wait(10)
        for worker in workers:
            worker.join(10)


@contextlib.contextmanager
def peers(folder: Path) -> Iterator[list[Contestant]]:
    """Runs what is installed of squid, privoxy and e2guardian."""
    authority = trustme.CA()
    authority.private_key_pem.write_to_path(str(folder / "peer-ca.pem"))
    authority.cert_pem.write_to_path(str(folder / "peer-ca.pem"), append=True)
    authority.cert_pem.write_to_path(str(folder / "peer-ca-cert.pem"))
    ports = [free_port() for _ in range(4)]
    folder.chmod(0o755)
    with (
        squid(folder / "squid", ports[0], folder / "peer-ca.pem", folder / "origin-ca.pem") as one,
        privoxy(folder / "privoxy", ports[1]) as two,
        e2guardian(folder / "e2guardian", ports[2], ports[3]) as three,
    ):
        names = ("squid, ssl-bump", "privoxy", "e2guardian")
        cas = (folder / "peer-ca-cert.pem", None, None)
        found = [
            Contestant(name, port, (pid,), ca)
            for name, port, pid, ca in zip(names, ports, (one, two, three), cas, strict=False)
            if pid is not None
        ]
        for contestant in found:
            wait_for(contestant.port)
        yield found


def wait_until_serving(status: Path, timeout_s: float = 60.0) -> None:
    """Waits until a worker reports that it serves."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError):
            if json.loads(status.read_text())["state"] == "serving":
                return
        time.sleep(0.05)
    raise SystemExit(f"{status.stem} does not serve")


@dataclass(frozen=True, slots=True)
class Round:
    """One proxy's round, in seconds: wall time, and CPU of proxy, client and origin."""

    took: float
    proxy: float
    client: float
    origin: float


def run_round(proxy: Contestant, site: Site, scheme: str, requests: int) -> Round:
    """Sends the requests through a proxy."""
    port = site.ports[scheme == "HTTPS"]
    before, site_before = proxy.cpu_s(), site.cpu_s()
    took = drive(proxy.port, port, requests, proxy.ca if scheme == "HTTPS" else None, paths=PATHS, size=len(BODY))
    return Round(took.seconds, proxy.cpu_s() - before, took.cpu_s, site.cpu_s() - site_before)


def measure(folder: Path, lists: Sequence[str], rounds: int, requests: int) -> None:
    """Runs the rounds and prints the tables."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "origin-ca.pem"))
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(folder / "origin.pem"))
    figures: dict[tuple[str, str], list[Round]] = {}
    ports = [free_port(), free_port()]
    with origin(folder / "origin", ports, folder / "origin.pem", BODY) as site, contestants(folder, lists) as proxies:
        wait_for(ports[0])
        for number in range(rounds + 1):  # the first round warms up
            for scheme in ("HTTP", "HTTPS"):
                for proxy in proxies:
                    if scheme == "HTTP" or proxy.ca is not None:
                        done = run_round(proxy, site, scheme, requests)
                        if number:
                            figures.setdefault((scheme, proxy.name), []).append(done)
        print_costs(figures, requests)
        print_gain(figures, requests, site.name)
        one, two = (next(proxy for proxy in proxies if proxy.name == name) for name in (ONE, TWO))
        print_scaling(one, two, site, rounds, requests)
        print("\nResident: " + "; ".join(proxy.memory() for proxy in proxies))


def print_costs(figures: Mapping[tuple[str, str], Sequence[Round]], requests: int) -> None:
    """Prints what a request costs each proxy."""
    print("| 1 KB, keep-alive | proxy | CPU µs/request | requests/s | CPU to mitmdump |")
    print("|---|---|---|---|---|")
    for scheme in ("HTTP", "HTTPS"):
        base = statistics.median(one.proxy for one in figures[scheme, STOCK])
        for (of, name), done in figures.items():
            if of == scheme:
                cpu = statistics.median(one.proxy for one in done)
                rate = requests / statistics.median(one.took for one in done)
                print(f"| {scheme} | {name} | {cpu / requests * 1e6:.0f} | {rate:.0f} | {cpu / base:.2f} |")


def print_gain(figures: Mapping[tuple[str, str], Sequence[Round]], requests: int, site: str) -> None:
    """Prints what a second worker gains, round by round, and what it can gain at most.

    With as many cores as processes that is twice as much. On fewer, all of them share the cores: then two workers do
    cores / (worker + client + origin) requests a second, where one does 1 / worker, if a core is left for the two others.
    """
    cores = os.cpu_count() or 1
    print(f"\n| two workers, {cores} cores | CPU µs: worker + client + {site} | requests/s: one → two | gain | possible here |")
    print("|---|---|---|---|---|")
    for scheme in ("HTTP", "HTTPS"):
        one, two = figures[scheme, ONE], figures[scheme, TWO]
        worker, client, at_site = (
            statistics.median(getattr(done, part) for done in two) / requests for part in ("proxy", "client", "origin")
        )
        others = client + at_site
        alone = 1 / max(worker, client, at_site, (worker + others) / cores)
        both = 1 / max(worker / 2, client, at_site, (worker + others) / cores)
        gain = statistics.median(first.took / second.took for first, second in zip(one, two, strict=True))
        rates = " → ".join(f"{requests / statistics.median(done.took for done in side):.0f}" for side in (one, two))
        parts = " + ".join(f"{part * 1e6:.0f}" for part in (worker, client, at_site))
        print(f"| {scheme} | {parts} | {rates} | {gain:.2f} | {both / alone:.2f} |")


def print_scaling(one: Contestant, two: Contestant, site: Site, rounds: int, requests: int) -> None:
    """Prints what two workers on two cores do beside one worker on one, client and origin on the same cores each time."""
    print("\n| everything on | one core, one worker | two cores, two workers | ratio |")
    print("|---|---|---|---|")
    for scheme in ("HTTP", "HTTPS"):
        small: list[float] = []
        large: list[float] = []
        for _ in range(rounds):
            with on_one_core(psutil.Process(one.pids[0]), site.process):
                small.append(requests / run_round(one, site, scheme, requests).took)
            large.append(requests / run_round(two, site, scheme, requests).took)
        ratio = statistics.median(many / few for few, many in zip(small, large, strict=True))
        print(f"| {scheme}, requests/s | {statistics.median(small):.0f} | {statistics.median(large):.0f} | {ratio:.2f} |")


def main() -> None:
    """Reads the options and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=6000, help="a round, scheme and proxy")
    parser.add_argument(
        "--lists", nargs="*", help="Adblock lists; by default EasyList and EasyPrivacy of the test data, if there"
    )
    options = parser.parse_args()
    lists = options.lists
    if lists is None:
        lists = [str(path) for name in ("easylist.txt", "easyprivacy.txt") for path in sorted(DATA.glob(f"**/{name}"))[:1]]
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), lists, options.rounds, options.requests)


if __name__ == "__main__":
    main()
