"""Mixed load on the running filter for a while: does it stay as large as it was, and does every request come through?

    python scripts/bench/bench_mixed.py [--seconds N] [--rate N] [--heap FOLDER]

Starts `gatewayfilter run` with two forked workers. Sixteen clients ask, paced to `--rate` exchanges a second, in turns for: 1 KB
by HTTP, 1 KB by HTTPS, a blocked page, 1 KB through a spliced connection, a WebSocket with ten messages there and back, a
download of 2 MB by HTTP or HTTPS. Every answer is compared with what it has to be. Memory is read each second; the mean of the
last tenth is held against that of the second one, by when caches and pools have filled. PSS counts what processes share once.

With `--heap` each worker writes into that folder, twenty times in a run, what its memory consists of: pages by kind, malloc,
Python's allocator, objects by type, and what garbage collection costs (`heap_probe/sitecustomize.py`).
"""

import argparse
import asyncio
import contextlib
import itertools
import multiprocessing
import resource
import signal
import ssl
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import aiohttp
import psutil
import trustme
from aiohttp import web
from bench_proxy import free_port, wait_for
from filter_process import Filter

SPAWN = multiprocessing.get_context("spawn")
BODY = b"x" * 1024
DOWNLOAD = bytes(range(256)) * 8192
CLIENTS = 16
PROBE = Path(__file__).with_name("heap_probe")
PORTION = 10
"""Exchanges of a kind before a client turns to the next one; connections are kept alive as long."""


async def _page(_request: web.Request) -> web.Response:
    return web.Response(body=BODY, content_type="text/html")


async def _download(_request: web.Request) -> web.Response:
    return web.Response(body=DOWNLOAD, content_type="application/octet-stream")


async def _echo(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        await socket.send_str(f"{message.data}!")
    return socket


def run_origin(ports: Sequence[int], certificate: str) -> None:
    """Serves HTTP on the first port and HTTPS on the second."""

    async def serve() -> None:
        application = web.Application()
        application.add_routes([web.get("/download", _download), web.get("/ws", _echo), web.get("/{page:.*}", _page)])
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate)
        await web.TCPSite(runner, "127.0.0.1", ports[0]).start()
        await web.TCPSite(runner, "127.0.0.1", ports[1], ssl_context=tls).start()
        await asyncio.Event().wait()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())


class Load:
    """The clients.

    Args:
        proxy: the filter's URL.
        ports: of the origin.
        looked_at: trusts what the filter makes.
        passed: trusts what the origin has.
        rate: exchanges a second, at most.

    Attributes:
        done: exchanges by kind.
        failed: those that went otherwise than they have to, by kind and reason.
    """

    def __init__(self, proxy: str, ports: Sequence[int], looked_at: ssl.SSLContext, passed: ssl.SSLContext, rate: float) -> None:
        self._proxy = proxy
        self._http, self._https = (f"{scheme}://localhost:{port}" for scheme, port in zip(("http", "https"), ports, strict=True))
        self._spliced = f"https://127.0.0.1:{ports[1]}"
        self._looked_at = looked_at
        self._passed = passed
        self._pause = CLIENTS / rate
        self._numbers = itertools.count()
        self.done: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()

    async def run(self, until: float) -> None:
        """Asks until `until`, by `time.monotonic()`."""
        await asyncio.gather(*(self._client(number, until) for number in range(CLIENTS)))

    async def _client(self, number: int, until: float) -> None:
        kinds: list[tuple[str, Callable[[aiohttp.ClientSession], Awaitable[None]]]] = [
            ("HTTP", self._plain),
            ("HTTPS", self._encrypted),
            ("blocked", self._blocked),
            ("spliced", self._through),
            ("WebSocket", self._messages),
            ("download", self._large),
        ]
        for name, exchange in itertools.islice(itertools.cycle(kinds), number % len(kinds), None):
            async with aiohttp.ClientSession() as session:
                for _ in range(PORTION):
                    if time.monotonic() >= until:
                        return
                    started = time.monotonic()
                    try:
                        async with asyncio.timeout(30):
                            await exchange(session)
                    except Exception as error:  # noqa: BLE001  whatever it is, it is a failed exchange
                        self.failed[f"{name}: {type(error).__name__} {error}"[:160]] += 1
                    self.done[name] += 1
                    await asyncio.sleep(max(0.0, self._pause - (time.monotonic() - started)))

    async def _get(self, session: aiohttp.ClientSession, url: str, tls: ssl.SSLContext | None, status: int) -> bytes:
        async with session.get(url, proxy=self._proxy, ssl=tls or True) as response:
            body = await response.read()
            if response.status != status:
                raise ValueError(f"status {response.status}")
            return body

    async def _plain(self, session: aiohttp.ClientSession) -> None:
        _expect(await self._get(session, f"{self._http}/page-{next(self._numbers) % 500}", None, 200), BODY)

    async def _encrypted(self, session: aiohttp.ClientSession) -> None:
        _expect(await self._get(session, f"{self._https}/page-{next(self._numbers) % 500}", self._looked_at, 200), BODY)

    async def _blocked(self, session: aiohttp.ClientSession) -> None:
        if b"blocked.example" not in await self._get(session, "http://blocked.example/", None, 403):
            raise ValueError("no block page")

    async def _through(self, session: aiohttp.ClientSession) -> None:
        _expect(await self._get(session, f"{self._spliced}/page", self._passed, 200), BODY)

    async def _messages(self, session: aiohttp.ClientSession) -> None:
        async with session.ws_connect(f"{self._https}/ws", proxy=self._proxy, ssl=self._looked_at) as socket:
            for number in range(10):
                await socket.send_str(str(number))
                _expect((await socket.receive_str()).encode(), b"%d!" % number)

    async def _large(self, session: aiohttp.ClientSession) -> None:
        secure = next(self._numbers) % 2
        url, tls = (self._https, self._looked_at) if secure else (self._http, None)
        _expect(await self._get(session, f"{url}/download", tls, 200), DOWNLOAD)


def _expect(found: bytes, wanted: bytes) -> None:
    if found != wanted:
        raise ValueError(f"{len(found)} bytes, not the {len(wanted)} that were sent")


def memory_mb(workers: Sequence[psutil.Process]) -> tuple[float, float]:
    """Returns PSS and RSS of all workers together."""
    found = [worker.memory_full_info() for worker in workers]
    return sum(one.pss for one in found) / 1e6, sum(one.rss for one in found) / 1e6


async def measure(load: Load, workers: Sequence[psutil.Process], seconds: float, *, probed: bool) -> list[tuple[float, float]]:
    """Runs the load. Returns the memory at each second; `probed` workers are asked for details too."""
    seen: list[tuple[float, float]] = []

    async def watch() -> None:
        while True:
            seen.append(await asyncio.to_thread(memory_mb, workers))
            if probed and len(seen) % max(1, int(seconds / 20)) == 0:
                for worker in workers:
                    worker.send_signal(signal.SIGUSR2)
            await asyncio.sleep(1)

    watching = asyncio.create_task(watch())
    await load.run(time.monotonic() + seconds)
    watching.cancel()
    return seen


def cpu_s(workers: Sequence[psutil.Process]) -> float:
    """User and system time of all workers so far."""
    return sum(sum(worker.cpu_times()[:2]) for worker in workers)


def main() -> None:
    """Reads the options and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=100.0, help="exchanges a second")
    parser.add_argument("--heap", type=Path, metavar="FOLDER", help="where workers write what their memory consists of")
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(folder / "origin-ca.pem"))
        authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(folder / "origin.pem"))
        ports = [free_port(), free_port()]
        origin = SPAWN.Process(target=run_origin, args=(ports, str(folder / "origin.pem")), daemon=True)
        origin.start()
        wait_for(ports[0])
        wanted = {"GATEWAYFILTER_PROXY__UPSTREAM_CA": str(folder / "origin-ca.pem"), "GATEWAYFILTER_LEARN__ENABLED": "false"}
        if options.heap is not None:
            options.heap.mkdir(parents=True, exist_ok=True)
            wanted |= {"PYTHONPATH": str(PROBE), "HEAP_PROBE_FOLDER": str(options.heap.absolute())}
        running = Filter(folder / "state", "--workers", "2", settings=wanted)
        running.command("list", "add", "--block", "blocked.example")
        running.command("list", "add", "--splice", "127.0.0.1")
        running.start()
        try:
            workers = running.workers()
            looked_at = ssl.create_default_context(cafile=str(folder / "state" / "ca" / "mitmproxy-ca-cert.pem"))
            passed = ssl.create_default_context(cafile=str(folder / "origin-ca.pem"))
            load = Load(f"http://{running.host}:{running.port}", ports, looked_at, passed, options.rate)
            before = cpu_s(workers)
            seen = asyncio.run(measure(load, workers, options.seconds, probed=options.heap is not None))
            used = cpu_s(workers) - before
        finally:
            running.stop()
            origin.terminate()
    failures = report(load, seen, used, options.seconds)
    sys.exit(1 if failures else 0)


def report(load: Load, seen: Sequence[tuple[float, float]], used: float, seconds: float) -> int:
    """Prints what came of it. Returns how many exchanges failed."""
    total, failures = load.done.total(), load.failed.total()
    tenth = max(1, len(seen) // 10)
    early, late = seen[tenth : 2 * tenth] or seen, seen[-tenth:]
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(load.done.items()))
    print(f"| {seconds:.0f} s of mixed load, two workers | |\n|---|---|")
    print(f"| exchanges | {total:,}: {kinds} |")
    print(f"| failed | {failures} |")
    print(f"| a second; CPU of the workers | {total / seconds:.0f}; {used / seconds * 100:.0f} % of a core |")
    for place, title in ((0, "PSS"), (1, "RSS")):
        first, last = (statistics.mean(one[place] for one in part) for part in (early, late))
        print(f"| {title} of both workers, second tenth → last tenth | {first:.0f} → {last:.0f} MB, {last / first - 1:+.1%} |")
    curve = (seen[len(seen) * part // 10 : len(seen) * (part + 1) // 10] for part in range(10))
    print(f"| PSS by tenths | {', '.join(f'{statistics.mean(one[0] for one in part):.0f}' for part in curve if part)} |")
    for reason, count in load.failed.most_common(10):
        print(f"{count} times {reason}", file=sys.stderr)
    return failures


if __name__ == "__main__":
    main()
