"""What passes through: spliced connections beside intercepted ones and haproxy in TCP mode, streams, many connections.

    python scripts/bench/bench_wire.py [--rounds N] [--gigabytes N] [--connections N] [--stream-mb N] [--idle N] [--active N]

Prints Markdown tables. CPU time is that of the proxy's process alone, user and system. The origin is a process of its own on
loopback; one worker with its log and its frontier. haproxy comes from `apt-get install haproxy`; without it, its rows are left
out.
"""

import argparse
import asyncio
import contextlib
import multiprocessing
import re
import resource
import shutil
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import trustme
from bench_proxy import free_port, wait_for, wait_until_serving, worker_parts
from filter_process import Filter

from gatewayfilter.config import ProxySettings, Settings
from gatewayfilter.engine.snapshot import SnapshotBuilder
from gatewayfilter.engine.snapshot_folder import SnapshotFolder
from gatewayfilter.model import ListAction, Source
from gatewayfilter.proxy.worker import run_worker

SPAWN = multiprocessing.get_context("spawn")
BODY = b"x" * 1024
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n"
CHUNK = bytes(1 << 20)
SLEEP_S = 0.02


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers a ClientHello with as many bytes as the name in it says, HTTP with a body of the length in its path."""
    try:
        while True:
            first = await reader.read(65536)
            if not first:
                break
            if first[:1] == b"\x16":
                await send(writer, size_in(first, b"size-"))
                continue
            size = size_in(first, b"/size-")
            writer.write(HEAD % size)
            await send(writer, size)
    except OSError:
        pass
    writer.close()


def size_in(data: bytes, mark: bytes) -> int:
    """Returns the number after a mark, 1,024 without one."""
    found = re.search(re.escape(mark) + rb"([0-9]{1,12})", data)
    return int(found[1]) if found else len(BODY)


async def send(writer: asyncio.StreamWriter, size: int) -> None:
    """Writes so many bytes."""
    for start in range(0, size, len(CHUNK)):
        writer.write(CHUNK[: size - start])
        await writer.drain()


def run_origin(ports: Sequence[int], certificate: str) -> None:
    """Serves bytes on the first port and HTTPS on the second."""

    async def serve() -> None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate)
        await asyncio.start_server(answer, "127.0.0.1", ports[0], backlog=1024)
        await asyncio.start_server(answer, "127.0.0.1", ports[1], ssl=tls, backlog=1024)
        await asyncio.Event().wait()

    raise_limit()
    asyncio.run(serve())


def raise_limit() -> None:
    """Allows many connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))


def client_hello(name: str) -> bytes:
    """Returns what OpenSSL says first."""
    outgoing = ssl.MemoryBIO()
    connection = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


@dataclass
class Contestant:
    """A process that connections go through.

    Attributes:
        tunnels: whether a CONNECT has to come first.
    """

    name: str
    port: int
    pid: int
    tunnels: bool = True
    ca: Path | None = None

    def cpu_s(self) -> float:
        """User and system time so far."""
        found = psutil.Process(self.pid).cpu_times()
        return found.user + found.system

    def rss_mb(self) -> float:
        """Resident memory."""
        return psutil.Process(self.pid).memory_info().rss / 1e6


@contextlib.contextmanager
def worker(folder: Path, name: str, splice: Sequence[str]) -> Iterator[Contestant]:
    """Runs one worker that passes these hosts through."""
    folder.mkdir()
    builder = SnapshotBuilder()
    builder.add_keys(builder.add_source(Source("splice", ListAction.SPLICE)), splice)
    SnapshotFolder(folder / "snapshots").publish(builder.build())
    port = free_port()
    proxy = ProxySettings(
        listen=f"127.0.0.1:{port}", upstream_ca=folder.parent / "origin-ca.pem", max_connections_per_client=8192
    )
    process = SPAWN.Process(target=run_worker, args=(0, Settings(data_dir=folder, proxy=proxy), worker_parts))
    process.start()
    try:
        wait_for(port)
        wait_until_serving(folder / "run" / "proxy-0.json")
        assert process.pid is not None
        yield Contestant(name, port, process.pid, ca=folder / "ca" / "mitmproxy-ca-cert.pem")
    finally:
        process.terminate()
        process.join(15)


@contextlib.contextmanager
def forked(folder: Path) -> Iterator[Contestant]:
    """Runs `gatewayfilter run` with one worker, forked as always, for what memory really is."""
    running = Filter(folder, "--workers", "1", settings={"GATEWAYFILTER_LEARN__ENABLED": "false"})
    running.start()
    try:
        yield Contestant("gatewayfilter run", running.port, running.workers()[0].pid)
    finally:
        running.stop()


@contextlib.contextmanager
def haproxy(folder: Path, origin: int) -> Iterator[Contestant | None]:
    """Runs haproxy in TCP mode, one thread, kernel splicing on."""
    command = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    if command is None:
        print("haproxy is not installed: its rows are missing", file=sys.stderr)
        yield None
        return
    port = free_port()
    (folder / "haproxy.cfg").write_text(
        "global\n nbthread 1\n maxconn 4000\ndefaults\n mode tcp\n timeout connect 9s\n timeout client 60s\n timeout server 60s\n"
        f" option splice-auto\nlisten relay\n bind 127.0.0.1:{port}\n server origin 127.0.0.1:{origin}\n"
    )
    process = subprocess.Popen([command, "-db", "-q", "-f", str(folder / "haproxy.cfg")])
    try:
        wait_for(port)
        yield Contestant("haproxy, TCP mode", port, process.pid, tunnels=False)
    finally:
        process.terminate()
        process.wait(10)


async def opened(proxy: Contestant, target: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Opens a way to the origin."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port, limit=1 << 20)
    if proxy.tunnels:
        writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head:
            raise SystemExit(f"{proxy.name} answered {head[:200]!r}")
    return reader, writer


async def download(proxy: Contestant, port: int, size: int) -> None:
    """Reads so many bytes through a spliced connection."""
    reader, writer = await opened(proxy, f"localhost:{port}")
    writer.write(client_hello(f"size-{size}.localhost"))
    left = size
    while left and (chunk := await reader.read(1 << 20)):
        left -= len(chunk)
    if left:
        raise SystemExit(f"{proxy.name} lost {left} bytes")
    writer.close()


async def connect_often(proxy: Contestant, port: int, count: int) -> None:
    """Makes connections, eight at once, each for one kilobyte."""
    hello = client_hello("localhost")
    turns = iter(range(count))

    async def one() -> None:
        for _ in turns:
            reader, writer = await opened(proxy, f"localhost:{port}")
            writer.write(hello)
            await reader.readexactly(len(BODY))
            writer.close()

    await asyncio.gather(*(one() for _ in range(8)))


async def request_often(proxy: Contestant, port: int, count: int, ca: Path, *, each_new: bool) -> None:
    """Asks for kilobytes by HTTPS, over eight connections or over one each."""
    tls = ssl.create_default_context(cafile=str(ca))
    turns = iter(range(count))

    async def connected() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await opened(proxy, f"localhost:{port}")
        await writer.start_tls(tls, server_hostname="localhost")
        return reader, writer

    async def one() -> None:
        reader, writer = await connected()
        for number in turns:
            writer.write(b"GET /page-%d HTTP/1.1\r\nHost: localhost:%d\r\nAccept: text/html\r\n\r\n" % (number % 50, port))
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(len(BODY))
            if each_new:
                writer.close()
                reader, writer = await connected()
        writer.close()

    await asyncio.gather(*(one() for _ in range(8)))


def cpu(proxy: Contestant, work: Callable[[], Awaitable[None]]) -> float:
    """Returns the CPU seconds of the proxy for some work."""
    before = proxy.cpu_s()
    asyncio.run(work())  # type: ignore[arg-type]
    time.sleep(SLEEP_S)  # connections that are being closed are part of the work
    return proxy.cpu_s() - before


async def first_byte_ms(port: int, target: str, *, proxied: bool) -> float:
    """Returns the time from the request to the first byte of a large body, without reading the rest."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    started = time.perf_counter()
    prefix = f"http://{target}" if proxied else ""
    writer.write(f"GET {prefix}/size-400000000 HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0]:
        raise SystemExit(f"{head[:200]!r}")
    await reader.readexactly(1)
    took = (time.perf_counter() - started) * 1000
    writer.transport.abort()
    return took


async def stream_many(proxy: Contestant, port: int, size: int, count: int) -> float:
    """Streams bodies side by side. Returns the most memory that the proxy had meanwhile, in MB."""
    most = 0.0

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(f"GET http://localhost:{port}/size-{size} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        left = size
        while left and (chunk := await reader.read(1 << 18)):
            left -= len(chunk)
        if left:
            raise SystemExit(f"{left} bytes of a stream are missing")
        writer.close()

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, proxy.rss_mb())
            await asyncio.sleep(0.1)

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(one() for _ in range(count)))
    watching.cancel()
    return most


async def hold_many(proxy: Contestant, port: int, idle: int, active: int, requests: int) -> tuple[int, float]:
    """Holds silent connections while others work. Returns how many answers came and the seconds it took."""
    hello = client_hello("localhost")

    async def spliced() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await opened(proxy, f"localhost:{port}")
        writer.write(hello)
        await reader.readexactly(len(BODY))
        return reader, writer

    async def asked(number: int) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        for _ in range(requests):
            writer.write(f"GET http://localhost:{port}/p{number} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(len(BODY))
        writer.close()
        return requests

    silent = []
    for start in range(0, idle, 100):
        silent += await asyncio.gather(*(spliced() for _ in range(min(100, idle - start))))
    started = time.perf_counter()
    answered = sum(await asyncio.gather(*(asked(number) for number in range(active))))
    took = time.perf_counter() - started
    for reader, writer in silent:  # still there: another answer comes
        writer.write(hello)
        await reader.readexactly(len(BODY))
        writer.close()
    return answered, took


def measure_splice(spliced: Contestant, relay: Contestant | None, ports: Sequence[int], options: argparse.Namespace) -> None:
    """Prints bytes and connections through the relay beside haproxy."""
    size = int(options.gigabytes * 1e9)
    print("| passed through unread | CPU s/GB | CPU µs/new connection |\n|---|---|---|")
    contestants = [one for one in (spliced, relay) if one is not None]
    figures: dict[str, list[tuple[float, float]]] = {one.name: [] for one in contestants}
    for number in range(options.rounds + 1):
        for one in contestants:
            bulk = cpu(one, lambda one=one: download(one, ports[0], size)) / options.gigabytes  # type: ignore[misc]
            new = cpu(one, lambda one=one: connect_often(one, ports[0], options.connections)) / options.connections  # type: ignore[misc]
            if number:
                figures[one.name].append((bulk, new * 1e6))
    for name, found in figures.items():
        print(f"| {name} | {statistics.median(f[0] for f in found):.2f} | {statistics.median(f[1] for f in found):.0f} |")
    print()


def measure_https(
    spliced: Contestant, opened_up: Contestant, ports: Sequence[int], folder: Path, options: argparse.Namespace
) -> None:
    """Prints HTTPS through the relay beside HTTPS that is looked into."""
    print("| HTTPS, 1 KB | spliced, CPU µs | intercepted, CPU µs | ratio |\n|---|---|---|---|")
    assert opened_up.ca is not None
    for title, each_new in (("a request, keep-alive", False), ("a request with its connection", True)):
        count = options.connections
        rounds: list[tuple[float, float]] = []
        for number in range(options.rounds + 1):
            one = cpu(spliced, lambda: request_often(spliced, ports[1], count, folder / "origin-ca.pem", each_new=each_new))  # noqa: B023
            other = cpu(opened_up, lambda: request_often(opened_up, ports[1], count, opened_up.ca, each_new=each_new))  # type: ignore[arg-type]  # noqa: B023
            if number:
                rounds.append((one / count * 1e6, other / count * 1e6))
        low, high = (statistics.median(found[side] for found in rounds) for side in (0, 1))
        print(f"| {title} | {low:.0f} | {high:.0f} | {low / high:.3f} |")
    print()


def measure_streams(proxy: Contestant, ports: Sequence[int], options: argparse.Namespace) -> None:
    """Prints the first byte of a large body, and memory while ten of them run."""

    async def compare() -> float:
        target = f"localhost:{ports[0]}"
        late = []
        for _ in range(options.rounds * 3):
            direct = await first_byte_ms(ports[0], target, proxied=False)
            late.append(await first_byte_ms(proxy.port, target, proxied=True) - direct)
        return statistics.median(late)

    late = asyncio.run(compare())
    most = asyncio.run(stream_many(proxy, ports[0], options.stream_mb * 1_000_000, 10))
    print(f"| streams of {options.stream_mb} MB by HTTP | |\n|---|---|")
    print(f"| first byte, later than direct | {late:.1f} ms |")
    shared = most - psutil.Process(proxy.pid).memory_full_info().uss / 1e6
    print(f"| most resident memory of the worker while ten run | {most:.0f} MB, of it shared with others {shared:.0f} MB |\n")


def measure_many(proxy: Contestant, ports: Sequence[int], options: argparse.Namespace) -> None:
    """Prints what becomes of requests while many connections are held."""
    answered, took = asyncio.run(hold_many(proxy, ports[0], options.idle, options.active, 10))
    print(f"| {options.idle:,} idle and {options.active:,} active connections | |\n|---|---|")
    print(f"| requests answered | {answered:,} of {options.active * 10:,}, {answered / took:.0f}/s |")
    print(f"| resident memory | {proxy.rss_mb():.0f} MB |\n")


def main() -> None:
    """Reads the options and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--connections", type=int, default=500, help="or requests, in each round")
    parser.add_argument("--stream-mb", type=int, default=400)
    parser.add_argument("--idle", type=int, default=2000)
    parser.add_argument("--active", type=int, default=500)
    options = parser.parse_args()
    raise_limit()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(folder / "origin-ca.pem"))
        authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(folder / "origin.pem"))
        ports = [free_port(), free_port()]
        origin = SPAWN.Process(target=run_origin, args=(ports, str(folder / "origin.pem")), daemon=True)
        origin.start()
        wait_for(ports[0])
        with (
            worker(folder / "spliced", "GatewayFilter, front door", [".localhost"]) as spliced,
            worker(folder / "opened", "GatewayFilter, intercepting", []) as opened_up,
            haproxy(folder, ports[0]) as relay,
        ):
            measure_splice(spliced, relay, ports, options)
            measure_https(spliced, opened_up, ports, folder, options)
            measure_many(spliced, ports, options)
        with forked(folder / "forked") as alone:
            measure_streams(alone, ports, options)
        origin.terminate()


if __name__ == "__main__":
    main()
